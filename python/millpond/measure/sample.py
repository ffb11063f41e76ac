"""Values of one metric, and the statistics taken of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from millpond.measure.statistics import Floats, t_interval, take

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Sample:
    """Values of one metric in its base unit (s, bytes, packets, retransmissions, or a share of 1), and their runs."""

    values: Floats
    runs: Ints
    #: Values that do not exist, e.g. completion times of flows that never finished. Not among `values`.
    missing: int = 0

    @property
    def n(self) -> int:
        """How many values there are."""
        return len(self.values)

    def take(self, statistic: str) -> float:
        """The statistic of all values, pooled over replications; NaN for no values."""
        return take(self.values, statistic)

    def per_run(self, statistic: str) -> Floats:
        """The statistic of each run by itself, in the order of runs."""
        if self.n == 0:
            return np.empty(0)
        order = np.argsort(self.runs, kind="stable")
        runs, values = self.runs[order], self.values[order]
        starts = np.flatnonzero(np.diff(runs, prepend=runs[0] - 1))
        return np.array([take(part, statistic) for part in np.split(values, starts[1:])])

    def interval(self, statistic: str) -> tuple[float, float] | None:
        """95 % t-interval over replications of the statistic; None with a single one."""
        return t_interval(self.per_run(statistic))

    @staticmethod
    def pooled(samples: Sequence[Sample]) -> Sample:
        """All values of several samples together."""
        if not samples:
            return Sample(np.empty(0), np.empty(0, dtype=np.int64))
        return Sample(
            np.concatenate([s.values for s in samples]),
            np.concatenate([s.runs for s in samples]),
            sum(s.missing for s in samples),
        )
