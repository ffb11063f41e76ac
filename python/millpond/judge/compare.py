"""Ours beside theirs: published figures, claims and settings, each with what was measured here."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from millpond.judge.checks import Judgement
from millpond.measure.estimate import CONFIDENCE, Estimate
from millpond.results.factor import PATH, Factor, Value

#: What may come of a claim, in words.
OUTCOMES: Mapping[Judgement, str] = {
    "holds": "holds", "fails": "fails", "noise": "within the noise", "unjudged": "cannot be judged",
}  # fmt: skip

#: A figure is near the published one within this share of it.
NEAR = 0.05


@dataclass(frozen=True)
class Figure:
    """One published number and ours beside it, both in `unit`."""

    id: str
    #: The row's scenario columns, and `path` (`fixed` or `jittered`) where the study was run on both.
    scenario: Mapping[str, Value]
    metric: str
    #: `min`, `p10`, ..., `median`, `mean`, `max`, `count`, `percent`, `range_low`, ...
    statistic: str
    #: Further condition of the row, e.g. the number of retransmissions of a histogram column.
    bin: str
    #: How exact the text is: empty (as printed), `approx`, `gt`, ...
    qualifier: str
    unit: str
    published: float
    #: None if it could not be measured; `note` then says why.
    ours: float | None
    #: How many values `ours` is a statistic of.
    n: int = 0
    #: t-interval over replications of the same statistic taken per run; None with a single replication.
    interval: tuple[float, float] | None = None
    note: str = ""
    #: What was read off this figure when the test bed was built: that it comes out right is no test.
    calibrates: str = ""

    @property
    def relative(self) -> float | None:
        """(ours - published) / published; None if there is no `ours` or the published figure is 0."""
        if self.ours is None or self.published == 0:
            return None
        return (self.ours - self.published) / self.published


@dataclass(frozen=True)
class Verdict:
    """One published sentence, judged."""

    id: str
    says: str
    verdict: Judgement
    #: The measured figures the verdict stands on, in words. Empty if nothing was measured.
    measured: str
    #: Why it fails or cannot be judged; for one that holds, the reading of its words, if they needed one.
    reason: str
    #: Every single comparison made, one line each.
    points: tuple[str, ...] = ()
    #: Where a study is judged on each path variant by itself: the verdict on each, by its name. This one is the first.
    variants: Mapping[str, Verdict] = field(default_factory=dict)
    #: The comparison that the verdict hangs on: of those that came out like it the nearest to its bounds. A share or a
    #: change is a fraction, all else in the metric's base unit. None if nothing was measured.
    quantity: float | None = None
    #: How far inside its bounds that lies, in the same unit; negative outside.
    margin: float | None = None
    #: Its interval over the runs; None for an extreme, and for a single run.
    interval: Estimate | None = None
    #: Runs that it rests on.
    n: int = 0
    decided_by: str = ""
    #: What was read off this claim when the test bed was built: that it holds is no test.
    calibrates: str = ""

    @property
    def outcome(self) -> str:
        """The verdict in words: `holds`, `fails`, `within the noise` or `cannot be judged`."""
        return OUTCOMES[self.verdict]

    def to_json(self) -> dict[str, Any]:
        """The verdict for programs."""
        told: dict[str, Any] = {
            "id": self.id, "verdict": self.verdict, "measured": self.measured, "reason": self.reason,
            "outcome": self.outcome,
            "quantity": _finite(self.quantity),
            "margin": _finite(self.margin),
            "interval": None if self.interval is None else self.interval.interval and list(self.interval.interval),
            "n": self.n,
            "decided_by": self.decided_by,
            "calibrates": self.calibrates,
        }  # fmt: skip
        if self.variants:
            told["variants"] = {
                name: {"verdict": other.verdict, "measured": other.measured, "reason": other.reason}
                for name, other in self.variants.items()
            }
        return told


@dataclass(frozen=True)
class Setting:
    """One published setting of the test bed or of an algorithm, and ours."""

    id: str
    metric: str
    scenario: Mapping[str, Value]
    published: str
    ours: str
    same: bool
    note: str = ""


@dataclass(frozen=True)
class Comparison:
    """Everything published about a study, beside what was measured here."""

    study: str
    version: str
    figures: list[Figure] = field(default_factory=list)
    claims: list[Verdict] = field(default_factory=list)
    settings: list[Setting] = field(default_factory=list)
    #: Where the published figures came from: `built in` or the file given.
    published: str = "built in"
    #: What readings of the test bed are called.
    reading: Factor = field(default_factory=lambda: Factor(PATH))
    #: How sure intervals over runs are.
    confidence: float = CONFIDENCE

    def variants(self) -> tuple[str, ...]:
        """The path variants that claims were judged on one by one; none if they were judged on all together."""
        return tuple(dict.fromkeys(name for claim in self.claims for name in claim.variants))

    def counts(self, variant: str = "", *, calibrating: bool = False) -> dict[str, int]:
        """How many claims hold, fail, are within the noise and unjudged; on a path variant if one is named.

        Those that were used to read the test bed are left out; with `calibrating`, only they are counted.
        """
        asked = [claim for claim in self.claims if bool(claim.calibrates) == calibrating]
        tally = Counter(claim.variants.get(variant, claim).verdict for claim in asked)
        return {outcome: tally[outcome] for outcome in OUTCOMES}

    def tested(self, *, calibrating: bool = False) -> list[Figure]:
        """The figures that test the test bed; with `calibrating`, those by which it was read."""
        return [figure for figure in self.figures if bool(figure.calibrates) == calibrating]

    def closing(self) -> str:
        """One line: how the study stands, rows that test apart from those that the test bed was read by."""
        told = [_figures_told(self.tested())] if self.tested() else []
        told += self.claims_told()
        read = [figure for figure in self.tested(calibrating=True) if figure.ours is not None]
        claims = sum(self.counts(calibrating=True).values())
        if read or claims:
            counted = (len(read), "figure"), (claims, "claim")
            parts = [f"{number} {word}{'s' * (number > 1)}" for number, word in counted if number]
            told.append(f"apart from {' and '.join(parts)} by which the test bed was read")
        return "; ".join(told)

    def claims_told(self) -> list[str]:
        """How the claims that test the test bed stand, on each path variant if there are any."""
        told = []
        for name in self.variants() or ("",):
            where = f"{self.reading.say(name) or name}: " if name else ""
            told.append(where + _claims_told(self.counts(name)))
        return told

    def to_json(self) -> dict[str, Any]:
        """The comparison for programs: exactly what `--json` prints."""
        return {
            "study": self.study,
            "version": self.version,
            "figures": [
                {
                    "id": figure.id,
                    "scenario": dict(figure.scenario),
                    "metric": figure.metric,
                    "statistic": figure.statistic,
                    "published": figure.published,
                    "ours": figure.ours,
                    "relative": figure.relative,
                    "interval": None if figure.interval is None else list(figure.interval),
                    "n": figure.n,
                    "calibrates": figure.calibrates,
                }
                for figure in self.figures
            ],
            "claims": [claim.to_json() for claim in self.claims],
        }


# ----------------------------------------------------------------------------------------------- helpers


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _figures_told(figures: Sequence[Figure]) -> str:
    measured = [figure for figure in figures if figure.ours is not None]
    if not measured:
        return f"none of {len(figures)} figures is among what was run"
    near = sum(1 for figure in measured if figure.relative is not None and abs(figure.relative) <= NEAR)
    return f"{len(measured)} of {len(figures)} figures measured, {near} within {100 * NEAR:.0f} %"


def _claims_told(counts: Mapping[str, int]) -> str:
    judged = {outcome: number for outcome, number in counts.items() if outcome != "unjudged"}
    if not any(judged.values()):
        return f"none of {sum(counts.values())} claims can be judged by these runs"
    words = {
        "holds": ("claim holds", "claims hold"),
        "fails": ("fails", "fail"),
        "noise": ("is within the noise", "are within the noise"),
        "unjudged": ("cannot be judged by these runs", "cannot be judged by these runs"),
    }
    told = ((number, words[outcome]) for outcome, number in counts.items() if number or outcome == "holds")
    return ", ".join(f"{number} {one if number == 1 else many}" for number, (one, many) in told)
