"""Pictures with a panel per number of clients, a group per buffer and a mark per controller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from millpond.compare import Comparison
from millpond.report import labels, style
from millpond.report.data import FIXED, Data, Missing, Rows, Spread, number, only, ordered
from millpond.report.figures import marks
from millpond.results import Cell, Results

Key = tuple[int, int, str]
"""Clients, buffer in bytes, preset."""


def completion_times(
    results: Results | Data, workload: str = "continuous", comparison: Comparison | None = None
) -> Figure:
    """Boxes of the flow completion time, with published medians marked. Raises `Missing` if nothing was run."""
    data = Data.of(results)
    spreads = _spreads(data, "fct_us", workload, "no client finished in these runs")
    return _draw(
        spreads,
        "flow completion time (s)",
        data.controllers(),
        published=published_medians(data, "fct", workload, comparison),
        boxes=True,
    )


def completion_times_rows(results: Results | Data, workload: str = "continuous") -> Rows:
    """The percentiles that `completion_times` draws, in seconds."""
    return _rows(Data.of(results), "fct_us", workload, "s")


def unnecessary_copies(
    results: Results | Data, workload: str = "continuous", comparison: Comparison | None = None
) -> Figure:
    """Bars of the median number of unnecessary retransmissions of a client. Raises `Missing` if nothing was run."""
    data = Data.of(results)
    spreads = _spreads(data, "unnecessary", workload, "these results count no retransmissions")
    return _draw(
        spreads,
        "unnecessary retransmissions\nper client",
        data.controllers(),
        published=published_medians(data, "unnecessary_retx_per_client", workload, comparison),
        boxes=False,
    )


def unnecessary_copies_rows(results: Results | Data, workload: str = "continuous") -> Rows:
    """The percentiles that `unnecessary_copies` draws, in retransmissions per client."""
    return _rows(Data.of(results), "unnecessary", workload, "retransmissions")


def published_medians(data: Data, metric: str, workload: str, comparison: Comparison | None) -> Mapping[Key, float]:
    """Published medians of a metric, by the cell they belong to."""
    found: dict[Key, float] = {}
    for figure in comparison.figures if comparison is not None else []:
        if figure.metric != metric or figure.statistic != "median" or figure.scenario.get("path", FIXED) != FIXED:
            continue
        for cell in data.plain(workload=workload):
            if _belongs(figure.scenario, cell):
                found.setdefault(_key(cell), figure.published)
    return found


def _belongs(scenario: Mapping[str, object], cell: Cell) -> bool:
    needed = ("clients", "buffer_bytes", "workload", "algorithm")
    return all(name in scenario and str(scenario[name]) == str(cell.columns.get(name)) for name in needed)


def _key(cell: Cell) -> Key:
    return int(number(cell, "clients")), int(number(cell, "buffer_bytes")), only(cell)


def _spreads(data: Data, column: str, workload: str, otherwise: str) -> dict[Key, Spread]:
    found: dict[Key, Spread] = {}
    for cell in data.plain(workload=workload):
        spread = data.spread(column, cell)
        if spread is not None:
            found[_key(cell)] = spread
    if not found:
        raise Missing(f"Nothing to draw for {workload} clients: {otherwise}.")
    return found


def _rows(data: Data, column: str, workload: str, unit: str) -> Rows:
    rows = []
    for cell in data.plain(workload=workload):
        spread = data.spread(column, cell)
        if spread is not None:
            clients, buffer, controller = _key(cell)
            rows.append((clients, buffer, workload, controller, unit, data.unfinished(cell), *spread.row()))
    return Rows(
        ("clients", "buffer_bytes", "workload", "controller", "unit", "unfinished", *Spread.HEADER), tuple(rows)
    )


def _draw(
    spreads: Mapping[Key, Spread],
    axis: str,
    order: Sequence[str],
    *,
    published: Mapping[Key, float],
    boxes: bool,
) -> Figure:
    present = {key[2] for key in spreads}
    controllers = [name for name in ordered(order) if name in present]
    counts = sorted({key[0] for key in spreads})
    left_out: list[int] = []
    if not boxes:
        left_out = [n for n in counts if all(s.p90 == 0 for (clients, *_), s in spreads.items() if clients == n)]
        counts = [n for n in counts if n not in left_out]
        if not counts:
            raise Missing(f"No client made one in these runs, with {_listed(left_out)}.")
    buffers = sorted({key[1] for key in spreads})
    looks = style.looks(controllers)
    columns = 1 if len(counts) == 1 else 2
    rows = -(-len(counts) // columns)
    with style.applied():
        figure = Figure(figsize=(style.WIDTH, 2.55 * rows + 0.9), layout="constrained")
        marks.more_room(figure)
        panels = figure.subplots(rows, columns, squeeze=False)
        at, width = marks.positions(len(buffers), len(controllers))
        for index, (panel, clients) in enumerate(zip(panels.flat, counts, strict=False)):
            low, high = float("inf"), 0.0
            marked = []
            for c, name in enumerate(controllers):
                mine = [
                    (b, spreads[clients, size, name])
                    for b, size in enumerate(buffers)
                    if (clients, size, name) in spreads
                ]
                draw = marks.boxes if boxes else marks.bars
                draw(panel, looks[name], [at[b][c] for b, _ in mine], [spread for _, spread in mine], width)
                for b, spread in mine:
                    low = min(low, spread.minimum if boxes else spread.p10)
                    high = max(high, spread.maximum if boxes else spread.p90)
                    theirs = published.get((clients, buffers[b], name))
                    if theirs is not None:
                        marked.append((at[b][c], theirs))
                        low, high = min(low, theirs), max(high, theirs)
            marks.published(panel, marked)
            zero = marks.from_zero(panel, low, high) if boxes else marks.from_zero(panel, 0.0, high)
            marks.title(panel, labels.clients(clients), zero)
            panel.set_xlim(-0.5, len(buffers) - 0.5)
            panel.set_xticks(range(len(buffers)), [labels.buffer(size) for size in buffers])
            panel.tick_params(axis="x", length=0)
            for b in range(1, len(buffers)):
                panel.axvline(b - 0.5, color=style.GRID, linewidth=0.8, zorder=0)
            if index % columns == 0:
                panel.set_ylabel(axis)
            if index >= len(counts) - columns:
                panel.set_xlabel("bottleneck buffer")
        for panel in panels.flat[len(counts) :]:
            panel.set_visible(False)
        if left_out:
            figure.suptitle(
                f"No client made one with {_listed(left_out)} (panels left out).", x=0.01, ha="left", fontsize=10
            )
        keys = marks.area_keys(controllers, looks, markers=boxes)
        if any(key in spreads for key in published):
            keys.append(marks.published_key())
        figure.align_ylabels()
        marks.legend_below(figure, keys, 4)
    return figure


def _listed(counts: Sequence[int]) -> str:
    texts = [labels.count(n) for n in counts]
    words = texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
    return f"{words} client{'' if list(counts) == [1] else 's'}"
