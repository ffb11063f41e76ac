"""Claims of a study, from `claims.toml`: sentences, and the checks they come down to.

A check reads, for instance::

    [[claim.check]]
    metric = "fct"                      # see millpond.measure.metrics.METRICS
    statistic = "median"                # or a list; left out: the usual one of the metric
    each = { clients = [200, 400], buffer_bytes = 2500, workload = ["continuous", "random"] }   # every combination
    of = { algorithm = "default" }      # whose number ...
    against = { algorithm = "cocoa" }   # ... beside whose; left out: beside the bounds alone
    quantity = "relative"               # (of - against) / against; or "difference"; or "value"
    below = 0.0                         # bounds: above, below (strict), at_least, at_most

With `statistic_against = "min"` that statistic is taken of `against`: the slowest of one beside the fastest of all.
`of` and `against` take the point of `each` and change it. `partner` names the other half of a mix of populations.
A check that names no value of one of the plan's further columns means the one in the plan's `[columns]`.
With `over = { algorithm = "cocoa" }` every number is taken as a share of that population's: ratios are compared.
With `informs = true` instead of bounds the comparison is shown beside the verdict and does not decide it.
A `[[figure]]` has the `id` of a published row and one such check, without bounds, for a figure that is a comparison
itself ("half a second faster") or about several places at once.
Where a study was run on several path variants, a check must hold on each of them; or, if the plan reads them `apart`,
the claim is judged on each by itself, and the verdict on the first one counts.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from millpond.errors import UsageError, unknown
from millpond.judge.checks import Bounds, Check, Finding, Pick, Quantity, carry_out, known
from millpond.judge.compare import Judgement, Verdict
from millpond.measure.measures import Measures
from millpond.measure.metrics import METRICS
from millpond.measure.population import VARIANT, Population
from millpond.measure.statistics import known as known_statistic
from millpond.plan.plan import NUMBERS
from millpond.plan.toml_tree import Table, read_tree
from millpond.results.directory import BASE_COLUMNS, Value

_KEYS = (*BASE_COLUMNS, "partner")
_FLOWS = ("all", "with retransmissions", "without retransmissions")


@dataclass(frozen=True)
class CheckText:
    """A check as written: its points are found when it is known what was run."""

    usual: Mapping[str, Value]
    metric: str
    statistics: tuple[str, ...]
    each: Mapping[str, tuple[Any, ...]]
    of: Mapping[str, tuple[Any, ...]]
    against: Mapping[str, tuple[Any, ...]] | None
    quantity: Quantity
    bounds: Bounds
    needed: float
    over: Mapping[str, Any] | None
    pick: Pick
    pick_against: Pick | None
    informs: bool
    statistic_against: str = ""

    def resolve(self, measures: Measures, path: str = "") -> Check:
        """The check with its points: on every path variant, or on one."""
        points: list[tuple[Population, Population | None]] = []
        usual = {name: value for name, value in self.usual.items() if name in measures.varying}
        for base in ({**usual, **chosen} for chosen in _combinations(self.each)):
            for mine in _combinations(self.of):
                for theirs in _combinations(self.against) if self.against is not None else [None]:
                    of = _population({**base, **mine}, measures)
                    against = None if theirs is None else _population({**base, **theirs}, measures)
                    points.extend(on_every_path(measures, of, against, path))
        return Check(
            metric=self.metric,
            points=tuple(points),
            bounds=self.bounds,
            quantity=self.quantity,
            statistics=self.statistics,
            needed=self.needed,
            over=self.over,
            pick=self.pick,
            pick_against=self.pick_against,
            informs=self.informs,
            statistic_against=self.statistic_against,
        )


@dataclass(frozen=True)
class Claim:
    """One published sentence."""

    id: str
    says: str
    checks: tuple[CheckText, ...]
    #: How its words were read, e.g. what counts as "slightly".
    reading: str = ""
    #: What is known about why it does not hold here, should it not.
    if_it_fails: str = ""
    #: Why no run can decide it.
    unjudged: str = ""


def load(file: Path, further: Sequence[str] = (), usual: Mapping[str, Value] | None = None) -> dict[str, Claim]:
    """Read `claims.toml`.

    Args:
        file: The file.
        further: The plan's columns beyond those of every study.
        usual: The values that are meant where a check does not name such a column.

    Raises:
        UsageError: with one line: file, key and mend.
    """
    top = Table(read_tree(file), file)
    claims: dict[str, Claim] = {}
    for table in top.tables("claim"):
        claim = Claim(
            id=table.get("id", str),
            says=table.get("says", str),
            checks=tuple(_read_check(check, (*_KEYS, *further), usual or {}) for check in table.tables("check")),
            reading=table.get("reading", str, ""),
            if_it_fails=table.get("if_it_fails", str, ""),
            unjudged=table.get("unjudged", str, ""),
        )
        table.done()
        if bool(claim.checks) == bool(claim.unjudged):
            raise UsageError(f"{table.place}: a claim has either checks or a reason why it is unjudged")
        if claim.id in claims:
            raise UsageError(f"{table.place}: claim {claim.id} is there twice")
        claims[claim.id] = claim
    top.tables("figure")
    top.done()
    return claims


def load_figures(
    file: Path, further: Sequence[str] = (), usual: Mapping[str, Value] | None = None
) -> dict[str, CheckText]:
    """The comparisons that published rows are about, by their ids; arguments and errors as for `load`."""
    top = Table(read_tree(file), file)
    found = {}
    for table in top.tables("figure"):
        name = table.get("id", str)
        found[name] = _read_check(table, (*_KEYS, *further), usual or {}, bounded=False)
    return found


def judge(claim: Claim, measures: Measures, apart: bool = False) -> Verdict:
    """Judge one claim: it holds if every check does, and fails if any does.

    With `apart`, on each path variant by itself; the verdict is that of the first one, the others stand beside it.
    """
    if claim.unjudged:
        return Verdict(claim.id, claim.says, "unjudged", "", claim.unjudged)

    def findings(path: str) -> list[Finding]:
        return [carry_out(check.resolve(measures, path), measures) for check in claim.checks]

    def verdict(found: Iterable[Finding]) -> Verdict:
        return conclude(claim.id, claim.says, found, claim.reading, claim.if_it_fails)

    return on_each_path(measures, findings, verdict) if apart else verdict(findings(""))


def on_each_path(
    measures: Measures, findings: Callable[[str], Sequence[Finding]], verdict: Callable[[Sequence[Finding]], Verdict]
) -> Verdict:
    """The verdict on the first path variant, with those on the others; one that was run for less is left out."""
    found = {str(path): findings(str(path)) for path in measures.values(VARIANT)}
    missing = {path: sum(len(finding.missing) for finding in here) for path, here in found.items()}
    judged = {path: verdict(here) for path, here in found.items() if missing[path] == min(missing.values())}
    first = next(iter(judged.values()))
    return replace(first, variants=judged) if len(judged) > 1 else first


def conclude(name: str, says: str, findings: Iterable[Finding], reading: str = "", if_it_fails: str = "") -> Verdict:
    """One verdict of several findings."""
    found = list(findings)
    verdicts = {finding.verdict for finding in found}
    verdict: Judgement = "fails" if "fails" in verdicts else "unjudged" if "unjudged" in verdicts else "holds"
    reasons = list(dict.fromkeys(finding.reason for finding in found if finding.verdict == verdict and finding.reason))
    missing = dict.fromkeys(what for finding in found for what in finding.missing)
    if verdict == "unjudged" and missing:
        reasons.insert(0, f"not run: {', '.join(missing)}")
    if verdict == "fails" and if_it_fails:
        reasons.append(if_it_fails)
    elif verdict == "holds" and reading:
        reasons.append(reading)
    return Verdict(
        id=name,
        says=says,
        verdict=verdict,
        measured="; ".join(dict.fromkeys(finding.measured for finding in found if finding.measured)),
        reason="; ".join(reasons),
        points=tuple(point.line for finding in found for point in finding.points),
    )


def on_every_path(
    measures: Measures, of: Population, against: Population | None, only: str = ""
) -> list[tuple[Population, Population | None]]:
    """The point on the path it names, or, if it names none, on the first and on every other that was run for it.

    With `only`, on that one alone.
    """
    told = of.column(VARIANT)
    if told:
        return [] if only and told != only else [(of, against)]
    points: list[tuple[Population, Population | None]] = []
    for name in [only] if only else measures.values(VARIANT):
        there = {VARIANT: name}
        pair = (of.but(**there), against.but(**there) if against is not None else None)
        if not points or all(measures.has(population) for population in pair if population is not None):
            points.append(pair)
    return points


# ----------------------------------------------------------------------------------------------- helpers


def _read_check(table: Table, columns: Sequence[str], usual: Mapping[str, Value], bounded: bool = True) -> CheckText:
    metric = table.get("metric", str)
    if not known(metric):
        raise UsageError(f"{table.where('metric')}: {unknown('metric', metric, METRICS)}")
    statistics = tuple(table.items("statistic", str, []))
    for name in statistics:
        if not known_statistic(name):
            raise UsageError(f"{table.where('statistic')}: unknown statistic {name!r}")
    against = _read_selector(table.table("against"), columns) if "against" in table else None
    over = _read_selector(table.table("over"), columns) if "over" in table else None
    if over is not None and any(len(values) != 1 for values in over.values()):
        raise UsageError(f"{table.where('over')}: names one population")
    quantity = table.get("quantity", str, "value" if against is None else "relative")
    if quantity not in ("value", "relative", "difference") or (against is None) != (quantity == "value"):
        raise UsageError(f"{table.where('quantity')}: 'value' without `against`, 'relative' or 'difference' with it")
    bounds = Bounds(*(table.maybe(name, float) for name in ("above", "below", "at_least", "at_most")))
    informs = table.get("informs", bool, False) if bounded else True
    if (bounds == Bounds()) != informs:
        raise UsageError(f"{table.place}: no bounds: above, below, at_least or at_most (or else informs = true)")
    pick = _read_pick(table)
    check = CheckText(
        usual=usual,
        metric=metric,
        statistics=statistics,
        each=_read_selector(table.table("each"), columns),
        of=_read_selector(table.table("of"), columns),
        against=against,
        quantity=cast(Quantity, quantity),
        bounds=bounds,
        needed=table.get("needed", float, 1.0),
        over=None if over is None else {name: values[0] for name, values in over.items()},
        pick=pick,
        pick_against=Pick(flows=_flows(table, "flows_against")) if "flows_against" in table else None,
        informs=informs,
        statistic_against=table.get("statistic_against", str, ""),
    )
    if check.statistic_against and (against is None or not known_statistic(check.statistic_against)):
        raise UsageError(f"{table.where('statistic_against')}: a statistic of `against`, which must be there")
    table.done()
    return check


def _read_pick(table: Table) -> Pick:
    span = table.items("retransmissions", int, [0, 1_000_000])
    low, high = (span[0], span[0]) if len(span) == 1 else (span[0], span[1])
    batch = table.get("batch", str, "any")
    if batch not in ("any", "first", "later"):
        raise UsageError(f"{table.where('batch')}: {unknown('batch', batch, ['any', 'first', 'later'])}")
    return Pick(flows=_flows(table, "flows"), retransmissions=(low, high), batch=batch)


def _flows(table: Table, key: str) -> str:
    flows = table.get(key, str, "all")
    if flows not in _FLOWS:
        raise UsageError(f"{table.where(key)}: {unknown('choice of clients', flows, _FLOWS)}")
    return flows


def _read_selector(table: Table, columns: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    chosen: dict[str, tuple[Any, ...]] = {}
    for key in columns:
        if key in table:
            kind = int if key in NUMBERS else str if key in _KEYS else object
            chosen[key] = tuple(table.items(key, kind))
    table.done()
    return chosen


def _combinations(selector: Mapping[str, tuple[Any, ...]]) -> list[dict[str, Any]]:
    return [dict(zip(selector, values, strict=True)) for values in itertools.product(*selector.values())]


def _population(told: Mapping[str, Any], measures: Measures) -> Population:
    missing = [key for key in ("algorithm", *measures.varying) if key not in (*told, VARIANT)]
    if missing:
        raise UsageError(f"a check says nothing about {', '.join(missing)}: add it to `each`")
    return measures.whole(Population.of(**told))
