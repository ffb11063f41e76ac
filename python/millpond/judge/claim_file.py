"""Claims of a study as they are written in `claims.toml`: sentences, and the checks they come down to.

A check reads, for instance:

    [[claim.check]]
    metric = "fct"                      # see docs/appendix/metrics.md
    statistic = "median"                # or a list; left out: the usual one of the metric
    each = { clients = [200, 400], buffer_bytes = 2500, workload = ["continuous", "random"] }   # every combination
    of = { algorithm = "default" }      # whose number ...
    against = { algorithm = "cocoa" }   # ... beside whose; left out: beside the bounds alone
    quantity = "relative"               # (of - against) / against; or "difference"; or "value"
    is = "clearly lower"                # a word of the glossary, docs/glossary.md; or within = "similar"
    needed = "most"                     # of the points; left out: all

Where the study itself gives a number, it stands in place of a word: `as_the_study_says = -0.68`, a list of two for a
range, with `roughly = true` if the study says roughly. Bounds in numbers, `above`, `below` (strict), `at_least` and
`at_most`, are for what has no word; the claim's `reading` then says where they come from.

With `statistic_against = "min"` that statistic is taken of `against`: the slowest of one beside the fastest of all.
`of` and `against` take the point of `each` and change it. `partner` names the other half of a mix of populations.
A check that names no value of one of the plan's factors means the one in the plan's `[columns]`.
With `over = { algorithm = "cocoa" }` every number is taken as a share of that population's: ratios are compared.
With `informs = true` instead of bounds the comparison is shown beside the verdict and does not decide it.
A `[[figure]]` has the `id` of a published row and one such check, without bounds, for a figure that is a comparison
itself ("half a second faster") or about several places at once.
A `[[calibration]]` names the `rows`, figures or claims, by which a choice about the test bed was made: that they come
out right is no test of anything, so they are counted apart.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec

from millpond.errors import UsageError, unknown
from millpond.judge.checks import Check, Place
from millpond.judge.values import ANY, SHARE, Pick, known
from millpond.judge.words import CLOSENESS, NEEDED, STATES, Bounds, printed
from millpond.measure.estimate import Quantity
from millpond.measure.measures import Measures
from millpond.measure.metrics import ALIASES, METRICS
from millpond.measure.population import Population
from millpond.measure.statistics import known as known_statistic
from millpond.plan.toml_file import Declared, checked, read_tree, where
from millpond.results.factor import PATH, Value

_Flows = Literal["all", "with retransmissions", "without retransmissions"]
_Selector = dict[str, Any]


class CheckTable(Declared):
    """`[[claim.check]]`, as it is written."""

    metric: str
    statistic: list[str] | str = []
    each: _Selector = {}
    of: _Selector = {}
    against: _Selector | None = None
    over: _Selector | None = None
    quantity: Quantity | None = None
    state: str = msgspec.field(name="is", default="")
    within: str = ""
    as_the_study_says: list[float] | float | None = None
    roughly: bool = False
    above: float | None = None
    below: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    needed: str | float = "all"
    retransmissions: list[int] | int | None = None
    batch: Literal["any", "first", "later"] = "any"
    flows: _Flows = "all"
    flows_against: _Flows | None = None
    informs: bool = False
    statistic_against: str = ""


class _Figure(CheckTable):
    """`[[figure]]`, as it is written."""

    id: str = ""


class _Claim(Declared):
    """`[[claim]]`, as it is written."""

    id: str
    says: str
    check: list[CheckTable] = []
    reading: str = ""
    if_it_fails: str = ""
    unjudged: str = ""


class _Calibration(Declared):
    """`[[calibration]]`, as it is written."""

    reads: str
    rows: list[str]


class _File(Declared):
    claim: list[_Claim] = []
    figure: list[_Figure] = []
    calibration: list[_Calibration] = []


@dataclass(frozen=True)
class Claim:
    """One published sentence."""

    id: str
    says: str
    checks: tuple[Check, ...]
    #: How its words were read where the glossary does not say, e.g. what counts as "a few hundred milliseconds".
    reading: str = ""
    #: What is known about why it does not hold here, should it not.
    if_it_fails: str = ""
    #: Why no run can decide it.
    unjudged: str = ""


@dataclass(frozen=True)
class ClaimFile:
    """All that `claims.toml` says."""

    claims: Mapping[str, Claim] = field(default_factory=dict)
    #: Rows of published figures that are comparisons themselves, by their ids.
    figures: Mapping[str, Check] = field(default_factory=dict)
    #: What was read off rows, figures or claims, by their ids.
    calibration: Mapping[str, str] = field(default_factory=dict)


def read(file: Path, factors: Sequence[str], usual: Mapping[str, Value] | None = None) -> ClaimFile:
    """Read `claims.toml`.

    Args:
        file: The file.
        factors: The plan's factors.
        usual: The values that are meant where a check does not name such a factor.

    Raises:
        UsageError: with one line: file, key and fix.
    """
    told = checked(read_tree(file), _File, file)
    columns = _columns(factors)
    claims: dict[str, Claim] = {}
    for number, table in enumerate(told.claim):
        place = f"claim[{number}]"
        if bool(table.check) == bool(table.unjudged):
            raise UsageError(f"{where(file, place)}: a claim has either checks or a reason why it is unjudged")
        if table.id in claims:
            raise UsageError(f"{where(file, place)}: claim {table.id} is there twice")
        checks = (
            _check(entry, file, f"{place}.check[{n}]", columns, usual or {}, reading=bool(table.reading))
            for n, entry in enumerate(table.check)
        )
        claims[table.id] = Claim(table.id, table.says, tuple(checks), table.reading, table.if_it_fails, table.unjudged)
    for number, entry in enumerate(told.figure):
        if not entry.id:
            raise UsageError(f"{where(file, f'figure[{number}]')}: 'id' is missing")
    figures = {
        entry.id: _check(entry, file, f"figure[{n}]", columns, usual or {}, bounded=False)
        for n, entry in enumerate(told.figure)
    }
    return ClaimFile(claims, figures, {row: entry.reads for entry in told.calibration for row in entry.rows})


def unbounded(table: CheckTable, file: Path, place: str, factors: Sequence[str], usual: Mapping[str, Value]) -> Check:
    """A check that nothing is asked of: what it finds is told. Raises `UsageError` with one line."""
    return _check(table, file, place, _columns(factors), usual, bounded=False)


def pairs(check: Check, measures: Measures) -> list[tuple[Population, Population | None]]:
    """The points of a check, whatever the reading of the test bed. Raises `UsageError` if a factor is left open."""
    usual = {name: value for name, value in check.usual.items() if name in measures.varying}

    def population(told: Place) -> Population:
        return _population({**usual, **told}, measures)

    return [(population(mine), None if theirs is None else population(theirs)) for mine, theirs in check.places]


# ----------------------------------------------------------------------------------------------- helpers


def _columns(factors: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*factors, "algorithm", PATH, "partner")))


def _check(
    table: CheckTable,
    file: Path,
    place: str,
    columns: Sequence[str],
    usual: Mapping[str, Value],
    *,
    bounded: bool = True,
    reading: bool = False,
) -> Check:
    if not known(table.metric):
        raise UsageError(
            f"{where(file, place, 'metric')}: {unknown('metric', table.metric, [*METRICS, *ALIASES, SHARE])}"
        )
    statistics = tuple([table.statistic] if isinstance(table.statistic, str) else table.statistic)
    for name in statistics:
        if not known_statistic(name):
            raise UsageError(f"{where(file, place, 'statistic')}: unknown statistic {name!r}")
    if table.statistic_against and (table.against is None or not known_statistic(table.statistic_against)):
        raise UsageError(f"{where(file, place, 'statistic_against')}: a statistic of `against`, which must be there")
    against = None if table.against is None else _selector(table.against, file, f"{place}.against", columns)
    over = None if table.over is None else _selector(table.over, file, f"{place}.over", columns)
    if over is not None and any(len(values) != 1 for values in over.values()):
        raise UsageError(f"{where(file, place, 'over')}: names one population")
    quantity = table.quantity or ("value" if against is None else "relative")
    if (against is None) != (quantity == "value"):
        raise UsageError(
            f"{where(file, place, 'quantity')}: 'value' without `against`, 'relative' or 'difference' with it"
        )
    bounds, word = _bounds(table, file, place, quantity, reading) if bounded else (Bounds(), "")
    needed = table.needed
    if isinstance(needed, str) and needed not in NEEDED:
        raise UsageError(f"{where(file, place, 'needed')}: {unknown('word', needed, NEEDED)}")
    if not isinstance(needed, str) and not (0 < needed <= 1 and reading):
        raise UsageError(
            f"{where(file, place, 'needed')}: a share above 0 and up to 1, which the claim's `reading` explains; or a "
            f"word: {', '.join(NEEDED)}"
        )
    points = [
        ({**base, **mine}, None if theirs is None else {**base, **theirs})
        for base in _combinations(_selector(table.each, file, f"{place}.each", columns))
        for mine in _combinations(_selector(table.of, file, f"{place}.of", columns))
        for theirs in (_combinations(against) if against is not None else [None])
    ]
    told = (0, ANY) if table.retransmissions is None else table.retransmissions
    span = (told, told) if isinstance(told, int) else tuple(told)
    return Check(
        usual=usual,
        metric=table.metric,
        statistics=statistics,
        points=(),
        places=tuple(points),
        quantity=quantity,
        bounds=bounds,
        needed=needed,
        over=None if over is None else {name: values[0] for name, values in over.items()},
        pick=Pick(table.flows, (span[0], span[-1]), table.batch),
        pick_against=None if table.flows_against is None else Pick(flows=table.flows_against),
        informs=table.informs or not bounded,
        statistic_against=table.statistic_against,
        word=word,
    )


def _bounds(table: CheckTable, file: Path, place: str, quantity: str, reading: bool) -> tuple[Bounds, str]:
    """The bounds, and the word that they are; one way to say them, and no more."""
    numbers = Bounds(table.above, table.below, table.at_least, table.at_most)
    ways = [
        table.state != "",
        table.within != "",
        table.as_the_study_says is not None,
        numbers != Bounds(),
        table.informs,
    ]
    if sum(ways) != 1:
        raise UsageError(
            f"{where(file, place)}: {'no' if not any(ways) else 'several kinds of'} bounds: one of is, within, "
            "as_the_study_says, or above, below, at_least and at_most (or else informs = true)"
        )
    if table.state:
        if table.state not in STATES:
            raise UsageError(f"{where(file, place, 'is')}: {unknown('word', table.state, STATES)}")
        return STATES[table.state].bounds, table.state
    if table.within:
        if table.within not in CLOSENESS:
            raise UsageError(f"{where(file, place, 'within')}: {unknown('word', table.within, CLOSENESS)}")
        return CLOSENESS[table.within].bounds, table.within
    if isinstance(table.as_the_study_says, list):
        if len(table.as_the_study_says) != 2:
            raise UsageError(f"{where(file, place, 'as_the_study_says')}: one number, or the two ends of a range")
        return Bounds(at_least=table.as_the_study_says[0], at_most=table.as_the_study_says[1]), ""
    if table.as_the_study_says is not None:
        return printed(table.as_the_study_says, quantity == "relative", table.roughly), ""
    if numbers != Bounds() and not reading:
        raise UsageError(
            f"{where(file, place)}: bounds in numbers, and nothing says where they come from: give the claim a "
            "`reading`, the study's own number as as_the_study_says, or a word of the glossary"
        )
    return numbers, ""


def _selector(told: _Selector, file: Path, place: str, columns: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    for key in told:
        if key not in columns:
            raise UsageError(f"{where(file, place)}: {unknown('key', key, columns)}")
    return {key: tuple(value) if isinstance(value, list) else (value,) for key, value in told.items()}


def _combinations(selector: Mapping[str, tuple[Any, ...]]) -> list[dict[str, Any]]:
    return [dict(zip(selector, values, strict=True)) for values in itertools.product(*selector.values())]


def _population(told: Mapping[str, Any], measures: Measures) -> Population:
    known = (*told, *measures.usual_values, PATH)
    missing = [key for key in ("algorithm", *measures.varying) if key not in known]
    if missing:
        raise UsageError(f"a check says nothing about {', '.join(missing)}: add it to `each`")
    return measures.whole(Population.of(**told))
