"""Claims judged: a verdict each, of the findings of its checks.

Where a study was run on several readings of its test bed, a check must hold on each of them; or, if the plan reads them
`apart`, the claim is judged on each by itself, and the verdict on the first one counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from millpond.judge.checks import Check, Finding, Judgement, carry_out
from millpond.judge.claim_file import Claim, pairs
from millpond.judge.compare import Verdict
from millpond.measure.estimate import CONFIDENCE
from millpond.measure.measures import Measures
from millpond.measure.population import Population
from millpond.results.factor import PATH

#: The outcome of a claim is the first of these that one of its checks has.
_WORST_FIRST: tuple[Judgement, ...] = ("fails", "unjudged", "noise", "holds")


def judge(claim: Claim, measures: Measures, apart: bool = False, sure: float = CONFIDENCE) -> Verdict:
    """Judge one claim: it holds if every check does, and fails if any does.

    With `apart`, on each reading of the test bed by itself; the verdict is that of the first one, the others stand
    beside it. Intervals are as sure as `sure` says.
    """
    if claim.unjudged:
        return Verdict(claim.id, claim.says, "unjudged", "", claim.unjudged)

    def findings(path: str) -> list[Finding]:
        return [carry_out(resolved(check, measures, path, sure), measures) for check in claim.checks]

    def verdict(found: Iterable[Finding]) -> Verdict:
        return conclude(claim.id, claim.says, found, claim.reading, claim.if_it_fails)

    return on_each_path(measures, findings, verdict) if apart else verdict(findings(""))


def resolved(check: Check, measures: Measures, path: str = "", sure: float = CONFIDENCE) -> Check:
    """The check with its points: on every reading of the test bed, or on one."""
    points = [pair for of, against in pairs(check, measures) for pair in on_every_path(measures, of, against, path)]
    return replace(check, points=tuple(points), sure=sure)


def on_each_path(
    measures: Measures, findings: Callable[[str], Sequence[Finding]], verdict: Callable[[Sequence[Finding]], Verdict]
) -> Verdict:
    """The verdict on the first reading, with those on the others; one that was run for less is left out."""
    found = {str(path): findings(str(path)) for path in measures.values(PATH) or ("",)}
    missing = {path: sum(len(finding.missing) for finding in here) for path, here in found.items()}
    judged = {path: verdict(here) for path, here in found.items() if missing[path] == min(missing.values())}
    first = next(iter(judged.values()))
    return replace(first, variants=judged) if len(judged) > 1 else first


def conclude(name: str, says: str, findings: Iterable[Finding], reading: str = "", if_it_fails: str = "") -> Verdict:
    """One verdict of several findings."""
    found = list(findings)
    outcomes = {finding.verdict for finding in found}
    outcome: Judgement = next((outcome for outcome in _WORST_FIRST if outcome in outcomes), "unjudged")
    reasons = list(dict.fromkeys(finding.reason for finding in found if finding.verdict == outcome and finding.reason))
    missing = dict.fromkeys(what for finding in found for what in finding.missing)
    if outcome == "unjudged" and missing:
        reasons.insert(0, f"not run: {', '.join(missing)}")
    if outcome == "fails" and if_it_fails:
        reasons.append(if_it_fails)
    elif outcome == "holds" and reading:
        reasons.append(reading)
    decisive = min(
        (point for finding in found if finding.verdict == outcome and (point := finding.decisive) is not None),
        key=lambda point: point.margin,
        default=None,
    )
    return Verdict(
        id=name,
        says=says,
        verdict=outcome,
        measured="; ".join(dict.fromkeys(finding.measured for finding in found if finding.measured)),
        reason="; ".join(reasons),
        points=tuple(point.line for finding in found for point in finding.points),
        quantity=None if decisive is None else decisive.quantity,
        margin=None if decisive is None else decisive.margin,
        interval=None if decisive is None or decisive.interval is None else decisive.interval,
        n=0 if decisive is None else decisive.runs,
        decided_by="" if decisive is None else decisive.line,
    )


def on_every_path(
    measures: Measures, of: Population, against: Population | None, only: str = ""
) -> list[tuple[Population, Population | None]]:
    """The point on the reading it names, or, if it names none, on the first and on every other that was run for it.

    With `only`, on that one alone.
    """
    told = of.column(PATH)
    if told:
        return [] if only and told != only else [(of, against)]
    points: list[tuple[Population, Population | None]] = []
    for name in [only] if only else measures.values(PATH):
        there = {PATH: name}
        pair = (of.but(**there), against.but(**there) if against is not None else None)
        if not points or all(measures.has(population) for population in pair if population is not None):
            points.append(pair)
    # results of a plan without readings have no such factor
    return points if measures.values(PATH) else [(of, against)]
