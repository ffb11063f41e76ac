"""Claims of a study, from `claims.toml`: sentences, and the checks they come down to.

A check reads, for instance::

    [[claim.check]]
    metric = "fct"                      # see millpond.metrics.METRICS; also share_of_exchanges, congestion_collapse
    statistic = "median"                # or a list; left out: the usual one of the metric
    each = { clients = [200, 400], buffer_bytes = 2500, workload = ["continuous", "random"] }   # every combination
    of = { algorithm = "default" }      # whose number ...
    against = { algorithm = "cocoa" }   # ... beside whose; left out: beside the bounds alone
    quantity = "relative"               # (of - against) / against; or "difference"; or "value"
    below = 0.0                         # bounds: above, below (strict), at_least, at_most

`of` and `against` take the point of `each` and change it. `partner` names the other half of a mix of populations.
With `informs = true` instead of bounds the comparison is shown beside the verdict and does not decide it.
Where a study was run on several path variants, a check must hold on each of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from millpond.checks import Bounds, Check, Finding, Pick, Quantity, carry_out, known
from millpond.compare import Judgement, Verdict
from millpond.errors import UsageError, unknown
from millpond.metrics import METRICS, Measures, Population
from millpond.statistics import known as known_statistic
from millpond.toml_tree import Table, read_tree

_KEYS = ("clients", "buffer_bytes", "workload", "algorithm", "partner", "path")
_FLOWS = ("all", "with retransmissions", "without retransmissions")


@dataclass(frozen=True)
class CheckText:
    """A check as written: its points are found when it is known what was run."""

    metric: str
    statistics: tuple[str, ...]
    each: Mapping[str, tuple[Any, ...]]
    of: Mapping[str, tuple[Any, ...]]
    against: Mapping[str, tuple[Any, ...]] | None
    quantity: Quantity
    bounds: Bounds
    needed: float
    pick: Pick
    pick_against: Pick | None
    informs: bool

    def resolve(self, measures: Measures) -> Check:
        """The check with its points."""
        points: list[tuple[Population, Population | None]] = []
        for base in _combinations(self.each):
            for mine in _combinations(self.of):
                for theirs in _combinations(self.against) if self.against is not None else [None]:
                    of = _population({**base, **mine})
                    against = None if theirs is None else _population({**base, **theirs})
                    points.extend(on_every_path(measures, of, against))
        return Check(
            metric=self.metric,
            points=tuple(points),
            bounds=self.bounds,
            quantity=self.quantity,
            statistics=self.statistics,
            needed=self.needed,
            pick=self.pick,
            pick_against=self.pick_against,
            informs=self.informs,
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


def load(file: Path) -> dict[str, Claim]:
    """Read `claims.toml`. Raises `UsageError` with one line: file, key and mend."""
    top = Table(read_tree(file), file)
    claims: dict[str, Claim] = {}
    for table in top.tables("claim"):
        claim = Claim(
            id=table.get("id", str),
            says=table.get("says", str),
            checks=tuple(_read_check(check) for check in table.tables("check")),
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
    top.done()
    return claims


def judge(claim: Claim, measures: Measures) -> Verdict:
    """Judge one claim: it holds if every check does, and fails if any does."""
    if claim.unjudged:
        return Verdict(claim.id, claim.says, "unjudged", "", claim.unjudged)
    findings = [carry_out(check.resolve(measures), measures) for check in claim.checks]
    return conclude(claim.id, claim.says, findings, claim.reading, claim.if_it_fails)


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
    measures: Measures, of: Population, against: Population | None
) -> list[tuple[Population, Population | None]]:
    """The point on the path it names, or, if it names none, on the first and on every other that was run for it."""
    if of.path:
        return [(of, against)]
    names = list(dict.fromkeys(population.path for population in measures.populations())) or ["fixed"]
    first = (of.but(path=names[0]), against.but(path=names[0]) if against is not None else None)
    points = [first]
    for name in names[1:]:
        pair = (of.but(path=name), against.but(path=name) if against is not None else None)
        if all(measures.has(population) for population in pair if population is not None):
            points.append(pair)
    return points


# ----------------------------------------------------------------------------------------------- helpers


def _read_check(table: Table) -> CheckText:
    metric = table.get("metric", str)
    if not known(metric):
        raise UsageError(f"{table.where('metric')}: {unknown('metric', metric, METRICS)}")
    statistics = tuple(table.items("statistic", str, []))
    for name in statistics:
        if not known_statistic(name):
            raise UsageError(f"{table.where('statistic')}: unknown statistic {name!r}")
    against = _read_selector(table.table("against")) if "against" in table else None
    quantity = table.get("quantity", str, "value" if against is None else "relative")
    if quantity not in ("value", "relative", "difference") or (against is None) != (quantity == "value"):
        raise UsageError(f"{table.where('quantity')}: 'value' without `against`, 'relative' or 'difference' with it")
    bounds = Bounds(*(table.maybe(name, float) for name in ("above", "below", "at_least", "at_most")))
    informs = table.get("informs", bool, False)
    if (bounds == Bounds()) != informs:
        raise UsageError(f"{table.place}: no bounds: above, below, at_least or at_most (or else informs = true)")
    pick = _read_pick(table)
    check = CheckText(
        metric=metric,
        statistics=statistics,
        each=_read_selector(table.table("each")),
        of=_read_selector(table.table("of")),
        against=against,
        quantity=cast(Quantity, quantity),
        bounds=bounds,
        needed=table.get("needed", float, 1.0),
        pick=pick,
        pick_against=Pick(flows=_flows(table, "flows_against")) if "flows_against" in table else None,
        informs=informs,
    )
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


def _read_selector(table: Table) -> dict[str, tuple[Any, ...]]:
    chosen: dict[str, tuple[Any, ...]] = {}
    for key in _KEYS:
        if key in table:
            kind = int if key in ("clients", "buffer_bytes") else str
            chosen[key] = tuple(table.items(key, kind))
    table.done()
    return chosen


def _combinations(selector: Mapping[str, tuple[Any, ...]]) -> list[dict[str, Any]]:
    return [dict(zip(selector, values, strict=True)) for values in itertools.product(*selector.values())]


def _population(told: Mapping[str, Any]) -> Population:
    missing = [key for key in ("clients", "buffer_bytes", "workload", "algorithm") if key not in told]
    if missing:
        raise UsageError(f"a check says nothing about {', '.join(missing)}: add it to `each`")
    return Population(
        clients=told["clients"],
        buffer_bytes=told["buffer_bytes"],
        workload=told["workload"],
        algorithm=told["algorithm"],
        path=told.get("path", ""),
        partner=told.get("partner", ""),
    )
