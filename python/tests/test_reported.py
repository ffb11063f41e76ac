"""Who is done by when, and what became of every request: from the columns of today and of earlier results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import synthetic_results

import millpond
from millpond.measure.measures import Measures
from millpond.measure.population import Population
from millpond.measure.reported import Course, Reported, is_endless
from millpond.results.directory import MANIFEST, Results
from millpond.results.store import write_table
from millpond.show.report.figures.reported import reported_by_group


def test_points_are_shares_of_all_clients() -> None:
    course = Course(np.array([1.0, 2.0, 5.0]), np.array([1.0, 2.0, 3.0]), 4)
    assert course.points == {0.5: 2.0, 0.9: None, 0.99: None, 1.0: None}
    assert course.end == 0.75
    everybody = Course(np.array([1.0, 2.0]), np.array([99.0, 100.0]), 100)
    assert everybody.points == {0.5: 1.0, 0.9: 1.0, 0.99: 1.0, 1.0: 2.0}
    assert Course(np.empty(0), np.empty(0), 0).points == dict.fromkeys((0.5, 0.9, 0.99, 1.0))


def test_a_client_that_lost_a_request_is_never_done(tmp_path: Path) -> None:
    results = synthetic_results.single(tmp_path)
    before = Reported(results).course(results.cells[0])
    flows = results.table("flows").to_pydict()
    flows["failed"][0] = 1
    reported = Reported(_with(results, "flows", flows))
    course = reported.course(results.cells[0])
    assert (before.end, course.end, course.of) == (1.0, 0.95, 20)
    told = reported.outcome(results.cells[0])
    assert (told.clients, told.complete, told.lost, told.unfinished) == (20, 19, 1, 0)
    assert (told.arrivals, told.never_finished, told.delivery_ratio) == (None, None, None)


def test_every_request_ends_in_one_way(tmp_path: Path) -> None:
    results = synthetic_results.single(tmp_path)
    flows = results.table("flows").to_pydict()
    flows |= {"arrivals": [10] * 20, "answered": [10] * 18 + [9, 7], "requests_failed": [0] * 18 + [1, 0]}
    flows |= {"never_finished": [0] * 19 + [3], "delivered": [10] * 19 + [8]}
    flows["done_us"] = [2_000_000 + n for n in range(19)] + [None]
    reported = Reported(_with(results, "flows", flows))
    cell = results.cells[0]
    told = reported.outcome(cell)
    assert told.arrivals == told.answered + told.failed + (told.never_finished or 0) == 200
    assert (told.complete, told.lost, told.unfinished, told.delivered) == (18, 1, 1, 198)
    assert told.delivery_ratio == pytest.approx(0.99)
    assert reported.course(cell).end == pytest.approx(0.9)
    assert reported.outcome(cell, cell.groups[0]).complete == 10


def test_events_of_a_timeline_have_a_course_each(tmp_path: Path) -> None:
    results = synthetic_results.single(tmp_path)
    rows: dict[str, list[Any]] = {name: [] for name in ("run", "group", "event", "t_us", "clients", "clients_of")}
    for group in (0, 1):
        for event, times in ((0, (1, 2)), (1, (5, 9))):
            for t, clients in zip(times, (4, 10 - group), strict=True):
                row = {"run": 0, "group": group, "event": event, "t_us": t * 1_000_000}
                for name, value in {**row, "clients": clients, "clients_of": 10}.items():
                    rows[name].append(value)
    reported = Reported(_with(results, "reported", rows))
    cell = results.cells[0]
    assert reported.events(cell) == (0, 1)
    course = reported.course(cell, None, 1)
    assert course.of == 20
    assert course.times.tolist() == [5.0, 5.0, 9.0, 9.0]
    assert course.done.tolist() == [4.0, 8.0, 14.0, 19.0]
    assert (course.by(0.5), course.by(1.0)) == (9.0, None)
    assert reported.course(cell, cell.groups[0], 0).by(1.0) == 2.0


def test_a_group_that_an_alarm_calls_is_told_since_the_alarm(tmp_path: Path) -> None:
    results = synthetic_results.single(tmp_path)
    rows: dict[str, list[Any]] = {name: [] for name in ("run", "group", "event", "t_us", "clients", "clients_of")}
    for group, event, seconds in ((0, 0, 2), (1, 1, 7)):
        row = {"run": 0, "group": group, "event": event, "t_us": seconds * 1_000_000, "clients": 10, "clients_of": 10}
        for name, value in row.items():
            rows[name].append(value)
    reported = Reported(_with(results, "reported", rows))
    cell = results.cells[0]
    assert [reported.course(cell, group).by(1.0) for group in cell.groups] == [2.0, 7.0]


def _with(results: Results, table: str, columns: dict[str, list[Any]]) -> Results:
    size = write_table(results.directory / f"{table}.parquet", pa.table(columns))
    manifest = json.loads((results.directory / MANIFEST).read_text())
    manifest["files"][f"{table}.parquet"] = {"rows": len(columns["run"]), "bytes": size}
    (results.directory / MANIFEST).write_text(json.dumps(manifest))
    return Results.open(results.directory)


def test_who_is_back_after_a_power_cut_does_not_wait_for_the_report_of_the_day(tmp_path: Path) -> None:
    meters = millpond.run(
        {
            "path": "nbiot-anrw18",
            "clients": [
                {
                    "count": 20,
                    "controller": "rfc7252",
                    "workload": [{"kind": "after-event", "arrival": "30 s"}, {"kind": "periodic", "period": "1 h"}],
                }
            ],
            "run": {"for": "1 h"},
        },
        out=tmp_path / "meters",
        report=False,
    )
    results = meters.results
    course = Reported(results).course(results.cells[0])
    assert (course.of, course.end) == (20, 1.0)
    assert 0 < float(course.times[-1]) < 35
    assert Reported(results).outcome(results.cells[0]).arrivals == 40


#: Meters that report every ten minutes, and at once after an alarm.
ALARMED: dict[str, Any] = {
    "path": "nbiot-anrw18",
    "clients": [
        {
            "name": "meters",
            "count": 20,
            "controller": "rfc7252",
            "workload": [{"kind": "periodic", "period": "10 min"}, {"kind": "after-event", "arrival": "30 s"}],
        }
    ],
    "timeline": [{"at": "10 min", "kind": "alarm"}],
    "run": {"for": "20 min"},
}


def test_who_answers_an_alarm_beside_a_rhythm_is_done_by_then(tmp_path: Path) -> None:
    alarmed = millpond.run(ALARMED, out=tmp_path / "alarmed", report=False)
    results = alarmed.results
    cell, reported = results.cells[0], Reported(results)
    assert reported.events(cell) == (0, 1)
    assert reported.since(cell) == {1}
    for course in (reported.course(cell), reported.course(cell, cell.groups[0])):
        assert (course.of, course.end) == (20, 1.0)
        assert 0 < float(course.times[-1]) < 35
    for metric in ("clients_done_100", "requests_done_100"):
        assert 0 < float(Measures(results).sample(metric, Population.of("meters")).values[0]) < 35
    # what they report from the start on has no end, so there is no panel that stays at 0
    assert {row[0] for row in reported_by_group(results).rows.rows} == {"event 1"}


def test_of_a_loop_beside_a_rhythm_without_end_no_time_is_told(tmp_path: Path) -> None:
    workload = [{"kind": "continuous", "requests": 3}, {"kind": "periodic", "period": "10 min"}]
    both = ALARMED | {"clients": [ALARMED["clients"][0] | {"workload": workload}], "timeline": []}
    results = millpond.run(both, out=tmp_path / "both", report=False).results
    cell = results.cells[0]
    assert is_endless(cell, cell.groups[0])
    assert Reported(results).course(cell).of == 0
