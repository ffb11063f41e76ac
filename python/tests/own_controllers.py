"""Controllers of the reader's own that tests give to runs, and what those runs gave."""

# ruff: noqa: ARG002 - controllers take what they are given

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from millpond import _engine
from millpond.controller import AnyWait, BuiltIn, Controller, Cx, Exchange, Sample, View, Wait, Wishes
from millpond.controllers import own
from millpond.results.directory import read_manifest

SCENARIO = """
[path.uplink]
rate = "60 kbit/s"
delay = "215 ms"
queue = "2500 B"
loss = {{ kind = "bernoulli", rate = 0.1 }}
[path.downlink]
rate = "30 kbit/s"
delay = "415 ms"
queue = "2500 B"
[[clients]]
count = {count}
controller = {controller}
workload = "{workload}"
exchanges = 20
max_retransmit = 8
"""
SECOND = 1_000_000

PATIENT = '''
import millpond

class Patient(millpond.Controller):
    """Three seconds at first, then four times the last sample."""

    def __init__(self, first_s=3.0, cap="60 s"):
        self.first_us = first_s * 1e6
        assert cap.endswith(" s")

    def on_start(self, exchange, length, cx):
        return cx.between(self.first_us, 1.5 * self.first_us)

    def on_timeout(self, exchange, cx):
        return min(2 * exchange.current_us, 60_000_000)

    def on_reply(self, exchange, sample, cx):
        if sample.exact_us is not None:
            self.first_us = max(1_000_000, 4 * sample.exact_us)
'''


class Standard(Controller):
    """The timer of RFC 7252 with a cap, as the preset has it."""

    def __init__(self, cap_us: int = 60 * SECOND) -> None:
        self.cap_us = cap_us

    def on_start(self, exchange: Exchange, length: int, cx: Cx) -> AnyWait:
        return cx.between(2 * SECOND, 3 * SECOND)

    def on_timeout(self, exchange: Exchange, cx: Cx) -> AnyWait:
        # a wait above the cap is kept as it is
        return max(exchange.current_us, min(2 * exchange.current_us, self.cap_us))

    def on_reply(self, exchange: Exchange, sample: Sample, cx: Cx) -> None:
        pass

    def view(self) -> View:
        return View(rto_us=2 * SECOND)


class Passing(Controller):
    """Passes every call on to a built-in controller."""

    def __init__(self, preset: str = "cocoa-03") -> None:
        self.inner = BuiltIn(preset)

    def admit(self, kind: str, length: int, cx: Cx) -> Any:
        return self.inner.admit(kind, length, cx)

    def on_start(self, exchange: Exchange, length: int, cx: Cx) -> Wait:
        return self.inner.on_start(exchange, length, cx)

    def on_timeout(self, exchange: Exchange, cx: Cx) -> Wait:
        return self.inner.on_timeout(exchange, cx)

    def on_reply(self, exchange: Exchange, sample: Sample, cx: Cx) -> None:
        self.inner.on_reply(exchange, sample, cx)

    def on_end(self, exchange: Exchange, why: str, cx: Cx) -> None:
        self.inner.on_end(exchange, why, cx)

    def on_plain_send(self, length: int, cx: Cx) -> None:
        self.inner.on_plain_send(length, cx)

    def wishes(self) -> Wishes:
        return self.inner.wishes()

    def view(self) -> View:
        return self.inner.view()

    def base_rtt_us(self) -> int | None:
        return self.inner.base_rtt_us()

    def recall(self, base_rtt_us: int) -> None:
        self.inner.recall(base_rtt_us)

    def shortest_wait_us(self) -> int:
        return self.inner.shortest_wait_us()

    def longest_wait_us(self, copy: int, previous_us: int) -> int:
        return self.inner.longest_wait_us(copy, previous_us)


class Waiting(Standard):
    """Answers whatever it was given for the second copy."""

    answer: object = None

    def on_timeout(self, exchange: Exchange, cx: Cx) -> Any:
        return self.answer


def odd(**calls: Any) -> type[Controller]:
    """The standard timer with other calls."""
    return type("Odd", (Standard,), {"__module__": __name__, **calls})


def text(controller: str, count: int = 12, workload: str = "continuous") -> str:
    return SCENARIO.format(controller=controller, count=count, workload=workload)


def scenario(
    controller: str | own.Make, count: int = 12, workload: str = "continuous", settings: str = ""
) -> _engine.Scenario:
    known = own.OwnControllers()
    name = controller if isinstance(controller, str) else known.add(controller)
    kind = "own" if own.is_own(name) else "preset"
    return _engine.Scenario.from_toml(text(f'{{ {kind} = "{name}"{settings} }}', count, workload), "test.toml", known)


def drained(batch: _engine.Batch) -> Iterator[_engine.Outcome]:
    while not batch.done:
        outcome = batch.next()
        if outcome is not None:
            yield outcome


def results(of: _engine.Scenario, runs: int = 2, workers: int = 1) -> dict[int, dict[str, pa.Table]]:
    """Every table of some runs, without the wall clock and the controller's name."""
    traces = ["queue", "rto", "packets", "exchanges"]
    batch = _engine.Batch([(of, 7 * run, run) for run in range(runs)], workers=workers, trace=traces)
    found: dict[int, dict[str, pa.Table]] = {}
    for outcome in drained(batch):
        assert outcome.error is None, outcome.error
        tables = {name: pa.table(native) for name, native in outcome.tables().items()}
        tables["runs"] = tables["runs"].drop_columns(["wall_us"])
        tables["flows"] = tables["flows"].drop_columns(["controller"])
        found[outcome.run] = tables
    assert sorted(found) == list(range(runs))
    return found


def failure(of: _engine.Scenario) -> _engine.Outcome:
    (outcome,) = drained(_engine.Batch([(of, 1, 0)], workers=1))
    assert outcome.tables() == {}
    return outcome


def groups(directory: Path) -> list[str]:
    return [group["algorithm"] for group in read_manifest(directory)["cells"][0]["groups"]]
