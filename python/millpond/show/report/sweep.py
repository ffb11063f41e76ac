"""What is shown of a user's sweep, in order."""

from __future__ import annotations

import math
from functools import partial

from millpond.judge.side_by_side import line
from millpond.measure.measures import Measures
from millpond.measure.metrics import METRICS
from millpond.measure.population import Population
from millpond.show import labels
from millpond.show.document import Listing, Picture, Section
from millpond.show.report import figures, story, study
from millpond.show.report.grid import Grid

METRICS_SHOWN = ("clients_done_99", "fct", "delivery_ratio", "unnecessary_retx_per_client", "wasted_share")
"""What the small multiples and the matrices show, where the results hold it."""
COMPARED = ("fct", "unnecessary_retx_per_client")
"""What controllers are compared by."""
TIMES_UNTIL = ("clients_done_", "requests_done_")
"""Metrics that have no value in a run in which so much was never done."""
OPEN = 40
"""A table of more rows than this is folded away."""


def sections(grid: Grid) -> list[Section]:
    """Everything that a sweep shows: the lead, who is done by when, every metric by every factor, and what was run."""
    views = grid.views()
    measures = grid.measures
    return [
        Section(
            "summary",
            "In short",
            tuple(story.study_story(grid)),
            listings=(overview(grid, measures), against(grid, measures)),
        ),
        study.reported(grid, views),
        _multiples(grid),
        Section(
            "matrices",
            "Every metric in every place",
            ("A row for each place, a column for each controller; with several runs a 95 % interval over runs.",),
            listings=tuple(matrix(grid, measures, name) for name in METRICS_SHOWN if _known(measures, name)),
            detail=True,
        ),
        *([study.over_time(grid)] if grid.traced(grid.plain()) else []),
        study.completion(grid, None, views),
        study.transmissions(grid, None),
        study.what_was_run(grid, None),
    ]


def overview(grid: Grid, measures: Measures) -> Listing:
    """Every setting in one row: who got what it asked for, how long that took, and what was spurious."""
    shown = [name for name in ("complete_clients", *METRICS_SHOWN) if _known(measures, name)]
    there = list(measures.populations())
    told = [measures.reported.outcome(measures.cell(one), measures.group(one)) for one in there]
    # of the ways that requests end badly, those that some did
    ends = {
        "requests failed": [one.failed for one in told],
        "never finished": [one.never_finished or 0 for one in told],
    }
    ends = {head: counts for head, counts in ends.items() if any(counts)}
    rows = []
    for place, population in enumerate(there):
        fct = measures.sample("fct", population)
        rows.append(
            (
                *_where(grid, measures, population),
                f"{fct.n} of {fct.n + fct.missing}",
                *(labels.count(counts[place]) for counts in ends.values()),
                *(in_words(measures, name, population) for name in shown),
            )
        )
    header = (*_heads(grid), "completion times of", *ends, *(METRICS[name].title for name in shown))
    return Listing(
        "overview",
        header,
        tuple(rows),
        "Usual statistics of every metric: the mean over runs, with several runs its 95 % interval. Bytes of the "
        "bottleneck are wasted that completed no exchange.",
        numeric=tuple(range(len(_heads(grid)), len(header))),
        title=f"Overview of all settings ({len(rows)})",
        folded=len(rows) > OPEN,
    )


def against(grid: Grid, measures: Measures) -> Listing:
    """Every controller against the first one in the same place: seeds are shared, so runs are compared pair by pair."""
    places: dict[tuple[object, ...], list[Population]] = {}
    for population in measures.populations():
        if not population.partner:
            places.setdefault(population.factors, []).append(population)
    pairs = [(those[0], other) for those in places.values() for other in those[1:]]
    if grid.results.replications < 2:
        pairs = []
    rows = tuple(
        (
            *_where(grid, measures, other),
            *(difference_in_words(measures, name, first, other) for name in COMPARED),
        )
        for first, other in pairs
    )
    first = ", ".join(dict.fromkeys(grid.label(first.algorithm) for first, _ in pairs))
    return Listing(
        "against",
        (*_heads(grid), *(METRICS[name].axis for name in COMPARED)),
        rows,
        "Difference and its 95 % interval over pairs of runs of one seed; = is inconclusive, the interval holds 0.",
        numeric=tuple(range(len(_heads(grid)), len(_heads(grid)) + len(COMPARED))),
        title=f"Against {first}, run by run",
        folded=len(rows) > OPEN,
    )


def matrix(grid: Grid, measures: Measures, metric: str) -> Listing:
    """One metric: a row for each place, a column for each controller, folded away."""
    alone = [population for population in measures.populations() if not population.partner]
    names = [name for name in grid.controllers() if any(p.algorithm == name for p in alone)]
    found: dict[tuple[str, ...], dict[str, str]] = {}
    for population in alone:
        place = _where(grid, measures, population)[:-1]
        found.setdefault(place, {})[population.algorithm] = in_words(measures, metric, population)
    header = (*_heads(grid)[:-1], *(grid.label(name) for name in names))
    rows = tuple((*place, *(values.get(name, "") for name in names)) for place, values in found.items())
    known = METRICS[metric]
    return Listing(
        f"matrix-{known.name.replace('_', '-')}",
        header,
        rows,
        f"{_large(known.summary)} ({known.usual}).",
        numeric=tuple(range(len(grid.columns), len(header))),
        title=known.axis,
        folded=True,
        data=figures.small_multiples(grid, known.name).rows,
    )


def in_words(measures: Measures, metric: str, population: Population) -> str:
    """The usual statistic of a metric, with its interval over runs if there are several: `12.3 s (11.9 to 12.8)`."""
    known = METRICS[metric]
    found = measures.estimate(known.name, population)
    share = reached(measures, known.name, population)
    if math.isnan(found.value):
        return share or "\N{EN DASH}"
    if share:
        return f"{known.written(found.value)} {share}"
    if found.interval is None or found.same:
        return known.written(found.value)
    low, high = (known.written(_short(bound)).removesuffix(" s").removesuffix(" %") for bound in found.interval)
    return f"{known.written(found.value)} ({low} to {high})"


def reached(measures: Measures, metric: str, population: Population) -> str:
    """How many of the runs a time until so much was done speaks of: `never`, `in 2 of 5 runs`, nothing if of all."""
    cell, group = measures.cell(population), measures.group(population)
    sample = measures.sample(metric, population)
    if not metric.startswith(TIMES_UNTIL) or not sample.missing or not measures.reported.since(cell, group):
        return ""
    return f"in {sample.n} of {labels.runs(sample.n + sample.missing)}" if sample.n else "never"


def difference_in_words(measures: Measures, metric: str, first: Population, other: Population) -> str:
    """By how much a metric is larger, with the paired interval: `-3.2 (-4.1 to -2.3)`; `=` if zero is inside."""
    found = line(measures, metric, other, first)
    if found is None:
        return "\N{EN DASH}"
    if found.low is None or found.high is None or found.low == found.high:
        return f"{found.difference:+.4g}" if found.difference else "="
    unsure = "= " if found.low <= 0 <= found.high else ""
    return f"{unsure}{found.difference:+.4g} ({found.low:+.3g} to {found.high:+.3g})"


# ----------------------------------------------------------------------------------------------- helpers


def _heads(grid: Grid) -> tuple[str, ...]:
    return (*(grid.factors[name].axis for name in grid.columns), "controller")


def _where(grid: Grid, measures: Measures, population: Population) -> tuple[str, ...]:
    cell = measures.cell(population)
    beside = f" beside {population.partner}" if population.partner else ""
    where = (grid.factors[name].tick(cell.columns.get(name, "")) for name in grid.columns)
    return (*where, f"{grid.label(population.algorithm)}{beside}")


def _short(bound: float) -> float:
    """The end of an interval to four digits: it is less sure than the value beside it."""
    return float(f"{bound:.4g}")


def _known(measures: Measures, metric: str) -> bool:
    """Whether any population has a value of the metric."""
    return any(not math.isnan(measures.estimate(metric, population).value) for population in measures.populations())


def _multiples(grid: Grid) -> Section:
    pictures = []
    for name in METRICS_SHOWN:
        if not _known(grid.measures, name):
            continue
        known = METRICS[name]
        pictures.append(
            Picture(
                f"multiples-{known.name.replace('_', '-')}",
                _large(known.title),
                f"{_large(known.summary)} ({known.usual}); upright lines are 95 % intervals over runs.",
                partial(figures.small_multiples, grid, known.name),
            )
        )
    told = f"{labels.count(len(grid.cells))} settings; rows, columns and axes are the factors with most values."
    return Section("multiples", "Every metric over the factors", (told,), tuple(pictures))


def _large(words: str) -> str:
    return words[:1].upper() + words[1:]
