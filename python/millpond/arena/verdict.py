"""What every candidate costs in every cell, beside the best published preset of that cell and what the path allows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from millpond.arena.cells import ALONE, NEIGHBOUR
from millpond.measure.measures import Measures
from millpond.measure.population import Population
from millpond.measure.statistics import Floats, percentile
from millpond.plan.quantity import in_seconds
from millpond.results.directory import Results

#: A preset counts as the best of a cell only if at most so many more of its clients lost a request than of the one that
#: lost fewest: who gives up is soon done.
AS_SAFE = 0.05
#: What a ratio counts at most, also where a median is without end.
MOST = 10.0
#: A cell is one that a candidate does badly in from here on, and one that wants an explanation.
ABOVE, FAR_ABOVE = 1.05, 1.25


@dataclass(frozen=True)
class Measure:
    """One number of a candidate in a cell. `ratio`: it is told in parts of the best preset's; else as a difference."""

    name: str
    what: str
    unit: str
    less: bool
    ratio: bool


#: In the median the completion time of a client that lost a request is without end. At the 95th percentile that would
#: ask who lost one client in twenty, which `lost` tells already; there it is left out. Where requests come in a rhythm,
#: times are those from birth to answer, and `lost` is the share of requests that were not answered.
MEASURES = (
    Measure("median", "median completion time", "s", less=True, ratio=True),
    Measure("p95", "95th percentile of completion times, of clients that lost nothing", "s", less=True, ratio=True),
    Measure("slowest", "slowest completion of those that lost nothing", "s", less=True, ratio=True),
    Measure("messages", "messages sent for each request", "messages", less=True, ratio=True),
    Measure("lost", "clients that lost a request", "1", less=True, ratio=False),
    Measure("delivery", "requests that reached the application", "1", less=False, ratio=False),
    Measure("in_vain", "copies in vain for each request", "messages", less=True, ratio=False),
    Measure("harm", "neighbours' median, in parts of what they need among themselves", "1", less=True, ratio=False),
    Measure("fairness", "Jain's index of requests answered", "1", less=False, ratio=False),
)


@dataclass(frozen=True)
class Score:
    """One number of one candidate in one cell."""

    candidate: str
    place: str
    family: str
    measure: str
    value: float
    #: That of the best preset, and its name.
    best: float
    best_preset: str
    #: The value over the best, or less it.
    beside: float
    #: The value over what the path allows; NaN where that is not known.
    over_bound: float


@dataclass(frozen=True)
class Summary:
    """One candidate and one measure over all cells."""

    candidate: str
    measure: str
    cells: int
    mean: float
    worst: float
    worst_place: str
    #: Cells above 1.05 and above 1.25; of differences those worse by more than one point and by more than five.
    above: int
    far_above: int
    over_bound: float


def scores(results: Results, presets: Sequence[str]) -> list[Score]:
    """Every number of every cell. `presets` are those that the best is looked for among."""
    measures = Measures(results)
    where: dict[str, dict[str, Population]] = {}
    beside: dict[str, dict[str, Population]] = {}
    for population in measures.populations():
        place = str(population.column("place"))
        if population.algorithm == NEIGHBOUR:
            beside.setdefault(place, {})[population.partner] = population
        else:
            where.setdefault(place, {})[population.algorithm] = population
    found: list[Score] = []
    for place, present in where.items():
        alone = present.pop(ALONE, None)
        values = {name: _values(measures, population) for name, population in present.items()}
        _add_harm(measures, values, beside.get(place, {}))
        family = str(next(iter(present.values())).column("family"))
        bound = None if alone is None else _bound(measures, alone, next(iter(present.values())))
        rivals = [name for name in presets if name in values]
        found.extend(_of_place(place, family, values, rivals, bound))
    return found


def summaries(found: Iterable[Score]) -> list[Summary]:
    """Every candidate and measure over all cells that have one."""
    groups: dict[tuple[str, str], list[Score]] = {}
    for score in found:
        if not math.isnan(score.beside):
            groups.setdefault((score.candidate, score.measure), []).append(score)
    return [_summary(name, measure, listed) for (name, measure), listed in groups.items()]


def table(found: Sequence[Score] | Sequence[Summary]) -> pa.Table:
    """As a table, a column for each field."""
    return pa.Table.from_pylist([{key: _plain(value) for key, value in vars(one).items()} for one in found])


# ----------------------------------------------------------------------------------------------- one cell


def _values(measures: Measures, population: Population) -> dict[str, float]:
    failed = measures.flow_column(population, "requests_failed").astype(np.float64)
    took = measures.flow_column(population, "fct_us").astype(np.float64) * 1e-6
    whole = np.isfinite(took) & ~(failed > 0)
    endless = np.where(whole, took, np.inf)
    sent, copies, vain, answered = (
        measures.flow_column(population, name).astype(np.float64).sum()
        for name in ("transmissions", "retransmissions", "unnecessary", "completed")
    )
    first = max(1.0, sent - copies)
    if _is_loop(measures.cell(population).scenario):
        times = {
            "median": _at(endless, 0.5),
            "p95": percentile(took[whole], 0.95) if whole.any() else math.inf,
            "slowest": float(took[whole].max()) if whole.any() else math.inf,
            "lost": 1 - float(np.mean(whole)),
        }
    else:
        # when the last request ends is the rhythm's doing
        delays = measures.sample("answer_delay", population)
        times = {
            "median": delays.take("median"),
            "p95": delays.take("p95"),
            "slowest": math.nan,
            "lost": 1 - measures.sample("answered_share", population).take("mean"),
        }
    return {
        **times,
        "messages": sent / max(1.0, answered),
        "delivery": measures.sample("delivery_ratio", population).take("mean"),
        "in_vain": vain / first,
        "fairness": measures.sample("fairness", population).take("mean"),
    }


def _is_loop(scenario: Mapping[str, Any]) -> bool:
    """Whether all requests of the clients follow on the ones before, so that a client is done when its work is."""
    kinds = [
        one if isinstance(one, str) else one["kind"]
        for group in scenario["clients"]
        for workload in [group["workload"]]
        for one in (workload if isinstance(workload, list) else [workload])
    ]
    return all(kind in ("continuous", "random", "fresh-batches", "backlog") for kind in kinds)


def _at(values: Floats, share: float) -> float:
    """A percentile where some values are without end."""
    ordered = np.sort(values)
    rank = share * (len(ordered) - 1)
    if not np.isfinite(ordered[math.ceil(rank)]):
        return math.inf
    return percentile(ordered[np.isfinite(ordered)], rank / max(1, int(np.isfinite(ordered).sum()) - 1))


def _add_harm(measures: Measures, values: dict[str, dict[str, float]], beside: dict[str, Population]) -> None:
    """What the neighbours need beside each candidate, over what they need beside their own kind."""
    among = beside.get("rfc7252")
    for name, own in values.items():
        own["harm"] = math.nan
        if among is not None and name in beside:
            here, there = (_values(measures, population)["median"] for population in (beside[name], among))
            own["harm"] = min(MOST, here / there) if math.isfinite(there) and there > 0 else math.nan


def _bound(measures: Measures, alone: Population, population: Population) -> float:
    """The slowest client takes no less: its round trips, or what the busier link needs for all of them."""
    cell, whole = measures.cell(alone), measures.cell(population)
    took = measures.sample("fct", alone).take("median")
    busy = max((float(measures.link_column(cell, "busy_us", name).sum()) for name in measures.links(cell)), default=0.0)
    clients = sum(group.count for group in whole.groups)
    start = max(in_seconds(str(group.get("start_spread", "0 s"))) for group in whole.scenario["clients"])
    return max(took, clients * busy * 1e-6 - start) if took > 0 else math.nan


def _of_place(
    place: str, family: str, values: dict[str, dict[str, float]], rivals: Sequence[str], bound: float | None
) -> Iterable[Score]:
    fewest = min((values[name]["lost"] for name in rivals), default=0.0)
    safe = [name for name in rivals if values[name]["lost"] <= fewest + AS_SAFE] or list(rivals)
    for measure in MEASURES:
        among = rivals if measure.name == "lost" else safe
        known = [name for name in among if not math.isnan(values[name][measure.name])]
        if not known:
            continue
        pick: Callable[..., str] = min if measure.less else max
        first = pick(known, key=lambda name: values[name][measure.name])
        best = values[first][measure.name]
        for name, own in values.items():
            value = own[measure.name]
            over = value / bound if bound and measure.name in ("median", "p95", "slowest") else math.nan
            yield Score(name, place, family, measure.name, value, best, first, _beside(measure, value, best), over)


def _beside(measure: Measure, value: float, best: float) -> float:
    if math.isnan(value) or math.isnan(best):
        return math.nan
    if not measure.ratio:
        return value - best if measure.less else best - value
    if not math.isfinite(best):
        return math.nan if not math.isfinite(value) else 1 / MOST
    return min(MOST, value / best) if best > 0 else math.nan


def _summary(candidate: str, name: str, found: list[Score]) -> Summary:
    measure = next(one for one in MEASURES if one.name == name)
    near, far = (ABOVE, FAR_ABOVE) if measure.ratio else (0.01, 0.05)
    worst = max(found, key=lambda score: score.beside)
    bounds = [score.over_bound for score in found if math.isfinite(score.over_bound)]
    return Summary(
        candidate,
        name,
        len(found),
        float(np.mean([score.beside for score in found])),
        worst.beside,
        worst.place,
        int(sum(score.beside > near for score in found)),
        int(sum(score.beside > far for score in found)),
        float(np.mean(bounds)) if bounds else math.nan,
    )


def _plain(value: object) -> object:
    return None if isinstance(value, float) and math.isnan(value) else value
