"""A diagnosis beside the truth: retransmissions told right and wrong, figures off, bounds violated."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from millpond.diagnose.analysis import Diagnosis, Grade
from millpond.diagnose.ends import End, Seen
from millpond.diagnose.repeat import NEAR
from millpond.diagnose.truth import Truth

#: An exact figure may be off by so much of its value, a loss by so many points.
EXACT, EXACT_LOSS = 0.03, 0.01
#: Bounds are numbers that were rounded.
ROUNDED, ROUNDED_LOSS = 0.002, 0.002

#: Of `Truth.bottleneck_ratio` and `Truth.spurious_share`: below, a third and four fifths, as in the words of verdicts.
COLLAPSE, HEALTHY, MANY_SPURIOUS = 1 / 3, 0.8, 0.2


@dataclass(frozen=True)
class Labels:
    """How retransmissions were told that an end sees as such."""

    seen: int
    unknown: int
    #: By the word, *spurious* or *needed*: so many are, so many were told to be, and so many of these rightly.
    true: Mapping[str, int]
    told: Mapping[str, int]
    right: Mapping[str, int]


@dataclass(frozen=True)
class Figure:
    """A figure beside its truth."""

    value: float | None
    grade: Grade
    truth: float

    @property
    def error(self) -> float | None:
        """Relative, of its truth; None for what is not told, or where the truth is 0."""
        return None if self.value is None or self.truth == 0 else self.value / self.truth - 1

    def is_violated(self, place: str) -> bool:
        """Whether it is a bound on the wrong side of the truth, or exact and is not."""
        if self.value is None:
            return False
        loss = place.endswith("loss")
        within, rounded = (EXACT_LOSS, ROUNDED_LOSS) if loss else (EXACT * self.truth, ROUNDED * self.truth)
        off = self.value - self.truth
        return {
            "exact": abs(off) > within,
            "at-least": off > rounded,
            "at-most": off < -rounded,
        }.get(self.grade, False)


@dataclass(frozen=True)
class Score:
    """One capture, scored."""

    name: str
    kind: str
    end: End
    verdict: str
    true_verdict: str
    devices: int
    true_devices: int
    goodput_ratio: float | None
    true_goodput_ratio: float
    labels: Labels
    figures: Mapping[str, Figure]
    #: How far runs of what was written from the diagnosis are off, by what was compared; empty if there were none.
    repeated: Mapping[str, float] = field(default_factory=dict)

    @property
    def repeats(self) -> bool:
        """Whether all of that is within a tenth."""
        return all(abs(off) <= NEAR for off in self.repeated.values() if not math.isnan(off))

    def to_json(self) -> dict[str, Any]:
        """As a program reads it back with `from_json`."""
        return asdict(self)

    @staticmethod
    def from_json(told: Mapping[str, Any]) -> Score:
        """What `to_json` gave."""
        figures = {place: Figure(**figure) for place, figure in told["figures"].items()}
        return Score(**{**told, "labels": Labels(**told["labels"]), "figures": figures})

    @property
    def violations(self) -> list[str]:
        """The places of the figures that are wrong by what their grade says."""
        return [place for place, figure in self.figures.items() if figure.is_violated(place)]


def score(found: Diagnosis, truth: Truth, end: End, name: str, kind: str = "") -> Score:
    """Put a diagnosis of what an end saw beside the truth.

    Args:
        found: The diagnosis.
        truth: What is true of the run.
        end: Where it was captured.
        name: What the capture is called.
        kind: Its workload, for tables.
    """
    told = found.figures
    figures = {}
    for place, true in truth.figures.items():
        figure: Any = told
        for step in place.split("."):
            figure = (figure or {}).get(step)
        if figure is not None:
            figures[place] = Figure(figure["value"], figure["grade"], true)
    return Score(
        name=name,
        kind=kind,
        end=end,
        verdict=str(told["verdict"]),
        true_verdict=verdict(truth),
        devices=int(told["devices"]),
        true_devices=truth.devices,
        goodput_ratio=told["goodput_ratio"],
        true_goodput_ratio=truth.goodput_ratio,
        labels=_labels(found, truth.labels(end)),
        figures=figures,
    )


def verdict(truth: Truth) -> str:
    """The word that is right for a run: by its goodput ratio, and by its spurious retransmissions."""
    if truth.bottleneck_ratio < COLLAPSE:
        return "collapse"
    strained = truth.bottleneck_ratio < HEALTHY or truth.spurious_share > MANY_SPURIOUS
    return "strained" if strained else "healthy"


@dataclass(frozen=True)
class Accuracy:
    """Many scores together."""

    scores: Sequence[Score]

    def share(self, what: Literal["precision", "recall"], word: str) -> float:
        """Of all retransmissions told to be so, or of all that are; NaN if there are none."""
        right = sum(score.labels.right[word] for score in self.scores)
        of = sum((score.labels.told if what == "precision" else score.labels.true)[word] for score in self.scores)
        return right / of if of else float("nan")

    @property
    def cannot_tell(self) -> float:
        """Of all retransmissions that are seen; NaN if there are none."""
        seen = sum(score.labels.seen for score in self.scores)
        return sum(score.labels.unknown for score in self.scores) / seen if seen else float("nan")

    @property
    def verdicts(self) -> tuple[int, int]:
        """So many are right, and so many say that it cannot be known."""
        told = Counter("right" if s.verdict == s.true_verdict else s.verdict for s in self.scores)
        return told["right"], told["unknown"]

    def goodput_off(self, share: float) -> float:
        """This quantile of how far goodput ratios are off, in points; NaN without any."""
        off = [abs(s.goodput_ratio - s.true_goodput_ratio) for s in self.scores if s.goodput_ratio is not None]
        return 100 * float(np.quantile(off, share)) if off else float("nan")

    def of(self, place: str, grades: Iterable[Grade]) -> list[Figure]:
        """The figures of a place that have one of these grades and a value."""
        wanted = set(grades)
        figures = (score.figures.get(place) for score in self.scores)
        return [f for f in figures if f is not None and f.grade in wanted and f.value is not None]

    def violations(self) -> list[tuple[Score, str]]:
        """Each figure that is wrong by what its grade says."""
        return [(score, place) for score in self.scores for place in score.violations]


# ----------------------------------------------------------------------------------------------- helpers


def _labels(found: Diagnosis, true: Mapping[Seen, str]) -> Labels:
    told = found.labels()
    pairs = [(told.get(seen, "unknown"), label) for seen, label in true.items()]
    words = ("spurious", "needed")
    return Labels(
        seen=len(pairs),
        unknown=sum(said not in words for said, _ in pairs),
        true={word: sum(label == word for _, label in pairs) for word in words},
        told={word: sum(said == word for said, _ in pairs) for word in words},
        right={word: sum(said == label == word for said, label in pairs) for word in words},
    )
