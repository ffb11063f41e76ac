"""The pictures of the report. Each takes opened results and gives a matplotlib `Figure`; each `..._rows` its numbers.

from millpond.results import Results
from millpond.show.report import figures

figures.queue_over_time(Results.open("results/anrw18"))
"""

from millpond.show.report.figures.histogram import transmissions, transmissions_rows
from millpond.show.report.figures.matrix import (
    completion_times,
    completion_times_rows,
    unnecessary_copies,
    unnecessary_copies_rows,
)
from millpond.show.report.figures.multiples import small_multiples, small_multiples_rows
from millpond.show.report.figures.places import completion_by_place, completion_by_place_rows
from millpond.show.report.figures.queue import queue_over_time, queue_over_time_rows, scales
from millpond.show.report.figures.reported import (
    reported,
    reported_by_group,
    reported_by_group_rows,
    reported_rows,
)
from millpond.show.report.figures.retransmissions import retransmissions, retransmissions_rows
from millpond.show.report.figures.scenario import (
    bottleneck_over_time,
    bottleneck_over_time_rows,
    by_group_rows,
    completion_by_group,
    transmissions_by_group,
    transmissions_by_group_rows,
    unnecessary_by_group,
)
from millpond.show.report.figures.sharing import sharing, sharing_rows
from millpond.show.report.values import Missing, Rows

__all__ = [
    "Missing",
    "Rows",
    "bottleneck_over_time",
    "bottleneck_over_time_rows",
    "by_group_rows",
    "completion_by_group",
    "completion_by_place",
    "completion_by_place_rows",
    "completion_times",
    "completion_times_rows",
    "queue_over_time",
    "queue_over_time_rows",
    "reported",
    "reported_by_group",
    "reported_by_group_rows",
    "reported_rows",
    "retransmissions",
    "retransmissions_rows",
    "scales",
    "sharing",
    "sharing_rows",
    "small_multiples",
    "small_multiples_rows",
    "transmissions",
    "transmissions_by_group",
    "transmissions_by_group_rows",
    "transmissions_rows",
    "unnecessary_by_group",
    "unnecessary_copies",
    "unnecessary_copies_rows",
]
