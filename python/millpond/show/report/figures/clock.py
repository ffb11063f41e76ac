"""Axes of time in the unit that is read: seconds, hours of a day, days of a week. Values stay in seconds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from matplotlib.axis import Axis
from matplotlib.ticker import FixedLocator, MultipleLocator

HOUR, DAY = 3600.0, 86_400.0
TICKS = 9
"""At most so many marks on an axis."""
_WORDS = ((1.0, "s"), (60.0, "min"), (HOUR, "h"), (DAY, "d"))
_ROUND = (1.0, 10.0, 60.0, 600.0, HOUR, 6 * HOUR, DAY, 10 * DAY, 100 * DAY, 1000 * DAY)
"""The marks of a logarithmic axis: times that have a plain name, each six to ten times the one before."""


@dataclass(frozen=True)
class Clock:
    """What times along an axis are told in."""

    unit: str
    #: So many of them make one.
    seconds: float
    #: Distances of marks, in units; above the last one its multiples.
    steps: tuple[float, ...] = ()

    @staticmethod
    def of(longest: Iterable[float]) -> Clock:
        """That of some axes which share a label: no coarser than the shortest of them can be read in."""
        least = min(longest, default=0.0)
        if least < 3 * HOUR:
            return Clock("s", 1.0)
        if least <= 4 * DAY:
            return Clock("h", HOUR, (0.5, 1, 2, 3, 4, 6, 12, 24))
        return Clock("d", DAY, (0.5, 1, 2, 5, 7, 14, 28))

    def label(self, words: str, logarithmic: bool = False) -> str:
        """The words of the axis with its unit; on a logarithmic one every mark has its own."""
        return words if logarithmic and self.steps else f"{words} ({self.unit})"

    def mark(self, axis: Axis, longest: float) -> None:
        """Marks and their numbers, where it is another unit than the one that values are in."""
        if self.steps:
            wanted = longest / self.seconds / TICKS
            last = self.steps[-1]
            step = next((step for step in self.steps if step >= wanted), last * -(-wanted // last))
            axis.set_major_locator(MultipleLocator(step * self.seconds))
            axis.set_major_formatter(lambda value, _: f"{value / self.seconds:g}")

    def mark_logarithmic(self, axis: Axis) -> None:
        """The same where equal ratios are equally far apart: `10 s`, `1 h`, `1 d`."""
        if self.steps:
            axis.set_major_locator(FixedLocator(list(_ROUND)))
            axis.set_minor_locator(FixedLocator([]))
            axis.set_major_formatter(lambda value, _: in_words(value))
        else:
            axis.set_major_formatter(lambda value, _: f"{value:g}")


def in_words(seconds: float) -> str:
    """A time in the largest unit of which it is at least one: `10 s`, `6 h`."""
    size, unit = next(((size, unit) for size, unit in reversed(_WORDS) if seconds >= size), _WORDS[0])
    return f"{seconds / size:g} {unit}"
