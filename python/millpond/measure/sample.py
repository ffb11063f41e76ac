"""Values of one metric, and the statistics taken of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from millpond.measure.statistics import OF_ALL, Floats, percentile, percentile_weighted, take, take_weighted

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Sample:
    """Values of one metric in its base unit (s, bytes, packets, retransmissions, or a share of 1), and their runs."""

    values: Floats
    runs: Ints
    #: Values that do not exist, e.g. completion times of flows that never finished. Not among `values`.
    missing: int = 0
    #: How often each value was met, if that is more than once: a distribution.
    weights: Ints | None = None
    #: The run of each of those that do not exist, where that is known.
    lacking: Ints | None = None

    @property
    def n(self) -> int:
        """How many values there are."""
        return len(self.values) if self.weights is None else int(self.weights.sum())

    @property
    def covered(self) -> float:
        """The share of all that the values cover; NaN if there is nothing."""
        return self.n / (self.n + self.missing) if self.n + self.missing else math.nan

    def take(self, statistic: str) -> float:
        """The statistic of all values, pooled over replications; NaN for no values."""
        if statistic.endswith(OF_ALL):
            return self._of_all.take(statistic.removesuffix(OF_ALL))
        if self.weights is not None:
            return take_weighted(self.values, self.weights, statistic)
        return take(self.values, statistic)

    def by_run(self, statistic: str) -> dict[int, float]:
        """The statistic of each run by itself, by the number of the run, in the order of runs."""
        if statistic.endswith(OF_ALL):
            return self._of_all.by_run(statistic.removesuffix(OF_ALL))
        if len(self.values) == 0:
            return {}
        order = np.argsort(self.runs, kind="stable")
        names, starts = np.unique(self.runs[order], return_index=True)
        parts = np.split(order, starts[1:])
        return {int(name): self._part(part).take(statistic) for name, part in zip(names, parts, strict=True)}

    def of_runs(self, runs: Ints) -> Sample:
        """The values of these runs alone."""
        part = self._part(np.flatnonzero(np.isin(self.runs, runs)))
        if self.lacking is None:
            return part
        lacking = self.lacking[np.isin(self.lacking, runs)]
        return replace(part, missing=len(lacking), lacking=lacking)

    def percentile(self, p: float) -> float:
        """The percentile of all values, 0 <= p <= 1; NaN for no values."""
        if self.weights is not None:
            return percentile_weighted(self.values, self.weights, p)
        return percentile(self.values, p)

    def distribution(self, of: float | None = None) -> tuple[Floats, Floats]:
        """The values in order, and the share that has at most so much: of so many, or of all with those missing."""
        order = np.argsort(self.values)
        weights = np.ones(len(order)) if self.weights is None else self.weights[order]
        return self.values[order], np.cumsum(weights, dtype=np.float64) / (of or max(1, self.n + self.missing))

    def shares_up_to(self, value: float) -> Floats:
        """Of the values of each run the share that is not above this one, in the order of runs."""
        names, run = np.unique(self.runs, return_inverse=True)
        every = np.bincount(run, weights=self.weights, minlength=len(names))
        below = np.bincount(run, weights=(self.values <= value) * (1 if self.weights is None else self.weights))
        shares: Floats = below / every
        return shares

    @staticmethod
    def of(values: Floats, runs: NDArray[np.generic]) -> Sample:
        """The values that are numbers; the others are missing."""
        there, numbers = np.isfinite(values), runs.astype(np.int64)
        lacking = numbers[~there]
        return Sample(values[there], numbers[there], len(lacking), lacking=lacking)

    @staticmethod
    def none(missing: int) -> Sample:
        """No value, of so many."""
        return Sample(np.empty(0), np.empty(0, dtype=np.int64), missing)

    @staticmethod
    def pooled(samples: Sequence[Sample]) -> Sample:
        """All values of several samples together."""
        if not samples:
            return Sample.none(0)
        weights = None
        if any(sample.weights is not None for sample in samples):
            weights = np.concatenate(
                [np.ones(len(s.values), np.int64) if s.weights is None else s.weights for s in samples]
            )
        return Sample(
            np.concatenate([s.values for s in samples]),
            np.concatenate([s.runs for s in samples]),
            sum(s.missing for s in samples),
            weights,
        )

    @property
    def _of_all(self) -> Sample:
        """The same, what does not exist being without end."""
        if self.lacking is None or not len(self.lacking):
            return self
        ends = np.concatenate([self.values, np.full(len(self.lacking), np.inf)])
        return Sample(ends, np.concatenate([self.runs, self.lacking]))

    def _part(self, chosen: Ints) -> Sample:
        weights = None if self.weights is None else self.weights[chosen]
        return Sample(self.values[chosen], self.runs[chosen], 0, weights)
