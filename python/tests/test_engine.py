"""The native module: batches of runs, their order, their end, their errors."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from importlib import metadata

import psutil
import pyarrow as pa
import pytest

from millpond import _engine

SMALL = """
title = "8 clients"
[path]
header = "28 B"
[path.uplink]
rate = "60 kbit/s"
delay = "215 ms"
queue = "14100 B"
[path.downlink]
rate = "30 kbit/s"
delay = "415 ms"
queue = "500 B"
[[clients]]
count = 4
controller = "rfc7252"
workload = "random"
exchanges = 10
[[clients]]
count = 4
controller = "cocoa-03"
exchanges = 10
"""

# So long that no test sees its end: a thousand clients that mostly overflow a queue of five packets.
ENDLESS = (
    SMALL.replace("count = 4", "count = 500").replace("exchanges = 10", "exchanges = 2000") + '[run]\nuntil = "999 d"\n'
)

# What every run gives.
ALWAYS = {"runs", "flows", "histogram", "evidence", "links", "reported", "delays"}


def scenario(text: str = SMALL) -> _engine.Scenario:
    return _engine.Scenario.from_toml(text, "test.toml")


def drained(batch: _engine.Batch) -> Iterator[_engine.Outcome]:
    while not batch.done:
        outcome = batch.next()
        if outcome is not None:
            yield outcome


def result_bytes(workers: int) -> dict[int, dict[str, bytes]]:
    """Every table of six runs, as Arrow writes it; without the wall clock, which is not a result."""
    small = scenario()
    batch = _engine.Batch(
        [(small, 7 * run, run) for run in range(6)], workers=workers, trace=["queue", "rto", "packets"]
    )
    assert batch.workers == workers
    results: dict[int, dict[str, bytes]] = {}
    for outcome in drained(batch):
        assert outcome.error is None
        results[outcome.run] = {}
        for name, native in outcome.tables().items():
            table = pa.table(native)
            if name == "runs":
                table = table.drop_columns(["wall_us"])
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)
            results[outcome.run][name] = sink.getvalue().to_pybytes()
    return results


def test_results_are_the_same_bytes_on_one_thread_and_on_two() -> None:
    alone = result_bytes(1)
    assert sorted(alone) == list(range(6))
    assert result_bytes(2) == alone


def test_another_seed_gives_another_result() -> None:
    alone = result_bytes(1)
    assert alone[0]["rto_trace"] != alone[1]["rto_trace"]


def test_every_run_is_handed_out_once() -> None:
    small = scenario()
    batch = _engine.Batch([(small, 1, run) for run in range(200)])
    assert batch.total == 200
    assert sorted(outcome.run for outcome in drained(batch)) == list(range(200))
    assert batch.finished == 200
    assert batch.done
    assert batch.next() is None


def test_a_batch_of_nothing_is_done() -> None:
    batch = _engine.Batch([])
    assert batch.done
    assert batch.next() is None


def test_columns_say_what_happened() -> None:
    (outcome,) = drained(_engine.Batch([(scenario(), 5, 41)]))
    tables = {name: pa.table(native) for name, native in outcome.tables().items()}
    assert set(tables) == ALWAYS
    assert all(set(table["run"].to_pylist()) == {41} for table in tables.values())
    run = tables["runs"].to_pylist()[0]
    assert (run["seed"], run["flows"], run["unfinished"]) == (5, 8, 0)
    assert run["events"] > 0
    assert run["wall_us"] > 0
    flows = tables["flows"].to_pylist()
    members = sorted((flow["group"], flow["controller"]) for flow in flows)
    assert members == [(0, "rfc7252")] * 4 + [(1, "cocoa-03")] * 4
    assert [flow["flow"] for flow in flows] == list(range(8))
    assert all(
        flow["transmissions"] == flow["completed"] + flow["exchanges_failed"] + flow["retransmissions"]
        for flow in flows
    )
    assert run["makespan_us"] == max(flow["first_send_us"] + flow["fct_us"] for flow in flows)
    links = {link["link"]: link for link in tables["links"].to_pylist()}
    assert set(links) == {"uplink", "downlink"}
    assert links["uplink"]["offered_packets"] == sum(flow["transmissions"] for flow in flows)
    assert links["downlink"]["dropped_queue_packets"] > 0
    assert links["downlink"]["queue_max_bytes"] <= 500
    assert all(1_000_000 < flow["first_wait_mean_us"] < 60_000_000 for flow in flows)
    assert sum(flow["answered"] + flow["requests_failed"] + flow["never_finished"] for flow in flows) == run["arrivals"]
    last = {row["group"]: row for row in tables["reported"].to_pylist()}
    assert sum(row["answered"] for row in last.values()) == run["answered"]
    answers = [row["count"] for row in tables["delays"].to_pylist() if row["kind"] == "answer"]
    assert sum(answers) == run["answered"]
    for name in ("histogram", "evidence"):
        assert sum(row["exchanges"] for row in tables[name].to_pylist()) == sum(flow["completed"] for flow in flows)


def test_traces_appear_only_when_asked_for() -> None:
    (outcome,) = drained(_engine.Batch([(scenario(), 1, 0)], trace=["exchanges", "share"], trace_step_us=500_000))
    tables = outcome.tables()
    assert set(tables) == {*ALWAYS, "exchanges", "share_trace"}
    exchanges = pa.table(tables["exchanges"]).to_pylist()
    assert len(exchanges) == 80
    for row in exchanges:
        assert (row["grade"] is None) == (row["accepted_us"] is None)
        assert row["grade"] != "exact" or row["sample_us"] == row["true_us"]
    times = pa.table(tables["share_trace"])["t_us"].to_pylist()
    assert set(times) == set(range(0, max(times) + 1, 500_000))


def test_an_unknown_trace_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"`queues`.*queue, share, sent, rto, packets, exchanges"):
        _engine.Batch([], trace=["queues"])


@pytest.mark.parametrize("timeout", [-1.0, float("nan")])
def test_a_timeout_that_is_no_time_is_refused(timeout: float) -> None:
    with pytest.raises(ValueError, match="not a number of seconds"):
        _engine.Batch([]).next(timeout)


def test_a_scenario_error_is_one_line_with_the_place() -> None:
    with pytest.raises(_engine.ScenarioError, match=r"^test\.toml:\d+: .*`queeu`.*`queue`") as refused:
        scenario(SMALL.replace("queue", "queeu", 1))
    assert isinstance(refused.value, ValueError)
    assert "\n" not in str(refused.value)


def test_a_scenario_survives_json() -> None:
    small = scenario()
    again = _engine.Scenario.from_json(small.to_json())
    assert again.to_json() == small.to_json()
    assert (again.clients, again.title) == (8, "8 clients")
    assert again.estimated_bytes() > 8 * 500


def test_cancel_stops_a_long_run_and_keeps_what_is_done() -> None:
    batch = _engine.Batch([(scenario(), 1, 0), (scenario(ENDLESS), 1, 1), (scenario(ENDLESS), 1, 2)], workers=1)
    first = batch.next()
    assert first is not None
    assert first.run == 0
    assert batch.next(0.05) is None
    assert not batch.done
    batch.cancel()
    assert list(drained(batch)) == []
    assert batch.done
    assert batch.finished == 1


def test_waiting_leaves_other_python_threads_running() -> None:
    batch = _engine.Batch([(scenario(ENDLESS), 1, 0)], workers=1)
    waiting = threading.Thread(target=batch.next)
    waiting.start()
    # This line is reached only if the waiting thread gave up the interpreter lock, for the run itself never ends.
    batch.cancel()
    waiting.join()
    assert batch.next() is None
    assert batch.done


def test_ctrl_c_ends_the_wait() -> None:
    batch = _engine.Batch([(scenario(ENDLESS), 1, 0)], workers=1)
    interrupt = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
    interrupt.start()
    with pytest.raises(KeyboardInterrupt):
        batch.next()
    batch.cancel()
    assert list(drained(batch)) == []


def test_a_dropped_batch_stops_its_workers() -> None:
    def threads() -> set[int]:
        return {thread.id for thread in psutil.Process().threads()}

    # Threads of others may end meanwhile.
    before = threads()
    batch = _engine.Batch([(scenario(ENDLESS), 1, 0)], workers=1)
    workers = threads() - before
    assert workers
    del batch
    while workers & threads():
        time.sleep(0.01)


def test_presets_are_named_with_their_sources() -> None:
    presets = {name: source for name, source, *_ in _engine.presets()}
    assert {"rfc7252", "cocoa-03", "default-fb1", "default-fb2", "cocoa-fb1", "cocoa-fb2"} <= set(presets)
    assert all(presets.values())


def test_the_engine_has_the_version_of_the_package() -> None:
    assert _engine.version() == metadata.version("millpond")
