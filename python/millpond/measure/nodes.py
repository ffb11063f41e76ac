"""Metrics of a mesh: one value for each run, of all its nodes together, from the table `nodes`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from millpond.measure.metric import Compute, Metric
from millpond.measure.population import Population
from millpond.measure.statistics import Floats, ratio
from millpond.results.directory import Cell

if TYPE_CHECKING:
    from millpond.measure.measures import Measures

#: What becomes of a frame with data at the node that it is for.
FATES = ("data_received", "data_collided", "data_deaf", "data_faded")
#: Why a packet gets no further.
LOSSES = {
    "lost_buffers": "no buffer of a node was free",
    "lost_neighbours": "a third neighbour at once",
    "lost_no_ack": "no attempt was acknowledged",
    "lost_no_channel": "the channel was never idle",
    "lost_air": "lost where frames are not acknowledged",
    "lost_reassembly": "no room for its parts",
}
#: The same where RPL finds the ways.
LOSSES_OF_RPL = {
    "lost_no_route": "a node had no way for it",
    "lost_stale_route": "a downward route led nowhere",
}
#: Messages of RPL.
MESSAGES = {
    "dis": "DODAG Information Solicitations",
    "dio": "DODAG Information Objects",
    "dao": "Destination Advertisement Objects, those passed on included",
    "dao_no_path": "No-Path DAOs, which take a route back",
}


def _with_rpl(measures: Measures, cell: Cell, columns: Sequence[str], of_rpl: Sequence[str]) -> Floats:
    """Columns added up over the nodes of each run, and those of RPL, which only some meshes have."""
    sums, more = measures.each_run("nodes", cell, columns), measures.each_run("rpl", cell, of_rpl)
    return sums + more if len(more) else sums


def _share(what: Sequence[str], of: Sequence[str], of_rpl: Sequence[str] = ()) -> Compute:
    """These columns and those of RPL in parts of others; where only RPL counts, of meshes that have it."""

    def compute(measures: Measures, population: Population) -> Floats:
        cell = measures.cell(population)
        some = _with_rpl(measures, cell, what, of_rpl) if what else measures.each_run("rpl", cell, of_rpl)
        return ratio(some, measures.each_run("nodes", cell, of)[: len(some)])

    return compute


def _of_rpl(columns: Sequence[str]) -> Compute:
    """These columns added up over the nodes of each run."""
    return lambda measures, population: measures.each_run("rpl", measures.cell(population), columns)


def _control_share(measures: Measures, population: Population) -> Floats:
    cell = measures.cell(population)
    control = measures.each_run("rpl", cell, ("control_sent",))
    return ratio(control, control + measures.each_run("nodes", cell, ("data_sent",))[: len(control)])


def _per_message(columns: Sequence[str], scale: float = 1.0, of_rpl: Sequence[str] = ()) -> Compute:
    """What a run spent over the requests that reached the far application."""

    def compute(measures: Measures, population: Population) -> Floats:
        cell = measures.cell(population)
        spent = _with_rpl(measures, cell, columns, of_rpl)
        delivered = measures.run_column(cell, "delivered").astype(np.float64)
        return scale * ratio(spent, delivered[: len(spent)])

    return compute


_OF_RPL = {"control_share", "parent_switches", *(f"rpl_{kind}" for kind in MESSAGES)}
_METRICS = (
    Metric("frames_per_message", "frames", "run", "mean",
           "frames on the air, acknowledgements of the link and RPL included, for each request that was delivered",
           _per_message(("data_sent", "acks_sent"), of_rpl=("control_sent",)), "less", "frames per message delivered"),
    Metric("airtime_per_message", "s", "run", "mean",
           "time on the air, of all nodes together, for each request that was delivered",
           _per_message(("on_air_us",), 1e-6), "less"),
    Metric("frames_collided", "1", "run", "mean", "frames with data that another frame destroyed",
           _share(("data_collided",), FATES), "less"),
    Metric("frames_faded", "1", "run", "mean", "frames with data that the link lost", _share(("data_faded",), FATES)),
    Metric("frames_deaf", "1", "run", "mean", "frames with data that came while their receiver was sending",
           _share(("data_deaf",), FATES), "less"),
    Metric("frames_duplicate", "1", "run", "mean", "frames with data received that had been received before",
           _share(("data_duplicate",), ("data_received",)), "less", "frames received again"),
    Metric("packets_lost_in_mesh", "1", "run", "mean", "packets that entered the mesh and got lost on their way",
           _share(tuple(LOSSES), ("packets_begun",), tuple(LOSSES_OF_RPL)), "less"),
    Metric("packets_lost_for_room", "1", "run", "mean", "packets that entered the mesh and found no buffer on it",
           _share(("lost_buffers", "lost_neighbours"), ("packets_begun",)), "less"),
    *(
        Metric(f"packets_{cause}", "1", "run", "mean", f"packets that entered the mesh and got lost: {why}",
               _share((cause,), ("packets_begun",)), "less")
        for cause, why in LOSSES.items()
    ),
    *(
        Metric(f"packets_{cause}", "1", "run", "mean", f"packets that entered the mesh and got lost: {why} (RPL)",
               _share((), ("packets_begun",), (cause,)), "less")
        for cause, why in LOSSES_OF_RPL.items()
    ),
    *(
        Metric(f"rpl_{kind}", "messages", "run", "mean", f"{what}, of all nodes", _of_rpl((kind,)), "less")
        for kind, what in MESSAGES.items()
    ),
    Metric("control_share", "1", "run", "mean",
           "of the frames that nodes sent, acknowledgements left out, those of RPL", _control_share, "less"),
    Metric("parent_switches", "switches", "run", "mean", "how often nodes took another parent, of all nodes",
           _of_rpl(("parent_switches",)), "less"),
)  # fmt: skip
METRICS = tuple(replace(metric, table="rpl" if metric.name in _OF_RPL else "nodes") for metric in _METRICS)
