"""What is shown of the arena's results, and the files that keep them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pyarrow.csv as csv
from matplotlib.figure import Figure

from millpond.arena.verdict import MEASURES, Score, Summary, table
from millpond.controllers.own import is_own
from millpond.results.store import write_table, write_text
from millpond.show import html
from millpond.show.document import Document, Listing, Picture, Plot, Rows, Section
from millpond.show.report import style
from millpond.show.report.figures import marks

PAGE = "arena.html"
SCORES, SUMMARIES = "scores", "summary"
WORST = 12
"""So many of a candidate's worst cells are listed."""


def write(folder: Path, found: Sequence[Score], told: Sequence[Summary], shown: Document) -> Path:
    """The two tables as CSV and Parquet, and the page. Returns where the page is."""
    for name, rows in ((SCORES, table(found)), (SUMMARIES, table(told))):
        write_table(folder / f"{name}.parquet", rows)
        with (folder / f"{name}.csv").open("wb") as file:
            csv.write_csv(rows, file)
    page = folder / PAGE
    write_text(page, html.render(shown))
    return page


def document(found: Sequence[Score], told: Sequence[Summary], candidates: Sequence[str], version: str) -> Document:
    """All that is shown of an arena, in every format."""
    footer = "Drawn from scores.parquet in the same directory."
    return Document("Arena", f"Run by millpond {version}", footer, partial(sections, found, told, candidates))


def sections(found: Sequence[Score], told: Sequence[Summary], candidates: Sequence[str]) -> list[Section]:
    """What stands there, in order."""
    places = len({score.place for score in found})
    lead = (
        f"{len(candidates)} {'candidate' if len(candidates) == 1 else 'candidates'} beside the published presets in "
        f"{places} {'cell' if places == 1 else 'cells'}. Every one meets the same random "
        "streams in a cell. A ratio is that to the best published preset of the same cell, among those that cost "
        "hardly more clients a request than the one that costs fewest, chosen on other runs than the ratio is taken "
        "on; a completion time of a client that lost a request is without end. Surely above 1.05 is a cell whose 95 % "
        "interval lies above it.",
    )
    curves = Picture(
        "curves",
        "Ratios over all cells",
        "For each controller the ratio to the best preset in every cell, from its best cell to its worst.",
        partial(_curves, found, candidates),
    )
    return [
        Section("summary", "In short", lead, listings=(_brief(told), _overview(told))),
        Section(
            "cells", "Cell by cell", pictures=(curves,), listings=tuple(_worst(found, name) for name in candidates)
        ),
        Section("families", "By family", listings=(_families(found, candidates),)),
    ]


# ----------------------------------------------------------------------------------------------- helpers


def _brief(told: Sequence[Summary]) -> Listing:
    """A row for each controller, its ratios and differences."""
    names = ("median", "p95", "messages", "lost")
    found = {(one.candidate, one.measure): one for one in told}
    rows = tuple(
        (candidate, *(_in_short(found.get((candidate, name))) for name in names))
        for candidate in dict.fromkeys(one.candidate for one in told)
    )
    caption = "Beside the best published preset of each cell: mean, worst, cells above 1.05 / surely above."
    return Listing("brief", ("controller", *names), rows, caption, numeric=(1, 2, 3, 4))


def _in_short(one: Summary | None) -> str:
    return "\N{EN DASH}" if one is None else f"{one.mean:.3f}, {one.worst:.2f}, {one.above} / {one.surely_above}"


def _overview(told: Sequence[Summary]) -> Listing:
    rows = tuple(
        (
            one.candidate,
            measure.what,
            str(one.cells),
            f"{one.mean:.3f}",
            f"{one.worst:.2f}",
            one.worst_place,
            str(one.above),
            str(one.far_above),
            f"{one.surely_above}, {one.surely_far_above}",
            "" if math.isnan(one.over_bound) else f"{one.over_bound:.2f}",
        )
        for measure in MEASURES
        for one in told
        if one.measure == measure.name
    )
    header = (
        "controller",
        "measure",
        "cells",
        "mean",
        "worst",
        "where",
        "above 1.05",
        "above 1.25",
        "surely",
        "over the bound",
    )
    caption = (
        "Times and messages as ratios; the others as differences, positive where they are worse, with cells worse by "
        "more than one and five points in place of 1.05 and 1.25. Surely: cells above either by more than the runs "
        "leave to chance, at 95 %. The bound: one round trip an exchange, or the busier "
        "link without a pause."
    )
    title = "Every measure"
    numeric = (2, 3, 4, 6, 7, 8, 9)
    return Listing("overview", header, rows, caption, numeric, title=title, folded=True, detail=True)


def _worst(found: Sequence[Score], candidate: str) -> Listing:
    times = [one for one in found if one.candidate == candidate and one.measure in ("median", "p95")]
    listed = sorted((one for one in times if not math.isnan(one.beside)), key=lambda one: -one.beside)[:WORST]
    rows = tuple(
        (
            one.place,
            one.measure,
            f"{one.value:.4g} s",
            f"{one.best:.4g} s",
            one.best_preset,
            f"{one.beside:.3f}",
            "" if math.isnan(one.low) else f"{one.low:.3f} to {one.high:.3f}",
        )
        for one in listed
    )
    header = ("cell", "measure", candidate, "best preset", "which", "ratio", "95 % interval")
    return Listing(f"worst-{candidate}", header, rows, f"Where {candidate} does worst.", numeric=(2, 3, 5, 6))


def _families(found: Sequence[Score], candidates: Sequence[str]) -> Listing:
    families = list(dict.fromkeys(one.family for one in found))
    rows = []
    for family in families:
        for candidate in candidates:
            told = [family, candidate]
            for name in ("median", "p95", "messages", "lost"):
                here = [
                    one.beside
                    for one in found
                    if (one.family, one.candidate, one.measure) == (family, candidate, name)
                    and not math.isnan(one.beside)
                ]
                told.append(f"{sum(here) / len(here):.3f}" if here else "")
            rows.append(tuple(told))
    header = ("family", "controller", "median", "p95", "messages", "lost")
    return Listing("families", header, tuple(rows), "Means over the cells of a family.", numeric=(2, 3, 4, 5))


def _ratios(found: Sequence[Score], candidate: str, measure: str) -> list[float]:
    return sorted(
        one.beside
        for one in found
        if one.candidate == candidate and one.measure == measure and not math.isnan(one.beside)
    )


def _curves(found: Sequence[Score], candidates: Sequence[str]) -> Plot:
    header = ("cell", "controller", "measure", "value", "best", "ratio")
    kept = [one for one in found if one.measure in ("median", "p95")]
    rows = tuple((one.place, one.candidate, one.measure, one.value, one.best, one.beside) for one in kept)
    return Plot(Rows(header, rows), lambda: _drawn(found, candidates))


def _drawn(found: Sequence[Score], candidates: Sequence[str]) -> Figure:
    names = list(dict.fromkeys([*candidates, *(one.candidate for one in found)]))
    with marks.panels(4.2, 2, 2, ("% of cells", "over the best preset's"), sharey=True) as (figure, axes):
        looks = style.looks({name: name for name in names}, {name for name in names if is_own(name)})
        for axis, measure in zip(axes, ("median", "p95"), strict=True):
            for name in names:
                ratios = _ratios(found, name, measure)
                shares = [100 * (at + 0.5) / len(ratios) for at in range(len(ratios))]
                width = 2.2 if name in candidates else 1.0
                look = looks[name]
                axis.plot(shares, ratios, color=look.colour, linestyle=look.dash, linewidth=width, label=name)
            axis.axhline(1, color="#999999", linewidth=0.7)
            axis.set_yscale("log")
            axis.set_title(f"completion time, {measure}")
        axes[1].legend(fontsize=7, ncols=2)
    return figure
