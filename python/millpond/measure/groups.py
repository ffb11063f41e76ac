"""Metrics of groups of clients, from the tables `delays`, `reported` and `arrivals`.

How long requests took, when how much was done, and how long an event is felt.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from millpond.measure.metric import Compute, Metric
from millpond.measure.population import Population
from millpond.measure.reported import SHARES, What
from millpond.measure.sample import Sample
from millpond.measure.statistics import Floats, ratio
from millpond.plan.values import in_units

if TYPE_CHECKING:
    from millpond.measure.measures import Measures

#: An event is over once requests of so many seconds take at most so many times as long as those before it
#: (CoCoA+, Betzler et al. 2015, section 6).
SETTLING_WINDOW = 20
SETTLED = 1.1
#: What arrives within so many seconds after an event belongs to its burst (the same, section 5.3).
BURST = 10

_COUNTED: dict[str, What] = {"clients": "clients", "requests": "answered"}
_DELAYS = {
    "one_way": ("one_way_delay", "arrival of a request to its delivery at the far application", "one-way delay"),
    "crossing": (
        "crossing_time",
        "first copy of a request to its arrival at the far application",
        "time of a crossing",
    ),
    "answer": ("answer_delay", "arrival of a request to its answer", "time to an answer"),
    "wait": ("waiting_time", "arrival of a request to its first copy", "wait for the first copy"),
    "rtt": ("exchange_time", "first copy of an exchange to its answer", "time of an exchange"),
    "first_wait": ("first_wait", "what each exchange waits after its first copy: RTO_init", "first wait of exchanges"),
    "weak_variation": (
        "rttvar_weak",
        "variation of a client's weak estimator after each answer to an exchange that was sent again",
        "variation of the weak estimator",
    ),
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


def _done(share: float, what: What) -> Compute:
    """Time since the event until this share of the clients, or of the requests answered, was reached: one a run."""
    return lambda measures, population: measures.reported.each_run(
        measures.cell(population), measures.group(population), share, what
    )


def _settling(measures: Measures, population: Population) -> tuple[Floats, Floats]:
    """How long an event is felt in each run, in s, and whether it ends: NaN without requests before it.

    One that is felt to the end counts with the time that was left of arrivals.

    The smallest s, in whole seconds, from which on those of `SETTLING_WINDOW` seconds are delivered in at most
    `SETTLED` times the mean delay of those that arrived before the event.
    """
    since, delivered, delay, runs = (
        measures.rows("arrivals", population, name) for name in ("since_us", "delivered", "delay_us", "run")
    )
    cell = measures.cell(population)
    wanted = np.arange(cell.first_run, cell.first_run + cell.replications)
    found, settled = np.full(len(wanted), np.nan), np.full(len(wanted), np.nan)
    for place, run in enumerate(wanted):
        mine = runs == run
        seconds = since[mine].astype(np.int64) // 1_000_000
        counts, sums = delivered[mine].astype(np.float64), delay[mine].astype(np.float64)
        before = counts[seconds < 0].sum()
        if not before:
            continue
        usual = sums[seconds < 0].sum() / before
        after = seconds >= 0
        last = int(seconds[after].max(initial=-1)) + 1
        # sums over all windows at once, from running totals
        totals = [
            np.concatenate(([0.0], np.cumsum(np.bincount(seconds[after], weights=values[after], minlength=last))))
            for values in (counts, sums)
        ]
        ends = np.minimum(np.arange(last) + SETTLING_WINDOW, last)
        number, whole = (total[ends] - total[:last] for total in totals)
        calm = np.flatnonzero((number > 0) & (whole <= SETTLED * usual * number))
        found[place], settled[place] = (float(calm[0]), 1.0) if calm.size else (float(last), 0.0)
    return found, settled


def _event_delay(column: str, measures: Measures, population: Population) -> Floats:
    """The mean of this time of what arrived within `BURST` seconds after any event: one value for each run."""
    cell = measures.cell(population)
    since, delivered, delay, runs = (
        measures.rows("arrivals", population, name) for name in ("since_us", "delivered", column, "run")
    )
    # a scenario that was read tells times in one unit, without a fraction
    events = [in_units(str(event["at"])) for event in cell.scenario.get("timeline", ())]
    after = np.array(events, dtype=np.float64) - min(events, default=0.0)
    seconds = since.astype(np.float64) * 1e-6
    # a second belongs to a burst if it lies within it
    here = np.any((seconds[:, None] >= after) & (seconds[:, None] < after + BURST), axis=1)
    place = runs[here].astype(np.int64) - cell.first_run
    number, whole = (
        np.bincount(place, column[here].astype(np.float64), cell.replications).astype(np.float64)
        for column in (delivered, delay)
    )
    return ratio(whole * 1e-6, number)


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
        for name, what in _COUNTED.items()
        for share in SHARES
    ),
    Metric("settling_time", "s", "group", "mean",
           f"the first event of the timeline until requests of {SETTLING_WINDOW} s reach the far application in at "
           f"most {SETTLED} times the mean one-way delay before it; where they never do, until the last arrived",
           lambda measures, population: _settling(measures, population)[0], "less"),
    Metric("event_delay", "s", "group", "mean",
           f"mean one-way delay of a run's requests that arrived within {BURST} s after an event of the timeline",
           partial(_event_delay, "delay_us"), "less"),
    Metric("event_crossing_time", "s", "group", "mean", "the same from the first copy of each request on",
           partial(_event_delay, "crossing_us"), "less"),
    Metric("settled", "1", "group", "mean", "runs in which they do before the run ends",
           lambda measures, population: _settling(measures, population)[1], "more",
           "runs that settle"),
)  # fmt: skip
