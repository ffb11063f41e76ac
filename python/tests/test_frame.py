"""One frame of what was measured: rows, what they are told apart by, and what is asked that is not there."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import small_sweep
from hand_made import results

import millpond
from millpond import Results, UsageError
from millpond.measure import summary
from millpond.measure.frame import measure
from millpond.measure.measures import Measures


def flow(run: int, client: int, seconds: float | None) -> dict[str, Any]:
    return {"run": run, "flow": client, "fct_us": None if seconds is None else seconds * 1e6}


def two_sides(replications: int = 3) -> Results:
    """Two controllers with few and many clients: `b` takes a second longer, and in its last run one never ends."""
    cells = [({"clients": clients}, [side]) for clients in (10, 20) for side in ("a", "b")]
    flows = []
    for cell in range(4):
        for run in range(replications):
            for client in range(3):
                seconds = 10.0 * (cell // 2 + 1) + cell % 2 + run + client
                lost = (cell, run, client) == (3, replications - 1, 2)
                flows.append(flow(cell * replications + run, client, None if lost else seconds))
    links = [{"run": run, "link": "air"} for run in range(4 * replications)]
    return results(cells, flows=flows, links=links, replications=replications)


def test_a_row_for_each_cell_replication_and_metric() -> None:
    frame = measure(two_sides(), ["fct", ("fct", "max"), "makespan"])
    assert frame.by == ("clients", "algorithm", "partner", "group")
    rows = frame.table.to_pylist()
    assert len(rows) == 4 * 3 * 3
    first = rows[0]
    assert (first["cell"], first["replication"], first["clients"], first["algorithm"]) == (0, 0, 10, "a")
    assert (first["metric"], first["statistic"], first["unit"], first["value"]) == ("fct", "median", "s", 11)
    (last,) = (r for r in rows if (r["cell"], r["replication"], r["statistic"]) == (3, 2, "median"))
    # 23 s and 24 s, and one that never finished: it is counted beside, and never finished is never soon
    assert (last["value"], last["n"], last["missing"]) == (23.5, 2, 1)
    of_all = measure(two_sides(), ("fct", "p95-of-all")).table.to_pylist()[-1]
    assert (of_all["value"], of_all["n"], of_all["missing"]) == (math.inf, 2, 1)


def test_estimates_are_those_of_every_table() -> None:
    told = two_sides()
    frame, measures = measure(told, ["fct", ("fct", "max"), "makespan"]), Measures(told)
    for row, one in zip(frame.estimates().to_pylist(), frame.series, strict=True):
        population = one.populations[0][0]
        found = measures.estimate(row["metric"], population, row["statistic"])
        assert (row["value"], row["low"], row["high"], row["runs"]) == (found.value, found.low, found.high, found.n)


def test_a_factor_that_is_left_out_is_averaged_run_by_run() -> None:
    frame = measure(two_sides(), "fct", by=["algorithm"])
    one, other = frame.estimates().to_pylist()
    assert (one["algorithm"], one["value"], one["runs"], one["n"]) == ("a", 17, 3, 18)
    # of the second side the last run has 13 + 1 and 23.5
    assert other["value"] == pytest.approx((17 + 18 + (14 + 23.5) / 2) / 3)
    assert (other["missing"], other["n"]) == (1, 17)
    # the runs of equal seeds are no further witnesses
    assert one["high"] - one["low"] == pytest.approx(2 * 4.302653 * 1 / math.sqrt(3))
    assert frame.table.column_names[:4] == ["cell", "replication", "seed", "algorithm"]
    whole = measure(two_sides(), "fct")
    assert whole.without("clients", "partner", "group").estimates() == frame.estimates()


def test_a_factor_of_numbers_that_some_cells_lack_is_null_there() -> None:
    flows = [flow(run, 0, 1.0) for run in range(2)]
    told = results([({"queue": 2500, "server": "calm"}, ["a"]), ({"server": "calm"}, ["a"])], flows=flows)
    assert measure(told, "fct").table.column("queue").to_pylist() == [2500, None]
    assert summary.table(Measures(told)).column("queue").to_pylist() == [2500, None]


def test_units_stand_in_the_schema() -> None:
    wide = measure(two_sides(), ["fct", "wasted_share"]).wide()
    assert wide.num_rows == 12
    assert wide.schema.field("fct").metadata == {b"unit": b"s"}
    assert wide.schema.field("wasted_share").metadata == {b"unit": b"1"}
    assert measure(two_sides(), "fct").where(clients=20, algorithm="a").table.column("value").to_pylist() == [
        21,
        22,
        23,
    ]


TRACE = [
    {"run": run, "t_us": t * 1_000_000, "link": "air", "bytes": 100 * t, "carried_bytes": 1000, "useful_bytes": 100 * t}
    for run in range(3)
    for t in range(10)
]


def traced() -> Results:
    flows = [flow(run, 0, 5) for run in range(3)]
    links = [{"run": run, "link": "air"} for run in range(3)]
    return results([({}, ["a"])], flows=flows, links=links, replications=3, share_trace=TRACE, queue_trace=TRACE)


def test_a_window_is_a_part_of_every_run() -> None:
    found = measure(traced(), ["useful_share", "wasted_share", ("queue", "max")], window=(2, 4)).estimates()
    assert found.column("value").to_pylist() == pytest.approx([0.3, 0.7, 400])
    each = measure(traced(), "useful_share", window=lambda run: (run, run + 1)).table
    assert each.column("value").to_pylist() == pytest.approx([0.05, 0.15, 0.25])


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        ({"metrics": "ftc"}, r"unknown metric 'ftc': did you mean 'fct'\?"),
        ({"metrics": ("fct", "p42")}, "fct: unknown statistic 'p42'"),
        (
            {"metrics": "fct", "by": ["clients"]},
            r"by hand: unknown factor 'clients': .*known: algorithm, partner, group",
        ),
        (
            {"metrics": "frames_per_message"},
            "frames_per_message: these results did not keep it: they hold no table nodes",
        ),
        ({"metrics": "fct", "window": (0, 1)}, "window: fct is of whole runs: of a part there are useful_share"),
        (
            {"metrics": "queue", "window": (5, 20)},
            "window: 5 s to 20 s is in no run: they last from 0 s to 10 s at most",
        ),
        ({"metrics": "queue", "window": (5, 5)}, "window: 5 s to 5 s is in no run"),
    ],
)
def test_what_is_not_there_is_one_line_that_names_what_is(asked: dict[str, Any], line: str) -> None:
    with pytest.raises(UsageError, match=line) as raised:
        measure(traced(), **asked)
    assert "\n" not in str(raised.value)


def test_a_window_takes_traces() -> None:
    with pytest.raises(
        UsageError, match="window: queue: these results hold no table queue_trace: run them with --trace"
    ):
        measure(two_sides(), "queue", window=(1, 2))


def test_values_that_no_cell_has_are_named() -> None:
    frame = measure(two_sides(), "fct")
    with pytest.raises(UsageError, match="unknown clients '7': known: 10, 20"):
        frame.where(clients=7)
    with pytest.raises(UsageError, match="unknown column 'loss': known: clients, algorithm, partner, group"):
        frame.without("loss")


def test_results_give_their_frame(tmp_path: Path) -> None:
    plan = small_sweep.tree(replications=3, trace={"tables": ["queue"]})
    swept = millpond.sweep(plan, out=tmp_path / "out", report=False)
    told = swept.frame(["makespan", ("fct", "p95")], by=["queue", "algorithm"]).estimates()
    assert told.num_rows == 8
    assert set(told.column("runs").to_pylist()) == {3}
    early = swept.frame(("queue", "max"), window=(0, 1)).table
    # the first replication of each setting is traced
    assert {row["replication"] for row in early.to_pylist() if row["n"]} == {0}
