"""What replies said about the round-trip time, beside the truth: metrics of runs, from the table `evidence`.

Looked at are the replies that came after at least one retransmission, because only those can be mistaken. A reply that
names the *last* copy or an *earlier* one is right if that copy caused it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from millpond.measure.estimate import ANYTHING
from millpond.measure.metric import Compute, Metric
from millpond.measure.population import Population
from millpond.measure.statistics import Floats, ratio

if TYPE_CHECKING:
    from millpond.measure.measures import Measures


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


def _share(kind: Named) -> Compute:
    """Of the replies after a retransmission the share of this kind, a value per run; NaN where there is none."""
    return lambda measures, population: ratio(_sum(measures, population, kind), _sum(measures, population))


def _error(measures: Measures, population: Population) -> Floats:
    """By how many true round-trip times those were mistaken that name a wrong copy: a mean per run, or NaN."""
    wrong = [kind for kind in KINDS.values() if not kind.right]
    error, count = (
        np.sum([_sum(measures, population, kind, column) for kind in wrong], axis=0)
        for column in ("error_rtts", "exchanges")
    )
    return ratio(error, count)


def _sum(measures: Measures, population: Population, kind: Named | None = None, column: str = "exchanges") -> Floats:
    """The sum of a column over the rows of each run; of every kind if none is named."""
    run, again, grade, right, values = (
        measures.rows("evidence", population, name) for name in ("run", "retransmissions", "grade", "right", column)
    )
    chosen = again.astype(np.int64) > 0
    if kind is not None:
        chosen &= (grade == kind.grade) & (right == kind.right)
    cell = measures.cell(population)
    place = run[chosen].astype(np.int64) - cell.first_run
    return np.bincount(place, values[chosen].astype(np.float64), cell.replications).astype(np.float64)


METRICS = (
    *(
        Metric(name, "1", "run", "mean",
               f"replies after a retransmission that {'rightly' if kind.right else 'wrongly'} name "
               f"{'the last' if kind.grade == 'exact' else 'an earlier'} copy", _share(kind), table="evidence")
        for name, kind in KINDS.items()
    ),
    Metric("naming_error", "round trips", "run", "mean", "by how much those that name a wrong copy are mistaken",
           _error, limits=ANYTHING, table="evidence"),
)  # fmt: skip
