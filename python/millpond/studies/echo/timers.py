"""What timers do that believe a reply which names a copy: first waits, completion times, spurious retransmissions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from millpond.results.directory import Cell
from millpond.results.factor import Value
from millpond.show import labels
from millpond.show.document import Missing, Plot, Rows
from millpond.show.report.figures import facets
from millpond.show.report.figures.facets import Point, Spec
from millpond.show.report.figures.matrix import series_of
from millpond.show.report.grid import Grid, Spread, only
from millpond.studies.echo.naming import SERVERS, TIMER


@dataclass(frozen=True)
class Quantity:
    """What is drawn upwards: of the values of a cell, the median and the middle 80 %, or the mean and its interval."""

    label: str
    spread: Callable[[Grid, Cell], Spread | None]


def first_waits(grid: Grid, cell: Cell) -> Spread | None:
    """The first wait of every exchange of the traced run, in true round-trip times."""
    waits, times = (grid.measures.table("exchanges").of(cell, f"{name}_us") for name in ("first_wait", "true"))
    return Spread.of(waits.astype(np.float64) / times.astype(np.float64))


def completion(grid: Grid, cell: Cell) -> Spread | None:
    """Flow completion times, in seconds."""
    return grid.spread("fct", cell)


def needless(grid: Grid, cell: Cell) -> Spread | None:
    """Unnecessary retransmissions of a client, per exchange: of cells all of whose clients completed one."""
    name = "unnecessary_retx_per_exchange"
    sample = grid.measures.sample(name, grid.measures.of(cell))
    return None if sample.missing or not sample.n else Spread.around(grid.estimated(name, cell, statistic="mean"))


WAIT = Quantity("first wait / round trip", first_waits)
FCT = Quantity("completion time (s)", completion)
NEEDLESS = Quantity("unnecessary copies\nper exchange (mean)", needless)


def over_loss(grid: Grid, ratio: float, quantities: tuple[Quantity, ...]) -> Plot:
    """Median and middle 80 % over the loss rate, where nothing waits: a row per quantity, a column per kind of server.

    Raises `Missing` if that was not run.
    """
    points = []
    for server in SERVERS:
        for cell in picked(grid, bottleneck="none", ratio=ratio, server=server):
            for quantity in quantities:
                if (spread := quantity.spread(grid, cell)) is not None:
                    loss, label = float(cell.columns["error_profile"]), quantity.label.replace("\n", " ")
                    told = (server, cell.columns["error_profile"], only(cell), label)
                    points.append(Point(quantity.label, server, loss, only(cell), spread, told))
    if not points:
        raise Missing("Not drawn: these results hold no runs with timers that adapt on such a path.")
    spec = Spec(
        "median",
        "",
        series_of(grid),
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


def at_bottleneck(grid: Grid) -> Plot:
    """Completion times where all share one narrow bottleneck: a panel per buffer and loss, boxes by kind of server."""
    points, rows = [], []
    for cell in picked(grid):
        spread = completion(grid, cell) if cell.columns.get("bottleneck") != "none" else None
        if spread is not None:
            where = tuple(cell.columns[name] for name in ("buffer_bytes", "error_profile", "server"))
            points.append(Point(int(where[0]), float(where[1]), where[2], only(cell), spread))
            rows.append(
                (
                    *where,
                    only(cell),
                    *spread.row(),
                    grid.estimated("unnecessary_retx_per_exchange", cell, statistic="mean").value,
                )
            )
    if not points:
        raise Missing("Not drawn: these results hold no runs with a bottleneck that all share.")
    spec = Spec(
        "box",
        FCT.label,
        series_of(grid),
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


def picked(grid: Grid, **columns: Value) -> list[Cell]:
    """The cells of timers that adapt, with these columns."""
    return [cell for cell in grid.cells if cell.columns.get("algorithm") != TIMER and _has(cell, columns)]


def _has(cell: Cell, columns: Mapping[str, Value]) -> bool:
    return all(cell.columns.get(name) == value for name, value in columns.items())
