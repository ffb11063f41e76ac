"""What becomes of timers that believe a reply which names a copy: first waits, completion times, needless copies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from millpond.measure import estimate
from millpond.results.directory import Cell, Value
from millpond.show import labels
from millpond.show.document import Missing, Plot, Rows
from millpond.show.report.data import Data, only
from millpond.show.report.figures import facets
from millpond.show.report.figures.facets import Point, Spec
from millpond.show.report.figures.matrix import series_of
from millpond.show.report.values import Floats, Spread
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
        return Spread.around(estimate.mean(means, within=estimate.AMOUNT))


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


def over_loss(data: Data, ratio: float, quantities: tuple[Quantity, ...]) -> Plot:
    """Median and middle 80 % over the loss rate, where nothing waits: a row per quantity, a column per kind of server.

    Raises `Missing` if that was not run.
    """
    points = []
    for server in SERVERS:
        for cell in picked(data, bottleneck="none", ratio=ratio, server=server):
            for quantity in quantities:
                if (spread := quantity.spread(data, cell)) is not None:
                    loss, label = float(cell.columns["error_profile"]), quantity.label.replace("\n", " ")
                    told = (server, cell.columns["error_profile"], only(cell), label)
                    points.append(Point(quantity.label, server, loss, only(cell), spread, told))
    if not points:
        raise Missing("Not drawn: these results hold no runs with timers that adapt on such a path.")
    spec = Spec(
        "median",
        "",
        series_of(data),
        x="loss each way (%)",
        tick=lambda loss: f"{loss:g}",
        title=lambda label, server: f"{label.partition(chr(10))[0]}, {SERVERS[server]}",
        xs=sorted({point.x for point in points}),
        rows=[quantity.label for quantity in quantities],
        columns=list(SERVERS),
        upward="log",
        shared=True,
        joined=True,
        height=2.7,
    )
    return facets.plot(points, spec, ("server", "loss_percent", "controller", "quantity"))


def at_bottleneck(data: Data) -> Plot:
    """Completion times where all share one narrow bottleneck: a panel per buffer and loss, boxes by kind of server."""
    points, rows = [], []
    for cell in picked(data):
        spread = Spread.of(completion(data, cell)) if cell.columns.get("bottleneck") != "none" else None
        if spread is not None:
            where = tuple(cell.columns[name] for name in ("buffer_bytes", "error_profile", "server"))
            points.append(Point(int(where[0]), float(where[1]), where[2], only(cell), spread))
            rows.append((*where, only(cell), *spread.row(), float(np.nanmean(needless(data, cell)))))
    if not points:
        raise Missing("Not drawn: these results hold no runs with a bottleneck that all share.")
    spec = Spec(
        "box",
        FCT.label,
        series_of(data),
        tick=lambda server: SERVERS[server].replace(" ", "\n"),
        title=lambda buffer, loss: f"{loss:g} % loss, {labels.size(buffer)}",
        xs=list(SERVERS),
        rows=sorted({point.row for point in points}),
        columns=sorted({point.column for point in points}),
        upward="log",
        shared=True,
        height=2.8,
    )
    header = ("buffer_bytes", "loss_percent", "server", "controller", *Spread.HEADER, "unnecessary_per_exchange_mean")
    return Plot(Rows(header, tuple(rows)), partial(facets.draw, points, spec))


def picked(data: Data, **columns: Value) -> list[Cell]:
    """The cells of timers that adapt, with these columns."""
    return [cell for cell in data.cells if cell.columns.get("algorithm") != TIMER and _has(cell, columns)]


def _has(cell: Cell, columns: Mapping[str, Value]) -> bool:
    return all(cell.columns.get(name) == value for name, value in columns.items())
