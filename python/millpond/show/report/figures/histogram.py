"""How often exchanges had to be sent again, ours beside the published counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from millpond.judge.compare import Comparison
from millpond.results.directory import Cell, Results
from millpond.results.factor import ALGORITHM
from millpond.show.document import Missing, Plot, Rows
from millpond.show.report import style
from millpond.show.report.figures import marks
from millpond.show.report.grid import Facet, Grid, only

METRIC = "exchanges_by_retransmissions"
FLOOR = 1e-5
"""Bars stand on this share: one exchange in a hundred thousand."""
_PUBLISHED: dict[str, Any] = {"facecolor": "white", "edgecolor": style.PUBLISHED, "linewidth": 1.2}


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
    height = (2.05 * -(-len(found) // columns) + 1.0) * style.scale()
    words = "retransmissions of an exchange", "share of exchanges (%)"
    with marks.panels(height, len(found), columns, words, sharex=True, sharey=True) as (figure, panels):
        for panel, tally in zip(panels, found, strict=True):
            look, width = grid.looks[only(tally.cell)], 0.4
            ours, theirs = _shares(tally.ours), _shares(tally.theirs)
            shift = width / 2 if theirs else 0.0
            filled: dict[str, Any] = {"facecolor": look.fill, "edgecolor": style.INK, "hatch": look.hatch}
            for shares, by, how in ((ours, -shift, {**filled, "linewidth": 0.7}), (theirs, shift, _PUBLISHED)):
                high = [max(0.0, share - FLOOR) for share in shares.values()]
                panel.bar([k + by for k in shares], high, width, bottom=FLOOR, **how)
            for k, share in ours.items():
                if share >= FLOOR:
                    panel.annotate(
                        _percent(share), (k, max(share, theirs.get(k, 0.0))), (0, 2), textcoords="offset points",
                        ha="center", va="bottom", fontsize=7.5,
                    )  # fmt: skip
            panel.set_yscale("log")
            panel.set_ylim(FLOOR, 5)
            panel.set_yticks([1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1])
            panel.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g}"))
            panel.minorticks_off()
            panel.set_xlim(-0.7, last + 0.7)
            panel.set_xticks(range(last + 1))
            panel.set_title(tally.title, fontsize=10)
        if any(tally.theirs for tally in found):
            ours_too = "measured here (the number above)"
            keys = [
                Patch(facecolor="#bbbbbb", edgecolor=style.INK, linewidth=0.7, label=ours_too),
                Patch(**_PUBLISHED, label="published"),
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
