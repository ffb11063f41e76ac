"""What pictures show of a run: who is done by when, and what its bottleneck did. It is kept with the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from millpond.fleet.scenario import LEAD_S
from millpond.measure.measures import Measures
from millpond.measure.reported import Course
from millpond.measure.statistics import Floats
from millpond.results.directory import Cell, Group

if TYPE_CHECKING:
    from millpond.show.report.figures import queue

#: Lines over time end so much after the last device is done.
BEYOND = 1.15


@dataclass(frozen=True)
class Drawn:
    """The first run of a setting."""

    #: In full.
    scenario: Mapping[str, Any]
    #: Devices that are done, against the time since the event.
    done: Course
    #: Queue and goodput ratio of the bottleneck, against the time since the start.
    link: queue.Course

    @staticmethod
    def of(measures: Measures, groups: Sequence[Group], horizon_s: float) -> Drawn:
        """What is drawn of the first run of the only setting of these results."""
        from millpond.show.report.figures import queue
        from millpond.show.report.grid import Grid

        cell = measures.cells[0]
        done = next(measures.reported.runs(cell, groups))
        last = float(done.times[-1]) if done.times.size and done.end == 1.0 else horizon_s
        until = LEAD_S + BEYOND * min(last, horizon_s)
        link = queue.follow(Grid(measures.results), {"": (cell, cell.first_run)}, until)[""]
        return Drawn(cell.scenario, done, link)

    def to_json(self) -> dict[str, Any]:
        """Everything, for `from_json`; a share of nothing is null."""
        return {
            "scenario": self.scenario,
            "done": {"of": self.done.of, "time_s": self.done.times.tolist(), "devices": self.done.done.tolist()},
            "link": {
                "name": self.link.link,
                "queue": {"time_s": self.link.times.tolist(), "bytes": self.link.queue.tolist()},
                "window_s": self.link.window,
                "useful": {"time_s": self.link.share_times.tolist(), "share": self.link.share.tolist()},
            },
        }

    @staticmethod
    def from_json(told: Mapping[str, Any]) -> Drawn:
        """The reverse of `to_json`."""
        from millpond.show.report.figures import queue

        done, link = told["done"], told["link"]
        return Drawn(
            told["scenario"],
            Course(_floats(done["time_s"]), _floats(done["devices"]), int(done["of"])),
            queue.Course(
                Cell(0, "fleet", {}, (), 0, 1, told["scenario"]),
                0,
                str(link["name"]),
                _floats(link["queue"]["time_s"]),
                _floats(link["queue"]["bytes"]),
                _floats(link["useful"]["time_s"]),
                _floats(link["useful"]["share"]),
                float(link["window_s"]),
            ),
        )


def _floats(values: Sequence[float | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
