"""Exact numbers together with how far an implementation in whole microseconds may be from them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

Number = int | Fraction

HALF = Fraction(1, 2)
WORDS = 1 << 32

LONGEST = WORDS - 1
"""Where lengths of time end in the implementation, in microseconds; beyond lies saturation."""


class Avoid(Exception):
    """A call that has no one right answer. Whoever makes call lists leaves it out or moves it a little."""


class TooClose(Avoid):
    """A branch hangs on a difference below the rounding bound: both sides are right."""


class OutOfReach(Avoid):
    """A length of time that the implementation cannot tell: it saturates."""


class Unstated(Avoid):
    """Neither the sources nor the readings say what happens here."""


@dataclass(frozen=True)
class Approx:
    """The exact value, and a bound on the error of an implementation that rounds as `rounded` says.

    Unit: whatever the value has, as a rule microseconds.
    """

    value: Fraction
    bound: Fraction = Fraction(0)

    def __add__(self, other: Approx | Number) -> Approx:
        other = approx(other)
        return Approx(self.value + other.value, self.bound + other.bound)

    def __sub__(self, other: Approx | Number) -> Approx:
        other = approx(other)
        return Approx(self.value - other.value, self.bound + other.bound)

    def __mul__(self, factor: Number) -> Approx:
        return Approx(self.value * factor, self.bound * abs(Fraction(factor)))

    def __truediv__(self, divisor: Number) -> Approx:
        return self * (1 / Fraction(divisor))

    def times(self, other: Approx) -> Approx:
        """The product of two numbers neither of which need be exact."""
        bound = abs(self.value) * other.bound + abs(other.value) * self.bound + self.bound * other.bound
        return Approx(self.value * other.value, bound)

    def rounded(self, grain: Number = 1) -> Approx:
        """As stored: the nearest multiple of `grain`. Costs half a grain, or nothing if the exact value is one."""
        if self.exact and (self.value / Fraction(grain)).denominator == 1:
            return self
        return Approx(self.value, self.bound + Fraction(grain) * HALF)

    def distance(self, other: Approx) -> Approx:
        """The absolute difference."""
        difference = self - other
        return Approx(abs(difference.value), difference.bound)

    def in_reach(self) -> Approx:
        """The same, if the implementation can tell so long a time."""
        if self.value + self.bound > LONGEST:
            raise OutOfReach
        return self

    @property
    def exact(self) -> bool:
        """Whether an implementation can only have this very value."""
        return self.bound == 0

    def above(self, other: Approx | Number) -> bool:
        """Whether this is strictly greater, if no rounding can change that."""
        difference = self - other
        if not difference.exact and abs(difference.value) <= difference.bound:
            raise TooClose
        return difference.value > 0

    def below(self, other: Approx | Number) -> bool:
        """Whether this is strictly less, if no rounding can change that."""
        return approx(other).above(self)


def approx(number: Approx | Number) -> Approx:
    """The number itself, or an exact one."""
    return number if isinstance(number, Approx) else Approx(Fraction(number))


def largest(*numbers: Approx | Number) -> Approx:
    """The greatest. The bound is that of the numbers that may win."""
    candidates = [approx(number) for number in numbers]
    best = max(candidates, key=lambda number: number.value)
    in_reach = [number for number in candidates if number.value + number.bound >= best.value - best.bound]
    return Approx(best.value, max(number.bound for number in in_reach))


def smallest(*numbers: Approx | Number) -> Approx:
    """The least, bounded as `largest` is."""
    negated = largest(*(approx(number) * -1 for number in numbers))
    return Approx(-negated.value, negated.bound)


def between(word: int, low: Approx, high: Approx) -> Approx:
    """A 32-bit word spread evenly over `[low, high]` in whole steps: low + floor((high - low + 1) · word / 2^32)."""
    if low.exact and high.exact and low.value.denominator == high.value.denominator == 1:
        return low + ((int(high.value - low.value) + 1) * word >> 32)
    if word == 0:
        return low
    if word == WORDS - 1:
        return high
    share = Fraction(word, WORDS)
    # The step beside the exact point lies less than one step away, on either side.
    return Approx(
        low.value + (high.value - low.value) * share,
        low.bound * (1 - share) + high.bound * share + 1,
    )
