"""A controller of a crate outside of the tree: copied into an empty folder, built there, and run like any other."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import guide
import pytest
from own_controllers import text

import millpond
from millpond import UsageError, _engine, cli
from millpond.controllers import own
from millpond.results.directory import read_manifest

NAME = "own_controller.so:Patient"
PLAN = """\
replications = 2
[matrix]
buffer = ["2500 B", "14100 B"]
algorithm = ["rfc7252", "{name}"]
[vary.buffer]
places = ["path.uplink.queue", "path.downlink.queue"]
"""
CARGO = shutil.which("cargo") or "cargo"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The module, as the guide has its reader build it, but not optimised."""
    folder = tmp_path_factory.mktemp("empty") / "mine"
    shutil.copytree(guide.ROOT / "examples" / "own-controller", folder)
    manifest = folder / "Cargo.toml"
    there = manifest.read_text(encoding="utf-8")
    assert there.count('path = "../../crates/') == 2
    manifest.write_text(there.replace("../../crates/", f"{guide.ROOT}/crates/"), encoding="utf-8")
    shutil.copy(guide.ROOT / "Cargo.lock", folder)
    kept = Path(os.environ.get("CARGO_TARGET_DIR") or guide.ROOT / "target") / "outside"
    how = {**os.environ, "PYO3_BUILD_EXTENSION_MODULE": "1", "PYO3_PYTHON": sys.executable}
    words = [CARGO, "build", "--offline", "--target-dir", str(kept)]
    done = subprocess.run(words, cwd=folder, env=how, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    library = "libown_controller.dylib" if sys.platform == "darwin" else "libown_controller.so"
    shutil.copy(kept / "debug" / library, folder / "own_controller.so")
    return folder


@pytest.fixture
def here(built: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(built)
    yield built
    sys.modules.pop("own_controller", None)


def tables(results: millpond.Results) -> dict[str, list[dict[str, Any]]]:
    return {name: results.table(name).to_pylist() for name in ("runs", "flows")}


def test_a_sweep_runs_it_on_threads_and_processes_with_the_same_tables(here: Path) -> None:
    scenario = text('"rfc7252"', 3)
    plan = here / "plan.toml"
    plan.write_text(f'scenario = "s.toml"\n{PLAN.format(name=NAME)}')
    (here / "s.toml").write_text(scenario)
    threads = millpond.sweep(plan, out=here / "threads", report=True, jobs=2)
    processes = millpond.sweep(plan, out=here / "processes", report=False, on="processes", jobs=2)
    assert tables(threads.results) == tables(processes.results)
    told = threads.frame("fct", by=["buffer", "algorithm"]).estimates().to_pylist()
    assert {row["algorithm"] for row in told} == {"rfc7252", NAME}
    assert NAME in (here / "threads" / "report.html").read_text(encoding="utf-8")
    # the code is known by its digest, as that of a file of Python is
    assert [*read_manifest(here / "threads")["controllers"][NAME]] == ["own_controller.so"]
    # and kept, so that the results can be had again
    with pytest.raises(SystemExit) as ended:
        cli.main(["results", "verify", "threads", "--run-code"])
    assert ended.value.code == 0


def test_settings_are_its_parameters_and_an_arena_names_it(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for settings, told in (
        ({"times": 0}, "its making raised ValueError: times: 0 is not a whole number"),
        (
            {"tines": 2},
            "unknown setting 'tines': did you mean 'times'",
        ),
    ):
        with pytest.raises((UsageError, ValueError), match=told):
            own.watched(NAME, settings, here)()
    with pytest.raises(SystemExit) as ended:
        cli.main(f"arena --candidate {NAME} --against rfc7252 --drawn 1 --runs 2 --out arena".split())
    assert ended.value.code == 0
    assert NAME in capfd.readouterr().out


def test_it_can_be_driven_by_hand_as_the_verdicts_do(here: Path) -> None:
    peer = own.watched(NAME, {"times": 3}, here)()
    exchange = millpond.Exchange()
    wait = peer.on_start(exchange, 40, millpond.Cx(1_000))
    assert (wait.us, wait.reason) == (3_000_000, "blind")
    assert peer.on_timeout(exchange, millpond.Cx(3_001_000)).us == 6_000_000
    peer.on_reply(exchange, _engine.Sample("piggybacked", 3_500_000, 500_000, 1), millpond.Cx(3_501_000))
    assert peer.copy().view().rto_us == 3_000_000


class Capsule:
    """What a module hands over that was built for another version, or that is something else."""

    def __init__(self, name: bytes) -> None:
        self.words = (ctypes.c_uint32 * 16)(*[7] * 16)
        self.name = ctypes.create_string_buffer(name)

    def __millpond__(self) -> object:
        make: Any = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return make(ctypes.addressof(self.words), ctypes.cast(self.name, ctypes.c_char_p), None)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (b"millpond.controller", "built for version 7 of controllers in modules, and this laboratory has version 1: "),
        (b"other.controller", "__millpond__ returned "),
    ],
)
def test_a_module_of_another_version_is_refused_in_one_line(name: bytes, told: str) -> None:
    with pytest.raises(ValueError, match=told) as refused:
        own.watched(lambda: Capsule(name))()  # type: ignore[arg-type, return-value]
    assert "\n" not in str(refused.value)
