"""When clients are done is told of those that can be: not of who asks nothing, nor of work without an end."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import millpond
from millpond.api import Run
from millpond.measure.reported import Reported
from millpond.show import terminal
from millpond.show.document import Missing
from millpond.show.report import figures, story, tables
from millpond.show.report.grid import Grid

RHYTHM = {"count": 20, "controller": "rfc7252", "name": "rhythm", "workload": {"kind": "periodic", "period": "1 h"}}
#: The first of most of these would come after their work has ended.
SELDOM = {
    "count": 30, "controller": "rfc7252", "name": "seldom",
    "workload": {"kind": "periodic", "period": "12 h", "for": "2 h"},
}  # fmt: skip
LOOP = {"count": 5, "controller": "rfc7252", "name": "loop", "exchanges": 3}


def ran(folder: Path, *groups: dict[str, Any]) -> Run:
    scenario = {"path": "nbiot-anrw18", "clients": list(groups), "run": {"for": "3 h"}}
    return millpond.run(scenario, out=folder / "out", report=False)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return ran(tmp_path_factory.mktemp("mixed"), RHYTHM, SELDOM, LOOP)


def test_who_asks_nothing_is_neither_complete_nor_in_any_share(mixed: Run) -> None:
    cell, reported = mixed.results.cells[0], mixed.measures.reported
    told, course = reported.outcome(cell, cell.groups[1]), reported.course(cell, cell.groups[1])
    assert told.arrivals is not None
    assert 0 < told.arrivals < told.clients == 30
    assert (told.complete, told.silent, told.lost, told.unfinished) == (told.arrivals, 30 - told.arrivals, 0, 0)
    assert (course.of, course.end) == (told.arrivals, 1.0)
    half = course.by(0.5)
    assert half is not None
    assert half > 60, "not at the start, where those that ask nothing end"
    seldom = list(mixed.measures.populations())[1]
    assert mixed.measures.usual("complete_clients", seldom) == 1.0


def test_work_that_goes_on_is_never_done_and_told_no_time(mixed: Run) -> None:
    cell, reported = mixed.results.cells[0], mixed.measures.reported
    told, course = reported.outcome(cell, cell.groups[0]), reported.course(cell, cell.groups[0])
    assert (told.complete, course.of, set(course.points.values())) == (20, 0, {None})
    rhythm, _, loop = mixed.measures.populations()
    for name in ("clients_done_99", "requests_done_50"):
        assert math.isnan(mixed.measures.usual(name, rhythm))
        assert mixed.measures.usual(name, loop) > 0
    whole = reported.course(cell)
    asked = reported.outcome(cell, cell.groups[1]).clients - reported.outcome(cell, cell.groups[1]).silent
    assert whole.of == 5 + asked


def test_terminal_and_page_tell_no_time_where_there_is_none(mixed: Run) -> None:
    told = io.StringIO()
    terminal.show(mixed.tables, told)
    lines = told.getvalue().splitlines()
    assert "30 clients" not in told.getvalue()
    told_of = next(line.split() for line in lines if line.split()[:1] == ["rhythm"])
    assert told_of[1:] == ["20", "0", "20", "0", "0", *["\N{EN DASH}"] * 4]
    assert "No time is told of work that goes on until the run ends." in " ".join(told.getvalue().split())
    grid = Grid(mixed.results)
    listing = tables.reported_by_group(grid)
    assert listing.header[:4] == ("group", "clients", "asked nothing", "complete")
    rhythm, seldom, loop = listing.rows
    assert (rhythm[2], rhythm[6:]) == ("0", (tables.NOTHING,) * 4)
    assert int(str(seldom[2])) + int(str(seldom[3])) == 30
    assert tables.NOTHING not in loop
    words = " ".join(story.scenario_story(grid))
    assert "rhythm: 20 of 20 clients had all their answers. " in words
    assert "clients that asked had all their answers" in words


def test_a_scenario_without_an_end_draws_no_line_of_being_done(tmp_path: Path) -> None:
    done = ran(tmp_path, RHYTHM)
    with pytest.raises(Missing, match="no client's work has an end"):
        figures.reported_by_group(done.results).draw()
    cell = done.results.cells[0]
    assert Reported(done.results).course(cell).of == 0
    assert story.scenario_story(Grid(done.results))[0] == "20 of 20 clients in 1 run had all their answers."


def test_where_nobody_is_ever_done_a_line_lies_on_the_ground_until_the_run_ends(tmp_path: Path) -> None:
    cut_off = millpond.run(
        {"path": "nbiot-anrw18", "clients": [LOOP], "run": {"for": "1 s"}}, out=tmp_path / "out", report=False
    )
    (axes,) = figures.reported_by_group(cut_off.results).draw().axes
    course = max(axes.get_lines(), key=lambda line: line.get_zorder())
    assert np.asarray(course.get_xydata()).tolist() == [[0, 0], [pytest.approx(1.03), 0]]
    assert axes.get_xlim()[0] == 0
    assert axes.get_xlim()[1] == pytest.approx(1.03)
    assert [text.get_text() for text in axes.texts] == ["not one ever had all its answers"]
    both = millpond.run(
        {"path": "nbiot-anrw18", "clients": [LOOP, {**LOOP, "name": "slow", "exchanges": 9}]},
        out=tmp_path / "both",
        report=False,
    )
    assert not figures.reported_by_group(both.results).draw().axes[0].texts


ALARM = {
    "count": 10, "controller": "cocoa-03", "name": "alarms",
    "workload": {"kind": "after-event", "arrival": "60 s", "requests": 1},
}  # fmt: skip


def after(folder: Path, *groups: dict[str, Any], **more: Any) -> Run:
    timeline = [{"at": "5 min", "kind": "alarm"}]
    scenario = {"path": "nbiot-anrw18", "clients": list(groups), "timeline": timeline, **more}
    return millpond.run(scenario, out=folder / "out")


def test_groups_that_begin_apart_are_told_no_time_together(tmp_path: Path) -> None:
    done = after(tmp_path, LOOP, ALARM)
    cell, reported = done.results.cells[0], Reported(done.results)
    assert reported.since(cell) == frozenset((0, 1))
    assert reported.course(cell).of == 15
    both, loop, alarms = story.scenario_story(Grid(done.results))[:3]
    assert both == "15 of 15 clients in 1 run had all their answers."
    assert loop.startswith("loop: 5 of 5 clients had all their answers: half of all clients by 2.")
    assert alarms.endswith(" s after event 1 of the timeline.")
    assert tables.reported_by_group(Grid(done.results)).caption.startswith(
        "A client is complete when all its requests are answered. Times are since the start, or the first event"
    )
    told = io.StringIO()
    terminal.show(done.tables, told)
    assert "Times are since the start, or the first event" in " ".join(told.getvalue().split())


def test_times_after_an_event_are_told_to_be_so(tmp_path: Path) -> None:
    done = after(tmp_path, ALARM)
    grid = Grid(done.results)
    assert "Times are since the first event" in tables.reported_by_group(grid).caption
    assert "Times are since the first event" in tables.reported(grid).caption
    (panel,) = figures.reported(done.results).draw().axes
    assert panel.get_xlabel() == "time since the first event that concerns the group (s)"
    told = io.StringIO()
    terminal.show(done.tables, told)
    assert "Times are since the first event" in " ".join(told.getvalue().split())


def test_what_the_server_sends_has_its_own_end_or_none(tmp_path: Path) -> None:
    valves = {
        "count": 4, "controller": "rfc7252", "name": "valves", "token_length": 2, "exchanges": 2,
        "commands": {"workload": {"kind": "poisson", "interval": "10 min"}},
        "notifications": {"workload": {"kind": "periodic", "period": "10 min", "requests": 2}},
    }  # fmt: skip
    scenario = {
        "path": "nbiot-anrw18", "clients": [LOOP, valves], "server": {"controller": "rfc7252"}, "run": {"for": "3 h"},
    }  # fmt: skip
    done = millpond.run(scenario, out=tmp_path / "out", report=False)
    cell = done.results.cells[0]
    told = {row[0]: row[1] for row in tables.manifest(Grid(done.results)).rows}
    assert told["clients in all runs"] == "n = 9", "those that the server sends to are among them"
    ends = {group.name: done.measures.reported.course(cell, group).of > 0 for group in cell.groups}
    assert ends == {"loop": True, "valves": True, "valves, commands": False, "valves, notifications": True}
