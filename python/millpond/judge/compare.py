"""Ours beside theirs: published figures, claims and settings, each with what was measured here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from millpond.results.directory import Value

Judgement = Literal["holds", "fails", "unjudged"]


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
    #: 95 % t-interval over replications of the same statistic taken per run; None with a single replication.
    interval: tuple[float, float] | None = None
    note: str = ""

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

    def to_json(self) -> dict[str, Any]:
        """The verdict for programs."""
        told: dict[str, Any] = {
            "id": self.id, "verdict": self.verdict, "measured": self.measured, "reason": self.reason
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

    def variants(self) -> tuple[str, ...]:
        """The path variants that claims were judged on one by one; none if they were judged on all together."""
        return tuple(dict.fromkeys(name for claim in self.claims for name in claim.variants))

    def counts(self, variant: str = "") -> dict[str, int]:
        """How many claims hold, fail and are unjudged; on a path variant if one is named."""
        tally = Counter(claim.variants.get(variant, claim).verdict for claim in self.claims)
        return {"holds": tally["holds"], "fails": tally["fails"], "unjudged": tally["unjudged"]}

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
                }
                for figure in self.figures
            ],
            "claims": [claim.to_json() for claim in self.claims],
        }
