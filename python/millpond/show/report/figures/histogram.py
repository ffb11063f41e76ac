"""How often exchanges had to be sent again, ours beside the published counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from millpond.judge.compare import Comparison
from millpond.results.directory import Cell, Results
from millpond.results.factor import ALGORITHM
from millpond.show.document import Missing, Plot, Rows
from millpond.show.report import style
from millpond.show.report.grid import Facet, Grid, only

METRIC = "exchanges_by_retransmissions"
FLOOR = 1e-5
"""Bars stand on this share: one exchange in a hundred thousand."""


@dataclass(frozen=True)
class Tally:
    """Exchanges of one cell by number of retransmissions, and the published counts if there are any."""

    cell: Cell
    title: str
    ours: Mapping[int, int]
    theirs: Mapping[int, float]


def transmissions(results: Results | Grid, comparison: Comparison | None = None, stage: Facet | None = None) -> Plot:
    """Share of exchanges by number of retransmissions, a panel per controller, published beside.

    Shown is one place, the first that the study looks at closely if none is named. Raises `Missing` if no exchange was
    counted.
    """
    grid = Grid.of(results)
    found = tallies(grid, comparison, stage)
    rows = []
    for tally in found:
        for k in sorted({*tally.ours, *tally.theirs}):
            told = (only(tally.cell), k, tally.ours.get(k, 0), tally.theirs.get(k, ""))
            rows.append((*grid.spot(tally.cell), *told))
    header = (*grid.columns, "controller", "retransmissions", "exchanges", "published_exchanges")
    return Plot(Rows(header, tuple(rows)), lambda: _draw(grid, found))


def _draw(grid: Grid, found: Sequence[Tally]) -> Figure:
    last = max(max((k for k, n in counts.items() if n), default=0) for t in found for counts in (t.ours, t.theirs))
    columns = min(3, len(found), max(1, int(style.width() // 2.3)))
    rows = -(-len(found) // columns)
    with style.applied():
        figure = Figure(figsize=(style.width(), (2.05 * rows + 1.0) * style.scale()), layout="constrained")
        panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        for index, (panel, tally) in enumerate(zip(panels.flat, found, strict=False)):
            look = grid.looks[only(tally.cell)]
            width = 0.4
            ours, theirs = _shares(tally.ours), _shares(tally.theirs)
            shift = width / 2 if theirs else 0.0
            panel.bar(
                [k - shift for k in ours],
                [max(0.0, share - FLOOR) for share in ours.values()],
                width,
                bottom=FLOOR,
                facecolor=look.fill,
                edgecolor=style.INK,
                hatch=look.hatch,
                linewidth=0.7,
            )
            panel.bar(
                [k + shift for k in theirs],
                [max(0.0, share - FLOOR) for share in theirs.values()],
                width,
                bottom=FLOOR,
                facecolor="white",
                edgecolor=style.PUBLISHED,
                linewidth=1.2,
            )
            for k, share in ours.items():
                if share >= FLOOR:
                    high = max(share, theirs.get(k, 0.0))
                    panel.annotate(
                        _percent(share),
                        (k, high),
                        (0, 2),
                        textcoords="offset points",
                        ha="center",
                        va="bottom",
                        fontsize=7.5,
                    )
            panel.set_yscale("log")
            panel.set_ylim(FLOOR, 5)
            panel.set_yticks([1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1])
            panel.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g}"))
            panel.minorticks_off()
            panel.set_xlim(-0.7, last + 0.7)
            panel.set_xticks(range(last + 1))
            panel.set_title(tally.title, fontsize=10)
            if index % columns == 0:
                panel.set_ylabel("share of exchanges (%)")
            if index >= len(found) - columns:
                panel.set_xlabel("retransmissions of an exchange")
                panel.tick_params(axis="x", labelbottom=True)
        for panel in panels.flat[len(found) :]:
            panel.set_visible(False)
        if any(tally.theirs for tally in found):
            keys = [
                Patch(
                    facecolor="#bbbbbb", edgecolor=style.INK, linewidth=0.7, label="measured here (the number above)"
                ),
                Patch(facecolor="white", edgecolor=style.PUBLISHED, linewidth=1.2, label="published"),
            ]
            figure.legend(handles=keys, loc="outside lower center", ncols=2)
    return figure


def tallies(grid: Grid, comparison: Comparison | None = None, stage: Facet | None = None) -> list[Tally]:
    """The histograms of one place. Raises `Missing` if there are none."""
    stage = stage or (grid.stages[0] if grid.stages else grid.whole)
    found = []
    for cell in grid.plain(stage):
        ours = grid.measures.histogram(grid.measures.of(cell))
        if sum(ours.values()):
            found.append(Tally(cell, grid.label(only(cell)), ours, _published(grid, cell, comparison)))
    if not found:
        raise Missing("The histogram is not drawn: these results hold no completed exchange.")
    order = grid.controllers()
    return sorted(found, key=lambda tally: order.index(only(tally.cell)))


def _published(grid: Grid, cell: Cell, comparison: Comparison | None) -> dict[int, float]:
    names = [ALGORITHM, *grid.varying, *([grid.across] if grid.across else [])]
    return {
        int(figure.bin): figure.published
        for figure in (comparison.figures if comparison is not None else [])
        if figure.metric == METRIC and figure.bin.isdigit() and grid.belongs(figure.scenario, cell, names)
    }


def _shares(counts: Mapping[int, float] | Mapping[int, int]) -> dict[int, float]:
    total = float(sum(counts.values()))
    return {k: n / total for k, n in counts.items()} if total else {}


def _percent(share: float) -> str:
    return f"{100 * share:.1f}" if share >= 0.0995 else f"{100 * share:.2g}"
