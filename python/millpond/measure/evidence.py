"""What replies said about the round-trip time, beside the truth: from the table `evidence` to shares and errors.

Looked at are the replies that came after at least one retransmission, because only those can be mistaken. A reply that
names the *last* copy or an *earlier* one is right if that copy caused it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from millpond.measure.statistics import Floats
from millpond.results import rows
from millpond.results.directory import Cell, Results

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Named:
    """Replies of one kind: by the grade of their evidence, and by whether they name the copy that caused them."""

    grade: str
    right: bool


#: The kinds of replies that name a copy, by metric.
KINDS: Mapping[str, Named] = {
    "names_last_rightly": Named("exact", True),
    "names_last_wrongly": Named("exact", False),
    "names_earlier_rightly": Named("echoed", True),
    "names_earlier_wrongly": Named("echoed", False),
}


@dataclass
class Evidence:
    """The table `evidence` of a results directory, cut by cell."""

    results: Results

    def shares(self, cell: Cell, kind: Named, group: int | None = None) -> Floats:
        """Of the replies after a retransmission the share of this kind, a value per run; NaN where there is none."""
        wanted = self._of(cell, kind, group)
        every = self._of(cell, None, group)
        shares: Floats = np.divide(wanted, every, out=np.full(len(every), np.nan), where=every > 0)
        return shares

    def errors(self, cell: Cell, group: int | None = None) -> Floats:
        """By how many true round-trip times those were mistaken that name a wrong copy: a mean per run, or NaN."""
        wrong = [self._of(cell, kind, group, "error_rtts") for kind in KINDS.values() if not kind.right]
        many = [self._of(cell, kind, group) for kind in KINDS.values() if not kind.right]
        error, count = np.sum(wrong, axis=0), np.sum(many, axis=0)
        means: Floats = np.divide(error, count, out=np.full(len(count), np.nan), where=count > 0)
        return means

    def runs(self, cell: Cell) -> Ints:
        """The numbers of the cell's runs."""
        return np.arange(cell.first_run, cell.first_run + cell.replications, dtype=np.int64)

    def _of(self, cell: Cell, kind: Named | None, group: int | None, column: str = "exchanges") -> Floats:
        """The sum of a column over the rows of each run; of every kind if none is named."""
        run = self._column(cell, "run")
        chosen = self._column(cell, "retransmissions").astype(np.int64) > 0
        if kind is not None:
            chosen &= (self._column(cell, "grade") == kind.grade) & (self._column(cell, "right") == kind.right)
        if group is not None:
            chosen &= self._column(cell, "group") == group
        weights = self._column(cell, column)[chosen].astype(np.float64)
        place = run[chosen].astype(np.int64) - cell.first_run
        return np.bincount(place, weights=weights, minlength=cell.replications).astype(np.float64)

    def _column(self, cell: Cell, name: str) -> NDArray[np.generic]:
        return rows.of(self.results, "evidence").of(cell, name)


def rightly_named(loss: float, most: int, request_loss: float | None = None) -> float:
    """Of the replies after a retransmission, the share that a server of stored replies names rightly, in theory.

    For a constant round-trip time below every wait, and independent losses. The copies before the last all failed; the
    reply names the last one if none of them arrived, which of a copy that failed is so with probability
    ``up / (up + (1 - up) down)``.

    Args:
        loss: Of responses, and of requests unless `request_loss` is given. Above 0.
        most: Retransmissions that are made at most.
        request_loss: Of requests.
    """
    up = loss if request_loss is None else request_loss
    fails = up + (1 - up) * loss
    weights = [fails**count * (1 - fails) for count in range(1, most + 1)]
    rightly = [weight * (up / fails) ** count for count, weight in enumerate(weights, start=1)]
    return sum(rightly) / sum(weights)
