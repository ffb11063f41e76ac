"""Controllers of the reader's own that go wrong: odd answers, exceptions, code that never ends."""

# ruff: noqa: ARG002 - controllers take what they are given

from __future__ import annotations

import math
import re
import signal
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path

import pytest
from own_controllers import PATIENT, SECOND, Standard, Waiting, drained, failure, odd, scenario, text

import millpond
from millpond import _engine
from millpond.controller import Cx, Exchange, Sample
from millpond.controllers import own
from millpond.errors import MillpondError
from millpond.results.directory import read_manifest


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
    assert re.match(f"test_own_faults.py:Odd: on_timeout {told}", outcome.error), outcome.error
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
    assert outcome.error.startswith(f"own_controllers.py:Odd: {made} raised LookupError: nothing found (test_own_")
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
from millpond import _engine, api, cli
from millpond.controllers import own
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
