"""The page of a sweep of one's own: what stands on it, in order."""

from __future__ import annotations

import math
from functools import partial

from millpond.measure.measures import Measures
from millpond.measure.metrics import ALIASES, METRICS
from millpond.measure.population import Population
from millpond.show import labels
from millpond.show.report import figures, story, study
from millpond.show.report.data import Data
from millpond.show.report.parts import Listing, Picture, Section
from millpond.show.sweep import reached

METRICS_SHOWN = ("clients_done_99", "fct", "delivery_ratio", "unnecessary_retx_per_client", "wasted_share")
"""What the small multiples and the matrices show, where the results hold it."""
OPEN = 40
"""A table of more rows than this is folded away."""


def sections(data: Data) -> list[Section]:
    """Everything that a sweep shows: the lead, who is done by when, every metric by every factor, and what was run."""
    views = data.views()
    measures = Measures(data.results)
    return [
        Section("summary", "In short", tuple(story.study_story(data)), listings=(overview(data, measures),)),
        study.reported(data, views),
        _multiples(data),
        Section(
            "matrices",
            "Every metric in every place",
            ("A row for each place, a column for each controller; with several runs a 95 % interval over runs.",),
            listings=tuple(matrix(data, measures, name) for name in METRICS_SHOWN if _known(measures, name)),
        ),
        *([study.over_time(data)] if data.traced(data.plain()) else []),
        study.completion(data, None, views),
        study.transmissions(data, None),
        study.what_was_run(data, None),
    ]


def overview(data: Data, measures: Measures) -> Listing:
    """Every setting in one row: who got what it asked for, how long that took, and what was in vain."""
    shown = [name for name in ("complete_clients", *METRICS_SHOWN) if _known(measures, name)]
    rows = []
    for population in measures.populations():
        cell = measures.cell(population)
        where = [data.factors[name].tick(cell.columns.get(name, "")) for name in data.columns]
        fct = measures.sample("fct", population)
        values = [in_words(measures, name, population) for name in shown]
        rows.append((*where, data.label(population.algorithm), f"{fct.n} of {fct.n + fct.missing}", *values))
    factors = [data.factors[name].axis for name in data.columns]
    header = (*factors, "controller", "completion times of", *(METRICS[_name(name)].title for name in shown))
    caption = "Usual statistics of every metric; with several runs a 95 % interval over runs."
    return Listing(
        "overview",
        header,
        tuple(rows),
        caption,
        numeric=tuple(range(len(factors) + 2, len(header))),
        folded=f"Overview of all settings ({len(rows)})" if len(rows) > OPEN else "",
    )


def matrix(data: Data, measures: Measures, metric: str) -> Listing:
    """One metric: a row for each place, a column for each controller, folded away."""
    alone = [population for population in measures.populations() if not population.partner]
    names = [name for name in data.controllers() if any(p.algorithm == name for p in alone)]
    found: dict[tuple[str, ...], dict[str, str]] = {}
    for population in alone:
        cell = measures.cell(population)
        place = tuple(data.factors[name].tick(cell.columns.get(name, "")) for name in data.columns)
        found.setdefault(place, {})[population.algorithm] = in_words(measures, metric, population)
    header = (*(data.factors[name].axis for name in data.columns), *(data.label(name) for name in names))
    rows = tuple((*place, *(values.get(name, "") for name in names)) for place, values in found.items())
    known = METRICS[_name(metric)]
    return Listing(
        f"matrix-{known.name.replace('_', '-')}",
        header,
        rows,
        f"{_large(known.summary)} ({known.usual}).",
        numeric=tuple(range(len(data.columns), len(header))),
        folded=known.axis,
        data=figures.small_multiples_rows(data, known.name),
    )


def in_words(measures: Measures, metric: str, population: Population) -> str:
    """The usual statistic of a metric, with its interval over runs if there are several: `12.3 s (11.9 to 12.8)`."""
    known = METRICS[_name(metric)]
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


# ----------------------------------------------------------------------------------------------- helpers


def _name(metric: str) -> str:
    return ALIASES.get(metric, metric)


def _short(bound: float) -> float:
    """The end of an interval to four digits: it is less sure than the value beside it."""
    return float(f"{bound:.4g}")


def _known(measures: Measures, metric: str) -> bool:
    """Whether any population has a value of the metric."""
    return any(not math.isnan(measures.estimate(metric, population).value) for population in measures.populations())


def _multiples(data: Data) -> Section:
    measures = Measures(data.results)
    pictures = []
    for name in METRICS_SHOWN:
        if not _known(measures, name):
            continue
        known = METRICS[_name(name)]
        pictures.append(
            Picture(
                f"multiples-{known.name.replace('_', '-')}",
                _large(known.title),
                f"{_large(known.summary)} ({known.usual}); upright lines are 95 % intervals over runs.",
                partial(figures.small_multiples, data, known.name),
                partial(figures.small_multiples_rows, data, known.name),
            )
        )
    told = f"{labels.count(len(data.cells))} settings; rows, columns and axes are the factors with most values."
    return Section("multiples", "Every metric over the factors", (told,), tuple(pictures))


def _large(words: str) -> str:
    return words[:1].upper() + words[1:]
