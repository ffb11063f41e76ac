"""Metrics of groups of clients: how long requests took, from `delays`, and when how much was done, from `reported`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from millpond.measure.metric import Compute, Metric
from millpond.measure.population import Population
from millpond.measure.sample import Sample

if TYPE_CHECKING:
    from millpond.measure.measures import Measures

#: The shares of which it is told when they were done.
DONE = (0.5, 0.9, 0.99, 1.0)

_OF = {"clients": "clients_of", "answered": "of"}
_DELAYS = {
    "one_way": ("one_way_delay", "birth of a request to its arrival at the far application", "one-way delay"),
    "answer": ("answer_delay", "birth of a request to its answer", "time to an answer"),
    "wait": ("waiting_time", "birth of a request to its first copy", "wait for the first copy"),
    "rtt": ("exchange_time", "first copy of an exchange to its answer", "time of an exchange"),
}


def _delay(kind: str) -> Compute:
    def compute(measures: Measures, population: Population) -> Sample:
        here = measures.rows("delays", population, "kind") == kind
        values, weights, runs = (
            measures.rows("delays", population, name)[here] for name in ("upper_us", "count", "run")
        )
        missing = measures.cell(population).replications - len(np.unique(runs))
        return Sample(values.astype(np.float64) * 1e-6, runs.astype(np.int64), missing, weights.astype(np.int64))

    return compute


def first_event(measures: Measures, population: Population) -> int:
    """The event that `reported` is read for: the start of the run, or the first one for which anything is told."""
    events = measures.rows("reported", population, "event")
    return int(events.min()) if len(events) else 0


def _done(share: float, what: str) -> Compute:
    """Time since the event until this share of the clients, or of the requests answered, was reached: one a run."""

    def compute(measures: Measures, population: Population) -> Sample:
        cell = measures.cell(population)
        here = measures.rows("reported", population, "event") == first_event(measures, population)
        at, done, of, runs = (
            measures.rows("reported", population, name)[here] for name in ("t_us", what, _OF[what], "run")
        )
        wanted = np.arange(cell.first_run, cell.first_run + cell.replications)
        found = np.full(len(wanted), np.nan)
        for place, run in enumerate(wanted):
            mine = runs == run
            enough = np.flatnonzero(done[mine] >= np.ceil(share * of[mine] - 1e-9))
            if enough.size:
                found[place] = float(at[mine][enough[0]]) * 1e-6
        return Sample.of(found, wanted)

    return compute


METRICS = (
    *(
        Metric(name, "s", "group", "median", summary, _delay(kind), "less", label)
        for kind, (name, summary, label) in _DELAYS.items()
    ),
    *(
        Metric(f"{name}_done_{100 * share:.0f}", "s", "group", "mean",
               f"start of the run, or the event, until {100 * share:.0f} % of the {name} were "
               f"{'complete' if name == 'clients' else 'answered'}", _done(share, what), "less",
               f"{100 * share:.0f} % of the {name} done after")
        for name, what in (("clients", "clients"), ("requests", "answered"))
        for share in DONE
    ),
)  # fmt: skip
