"""The pictures of results. Each takes opened results and gives a `Plot`: its numbers as `rows`, and how to `draw` it.

from millpond.results import Results
from millpond.show.report import figures

figures.queue_over_time(Results.open("results/anrw18")).draw()
"""

from millpond.show.report.figures.histogram import transmissions
from millpond.show.report.figures.matrix import (
    completion_by_place,
    completion_times,
    retransmissions,
    unnecessary_copies,
)
from millpond.show.report.figures.multiples import small_multiples
from millpond.show.report.figures.queue import queue_over_time, scales
from millpond.show.report.figures.reported import reported, reported_by_group
from millpond.show.report.figures.scenario import (
    bottleneck_over_time,
    completion_by_group,
    delays_by_group,
    transmissions_by_group,
    unnecessary_by_group,
)
from millpond.show.report.figures.sharing import sharing

__all__ = [
    "bottleneck_over_time",
    "completion_by_group",
    "completion_by_place",
    "completion_times",
    "delays_by_group",
    "queue_over_time",
    "reported",
    "reported_by_group",
    "retransmissions",
    "scales",
    "sharing",
    "small_multiples",
    "transmissions",
    "transmissions_by_group",
    "unnecessary_by_group",
    "unnecessary_copies",
]
