"""What becomes of timers that believe a reply which names a copy: first waits, completion times, needless copies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from millpond.measure import estimate
from millpond.results.directory import Cell, Value
from millpond.show import labels
from millpond.show.report import style
from millpond.show.report.data import Data
from millpond.show.report.figures import marks
from millpond.show.report.values import Floats, Missing, Rows, Spread
from millpond.studies.echo.naming import SERVERS, TIMER


@dataclass(frozen=True)
class Quantity:
    """What is drawn upwards: of the values of a cell, the median and the middle 80 %, or the mean and its interval."""

    label: str
    read: Callable[[Data, Cell], Floats]
    as_mean: bool = False

    def spread(self, data: Data, cell: Cell) -> Spread | None:
        """What is drawn of one cell; None if there is nothing."""
        values = self.read(data, cell)
        if not self.as_mean:
            return Spread.of(values)
        means = values.reshape(cell.replications, -1).mean(axis=1) if values.size else values
        if means.size == 0 or not np.all(np.isfinite(means)):
            return None
        found = estimate.mean(means, within=estimate.AMOUNT)
        low, high = found.interval or (found.value, found.value)
        return Spread(int(means.size), float(means.min()), low, low, found.value, high, high, float(means.max()))


def first_waits(data: Data, cell: Cell) -> Floats:
    """The first wait of every exchange of the traced run, in true round-trip times."""
    if not data.results.has("exchanges"):
        return np.empty(0)
    waits = data.values("exchanges", "first_wait_us", cell)
    return waits / data.values("exchanges", "true_us", cell)


def completion(data: Data, cell: Cell) -> Floats:
    """Flow completion times, in seconds."""
    return data.values("flows", "fct_us", cell)


def needless(data: Data, cell: Cell) -> Floats:
    """Unnecessary retransmissions of a client, per exchange."""
    return data.values("flows", "unnecessary", cell) / data.values("flows", "completed", cell)


WAIT = Quantity("first wait / round trip", first_waits)
FCT = Quantity("completion time (s)", completion)
NEEDLESS = Quantity("unnecessary copies\nper exchange (mean)", needless, as_mean=True)


def over_loss(data: Data, ratio: float, quantities: tuple[Quantity, ...]) -> Figure:
    """Median and middle 80 % over the loss rate, where nothing waits: a row per quantity, a column per kind of server.

    Raises `Missing` if that was not run.
    """
    found = {server: picked(data, bottleneck="none", ratio=ratio, server=server) for server in SERVERS}
    losses = sorted({float(cell.columns["error_profile"]) for cells in found.values() for cell in cells})
    if not losses:
        raise Missing("Not drawn: these results hold no runs with timers that adapt on such a path.")
    names = _controllers(data, [cell for cells in found.values() for cell in cells])
    looks = data.looks
    offsets = np.linspace(-0.3, 0.3, len(names)) if len(names) > 1 else np.zeros(1)
    with style.applied():
        figure = Figure(figsize=(style.WIDTH, 2.7 * len(quantities) + 1.0), layout="constrained")
        panels = figure.subplots(len(quantities), len(SERVERS), sharex=True, sharey="row", squeeze=False)
        for column, (server, cells) in enumerate(found.items()):
            for row, quantity in enumerate(quantities):
                panel = panels[row][column]
                for name, offset in zip(names, offsets, strict=True):
                    line = sorted(
                        (losses.index(float(cell.columns["error_profile"])) + float(offset), spread)
                        for cell in cells
                        if _algorithm(cell) == name and (spread := quantity.spread(data, cell)) is not None
                    )
                    at, spreads = [x for x, _ in line], [spread for _, spread in line]
                    marks.medians(panel, looks[name], at, spreads)
                    panel.plot(
                        at,
                        [s.median for s in spreads],
                        color=looks[name].colour,
                        linestyle=looks[name].dash,
                        linewidth=0.9,
                        zorder=1,
                    )
                _dress(panel, quantity, row == len(quantities) - 1, column == 0)
                if row == 0:
                    panel.set_title(SERVERS[server])
                panel.set_xticks(range(len(losses)), [f"{loss:g}" for loss in losses])
        marks.legend_below(figure, marks.line_keys(data, names), 4)
    return figure


def over_loss_rows(data: Data, ratio: float, quantities: tuple[Quantity, ...]) -> Rows:
    """The spreads that `over_loss` draws."""
    rows = []
    for server in SERVERS:
        for cell in picked(data, bottleneck="none", ratio=ratio, server=server):
            for quantity in quantities:
                spread = quantity.spread(data, cell)
                if spread is not None:
                    where = (server, cell.columns["error_profile"], _algorithm(cell))
                    rows.append((*where, quantity.label.replace("\n", " "), *spread.row()))
    return Rows(("server", "loss_percent", "controller", "quantity", *Spread.HEADER), tuple(rows))


def at_bottleneck(data: Data) -> Figure:
    """Completion times where all share one narrow bottleneck: a panel per buffer and loss, boxes by kind of server."""
    cells = _narrow(data)
    buffers = sorted({int(cell.columns["buffer_bytes"]) for cell in cells})
    losses = sorted({float(cell.columns["error_profile"]) for cell in cells})
    names = _controllers(data, cells)
    looks = data.looks
    places, width = marks.positions(len(SERVERS), len(names))
    with style.applied():
        figure = Figure(figsize=(style.WIDTH, 2.8 * len(buffers) + 1.0), layout="constrained")
        panels = figure.subplots(len(buffers), len(losses), sharex=True, sharey=True, squeeze=False)
        for row, buffer in enumerate(buffers):
            for column, loss in enumerate(losses):
                panel = panels[row][column]
                for member, name in enumerate(names):
                    at, spreads = [], []
                    for group, server in enumerate(SERVERS):
                        wanted: dict[str, Value] = {"buffer_bytes": buffer, "error_profile": loss, "server": server}
                        for cell in cells:
                            here = _algorithm(cell) == name and _has(cell, wanted)
                            spread = Spread.of(completion(data, cell)) if here else None
                            if spread is not None:
                                at.append(places[group][member])
                                spreads.append(spread)
                    marks.boxes(panel, looks[name], at, spreads, width)
                _logarithmic(panel)
                panel.set_title(f"{loss:g} % loss, {labels.size(buffer)}", fontsize=10)
                panel.set_xticks(range(len(SERVERS)), list(SERVERS.values()))
                if column == 0:
                    panel.set_ylabel(FCT.label)
        marks.legend_below(figure, marks.line_keys(data, names), 3)
    return figure


def at_bottleneck_rows(data: Data) -> Rows:
    """The spreads that `at_bottleneck` draws, and unnecessary copies per exchange."""
    rows = []
    for cell in _narrow(data):
        spread = Spread.of(completion(data, cell))
        if spread is not None:
            where = tuple(cell.columns[name] for name in ("buffer_bytes", "error_profile", "server"))
            rows.append((*where, _algorithm(cell), *spread.row(), float(np.nanmean(needless(data, cell)))))
    header = ("buffer_bytes", "loss_percent", "server", "controller", *Spread.HEADER, "unnecessary_per_exchange_mean")
    return Rows(header, tuple(rows))


def picked(data: Data, **columns: Value) -> list[Cell]:
    """The cells of timers that adapt, with these columns."""
    return [cell for cell in data.cells if cell.columns.get("algorithm") != TIMER and _has(cell, columns)]


# ----------------------------------------------------------------------------------------------- helpers


def _narrow(data: Data) -> list[Cell]:
    cells = [cell for cell in picked(data) if cell.columns.get("bottleneck") != "none"]
    if not cells:
        raise Missing("Not drawn: these results hold no runs with a bottleneck that all share.")
    return cells


def _has(cell: Cell, columns: Mapping[str, Value]) -> bool:
    return all(cell.columns.get(name) == value for name, value in columns.items())


def _algorithm(cell: Cell) -> str:
    return str(cell.columns["algorithm"])


def _controllers(data: Data, cells: list[Cell]) -> list[str]:
    run = {_algorithm(cell) for cell in cells}
    return [name for name in data.controllers() if name in run]


def _logarithmic(panel: Axes) -> None:
    panel.set_yscale("log")
    panel.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    panel.yaxis.set_minor_locator(NullLocator())
    panel.yaxis.set_major_formatter(lambda value, _: f"{value:g}")


def _dress(panel: Axes, quantity: Quantity, lowest: bool, first: bool) -> None:
    _logarithmic(panel)
    if lowest:
        panel.set_xlabel("loss each way (%)")
    if first:
        panel.set_ylabel(quantity.label)
