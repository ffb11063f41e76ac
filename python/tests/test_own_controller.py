"""Controllers of the reader's own in runs: what they are told, what they may answer, and that nothing else changes."""

# ruff: noqa: ARG002 - controllers take what they are given

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from own_controllers import SECOND, Passing, Standard, Waiting, results, scenario, text

from millpond import _engine
from millpond.controller import AnyWait, Controller, Cx, Exchange, Sample, Wait
from millpond.controllers import own
from millpond.engine import presets


@pytest.mark.parametrize("workload", ["continuous", "random"])
def test_the_standard_timer_gives_the_results_of_the_preset(workload: str) -> None:
    preset = scenario("rfc7252", workload=workload, settings=', max-wait = "60 s"')
    assert results(scenario(Standard, workload=workload)) == results(preset)


@pytest.mark.parametrize("preset", [preset.name for preset in presets()])
def test_passing_all_calls_on_changes_nothing(preset: str) -> None:
    make = functools.partial(Passing, preset)
    for workload in ("continuous", "random"):
        assert results(scenario(make, workload=workload), 1) == results(scenario(preset, workload=workload), 1)


def test_a_base_round_trip_outlives_fresh_batches() -> None:
    """Twelve clients make a queue of seconds; who remembers that the path is shorter pauses more."""

    def gave(controller: str | own.Make, memory: str) -> object:
        known = own.OwnControllers()
        name = controller if isinstance(controller, str) else known.add(controller)
        crowd = text(f'"{name}"', workload="random").replace("30 kbit/s", "2 kbit/s").replace("2500 B", "1410 kB")
        crowd += f'batch = {{ from = 1, to = 10, memory = "{memory}" }}\n'
        return results(_engine.Scenario.from_toml(crowd, "test.toml", known), runs=1)

    lost, remembered = gave("calm", "lost"), gave("calm", "base-rtt")
    assert lost != remembered
    calm = functools.partial(Passing, "calm")
    assert gave(calm, "base-rtt") == remembered
    assert gave(calm, "lost") == lost

    class Forgetful(Passing):
        def __init__(self) -> None:
            super().__init__("calm")

        def recall(self, base_rtt_us: int) -> None:
            assert base_rtt_us > 0

    assert gave(Forgetful, "base-rtt") == lost


def test_results_are_the_same_on_one_thread_and_on_two() -> None:
    learning = scenario(Passing, workload="random")
    alone = results(learning, runs=6, workers=1)
    assert results(learning, runs=6, workers=2) == alone
    assert alone[0] != alone[1]


def test_every_peer_has_an_object_of_its_own_and_random_batches_new_ones() -> None:
    made: list[Controller] = []
    forgotten = 0

    class Counted(Standard):
        def __init__(self) -> None:
            super().__init__()
            made.append(self)

    for workload in ("continuous", "random"):
        made.clear()
        tables = results(scenario(Counted, workload=workload), runs=1)[0]
        forgotten = sum(tables["flows"]["batches"].to_pylist())
        assert len(made) == forgotten + 1, "and the one for trial"
    assert forgotten > 12


def test_memory_lasts_as_long_as_the_exchange() -> None:
    seen: list[object] = []

    class Remembering(Standard):
        def on_start(self, exchange: Exchange, length: int, cx: Cx) -> AnyWait:
            assert exchange.memory is None
            exchange.memory = [cx.now_us]
            return super().on_start(exchange, length, cx)

        def on_timeout(self, exchange: Exchange, cx: Cx) -> AnyWait:
            assert isinstance(exchange.memory, list)
            exchange.memory.append(cx.now_us)
            return super().on_timeout(exchange, cx)

        def on_reply(self, exchange: Exchange, sample: Sample, cx: Cx) -> None:
            assert isinstance(exchange.memory, list)
            assert exchange.memory[0] == cx.now_us - sample.since_first_us == exchange.started_us
            assert exchange.memory[-1] == cx.now_us - sample.since_last_us
            assert len(exchange.memory) == 1 + sample.retransmissions == 1 + exchange.retransmissions
            seen.append(exchange.memory)

    tables = results(scenario(Remembering), runs=1)[0]
    assert len(seen) == sum(tables["flows"]["completed"].to_pylist()) > 0


def test_messages_can_be_held_back() -> None:
    class Holding(Standard):
        def __init__(self) -> None:
            super().__init__()
            self.free_us = 0

        def admit(self, kind: str, length: int, cx: Cx) -> Any:
            return "now" if cx.now_us >= self.free_us else self.free_us

        def on_reply(self, exchange: Exchange, sample: Sample, cx: Cx) -> None:
            self.free_us = cx.now_us + 5 * SECOND

    held = results(scenario(Holding, count=1), runs=1)[0]["flows"]["fct_us"][0].as_py()
    free = results(scenario(Standard, count=1), runs=1)[0]["flows"]["fct_us"][0].as_py()
    assert held >= 19 * 5 * SECOND + free // 20


def test_a_wait_can_be_the_last() -> None:
    class Impatient(Standard):
        def on_timeout(self, exchange: Exchange, cx: Cx) -> Wait:
            return Wait(2 * exchange.current_us, "backed-off", "abandon")

        def on_end(self, exchange: Exchange, why: str, cx: Cx) -> None:
            ends.append((why, exchange.retransmissions))

    ends: list[tuple[str, int]] = []
    flows = results(scenario(Impatient), runs=1)[0]["flows"]
    assert set(ends) == {("gave-up", 1)}
    assert len(ends) == sum(flows["exchanges_failed"].to_pylist())


@pytest.mark.parametrize(
    "wait",
    [2_500_000, 2_500_000.4, np.int64(2_500_000), np.float32(2_500_000), np.float64(2.5e6), Wait(2_500_000, "slow")],
)
def test_a_wait_is_any_number_or_a_wait(wait: AnyWait) -> None:
    class Fixed(Waiting):
        answer = wait

    trace = results(scenario(Fixed), runs=1)[0]["rto_trace"].to_pylist()
    later = {(row["wait_us"], row["reason"]) for row in trace if row["copy"] > 0}
    assert later == {(2_500_000, "slow" if isinstance(wait, Wait) else "backed-off")}
