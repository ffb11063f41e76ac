"""What the words of published sentences mean: one glossary for all studies, read by their claims by name.

No bound here was chosen for a claim to hold. Every one is met or missed beyond the noise of the runs
(`millpond.measure.estimate`): `higher` is higher by more than the runs scatter. Where a study itself gives a number,
that number counts instead of a word.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from millpond.measure.links import COLLAPSE, COLLAPSE_IN_WORDS


@dataclass(frozen=True)
class Bounds:
    """Where a quantity must lie. `above` and `below` are strict."""

    above: float | None = None
    below: float | None = None
    at_least: float | None = None
    at_most: float | None = None

    @property
    def low(self) -> float:
        """The lower end; minus infinity if there is none."""
        return max(-math.inf if bound is None else bound for bound in (self.above, self.at_least))

    @property
    def high(self) -> float:
        """The upper end; infinity if there is none."""
        return min(math.inf if bound is None else bound for bound in (self.below, self.at_most))

    def met(self, value: float) -> bool:
        """Whether the value lies within; never for one that is not a number."""
        return (
            not math.isnan(value)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
            and (self.at_least is None or value >= self.at_least)
            and (self.at_most is None or value <= self.at_most)
        )

    def apart(self, low: float, high: float) -> bool:
        """Whether no value from `low` to `high` lies within."""
        return high < self.low or low > self.high or (low == high and not self.met(low)) or self._touches(low, high)

    def margin(self, value: float) -> float:
        """How far inside the nearer end a value lies; negative outside."""
        return min(value - self.low, self.high - value)

    def _touches(self, low: float, high: float) -> bool:
        """Whether the span reaches just as far as a strict bound."""
        return (self.above is not None and high <= self.above) or (self.below is not None and low >= self.below)


@dataclass(frozen=True)
class Word:
    """One word of the glossary."""

    bounds: Bounds
    #: What it is said of: a `change` of one number against another, a `share`, a number `per message`, or a `link`.
    of: str
    #: The bound in words.
    means: str
    #: Other words for the same.
    also: tuple[str, ...] = ()


#: Two numbers that are told to be alike.
CLOSENESS: Mapping[str, Word] = {
    "equal": Word(Bounds(at_least=-0.001, at_most=0.001), "change", "within 0.1 %", ("identical", "the same")),
    "very similar": Word(
        Bounds(at_least=-0.05, at_most=0.05), "change",
        "within 5 %: medians under congestion count as reproduced within 5 %",
        ("negligible difference", "really similar", "roughly the same"),
    ),
    "similar": Word(
        Bounds(at_least=-0.10, at_most=0.10), "change", "within 10 %", ("do not differ much",),
    ),
    "not far apart": Word(
        Bounds(above=-0.15, below=0.15), "change", "by less than what is clear: 15 %",
        ("alike", "close", "uniform", "not too much"),
    ),
}  # fmt: skip

#: Directions of a change, and states.
STATES: Mapping[str, Word] = {
    "higher": Word(Bounds(above=0.0), "change", "by more than the runs scatter", ("worse", "longer", "more")),
    "lower": Word(Bounds(below=0.0), "change", "by more than the runs scatter", ("better", "shorter", "fewer")),
    "a little higher": Word(
        Bounds(above=0.0, at_most=0.10), "change", "higher, and by at most 10 %", ("slightly", "somewhat")
    ),
    "a little lower": Word(
        Bounds(below=0.0, at_least=-0.10), "change", "lower, and by at most 10 %", ("slightly", "somewhat")
    ),
    "clearly higher": Word(
        Bounds(at_least=0.15), "change", "by at least 15 %: three times what counts as very similar",
        ("much", "notably", "significantly", "substantially", "far"),
    ),
    "clearly lower": Word(
        Bounds(at_most=-0.15), "change", "by at least 15 %: three times what counts as very similar",
        ("much", "notably", "significantly", "substantially", "far"),
    ),
    "not higher": Word(Bounds(at_most=0.05), "change", "lower, or very similar", ("at most on par",)),
    "not lower": Word(Bounds(at_least=-0.05), "change", "higher, or very similar", ("at least on par",)),
    "no worse than similar": Word(Bounds(at_most=0.10), "change", "lower, or similar"),
    "none": Word(Bounds(at_most=0.0), "per message", "not one", ("no", "never", "zero")),
    "few": Word(Bounds(at_most=0.1), "per message", "at most one message in ten", ("hardly any", "only a few")),
    "many": Word(Bounds(at_least=0.5), "per message", "at least one for every second message"),
    "most": Word(Bounds(above=0.5), "share", "more than half", ("typically", "the majority")),
    "almost all": Word(Bounds(at_least=0.9), "share", "at least 90 %"),
    "collapsed": Word(
        Bounds(above=COLLAPSE), "link",
        f"more than {COLLAPSE_IN_WORDS} of the bottleneck's bytes complete no exchange: on average more than two "
        "spurious retransmissions of every message",
    ),
    "not collapsed": Word(
        Bounds(at_most=COLLAPSE), "link", f"at most {COLLAPSE_IN_WORDS} of them complete no exchange"
    ),
}  # fmt: skip

#: How many of the points of a check must meet its bounds.
NEEDED: Mapping[str, str] = {
    "all": "every point; this is meant where nothing is said",
    "almost all": "at least 90 % of the points",
    "most": "more than half of the points",
    "some": "at least one, beyond the noise of all points together: each is taken with so much more confidence",
}

#: A change that a study prints holds within so many points of it.
PRINTED_POINTS = 0.05
#: A plain number that a study prints, such as a time, holds within so much of it.
PRINTED_SHARE = 0.05
#: A change that a study tells roughly holds within so much of it, if that is more than the points above.
ROUGHLY = 1 / 3


def word(name: str) -> Word | None:
    """The word of this name."""
    return CLOSENESS.get(name) or STATES.get(name)


def printed(number: float, change: bool, roughly: bool = False) -> Bounds:
    """The bounds around a number that the study itself gives: a change of one number against another, or a number."""
    size = PRINTED_POINTS if change else PRINTED_SHARE * abs(number)
    if roughly:
        size = max(size, ROUGHLY * abs(number))
    return Bounds(at_least=number - size, at_most=number + size)


def enough(needed: str | float, met: int, points: int) -> bool:
    """Whether so many points are as many as are needed: a word of `NEEDED`, or a share."""
    if needed == "some":
        return met > 0
    if needed == "most":
        return met > 0.5 * points
    return met >= {"all": 1.0, "almost all": 0.9}.get(str(needed), needed) * points  # type: ignore[operator]
