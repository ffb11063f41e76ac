"""Small buffers depend on the phase of the packets: a fixed delay beside one that varies from packet to packet."""

from __future__ import annotations

from matplotlib.figure import Figure

from millpond.judge.compare import Comparison
from millpond.results.directory import Cell, Results
from millpond.show import labels
from millpond.show.report import style
from millpond.show.report.data import VARIANT, Data, number, only
from millpond.show.report.figures import marks
from millpond.show.report.figures.matrix import key_of, published_medians
from millpond.show.report.values import Missing, Rows, Spread, View

FIXED, JITTERED = "fixed", "jittered"
"""The path variants of the study."""


def fixed_beside_jittered(
    results: Results | Data, view: View | None = None, comparison: Comparison | None = None
) -> Figure:
    """Flow completion times with the smallest buffer, once with a fixed delay and once with jitter.

    A panel per number of clients. Raises `Missing` if the jittered path was not run.
    """
    data = Data.of(results)
    pairs = _pairs(data, view)
    counts = sorted({int(number(cell, "clients")) for pair in pairs for cell in pair})
    present = {only(cell) for pair in pairs for cell in pair}
    controllers = [name for name in data.controllers() if name in present]
    looks = data.looks
    theirs = published_medians(data, "fct", comparison, view)
    with style.applied():
        figure = Figure(figsize=(style.WIDTH, 4.1), layout="constrained")
        panels = figure.subplots(1, len(counts), squeeze=False)[0]
        for index, (panel, clients) in enumerate(zip(panels, counts, strict=True)):
            low, high, points = float("inf"), 0.0, []
            for fixed, jittered in pairs:
                if number(fixed, "clients") != clients:
                    continue
                name = only(fixed)
                x = controllers.index(name)
                for side, cell in ((-0.21, fixed), (0.21, jittered)):
                    spread = data.spread("fct_us", cell)
                    if spread is None:
                        continue
                    look = looks[name] if side < 0 else style.Look("#ffffff", "-", looks[name].marker, "")
                    marks.boxes(panel, look, [x + side], [spread], 0.38)
                    low, high = min(low, spread.minimum), max(high, spread.maximum)
                median = theirs.get(key_of(data, fixed))
                if median is not None:
                    points.append((float(x), median))
                    low, high = min(low, median), max(high, median)
            marks.published(panel, points)
            marks.title(panel, labels.clients(clients), marks.from_zero(panel, low, high, zoom=0.999))
            panel.set_xticks(range(len(controllers)), [data.label(name).replace(" ", "\n") for name in controllers])
            panel.tick_params(axis="x", length=0, labelsize=8)
            panel.set_xlim(-0.6, len(controllers) - 0.4)
            if index == 0:
                panel.set_ylabel("flow completion time (s)")
        keys: list[marks.Key] = [
            marks.area_key(style.Look("#bbbbbb", "-", "", "////"), "left of the pair: fixed delay"),
            marks.area_key(style.Look("#ffffff", "-", "", ""), "right: 10 to 20 ms, drawn for each packet"),
        ]
        if any(key_of(data, fixed) in theirs for fixed, _ in pairs):
            keys.append(marks.published_key())
        marks.legend_below(figure, keys, 3)
    return figure


def fixed_beside_jittered_rows(results: Results | Data, view: View | None = None) -> Rows:
    """The percentiles that `fixed_beside_jittered` draws, in seconds."""
    data = Data.of(results)
    rows = []
    for pair in _pairs(data, view):
        for cell in pair:
            spread = data.spread("fct_us", cell)
            if spread is not None:
                told = (cell.columns[name] for name in ("clients", "buffer_bytes", "workload"))
                rows.append((*told, only(cell), cell.columns[VARIANT], *spread.row()))
    return Rows(("clients", "buffer_bytes", "workload", "controller", "delay", *Spread.HEADER), tuple(rows))


def _pairs(data: Data, view: View | None) -> list[tuple[Cell, Cell]]:
    view = view or data.whole
    fixed = {_key(cell): cell for cell in data.plain(view.but(**{VARIANT: FIXED}))}
    jittered = data.plain(view.but(**{VARIANT: JITTERED}))
    found = [(fixed[_key(cell)], cell) for cell in jittered if _key(cell) in fixed]
    if not found:
        raise Missing(
            "Fixed delay and jitter are not compared: the path with jitter was not run (the plan says for which "
            "buffers and clients it is)."
        )
    return found


def _key(cell: Cell) -> tuple[object, ...]:
    return (*(cell.columns.get(name) for name in ("clients", "buffer_bytes", "workload")), only(cell))
