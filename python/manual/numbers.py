"""Numbers of ours that a study's page tells: how each is measured, and what a full run gave.

`page.toml` beside the plan says how a number is found, as a check of `claims.toml` without bounds:

    [[number]]
    id = "last"
    metric = "fct"
    statistic = "max"
    each = { clients = 400, buffer_bytes = 1410000, workload = "continuous", algorithm = ["default", "default_fb2"] }

It has one value for each point, in the order of the lists. `told = "range"` makes two of them, the least and the
greatest, `"least"` or `"greatest"` one, `"half"` is half of each one's interval over runs, and `"lower"` or `"higher"`
counts the points at which `of` is lower or higher than `against`. `unit` is the unit in which the page tells it
(`"percent"`, `"kB"`); changes are told in percent. With `less = true` the page tells by how much something is less,
with `per = 50` a fiftieth of the value. A number that names no reading of the test bed means the first one.

How near ours come to published figures is told by the farthest of those rows of `published.csv` that have these texts
in these columns, in percent, on the first reading of the test bed:

    [[farthest]]
    id = "fifty"
    rows = { metric = "fct", clients = "50", buffer_bytes = "14100" }

`measured.csv` keeps the values of a full run, so that a test can hold the page to them without running the study.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from millpond.errors import UsageError, unknown
from millpond.given_files import read_text
from millpond.judge.checks import Check, Point, carry_out
from millpond.judge.claim_file import CheckTable, unbounded
from millpond.judge.claims import resolved
from millpond.judge.compare import Figure
from millpond.judge.figures import match
from millpond.judge.published import COLUMNS, Row
from millpond.judge.published import read as read_published
from millpond.judge.values import usual
from millpond.measure.measures import Measures
from millpond.measure.metrics import METRICS
from millpond.plan.plan import Plan
from millpond.plan.toml_file import Declared, checked, read_tree, where
from millpond.results.factor import PATH

PAGE, MEASURED = "page.toml", "measured.csv"
#: Digits of what is kept: more than any page tells.
DIGITS = 7

_COLUMNS = ("id", "point", "value", "of")

#: What becomes of the values at all points.
Told = Literal["each", "range", "half", "least", "greatest", "lower", "higher"]


class _Number(CheckTable):
    """`[[number]]`, as it is written."""

    id: str = ""
    told: Told = "each"
    unit: str = ""
    less: bool = False
    per: float = 1.0


class _Farthest(Declared):
    """`[[farthest]]`, as it is written."""

    id: str
    rows: dict[str, list[str] | str]


class _File(Declared):
    number: list[_Number] = []
    farthest: list[_Farthest] = []


@dataclass(frozen=True)
class Number:
    """A number of the page, or several that are found alike."""

    id: str
    check: Check
    told: Told
    #: What a value in the base unit is multiplied by to be told; negative where less is told.
    factor: float


@dataclass(frozen=True)
class Farthest:
    """How far, in percent, ours is from that published figure of some from which it is farthest."""

    id: str
    #: The texts that their rows have, by column.
    rows: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Value:
    """What one number came to, in the unit in which it is told, and what it is of, in words."""

    value: float
    of: str


#: The values of every number, by its id and in the order of its points.
Kept = Mapping[str, Sequence[Value]]


def read(folder: Path, plan: Plan) -> dict[str, Number | Farthest]:
    """The numbers of a study's page; none if it has no `page.toml`. Raises `UsageError`: file, key and fix."""
    file = folder / PAGE
    if not file.is_file():
        return {}
    told = checked(read_tree(file), _File, file)
    found: list[Number | Farthest] = []
    for position, table in enumerate(told.number):
        place = f"number[{position}]"
        check = unbounded(table, file, place, plan.factors, plan.columns)
        found.append(Number(table.id, check, table.told, _factor(table, check, file, place)))
    for position, row in enumerate(told.farthest):
        for column in row.rows:
            if column not in (known := (*COLUMNS, *plan.factors)):
                raise UsageError(f"{where(file, f'farthest[{position}].rows')}: {unknown('column', column, known)}")
        rows = {column: (texts,) if isinstance(texts, str) else tuple(texts) for column, texts in row.rows.items()}
        found.append(Farthest(row.id, rows))
    numbers = {number.id: number for number in found}
    if len(numbers) < len(found) or "" in numbers:
        raise UsageError(f"{file}: each number needs an id of its own")
    return numbers


def measure(
    numbers: Iterable[Number | Farthest], measures: Measures, plan: Plan, whole: AbstractSet[str]
) -> dict[str, list[Value]]:
    """What the numbers come to, those left out for which no run of the study's is there.

    `whole` are the ids of the cells that were run as the study has them.
    """
    figures: list[tuple[Row, Figure]] | None = None
    found = {}
    for number in numbers:
        if isinstance(number, Number):
            found[number.id] = _measured(number, measures, plan, whole)
            continue
        if figures is None:
            figures = _figures(measures, plan) if whole >= {cell.id for cell in measures.cells} else []
        found[number.id] = _farthest(number, figures, plan)
    return {name: values for name, values in found.items() if values}


def kept(folder: Path) -> dict[str, list[Value]]:
    """What a full run gave, as it is kept beside the plan; nothing if none is. Raises `UsageError`."""
    file = folder / MEASURED
    if not file.is_file():
        return {}
    values: dict[str, list[Value]] = {}
    try:
        for row in csv.DictReader(io.StringIO(read_text(file)), strict=True):
            values.setdefault(row["id"], []).append(Value(float(row["value"]), row["of"]))
    except (KeyError, TypeError, ValueError, csv.Error) as error:
        raise UsageError(f"{file}: no table of {', '.join(_COLUMNS)}: {error}") from None
    return values


def table(values: Kept) -> str:
    """The text of `measured.csv`."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(_COLUMNS)
    for name, points in values.items():
        rows.writerows([name, point, f"{one.value:.{DIGITS}g}", one.of] for point, one in enumerate(points, start=1))
    return text.getvalue()


# ----------------------------------------------------------------------------------------------- helpers


def _measured(number: Number, measures: Measures, plan: Plan, whole: AbstractSet[str]) -> list[Value]:
    named = (side for point in number.check.places for side in point if side is not None)
    path = "" if any(PATH in factors for factors in named) else plan.paths[0].name
    check = resolved(number.check, measures, path)
    # a page tells medians beside printed ones: of single clients those over the runs
    check = replace(check, statistics=check.statistics or tuple(filter(None, (usual(check.metric),))))
    points = carry_out(check, measures).points
    sides = [side for point in points for side in (point.of, point.against) if side is not None]
    over = number.check.over
    sides += [] if over is None else [side.but(**over) for side in sides]
    if len(points) < len(check.points) * max(1, len(check.statistics)):
        return []
    if not points or not all(measures.cell(side).id in whole for side in sides):
        return []
    return [Value(number.factor * value, of) for value, of in _values(number, points)]


def _figures(measures: Measures, plan: Plan) -> list[tuple[Row, Figure]]:
    if plan.published is None:
        return []
    published = read_published(plan.published)
    rows = {row.id: row for row in published.rows}
    return [(rows[figure.id], figure) for figure in match(published, measures, plan.reading)]


def _farthest(number: Farthest, figures: Sequence[tuple[Row, Figure]], plan: Plan) -> list[Value]:
    path = plan.paths[0].name
    here = [
        figure
        for row, figure in figures
        if all(row[column] in texts for column, texts in number.rows.items())
        and figure.scenario.get("path", path) == path
    ]
    if not here or any(figure.ours is None for figure in here):
        return []
    far = max(here, key=lambda figure: abs(figure.relative or 0.0))
    told = f"{far.id}, the farthest of {len(here)}: {far.ours:.6g}, published {far.published:g} {far.unit}"
    return [Value(100 * abs(far.relative or 0.0), told)]


def _factor(table: _Number, check: Check, file: Path, place: str) -> float:
    if table.told in ("lower", "higher"):
        return 1.0
    unit = table.unit or ("percent" if check.quantity == "relative" else "")
    metric = METRICS.known(table.metric)
    shares = {"percent": 100.0, "": 1.0}
    factor = shares.get(unit) if metric is None or check.quantity == "relative" else metric.factor(unit)
    if factor is None:
        raise UsageError(f"{where(file, place, 'unit')}: {table.metric} cannot be told in {unit!r}")
    return (-factor if table.less else factor) / table.per


def _values(number: Number, points: Sequence[Point]) -> list[tuple[float, str]]:
    each = [(point.quantity, point.line) for point in points]
    low, high = min(each), max(each)
    if number.told == "half":
        spans = [(point.interval, point.line) for point in points]
        return [(span.half, f"half of the interval of {line}") for span, line in spans if span]
    if number.told == "range":
        return [low, high] if number.factor > 0 else [high, low]
    if number.told in ("lower", "higher"):
        count = sum(point.quantity < 0 if number.told == "lower" else point.quantity > 0 for point in points)
        return [(count, f"{number.told} at {count} of {len(points)} points")]
    if number.told == "least":
        return [low]
    return [high] if number.told == "greatest" else each
