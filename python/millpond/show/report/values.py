"""What pictures are made of beside results: spreads of values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from millpond.measure.estimate import Estimate
from millpond.measure.statistics import PERCENTILES

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Spread:
    """The percentiles that are drawn, of the finished flows of a cell or of one group of clients."""

    n: int
    minimum: float
    p10: float
    p25: float
    median: float
    p75: float
    p90: float
    maximum: float

    @staticmethod
    def of(values: Floats) -> Spread | None:
        """Percentiles by linear interpolation between order statistics; None if no value is finite."""
        finite = values[np.isfinite(values)]
        if finite.size == 0:
            return None
        wanted = ("min", "p10", "p25", "median", "p75", "p90", "max")
        return Spread(int(finite.size), *np.quantile(finite, [PERCENTILES[name] for name in wanted]).tolist())

    @staticmethod
    def around(found: Estimate) -> Spread:
        """A number and its interval; it is its own interval where it has none."""
        low, high = found.interval or (found.value, found.value)
        return Spread(found.n, low, low, low, found.value, high, high, high)

    HEADER = ("n", "min", "p10", "p25", "median", "p75", "p90", "max")

    def row(self) -> tuple[object, ...]:
        """The fields in the order of `HEADER`."""
        return (self.n, self.minimum, self.p10, self.p25, self.median, self.p75, self.p90, self.maximum)
