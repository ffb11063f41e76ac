"""What happens to a fleet: many runs of one scenario, each judged against the goal, and what they say together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from millpond.controllers.own import OwnControllers
from millpond.fleet import scenario
from millpond.fleet.change import Change
from millpond.fleet.description import OTHERS, Fleet
from millpond.fleet.scenario import LEAD_S
from millpond.fleet.verdict import Verdict, of_fleet, of_run
from millpond.measure.frame import series
from millpond.measure.measures import Measures
from millpond.measure.metrics import METRICS
from millpond.measure.reported import SHARES, Course
from millpond.measure.statistics import Floats, wilson
from millpond.measure.window import link_trace
from millpond.plan import scenario as scenarios
from millpond.plan.plan import Trace
from millpond.plan.program import Point, program
from millpond.plan.values import in_units
from millpond.results.directory import Cell, Group, Results
from millpond.run.campaign import Watcher, carry_out

if TYPE_CHECKING:
    from millpond.show.report.figures import queue

#: How often link and queue are looked at.
STEP_US = 1_000_000
TRACES = ("queue", "share")
#: Messages of a client, retransmissions of them, and spurious ones of these.
COPIES = ("first_copies", "retransmissions_per_client", "unnecessary_retx_per_client")


@dataclass(frozen=True)
class Run:
    """One run; times in s since the event, infinite for what never comes within the horizon."""

    seed: int
    #: When so large a share of the devices was done.
    done: Mapping[float, float]
    #: When the share that the goal names was.
    goal_s: float
    #: Devices that gave a message up, or whose answers are missing at the end.
    never: float
    #: Transmissions of a message, the first one included, and spurious retransmissions, per device.
    copies: float
    spurious: float
    #: Of the bytes of the bottleneck from the event until its queue is empty after the last device is done.
    useful: float
    #: The longest queue of the bottleneck, and how long a packet waits in it.
    queue_bytes: float
    queue_s: float
    #: The longest that a packet waited in the uplink, before any server saw it.
    uplink_s: float
    #: How long reports of others take notably longer than before; NaN if there are none.
    others_s: float
    #: What a device sends: packets and bytes, headers included.
    messages: float
    bytes: float
    verdict: Verdict


@dataclass(frozen=True)
class Demand:
    """What one device costs on an idle cell, measured by a run of one."""

    #: The link that a device keeps busy longest, for how long, and its rate in bit/s.
    bottleneck: str
    work_s: float
    rate: float
    #: From the event to its last answer.
    alone_s: float
    #: What one report of the others costs at the busiest link, and its bytes on the uplink.
    report_s: float
    report_bytes: float

    #: Bytes that are under way on the idle cell: the bottleneck's rate times a round trip.
    product: float
    #: The bottleneck's queue, as the scenario has it.
    queue: str


@dataclass(frozen=True)
class Outcome:
    """All runs of a fleet with a change. `drawn` is what is drawn of the first, where pictures are wanted."""

    change: Change
    devices: int
    runs: tuple[Run, ...]
    bottleneck: str
    drawn: Drawn | None = None

    def count(self, verdict: Verdict) -> int:
        """Runs with this verdict."""
        return sum(run.verdict == verdict for run in self.runs)

    def probability(self, verdict: Verdict) -> tuple[float, float, float]:
        """How likely a verdict is, and between which bounds that lies with a confidence of 95 % (Wilson)."""
        found, of = self.count(verdict), len(self.runs)
        return (found / of, *wilson(found, of))

    @property
    def verdict(self) -> Verdict:
        """The word for its runs together."""
        return of_fleet([run.verdict for run in self.runs])

    def values(self, name: str) -> Floats:
        """A number of every run, in the order of seeds: a field of `Run`, or `done_99` and its like."""
        if name.startswith("done_"):
            return np.array([run.done[int(name.removeprefix("done_")) / 100] for run in self.runs])
        return np.array([float(getattr(run, name)) for run in self.runs])

    def median(self, name: str) -> float:
        """Its median; infinite where half of the runs have no end of it."""
        values = np.sort(self.values(name))
        values = values[~np.isnan(values)]
        if not values.size:
            return math.nan
        low, high = values[(values.size - 1) // 2], values[values.size // 2]
        return float(high if math.isinf(high) else (low + high) / 2)


def demand(fleet: Fleet) -> Demand:
    """What one device, and one report of the others, cost on an idle cell."""
    device = _run(fleet, scenario.alone(fleet))
    report = _run(fleet, scenario.one_report(fleet))
    measures = Measures(device)
    cell = measures.cells[0]
    busy = {link: float(measures.link_column(cell, "busy_us", link)[0]) * 1e-6 for link in measures.links(cell)}
    bottleneck = max(busy, key=lambda link: busy[link])
    course = next(measures.reported.runs(cell, fleet_groups(cell)))
    others = Measures(report)
    one = others.cells[0]
    costs = [float(others.link_column(one, "busy_us", link)[0]) * 1e-6 for link in others.links(one)]
    return Demand(
        bottleneck=bottleneck,
        work_s=busy[bottleneck],
        rate=_rate(cell, bottleneck),
        alone_s=float(course.times[-1]) if course.times.size else math.inf,
        report_s=max(costs),
        report_bytes=float(others.link_column(one, "offered_bytes", "uplink")[0]),
        product=_rate(cell, bottleneck) * _delay(cell) / 8,
        queue=str(_link(cell, bottleneck)["queue"]),
    )


def simulate(
    fleet: Fleet,
    change: Change,
    cost: Demand,
    seeds: Sequence[int],
    *,
    jobs: int = 0,
    draw: bool = False,
    watcher: Watcher | None = None,
) -> Outcome:
    """Runs the fleet with a change, once for each seed; equal seeds draw equal random numbers.

    A change that parts a group, because it reaches some of it only, has the devices of that group come at other times.

    Args:
        fleet: The description.
        change: What is different.
        cost: What `demand` gave.
        seeds: One a run.
        jobs: Runs at the same time; 0 for one per core.
        draw: Whether what pictures show of the first run is kept.
        watcher: Told about progress.

    Raises:
        UsageError: one line, if the engine refuses what is described.
        MillpondError: one line, if a run fails.
    """
    measures = Measures(results(fleet, change, cost, seeds, jobs=jobs, watcher=watcher))
    cell = measures.cells[0]
    runs = tuple(_judged(fleet, measures, cost, seeds))
    drawn = Drawn.of(measures, fleet_groups(cell), fleet.horizon_s) if draw else None
    return Outcome(change, fleet.keys.devices, runs, measures.bottleneck(cell), drawn)


def results(
    fleet: Fleet,
    change: Change,
    cost: Demand,
    seeds: Sequence[int],
    *,
    jobs: int = 0,
    watcher: Watcher | None = None,
) -> Results:
    """The tables of such runs."""
    keys = fleet.keys
    load = keys.everyday.others_load
    every = keys.everyday.others * cost.report_s / load if keys.everyday.others and load else None
    return _run(fleet, scenario.tree(fleet, change, cost.work_s, every), seeds, jobs, watcher)


def fleet_groups(cell: Cell) -> list[Group]:
    """The groups that the event is about: what the server commands, if it does, else the devices."""
    commanded = [group for group in cell.groups if group.traffic == "commands"]
    return commanded or [group for group in cell.groups if group.name != OTHERS]


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


# ----------------------------------------------------------------------------------------------- helpers


def _run(
    fleet: Fleet,
    tree: Mapping[str, Any],
    seeds: Sequence[int] = (1,),
    jobs: int = 0,
    watcher: Watcher | None = None,
) -> Results:
    own = OwnControllers(fleet.folder)
    built = scenarios.build(tree, fleet.origin, own)
    point = Point("fleet", built, replications=len(seeds), traced=True)
    trace = Trace(TRACES, STEP_US, every=True)
    one = program([point], own, kind="scenario", name="fleet", title=fleet.title, seeds=seeds, trace=trace)
    return carry_out(one, workers=jobs, watcher=watcher)


def _judged(fleet: Fleet, measures: Measures, cost: Demand, seeds: Sequence[int]) -> Iterator[Run]:
    """Every run, in the order of seeds: of each the numbers of the metrics, and when how many devices were done."""
    cell, devices, goal = measures.cells[0], fleet.keys.devices, fleet.goal
    groups, bottleneck = fleet_groups(cell), measures.bottleneck(cell)
    others = [group for group in cell.groups if group.name == OTHERS]
    courses = list(measures.reported.runs(cell, groups))
    spans = [_event(measures, run, bottleneck, course) for run, course in enumerate(courses)]

    def each(metric: str, statistic: str = "", of: Sequence[Group | None] = (None,), timed: bool = False) -> Floats:
        """A metric run by run, added up over groups; NaN where a run has no value."""
        window = spans.__getitem__ if timed else None
        told = (series(measures, METRICS[metric], measures.of(cell, one), statistic, window).taken.by_run for one in of)
        values = [[by_run.get(run, math.nan) for run in range(len(seeds))] for by_run in told]
        found: Floats = np.sum(np.array(values, dtype=np.float64).reshape(-1, len(seeds)), axis=0)
        return found

    # what the server sends is counted in its own groups: of commands these, else the devices'
    first, again, spurious = (each(metric, "total", groups) for metric in COPIES)
    theirs = each(COPIES[0], "total", others) + each(COPIES[1], "total", others)
    late = np.where(each("settled", of=others) == 0, math.inf, each("settling_time", of=others)) if others else None
    useful, queues = each("useful_share", timed=True), np.nan_to_num(each("queue", "max", timed=True))
    packets, sizes = (measures.link_column(cell, f"offered_{what}", "uplink") for what in ("packets", "bytes"))
    for run, (seed, course) in enumerate(zip(seeds, courses, strict=True)):
        _, waiting = link_trace(measures, "queue_trace", run, "uplink", ("bytes",))
        goal_s, never = _by(course, goal.share), 1.0 - course.end
        copies = float((first[run] + again[run]) / first[run]) if first[run] > 0 else math.nan
        met = goal_s <= goal.within_s and copies <= goal.copies and not useful[run] < goal.useful
        yield Run(
            seed=seed,
            done={share: _by(course, share) for share in SHARES},
            goal_s=goal_s,
            never=never,
            copies=copies,
            spurious=float(spurious[run]) / devices,
            useful=float(useful[run]),
            queue_bytes=float(queues[run]),
            queue_s=8 * float(queues[run]) / _rate(cell, bottleneck),
            uplink_s=8 * float(waiting.max(initial=0.0)) / _rate(cell, "uplink"),
            others_s=math.nan if late is None else float(late[run]),
            messages=(packets[run] - theirs[run]) / devices,
            bytes=(sizes[run] - theirs[run] * cost.report_bytes) / devices,
            verdict=of_run(met, never, float(useful[run])),
        )


def _by(course: Course, share: float) -> float:
    found = course.by(share)
    return math.inf if found is None else found


def _event(measures: Measures, run: int, link: str, course: Course) -> tuple[float, float]:
    """From the event until a link's queue is empty after the last device is done, in s since the start of a run."""
    begin = scenario.LEAD_S
    if not course.of or course.end < 1.0:
        return begin, math.inf
    # what is on its way when the last device is done belongs to the event as well
    times, queue = link_trace(measures, "queue_trace", run, link, ("bytes",))
    idle = times[(times >= begin + course.times[-1]) & (queue == 0)]
    return begin, float(idle[0]) if idle.size else math.inf


def _rate(cell: Cell, link: str) -> float:
    return in_units(_link(cell, link)["rate"])


def _delay(cell: Cell) -> float:
    return sum(in_units(str(_link(cell, link)["delay"])) for link in ("uplink", "downlink"))


def _link(cell: Cell, link: str) -> Mapping[str, Any]:
    """A link of the cell, as it is or behind a gateway."""
    network = cell.scenario.get("network")
    found: Mapping[str, Any] = (cell.scenario["path"] if network is None else network["links"])[link]
    return found
