"""What a study declares of its calibration: `calibration.toml` beside its plan.

tries = 400                                 # settings that are tried, the reading chosen before among them
quick = 40                                  # the same with --quick

[judged]                                    # what is run under the best setting; left out: all of the study
replications = 3
traffic = ["mixed"]
[cells]                                     # what is run of each setting: values of the plan's factors
traffic = ["mixed"]
[rows]                                      # published rows, by their ids
fit = ["burst23-r0075"]                     # those that choose the setting
test = ["burst23-r0148"]                    # those that it is tested on

[[parameter]]                               # a number that the paper does not print: any between two bounds
name = "queue"
label = "queues"
unit = "packets"
from = 1
to = 100
scale = "log"                               # every doubling as likely as any other; else every step
whole = true                                # no fractions
first = 100                                 # in the reading chosen before
set = { "network.links.bs-up.queue" = "{} packets" }
only = { algorithm = ["coap_plus"] }        # the cells that it changes; left out: all

[[parameter]]                               # or one of a few choices
name = "access"
first = "contiki27"
choices.contiki27 = { }
choices.contiki26 = { "mesh.access" = "contiki26" }
metrics.contiki26 = { delay = "rtt" }       # what a published metric then means
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from millpond.errors import UsageError, unknown
from millpond.judge.published import Published
from millpond.judge.published import read as read_published
from millpond.judge.rows import change_of
from millpond.measure.metrics import METRICS
from millpond.plan.factor import Only, read_only
from millpond.plan.keys import Count, Runs
from millpond.plan.plan import PathVariant, Plan
from millpond.plan.toml_file import Declared, checked, read_tree, where
from millpond.results.factor import ALGORITHM, PARTNER, Value

#: The file beside a plan.
FILE = "calibration.toml"
#: What the setting that is tried is called among readings of the test bed.
CALIBRATED = "calibrated"
#: Where in a text the value goes.
_HERE = "{}"
_RUNS: Any = Runs


class _ParameterTable(Declared):
    name: str
    first: str | int | float
    label: str = ""
    unit: str = ""
    low: float | None = msgspec.field(name="from", default=None)
    high: float | None = msgspec.field(name="to", default=None)
    scale: Literal["linear", "log"] = "linear"
    whole: bool = False
    set: dict[str, Any] = {}
    choices: dict[str, dict[str, Any]] = {}
    metrics: dict[str, dict[str, str]] = {}
    only: dict[str, Any] = {}
    where: dict[str, dict[str, Any]] = {}


class _RowsTable(Declared):
    fit: list[str]
    test: list[str]


class _File(Declared):
    tries: Count
    quick: Count
    rows: _RowsTable
    parameter: Annotated[list[_ParameterTable], msgspec.Meta(min_length=1)]
    cells: dict[str, Any] = {}
    judged: dict[str, Any] = {}


@dataclass(frozen=True)
class Parameter:
    """What a paper does not print: a number between two bounds, or one of a few choices."""

    name: str
    label: str
    unit: str
    first: Value
    low: float
    high: float
    is_log: bool
    is_whole: bool
    #: What it sets, with `{}` where its value goes.
    sets: Mapping[str, Any]
    #: What each choice sets; none for a number.
    choices: Mapping[str, Mapping[str, Any]]
    metrics: Mapping[str, Mapping[str, str]]
    only: Only
    #: Places that are set in some of these cells alone.
    where: Mapping[str, Only]

    def at(self, place: float) -> Value:
        """The value at a place from 0 to 1: all parts of the range, or all choices, are equally wide."""
        if self.choices:
            return list(self.choices)[min(int(place * len(self.choices)), len(self.choices) - 1)]
        log = self.is_log
        value = self.low * (self.high / self.low) ** place if log else self.low + (self.high - self.low) * place
        return round(value) if self.is_whole else float(f"{value:.4g}")

    def place(self, value: Value) -> float:
        """The reverse of `at`, of a choice its middle; of a value beyond a bound that bound."""
        if self.choices:
            return (list(self.choices).index(str(value)) + 0.5) / len(self.choices)
        number = min(max(float(value), self.low), self.high)
        if self.is_log:
            return math.log(number / self.low) / math.log(self.high / self.low)
        return (number - self.low) / (self.high - self.low)

    def changes(self, value: Value) -> dict[str, Any]:
        """What a value sets, by place."""
        return dict(self.choices[str(value)]) if self.choices else _filled(self.sets, value)


@dataclass(frozen=True)
class Calibration:
    """What a study declares."""

    plan: Plan
    file: Path
    tries: int
    quick: int
    cells: Mapping[str, tuple[Value, ...]]
    #: What rows and claims are judged by in the end, and in how many runs of each cell.
    judged: Mapping[str, tuple[Value, ...]]
    replications: int
    fit: tuple[str, ...]
    test: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    published: Published

    @property
    def first(self) -> dict[str, Value]:
        """The reading that was chosen before."""
        return {parameter.name: parameter.first for parameter in self.parameters}

    def metrics(self, setting: Mapping[str, Value]) -> dict[str, str]:
        """What published metrics mean with a setting."""
        found: dict[str, str] = {}
        for parameter in self.parameters:
            found.update(parameter.metrics.get(str(setting[parameter.name]), {}))
        return found

    def paths(self, setting: Mapping[str, Value]) -> tuple[PathVariant, ...]:
        """A setting as the one reading of the test bed, laid over the one that the plan has first."""
        parts: list[tuple[Only, dict[str, Any]]] = []
        for parameter in self.parameters:
            changes = parameter.changes(setting[parameter.name])
            apart = {place: value for place, value in changes.items() if place in parameter.where}
            rest = {place: value for place, value in changes.items() if place not in apart}
            parts += [(parameter.only, rest), *((parameter.where[place], {place: apart[place]}) for place in apart)]
        onlys = [only for n, (only, _) in enumerate(parts) if only.names and only not in [one for one, _ in parts[:n]]]
        found = []
        # the first one that covers a cell counts: those come first that are of the most kinds at once
        for size in range(len(onlys), -1, -1):
            for kinds in itertools.combinations(onlys, size):
                covered = _all_of(kinds)
                here = [changes for only, changes in parts if not only.names or only in kinds]
                if covered is not None:
                    merged = dict(self.plan.paths[0].changes) | {p: v for changes in here for p, v in changes.items()}
                    found.append(PathVariant(CALIBRATED, "calibrated: chosen by published rows", merged, covered))
        return tuple(found)


def read(plan: Plan) -> Calibration:
    """What lies beside a plan. Raises `UsageError` with one line: file, key and fix."""
    file = plan.folder / FILE
    if not file.is_file():
        raise UsageError(f"{plan.name}: its folder holds no {FILE}, which declares what a calibration may change")
    if plan.published is None:
        raise UsageError(f"{plan.file}: no `published`: a calibration needs published rows")
    top = checked(read_tree(file), _File, file)
    published = read_published(plan.published, "built in")
    replications = checked(top.judged.pop("replications", plan.replications), _RUNS, file, "judged.replications")
    cells, judged = (_cells(tree, plan, file, place) for place, tree in (("cells", top.cells), ("judged", top.judged)))
    for key, names in (("fit", top.rows.fit), ("test", top.rows.test)):
        _must_be_rows(names, published, plan, where(file, f"rows.{key}"))
    _must_be_mixed(top.rows.fit, published, plan, cells.get(ALGORITHM, plan.algorithms), where(file, "cells"))
    _must_be_mixed(top.rows.test, published, plan, plan.reading.algorithms, where(file, "rows.test"))
    both = [name for name in top.rows.fit if name in top.rows.test]
    if both:
        rest = f" and {len(both) - 1} more" if len(both) > 1 else ""
        raise UsageError(
            f"{where(file, 'rows')}: {both[0]}{rest} would both choose the setting and test it: leave it in one list"
        )
    names = [table.name for table in top.parameter]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"{where(file, 'parameter')}: two are called {twice!r}: rename one")
    parameters = tuple(_parameter(table, plan, file, f"parameter[{n}]") for n, table in enumerate(top.parameter))
    return Calibration(
        plan, file, top.tries, top.quick, cells, judged, replications, tuple(top.rows.fit), tuple(top.rows.test),
        parameters, published,
    )  # fmt: skip


# ----------------------------------------------------------------------------------------------- helpers


def _all_of(onlys: Sequence[Only]) -> Only | None:
    """The cells that all of these cover; None if there are none."""
    values: dict[str, tuple[Value, ...]] = {}
    within: dict[str, tuple[float, float]] = {}
    for only in onlys:
        for name, chosen in only.values.items():
            values[name] = tuple(value for value in values.get(name, chosen) if value in chosen)
        for name, (low, high) in only.within.items():
            before = within.get(name, (low, high))
            within[name] = max(low, before[0]), min(high, before[1])
    return Only(values, within) if all(values.values()) else None


def _cells(tree: Mapping[str, Any], plan: Plan, file: Path, place: str) -> dict[str, tuple[Value, ...]]:
    found = dict(read_only(tree, file, place, plan.factors).values)
    if all(matrix.kept(found) is None for matrix in plan.matrices):
        raise UsageError(f"{where(file, place)}: no matrix of the plan has such cells")
    return found


def _must_be_rows(names: Sequence[str], published: Published, plan: Plan, place: str) -> None:
    known = {row.id: row for row in published.rows}
    if not names:
        raise UsageError(f"{place}: an empty list: name rows of {plan.published}")
    for name in names:
        if name not in known:
            raise UsageError(f"{place}: {unknown('row', name, known)}")
        row = known[name]
        why = next(
            (plan.reading.unmeasured[key] for key in (name, row["metric"]) if key in plan.reading.unmeasured), ""
        )
        if row.value is None or row["category"] != "result" or (row.is_claim and change_of(row) is None):
            why = "it is no measured number"
        if why:
            raise UsageError(f"{place}: {name} cannot be compared: {why}")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"{place}: {twice} stands there twice")


def _must_be_mixed(names: Sequence[str], published: Published, plan: Plan, run: Sequence[Value], place: str) -> None:
    """Raises `UsageError` if a row is of a mix that the plan does not have of the algorithms that are run."""
    mixes = [set(mix.algorithms) for mix in plan.mixes if set(mix.algorithms) <= set(run)]
    for row in published.rows:
        if row.id in names and row[PARTNER]:
            missing = [name for name in row.list(ALGORITHM) if {name, *row.list(PARTNER)} not in mixes]
            if missing:
                raise UsageError(f"{place}: {row.id} is of a mix of {missing[0]} and {row[PARTNER]}: there is none")


def _parameter(table: _ParameterTable, plan: Plan, file: Path, place: str) -> Parameter:
    here = where(file, place)
    first: Value = table.first
    if table.choices:
        if table.low is not None or table.high is not None or table.set:
            raise UsageError(f"{here}: choices or a range: leave one of the two out")
        if str(first) not in table.choices:
            raise UsageError(f"{here}.first: {unknown('choice', str(first), table.choices)}")
        for word, metrics in table.metrics.items():
            if word not in table.choices:
                raise UsageError(f"{here}.metrics: {unknown('choice', word, table.choices)}")
            for name in metrics.values():
                if name not in METRICS:
                    raise UsageError(f"{here}.metrics.{word}: {unknown('metric', name, METRICS)}")
    else:
        if table.low is None or table.high is None or not table.low < table.high:
            raise UsageError(f"{here}: a range needs `from` below `to`, or else write `choices`")
        if table.scale == "log" and table.low <= 0:
            raise UsageError(f"{here}.from: {table.low:g} on a scale of doublings: write a number above 0")
        if isinstance(first, str) or not table.low <= first <= table.high:
            raise UsageError(f"{here}.first: {first!r} is not within the range: it is the reading chosen before")
        if _HERE not in repr(table.set):
            raise UsageError(f"{here}.set: write {{}} where the value goes")
    only = read_only(table.only, file, f"{place}.only", plan.factors)
    limits = {
        spot: read_only({**table.only, **tree}, file, f"{place}.where.{spot}", plan.factors)
        for spot, tree in table.where.items()
    }
    reached = {*table.set, *(spot for sets in table.choices.values() for spot in sets)}
    if stray := next((spot for spot in limits if spot not in reached), None):
        raise UsageError(f"{here}.where: {unknown('place', stray, sorted(reached))}")
    return Parameter(
        table.name, table.label or table.name, table.unit, first, table.low or 0.0, table.high or 0.0,
        table.scale == "log", table.whole, table.set, table.choices, table.metrics, only, limits,
    )  # fmt: skip


def _filled(written: Any, value: Value) -> Any:
    """What is written with the value in the place of `{}`, as a number where nothing else stands there."""
    if isinstance(written, str):
        return value if written == _HERE else written.replace(_HERE, _plain(value))
    if isinstance(written, Mapping):
        return {key: _filled(entry, value) for key, entry in written.items()}
    return [_filled(entry, value) for entry in written] if isinstance(written, list) else written


def _plain(value: Value) -> str:
    """A number without an exponent."""
    return f"{value:.12f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
