"""What every candidate costs in every cell, beside the best published preset of that cell and what the path allows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from millpond.arena.cells import ALONE, NEIGHBOUR
from millpond.measure import estimate
from millpond.measure.measures import Measures
from millpond.measure.population import Population
from millpond.measure.reported import is_loop
from millpond.measure.sample import Ints, Sample
from millpond.plan.values import in_units
from millpond.results.directory import Results

#: A cell is one that a candidate does badly in from here on, and one that wants an explanation.
ABOVE, FAR_ABOVE = 1.05, 1.25
#: The same of differences.
WORSE, FAR_WORSE = 0.01, 0.05


@dataclass(frozen=True)
class Score:
    """One number of one candidate in one cell."""

    candidate: str
    place: str
    family: str
    measure: str
    #: Over all runs.
    value: float
    #: The same of the best preset, and its name; of two that are the best of a half each, the mean, and both names.
    best: float
    best_preset: str
    #: The value over the best, or less it, where the best was chosen on other runs; and where that lies with a
    #: confidence of 95 %, NaN where the cell has too few runs to tell.
    beside: float
    low: float
    high: float
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
    #: Those of them where that is more than chance, the interval being above it too.
    surely_above: int
    surely_far_above: int
    over_bound: float


def scores(results: Results, presets: Sequence[str]) -> list[Score]:
    """Every number of every cell. `presets` are those that the best is looked for among."""
    measures = Measures(results)
    where: dict[str, dict[str, Population]] = {}
    near: dict[str, dict[str, Population]] = {}
    for population in measures.populations():
        place = str(population.column("place"))
        if population.algorithm == NEIGHBOUR:
            near.setdefault(place, {})[population.partner] = population
        else:
            where.setdefault(place, {})[population.algorithm] = population
    found: list[Score] = []
    for place, present in where.items():
        alone = present.pop(ALONE, None)
        one = next(iter(present.values()))
        own, others = (
            {name: Outcome.of(measures, population) for name, population in some.items()}
            for some in (present, near.get(place, {}))
        )
        bound = None if alone is None else _bound(measures, alone, one)
        rivals = [name for name in presets if name in own]
        runs = measures.cell(one).replications
        found.extend(of_place(place, str(one.column("family")), own, others, runs, rivals, bound))
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


def _values(own: Mapping[str, Outcome], others: Mapping[str, Outcome], runs: Ints | None = None) -> Values:
    """Every measure of each controller over some runs; the neighbours beside it are `others`."""
    told = {name: outcome.values(runs) for name, outcome in own.items()}
    beside_them = {name: outcome.values(runs)["median"] for name, outcome in others.items()}
    among = beside_them.get("rfc7252", math.nan)
    for name, values in told.items():
        here = beside_them.get(name, math.nan)
        known = math.isfinite(among) and among > 0 and not math.isnan(here)
        # what they need beside their own kind is 1
        values["harm"] = min(MOST, here / among) if known else math.nan
    return told


def _bound(measures: Measures, alone: Population, population: Population) -> float:
    """The slowest client takes no less: its round trips, or what the busier link needs for all of them."""
    cell, whole = measures.cell(alone), measures.cell(population)
    took = measures.sample("fct", alone).take("median")
    busy = max((float(measures.link_column(cell, "busy_us", name).sum()) for name in measures.links(cell)), default=0.0)
    clients = sum(group.count for group in whole.groups)
    start = max(in_units(str(group.get("start_spread", "0 s"))) for group in whole.scenario["clients"])
    return max(took, clients * busy * 1e-6 - start) if took > 0 else math.nan


def of_place(
    place: str,
    family: str,
    own: Mapping[str, Outcome],
    others: Mapping[str, Outcome],
    runs: int,
    rivals: Sequence[str],
    bound: float | None,
) -> Iterator[Score]:
    """Every controller's numbers in one cell of so many runs; `others` are the neighbours of each.

    `rivals` are those that the best is looked for among, `bound` is what the path allows.
    """
    whole = _values(own, others)
    clients = next(iter(own.values())).clients / runs
    cell = [
        Half(_values(own, others, np.concatenate(half)), [_values(own, others, batch) for batch in half])
        for half in halves(runs, clients)
    ]
    for measure in MEASURES:
        chosen = [best(measure, half.values, rivals) for half in cell]
        told = list(dict.fromkeys(name for name in chosen if name is not None))
        if not told:
            continue
        theirs = float(np.mean([whole[name][measure.name] for name in told]))
        for name, values in whole.items():
            value = values[measure.name]
            over = value / bound if bound and measure.name in ("median", "p95", "slowest") else math.nan
            there = beside(measure, name, chosen, cell)
            yield Score(
                name, place, family, measure.name, value, theirs, " / ".join(told),
                there.beside, there.low, there.high, over,
            )  # fmt: skip


def _summary(candidate: str, name: str, found: list[Score]) -> Summary:
    measure = next(one for one in MEASURES if one.name == name)
    near, far = (ABOVE, FAR_ABOVE) if measure.ratio else (WORSE, FAR_WORSE)
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
        int(sum(score.low > near for score in found)),
        int(sum(score.low > far for score in found)),
        float(np.mean(bounds)) if bounds else math.nan,
    )


def _plain(value: object) -> object:
    return None if isinstance(value, float) and math.isnan(value) else value


#: A preset counts as the best of a cell only if at most so many more of its clients lost a request than of the one that
#: lost fewest: who gives up is soon done.
AS_SAFE = 0.05
#: What a ratio counts at most, also where a median is without end; one beside nobody else counts its inverse.
MOST = 10.0
#: So many batches a half at most, and so many clients in a batch at least: a percentile of fewer says little.
BATCHES, FEWEST = 5, 20
#: So much wider than the t-interval of independent batches. The halves are a little alike: a preset that is the best of
#: one alone is not the best of the other, where it is the measure. Without this 93 % of equals are covered.
WIDER = 1.1

#: The measures of each controller, over some runs.
Values = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Half:
    """Half of the runs of a cell: who did how well over all of them, and in each of its batches."""

    values: Values
    batches: Sequence[Values]


@dataclass(frozen=True)
class Beside:
    """A candidate beside the best preset."""

    beside: float
    #: Where it lies with a confidence of 95 %; NaN with fewer than two batches.
    low: float
    high: float


def halves(replications: int, clients: float) -> list[list[Ints]]:
    """The runs of either half, in batches; one half with all of them where there are no two.

    `clients` are those of one run.
    """
    every = np.arange(replications)
    parts = [every[0::2], every[1::2]] if replications > 1 else [every]
    return [np.array_split(part, max(1, min(BATCHES, len(part), int(len(part) * clients / FEWEST)))) for part in parts]


def best(measure: Measure, values: Values, rivals: Sequence[str]) -> str | None:
    """Who does best among those that cost hardly more clients a request than the one that costs fewest."""
    fewest = min((values[name]["lost"] for name in rivals), default=0.0)
    safe = [name for name in rivals if values[name]["lost"] <= fewest + AS_SAFE] or list(rivals)
    among = rivals if measure.name == "lost" else safe
    known = [name for name in among if not math.isnan(values[name][measure.name])]
    pick: Callable[..., str] = min if measure.less else max
    return pick(known, key=lambda name: values[name][measure.name]) if known else None


def beside(measure: Measure, name: str, chosen: Sequence[str | None], cell: Sequence[Half]) -> Beside:
    """The candidate beside whom each half chose, on the other half; on the same where there are no two."""
    judged: list[float] = []
    batches: list[float] = []
    for half, rival in zip(cell, reversed(chosen), strict=True):
        if rival is None:
            continue
        judged.append(_apart(measure, half.values[name], half.values[rival]))
        batches.extend(_apart(measure, batch[name], batch[rival]) for batch in half.batches)
    known = [one for one in judged if not math.isnan(one)]
    if not known:
        return Beside(math.nan, math.nan, math.nan)
    middle = float(np.mean(known))
    spread = estimate.mean(np.array(batches), least=2).half if len(cell) > 1 else math.nan
    back = math.exp if measure.ratio else float
    if math.isnan(spread):
        return Beside(back(middle), math.nan, math.nan)
    width = WIDER * spread
    return Beside(back(middle), back(middle - width), back(middle + width))


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
#: times are those from arrival to answer, and `lost` is the share of requests that were not answered.
MEASURES = (
    Measure("median", "median completion time", "s", less=True, ratio=True),
    Measure("p95", "95th percentile of completion times, of clients that lost nothing", "s", less=True, ratio=True),
    Measure("slowest", "slowest completion of those that lost nothing", "s", less=True, ratio=True),
    Measure("messages", "messages sent for each request", "messages", less=True, ratio=True),
    Measure("lost", "clients that lost a request", "1", less=True, ratio=False),
    Measure("delivery", "requests that reached the application", "1", less=False, ratio=False),
    Measure("spurious", "spurious retransmissions for each request", "messages", less=True, ratio=False),
    Measure("harm", "neighbours' median, in parts of what they need among themselves", "1", less=True, ratio=False),
    Measure("fairness", "Jain's index of requests answered", "1", less=False, ratio=False),
)
#: The metrics that they are of; times and losses of requests in a rhythm are of two others.
METRICS = (
    "fct_of_complete", "first_copies", "retransmissions_per_client", "unnecessary_retx_per_client", "completed",
    "delivery_ratio", "fairness",
)  # fmt: skip
OF_RHYTHMS = ("answer_delay", "answered_share")


@dataclass(frozen=True)
class Outcome:
    """The samples of a controller in a cell, by metric; runs are counted from 0."""

    samples: Mapping[str, Sample]

    @staticmethod
    def of(measures: Measures, population: Population) -> Outcome:
        """Read from results."""
        cell = measures.cell(population)
        names = METRICS if is_loop(cell) else METRICS + OF_RHYTHMS
        return Outcome({name: _from(measures.sample(name, population), cell.first_run) for name in names})

    @property
    def clients(self) -> int:
        """Clients of all runs."""
        times = self.samples["fct_of_complete"]
        return times.n + times.missing

    def values(self, runs: Ints | None = None) -> dict[str, float]:
        """Every measure but `harm`, over all runs or over these."""
        of = self.samples if runs is None else {name: one.of_runs(runs) for name, one in self.samples.items()}
        first, again, unnecessary, completed = (float(of[name].values.sum()) for name in METRICS[1:5])
        return {
            **_times(of),
            "messages": (first + again) / max(1.0, completed),
            "delivery": of["delivery_ratio"].take("mean"),
            "spurious": unnecessary / max(1.0, first),
            "fairness": of["fairness"].take("mean"),
        }


# ----------------------------------------------------------------------------------------------- helpers


def _apart(measure: Measure, mine: Mapping[str, float], theirs: Mapping[str, float]) -> float:
    """How much worse: the logarithm of a ratio, or a difference; NaN where that says nothing."""
    value, other = mine[measure.name], theirs[measure.name]
    if math.isnan(value) or math.isnan(other):
        return math.nan
    if not measure.ratio:
        return value - other if measure.less else other - value
    if not math.isfinite(other):
        return math.nan if not math.isfinite(value) else -math.log(MOST)
    return min(math.log(MOST), math.log(value / other)) if value > 0 < other else math.nan


def _from(sample: Sample, first_run: int) -> Sample:
    lacking = None if sample.lacking is None else sample.lacking - first_run
    return replace(sample, runs=sample.runs - first_run, lacking=lacking)


def _times(of: Mapping[str, Sample]) -> dict[str, float]:
    if "answer_delay" in of:
        # when the last request ends is the rhythm's doing
        delays = of["answer_delay"]
        lost = 1 - of["answered_share"].take("mean")
        return {"median": delays.take("median"), "p95": delays.take("p95"), "slowest": math.nan, "lost": lost}
    times = of["fct_of_complete"]
    if not times.n:
        return {"median": math.inf, "p95": math.inf, "slowest": math.inf, "lost": 1.0}
    return {
        "median": times.take("median-of-all"),
        "p95": times.take("p95"),
        "slowest": times.take("max"),
        "lost": 1 - times.covered,
    }
