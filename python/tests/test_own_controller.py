"""Controllers of the reader's own: in scenarios, on the command line, beside a study's, and when they go wrong."""

# ruff: noqa: ARG002 - controllers take what they are given

from __future__ import annotations

import functools
import json
import math
import re
import signal
import subprocess
import sys
import threading
import time
import traceback
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import millpond
from millpond import _engine, api, cli, own
from millpond.controller import AnyWait, BuiltIn, Controller, Cx, Exchange, Sample, View, Wait, Wishes
from millpond.engine import native
from millpond.errors import MillpondError, UsageError
from millpond.report import labels
from millpond.results import read_manifest

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


@pytest.fixture
def patient(tmp_path: Path) -> Path:
    file = tmp_path / "patient.py"
    file.write_text(PATIENT)
    return file


# ----------------------------------------------------------------------------------------------- the same results


@pytest.mark.parametrize("workload", ["continuous", "random"])
def test_the_standard_timer_gives_the_results_of_the_preset(workload: str) -> None:
    preset = scenario("rfc7252", workload=workload, settings=', max-wait = "60 s"')
    assert results(scenario(Standard, workload=workload)) == results(preset)


@pytest.mark.parametrize("preset", [preset.name for preset in native().presets()])
def test_passing_all_calls_on_changes_nothing(preset: str) -> None:
    make = functools.partial(Passing, preset)
    for workload in ("continuous", "random"):
        assert results(scenario(make, workload=workload), 1) == results(scenario(preset, workload=workload), 1)


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
    assert len(ends) == sum(flows["failed"].to_pylist())


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


# ----------------------------------------------------------------------------------------------- when it goes wrong


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (None, "returned None, not a number of microseconds: return the wait as a number of microseconds or a Wait"),
        ("2 s", "returned '2 s', not a number of microseconds"),
        ([2], "returned \\[2\\], not a number of microseconds"),
        (True, "returned True, not a number of microseconds"),
        (math.nan, "returned nan, not a finite number of microseconds"),
        (math.inf, "returned inf, not a finite number of microseconds"),
        (-1, "returned -1, below zero"),
        (-0.6, "returned -0.6, below zero"),
        (10**400, "returned 1000+….*longer than can be told"),
        (2**32, "returned 4294967296, longer than can be told, 4294967295 µs"),
        (2.0, "returned a wait of 2 µs, less than its shortest_wait_us\\(\\), 1000 µs: waits are in microseconds"),
        (0, "returned a wait of 0 µs, less than"),
        (
            600 * SECOND + 1,
            "returned a wait of 600000001 µs, more than its longest_wait_us\\(\\) for copy 1, 600000000 µs",
        ),
    ],
)
def test_a_wait_that_makes_no_sense_ends_the_run(answer: object, told: str) -> None:
    class Odd(Waiting):
        pass

    Odd.answer = answer
    outcome = failure(scenario(Odd))
    assert outcome.error is not None
    assert re.match(f"test_own_controller.py:Odd: on_timeout {told}", outcome.error), outcome.error
    assert "\n" not in outcome.error
    assert outcome.cause is None


@pytest.mark.parametrize(
    ("call", "answer", "told"),
    [
        ("admit", "later", "'later': write 'now', 'when-one-ends' or a point in time"),
        ("admit", 0, "0, a point in time that does not lie after cx.now_us"),
        ("admit", None, "None: write 'now', 'when-one-ends' or a whole number of microseconds"),
        ("admit", 1.5, "1.5: write"),
        ("on_start", None, "None, not a number of microseconds"),
        ("on_start", 999, "a wait of 999 µs, less than"),
    ],
)
def test_other_answers_are_checked_too(call: str, answer: object, told: str) -> None:
    error = failure(scenario(odd(**{call: lambda *_: answer}))).error
    assert error is not None
    assert re.match(f".*:Odd: {call} returned {told}", error), error


@pytest.mark.parametrize("call", ["on_start", "on_timeout", "on_reply", "on_end", "admit", "__init__"])
def test_an_exception_ends_the_run_and_keeps_its_traceback(call: str) -> None:
    begun = []

    def fail(*_: object) -> None:
        begun.append(1)
        if call != "__init__" or len(begun) > 1:  # the first one made is for trial
            raise LookupError("nothing found\nhere")

    # one copy more and no other, so that exchanges are given up too
    known = own.OwnControllers()
    impatient = text(f'"{known.add(odd(**{call: fail}))}"').replace("max_retransmit = 8", "max_retransmit = 1")
    outcome = failure(_engine.Scenario.from_toml(impatient, "test.toml", known))
    assert outcome.error is not None
    made = "on_start" if call == "__init__" else call
    assert outcome.error.startswith(f"test_own_controller.py:Odd: {made} raised LookupError: nothing found (test_own_")
    assert isinstance(outcome.cause, LookupError)
    assert [frame.name for frame in traceback.extract_tb(outcome.cause.__traceback__)] == ["fail"]


@pytest.mark.parametrize("raised", [SystemExit(3), KeyboardInterrupt(), RecursionError("deep"), MemoryError()])
def test_no_exception_gets_away(raised: BaseException) -> None:
    def fail(*_: object) -> None:
        raise raised

    outcome = failure(scenario(odd(on_reply=fail)))
    assert outcome.error is not None
    assert f"on_reply raised {type(raised).__name__}" in outcome.error
    assert outcome.cause is raised


def test_a_failure_ends_the_campaign_and_other_workers(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(text('"rfc7252"'))

    class Odd(Standard):
        def on_reply(self, exchange: Exchange, sample: Sample, cx: Cx) -> None:
            raise LookupError("nothing found")

    with pytest.raises(
        MillpondError, match=r"^run \d+ \(s, seed \d+\): .*:Odd: on_reply raised LookupError: noth"
    ) as told:
        millpond.run(tmp_path / "s.toml", controller=Odd, replications=50, jobs=2, out=tmp_path / "out", report=False)
    assert isinstance(told.value.__cause__, LookupError)
    assert told.value.__cause__.__traceback__ is not None
    assert told.value.exit_code == 1
    assert read_manifest(tmp_path / "out")["runs_done"] == 0


def test_code_that_never_ends_is_interrupted() -> None:
    entered = threading.Event()

    class Endless(Standard):
        def on_reply(self, exchange: Exchange, sample: Sample, cx: Cx) -> None:
            entered.set()
            while True:
                pass

    batch = _engine.Batch([(scenario(Endless), 1, run) for run in range(4)], workers=2)
    entered.wait()
    assert batch.next(0.01) is None
    batch.cancel()
    assert list(drained(batch)) == []
    assert batch.done


def test_a_batch_that_is_dropped_interrupts_its_runs() -> None:
    entered, left = threading.Event(), threading.Event()

    class Endless(Standard):
        def on_reply(self, exchange: Exchange, sample: Sample, cx: Cx) -> None:
            entered.set()
            try:
                while True:
                    pass
            finally:
                left.set()

    batch = _engine.Batch([(scenario(Endless), 1, 0)], workers=1)
    entered.wait()
    del batch
    left.wait()


def test_the_interpreter_can_end_in_the_middle_of_a_run(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        PATIENT
        + f"""
from millpond import _engine, api, cli, own
known = own.OwnControllers()
name = known.add(Patient)
text = {text("PLACE", 500)!r}.replace("PLACE", repr(name)).replace("exchanges = 20", "exchanges = 100000")
batch = _engine.Batch([(_engine.Scenario.from_toml(text, "s", known), run, run) for run in range(8)], workers=2)
assert batch.next(0.2) is None
print("bye")
"""
    )
    done = subprocess.run([sys.executable, tmp_path / "script.py"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "bye\n", "")


def test_ctrl_c_stops_the_program_in_the_middle_of_python_code(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(text('"endless.py:Endless"'))
    (tmp_path / "endless.py").write_text(
        PATIENT
        + """
class Endless(Patient):
    def on_reply(self, exchange, sample, cx):
        open("entered", "w").close()
        while True:
            pass
"""
    )
    command = [sys.executable, "-m", "millpond", "run", "s.toml"]
    running = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "entered").exists():
        assert running.poll() is None
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate()
    assert running.returncode == 130
    assert "stopped: 0 of 1 runs are kept" in err


# ----------------------------------------------------------------------------------------------- by name


def refused(controller: str, folder: Path) -> str:
    with pytest.raises(_engine.ScenarioError, match=r"^test\.toml:") as told:
        _engine.Scenario.from_toml(text(controller), "test.toml", own.OwnControllers(folder))
    assert "\n" not in str(told.value)
    return str(told.value)


def test_a_scenario_keeps_name_and_settings(patient: Path) -> None:
    known = own.OwnControllers(patient.parent)
    for written in (
        '{ own = "patient.py:Patient", first-s = 2, cap = "9 s" }',
        '{ preset = "patient.py:Patient", first-s = 2, cap = "9 s" }',
    ):
        read = _engine.Scenario.from_toml(text(written), "test.toml", known)
        kept = json.loads(read.to_json())["clients"][0]["controller"]
        assert kept == {"own": "patient.py:Patient", "cap": "9 s", "first-s": 2}
        assert _engine.Scenario.from_json(read.to_json(), "again", known).to_json() == read.to_json()
        (outcome,) = drained(_engine.Batch([(read, 1, 0)]))
        flows = pa.table(outcome.tables()["flows"])
        assert set(flows["controller"].to_pylist()) == {"patient.py:Patient (cap 9 s, first-s 2)"}
    plain = _engine.Scenario.from_toml(text('"patient.py:Patient"'), "test.toml", known)
    assert json.loads(plain.to_json())["clients"][0]["controller"] == "patient.py:Patient"


def test_settings_are_what_the_class_is_made_with(patient: Path) -> None:
    shorter, longer = (
        results(
            _engine.Scenario.from_toml(
                text(f'{{ own = "patient.py:Patient", first-s = {first} }}'), "s", own.OwnControllers(patient.parent)
            ),
            runs=1,
        )[0]["rto_trace"]["wait_us"][0].as_py()
        for first in (2, 20.5)
    )
    assert 2 * SECOND <= shorter <= 3 * SECOND
    assert 20.5 * SECOND <= longer <= 31 * SECOND


@pytest.mark.parametrize(
    ("controller", "told"),
    [
        ('"patiens.py:Patient"', "patiens.py: No such file or directory: did you mean '.*patient.py'?"),
        ('"patient.py:Patent"', "patient.py: unknown class 'Patent': did you mean 'Patient'? known: Patient"),
        ('"patient.py:millpond"', "patient.py:millpond: module makes no controllers: name a class"),
        ('"nowhere.mine:Mine"', "nowhere.mine: no such module; a file is named with its ending"),
        ('"json:JSONDecoder"', "json:JSONDecoder: no controller: write `class JSONDecoder(millpond.Controller)`"),
        ('"json:Decoder"', "json: it has no controllers: write `class Mine(millpond.Controller)`"),
        ('"wrong.py:Mine"', "wrong.py:2: '(' was never closed"),
        (
            '"raising.py:Mine"',
            "raising.py: importing it raised ZeroDivisionError: division by zero (raising.py, line 2)",
        ),
        (
            '"half.py:Half"',
            "half.py:Half: lacks on_timeout and on_reply: every controller has on_start, on_timeout, on_r",
        ),
        ('"half.py:Nothing"', "half.py:Nothing: makes a dict, which is no controller"),
        (
            '{ own = "patient.py:Patient", first = 3 }',
            "unknown setting 'first': did you mean 'first_s'? known: first_s, cap",
        ),
        ('{ own = "patient.py:Patient", cap = "9 m" }', "patient.py:Patient: its making raised AssertionError"),
        ('{ own = "half.py:Wants" }', "half.py:Wants: missing a required argument: 'gain'"),
        ('{ own = "half.py:Wants", gain = 1, of = 2 }', "unknown setting 'of': known: gain"),
        ('{ own = "half.py:Bare", gain = 1 }', "half.py:Bare: takes no setting 'gain'"),
        ('{ own = "patient" }', "`patient` is no controller of one's own: write two names with a colon"),
        ('{ own = ":Patient" }', "`:Patient` is no controller of one's own"),
        ('{ own = "a:B", preset = "rfc7252" }', "both `own` and `preset`: name one controller"),
        ('"patient.py"', "unknown controller `patient.py`"),
    ],
)
def test_what_cannot_be_loaded_is_refused_in_one_line(patient: Path, controller: str, told: str) -> None:
    folder = patient.parent
    (folder / "wrong.py").write_text("x = 1\ny = (\n")
    (folder / "raising.py").write_text("x = 1\ny = 1 / 0\n")
    (folder / "half.py").write_text(
        PATIENT
        + """
class Half(millpond.Controller):
    def on_start(self, exchange, length, cx):
        return 3e6

def Nothing():
    return {}

class Wants(Patient):
    def __init__(self, gain):
        pass

class Bare(Patient):
    def __init__(self):
        pass
"""
    )
    error = refused(controller, folder)
    assert re.search(re.escape(told).replace("\\.\\*", ".*"), error), error


def test_without_somebody_who_finds_them_they_are_refused() -> None:
    with pytest.raises(_engine.ScenarioError, match=r"clients\[0\].controller: `a:B` is not built in, and nobody here"):
        _engine.Scenario.from_toml(text('"a:B"'), "test.toml")


def test_a_file_finds_what_lies_beside_it_and_is_loaded_again_when_that_changes(tmp_path: Path) -> None:
    for folder, seconds in (("one", 2), ("other", 5)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "helper.py").write_text(f"FIRST_US = {seconds}_000_000\n")
        (tmp_path / folder / "mine.py").write_text(
            PATIENT.replace("import millpond", "import helper\nimport millpond").replace(
                "first_s * 1e6", "helper.FIRST_US"
            )
        )

    def first_s(folder: str) -> float:
        known = own.OwnControllers(tmp_path / folder)
        of = _engine.Scenario.from_toml(text('"mine.py:Patient"'), "s", known)
        assert sorted(known.code["mine.py:Patient"]) == ["helper.py", "mine.py"]
        return float(results(of, runs=1)[0]["rto_trace"]["wait_us"][0].as_py()) / SECOND

    assert 2 <= first_s("one") <= 3
    assert 5 <= first_s("other") <= 7.5
    (tmp_path / "one" / "helper.py").write_text("FIRST_US = 100_000_000\n")
    assert 100 <= first_s("one") <= 150
    assert 5 <= first_s("other") <= 7.5
    assert "helper" not in sys.modules


def test_a_module_is_found_from_the_scenarios_folder(tmp_path: Path) -> None:
    package = tmp_path / "ours_of_a_test" / "deep"
    package.mkdir(parents=True)
    (package / "mine.py").write_text(PATIENT)
    known = own.OwnControllers(tmp_path)
    of = _engine.Scenario.from_toml(text('"ours_of_a_test.deep.mine:Patient"'), "s", known)
    assert results(of, runs=1)
    assert list(known.code["ours_of_a_test.deep.mine:Patient"]) == ["ours_of_a_test/deep/mine.py"]


def test_they_can_be_driven_by_hand(patient: Path) -> None:
    make = own.watched("patient.py:Patient", {"first-s": 7}, patient.parent)
    assert make().on_start(Exchange(), 40, Cx(0)) == Wait(7 * SECOND)
    assert own.watched(Standard)().name == "test_own_controller.py:Standard"
    with pytest.raises(UsageError, match="unknown class 'Patent'"):
        own.watched("patient.py:Patent", folder=patient.parent)


# ----------------------------------------------------------------------------------------------- the program


def groups(directory: Path) -> list[str]:
    return [group["algorithm"] for group in read_manifest(directory)["cells"][0]["groups"]]


@pytest.mark.parametrize(
    ("chosen", "named"),
    [
        ("folder/patient.py:Patient", ["patient.py:Patient #1", "patient.py:Patient #2"]),
        ("cocoa-03,folder/patient.py:Patient", ["cocoa-03", "patient.py:Patient"]),
        ("cocoa-03", ["cocoa-03 #1", "cocoa-03 #2"]),
    ],
)
def test_a_run_takes_another_controller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: str, named: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "patient.py").write_text(PATIENT)
    (tmp_path / "folder" / "s.toml").write_text(
        text('"rfc7252"') + '[[clients]]\ncount = 2\ncontroller = { own = "patient.py:Patient", first-s = 9 }\n'
    )
    with pytest.raises(SystemExit) as ended:
        cli.main(["run", "folder/s.toml", "--controller", chosen, "--out", "out", "--no-report"])
    assert ended.value.code == 0
    assert groups(tmp_path / "out") == named


def test_too_many_controllers_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text(text('"rfc7252"'))
    with pytest.raises(SystemExit) as ended:
        cli.main(["run", "s.toml", "--controller", "rfc7252,cocoa-03"])
    assert ended.value.code == 2
    assert "--controller: 2 for 1 group(s) of clients: give one" in capfd.readouterr().err


def test_a_study_puts_ones_own_beside_the_published_ones(
    patient: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(patient.parent)
    small = ["--clients", "1,10", "--buffers", "2500,14100", "--replications", "2", "--out", "out"]
    with pytest.raises(SystemExit) as ended:
        cli.main(["reproduce", "anrw18", "--controllers", "cocoa,cocoa-s,patient.py:Patient", *small])
    out = capfd.readouterr().out
    assert ended.value.code == 0
    report = (patient.parent / "out" / "report.html").read_text(encoding="utf-8")
    for told in (out, report):
        assert "patient.py:Patient" in told
    assert "cocoa-s" in out
    assert labels.controller("cocoa-s") in report
    done = api.open_results(patient.parent / "out")
    assert isinstance(done, millpond.Reproduction)
    assert {figure.scenario.get("algorithm") for figure in done.comparison.figures if figure.ours is not None} >= {
        "cocoa"
    }
    assert {cell["columns"]["algorithm"] for cell in read_manifest(patient.parent / "out")["cells"]} == {
        "cocoa",
        "cocoa-s",
        "patient.py:Patient",
    }


def test_an_unknown_controller_of_a_study_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"unknown controller 'cocoa-3': did you mean 'cocoa-03'\?"):
        millpond.reproduce("anrw18", controllers=["cocoa-3"], out=tmp_path / "out")
    with pytest.raises(UsageError, match=r"mine.py: No such file"):
        millpond.reproduce("anrw18", controllers=["mine.py:Mine"], out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


# ----------------------------------------------------------------------------------------------- the Python interface


def run(file: Path, controller: own.AnyController | Sequence[own.AnyController], out: Path, **how: Any) -> millpond.Run:
    return millpond.run(file, controller=controller, out=out, report=False, **how)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "s.toml").write_text(text('"rfc7252"', 3))
    return tmp_path / "s.toml"


def test_a_class_or_factory_can_be_passed(file: Path, tmp_path: Path) -> None:
    given: dict[str, own.AnyController] = {
        "class": Standard,
        "factory": functools.partial(Standard, 60 * SECOND),
        "table": {"own": Standard, "cap-us": 60 * SECOND},
        "preset": {"preset": "rfc7252", "max-wait": "60 s"},
    }
    found = [run(file, controller, tmp_path / name).summary.to_pylist() for name, controller in given.items()]
    without_names = [[{k: v for k, v in row.items() if k != "clients"} for row in rows] for rows in found]
    assert without_names[0] == without_names[1] == without_names[2]
    assert groups(tmp_path / "class") == ["test_own_controller.py:Standard"]


def test_classes_of_one_name_are_told_apart() -> None:
    known = own.OwnControllers()
    one, other = odd(), odd()
    names = [known.add(one), known.add(other), known.add(one)]
    assert names == ["test_own_controller.py:Odd", "test_own_controller.py:Odd-2", "test_own_controller.py:Odd"]


def test_a_class_can_be_passed_to_a_study(tmp_path: Path) -> None:
    done = millpond.reproduce(
        "anrw18",
        controllers=["default", Standard],
        clients=[1],
        buffers=[2500],
        replications=1,
        out=tmp_path / "out",
        report=False,
    )
    algorithms = {population.algorithm for population in done.measures.populations()}
    assert algorithms == {"default", "test_own_controller.py:Standard"}


# ----------------------------------------------------------------------------------------------- results


def test_the_manifest_knows_the_code_and_resuming_does_not_mix_versions(patient: Path, file: Path) -> None:
    helper = patient.parent / "helper.py"
    helper.write_text("FLOOR = 1_000_000\n")
    patient.write_text("import helper\n" + PATIENT.replace("1_000_000,", "helper.FLOOR,"))
    file.write_text(text('"patient.py:Patient"', 3))
    out = patient.parent / "out"
    millpond.run(file, out=out, report=False)
    code = read_manifest(out)["controllers"]
    assert list(code) == ["patient.py:Patient"]
    assert list(code["patient.py:Patient"]) == ["helper.py", "patient.py"]
    assert all(digest.startswith("sha256:") for digest in code["patient.py:Patient"].values())
    millpond.run(file, out=out, resume=True, report=False)
    for changed in (helper, patient):
        before = changed.read_text()
        changed.write_text(before + "# another version\n")
        with pytest.raises(MillpondError, match=r"the code of patient.py:Patient may have changed since"):
            millpond.run(file, out=out, resume=True, report=False)
        changed.write_text(before)
    millpond.run(file, out=out, resume=True, report=False)


def test_presets_leave_no_digests(file: Path, tmp_path: Path) -> None:
    millpond.run(file, out=tmp_path / "out", report=False)
    assert read_manifest(tmp_path / "out")["controllers"] == {}


def made_by(make: own.Make) -> dict[str, str]:
    known = own.OwnControllers()
    name = known.add(make)
    return dict(known.find(name).code)


def closing_over(value: Any) -> own.Make:
    return lambda: Standard(int(value))


def class_closing_over(value: Any) -> own.Make:
    class Closing(Standard):
        def on_timeout(self, exchange: Exchange, cx: Cx) -> AnyWait:
            return int(value)

    return Closing


@pytest.mark.parametrize(
    "given",
    [
        lambda n: functools.partial(Standard, n),
        lambda n: functools.partial(Standard, cap_us=n),
        lambda n: odd(VALUE=n),
        closing_over,
        class_closing_over,
    ],
)
def test_classes_are_told_apart_by_what_they_were_given(given: Callable[[int], own.Make]) -> None:
    one, same, other = made_by(given(1)), made_by(given(1)), made_by(given(2))
    assert one == same != other


def test_what_cannot_be_compared_is_never_the_same() -> None:
    assert list(made_by(Standard)) == ["test_own_controller.py"]
    assert made_by(Standard) == made_by(Standard)
    assert made_by(functools.partial(Standard, 1)) != made_by(functools.partial(Standard, cap_us=1))
    for make in (closing_over, class_closing_over):
        assert made_by(make({1})) != made_by(make({1}))


def test_what_was_typed_in_is_never_taken_for_the_same(file: Path, tmp_path: Path) -> None:
    typed = types.ModuleType("typed_in_a_test")
    sys.modules["typed_in_a_test"] = typed
    try:
        exec(PATIENT, typed.__dict__)
        run(file, typed.Patient, tmp_path / "out")
        with pytest.raises(MillpondError, match="the code of typed_in_a_test:Patient may have changed since then"):
            run(file, typed.Patient, tmp_path / "out", resume=True)
    finally:
        del sys.modules["typed_in_a_test"]
