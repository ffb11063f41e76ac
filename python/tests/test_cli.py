"""The program: what it prints, where it refuses, and with which exit code."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

import millpond
from millpond import _engine, cli
from millpond.plan.study import STUDIES

SMALL = ["reproduce", "anrw18", "--clients", "1", "--buffers", "2500", "--replications", "2"]


@dataclass
class Said:
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.err.splitlines()


Millpond = Callable[..., Said]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Millpond:
    """The program as it is called, in an empty directory."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str | Path) -> Said:
        with pytest.raises(SystemExit) as ended:
            cli.main([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        return Said(int(ended.value.code or 0), out, err)

    return call


SCENARIO = """\
title = "two devices"
[path.uplink]
rate = "60 kbit/s"
delay = "215 ms"
queue = "2500 B"
[path.downlink]
rate = "30 kbit/s"
delay = "415 ms"
queue = "8 packets"
[[clients]]
count = 2
controller = "rfc7252"
exchanges = 5
[[clients]]
count = 1
controller = "cocoa-03"
workload = "random"
exchanges = 5
"""


# ----------------------------------------------------------------------------------------------- what it does


def test_version(program: Millpond) -> None:
    said = program("--version")
    assert (said.code, said.out.strip()) == (0, f"millpond {_engine.built()}")
    commit = _engine.commit()
    assert said.out.startswith(f"millpond {millpond.__version__}" + (f" (commit {commit[0][:12]}" if commit else ""))


def test_reproduce_prints_tables_and_leaves_results(program: Millpond) -> None:
    said = program(*SMALL, "--out", "out", "--no-report")
    assert said.code == 0
    for word in (
        "Flow completion time in s",
        "Ours beside the published figures",
        "The published claims",
        "c01",
        "33.003",
        "results: out",
    ):
        assert word in said.out
    assert max(len(line) for line in said.out.splitlines()) <= 100
    assert {"manifest.json", "flows.parquet", "comparison.json"} <= {file.name for file in Path("out").iterdir()}
    manifest = json.loads(Path("out/manifest.json").read_text())
    assert manifest["version"] == millpond.__version__
    assert len(manifest["seeds"]) == 2
    assert manifest["cells"][0]["scenario"]["clients"][0]["max_retransmit"] == 20


def test_json_is_exactly_the_comparison(program: Millpond) -> None:
    said = program(*SMALL, "--json", "--no-report")
    assert said.code == 0
    check_comparison(json.loads(said.out))
    assert "results: results/anrw18" in said.err


def check_comparison(told: dict[str, Any]) -> None:
    """The form programs rely on: no more keys, no fewer, and their types."""
    assert list(told) == ["study", "version", "figures", "claims"]
    assert (told["study"], told["version"]) == ("anrw18", millpond.__version__)
    for figure in told["figures"]:
        assert list(figure) == [
            "id", "scenario", "metric", "statistic", "published", "ours", "relative", "interval", "n", "calibrates",
        ]  # fmt: skip
        assert all(isinstance(figure[key], str) for key in ("id", "metric", "statistic"))
        assert isinstance(figure["scenario"], dict)
        assert isinstance(figure["published"], float)
        assert figure["ours"] is None or isinstance(figure["ours"], float)
        if figure["ours"] is not None and figure["published"] != 0:
            assert figure["relative"] == pytest.approx(figure["ours"] / figure["published"] - 1)
        else:
            assert figure["relative"] is None
        assert figure["ours"] is not None or figure["scenario"]["unmatched"]
    for claim in told["claims"]:
        assert list(claim) == [
            "id", "verdict", "measured", "reason", "outcome", "quantity", "margin", "interval", "n", "decided_by",
            "calibrates",
        ]  # fmt: skip
        assert all(isinstance(claim[key], str) for key in ("id", "verdict", "measured", "reason", "decided_by"))
        assert claim["verdict"] in ("holds", "fails", "noise", "unjudged")
        assert claim["verdict"] == "holds" or claim["reason"]


def test_claims_whose_conditions_were_not_run_are_unjudged(program: Millpond) -> None:
    told = json.loads(program(*SMALL, "--json", "--no-report").out)
    verdicts = {claim["id"]: claim for claim in told["claims"]}
    assert verdicts["anrw18-c25"]["verdict"] == "unjudged"
    assert verdicts["anrw18-c25"]["reason"] == "not run: 400 clients"


def test_published_compares_with_another_file(program: Millpond) -> None:
    text = (STUDIES / "anrw18" / "published.csv").read_text().splitlines()
    chosen = [line for line in text if line.startswith(("id,", "anrw18-r0100", "anrw18-r0138", "anrw18-r0139"))]
    Path("other.csv").write_text("\n".join(chosen).replace("33.003,s", "30.0,s") + "\n")
    told = json.loads(program(*SMALL, "--published", "other.csv", "--json", "--no-report").out)
    check_comparison(told)
    assert [(figure["id"], figure["published"]) for figure in told["figures"]] == [("anrw18-r0100", 30.0)]
    assert [claim["id"] for claim in told["claims"]] == ["anrw18-c01"]


def test_without_out_nothing_is_overwritten(program: Millpond) -> None:
    for _ in range(2):
        assert program(*SMALL, "--no-report").code == 0
    assert sorted(entry.name for entry in Path("results").iterdir()) == ["anrw18", "anrw18-2"]
    said = program(*SMALL, "--no-report", "--resume")
    assert said.code == 0
    assert "runs in" not in said.err
    assert len(list(Path("results").iterdir())) == 2


def test_report_redraws_from_results_alone(program: Millpond) -> None:
    program(*SMALL, "--out", "out", "--no-report")
    moved = shutil.move("out", "elsewhere")
    said = program("report", moved)
    assert said.code == 0
    assert Path("elsewhere/report.html").is_file()
    assert "The published claims" in said.out


def test_run_prints_a_row_for_each_group(program: Millpond) -> None:
    Path("two.toml").write_text(SCENARIO)
    said = program("run", "two.toml", "--replications", "3", "--no-report")
    assert said.code == 0
    assert "two devices" in said.out
    assert "rfc7252" in said.out
    assert "cocoa-03" in said.out
    manifest = json.loads(Path("results/two/manifest.json").read_text())
    assert manifest["seeds"] == [1, 2, 3]
    assert manifest["cells"][0]["groups"][1] == {
        "index": 1, "count": 1, "algorithm": "cocoa-03", "name": "", "label": "cocoa-03", "transport": "udp",
        "traffic": "requests",
    }  # fmt: skip


def test_run_as_json(program: Millpond) -> None:
    Path("two.toml").write_text(SCENARIO)
    told = json.loads(program("run", "two.toml", "--json", "--no-report").out)
    assert [(group["algorithm"], group["n"], group["unfinished"]) for group in told["groups"]] == [
        ("rfc7252", 2, 0),
        ("cocoa-03", 1, 0),
    ]


def test_run_traces(program: Millpond) -> None:
    Path("two.toml").write_text(SCENARIO)
    assert program("run", "two.toml", "--trace", "queue,exchanges", "--out", "out", "--no-report").code == 0
    assert {"queue_trace.parquet", "exchanges.parquet"} <= {file.name for file in Path("out").iterdir()}


def test_a_run_traces_what_its_report_draws_unless_told_otherwise(program: Millpond) -> None:
    Path("two.toml").write_text(SCENARIO)
    assert program("run", "two.toml", "--out", "usual", "--no-report").code == 0
    assert {"queue_trace.parquet", "share_trace.parquet"} <= {file.name for file in Path("usual").iterdir()}
    assert program("run", "two.toml", "--trace", "none", "--out", "bare", "--no-report").code == 0
    assert not any("trace" in file.name for file in Path("bare").iterdir())


# ----------------------------------------------------------------------------------------------- what it refuses


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["reproduce"], 2, "which study? known: anrw18"),
        (["reproduce", "anrw81"], 2, "unknown study 'anrw81': did you mean 'anrw18'? known: anrw18"),
        (["reproduse", "anrw18"], 2, "unknown verb 'reproduse': did you mean 'reproduce'?"),
        (
            [*SMALL, "--controllers", "cocoaa"],
            2,
            "--controllers: unknown controller 'cocoaa': did you mean 'cocoa'? known: default",
        ),
        ([*SMALL, "--clients", "0"], 2, "--clients: 0 makes no sense here: at least 1"),
        ([*SMALL, "--clients", "1,x"], 2, "'x' is not a whole number"),
        ([*SMALL, "--buffers", "-5"], 2, "--buffers: -5 makes no sense here"),
        ([*SMALL, "--buffers", "0"], 2, "--buffers: 0 makes no sense here"),
        (["reproduce", "anrw18", "--replications", "0"], 2, "--replications: 0 makes no sense here"),
        ([*SMALL, "--replications", "3"], 2, "--replications is given twice: it takes one value"),
        ([*SMALL, "--factor", "client=3"], 2, "--factor: unknown factor 'client': did you mean 'clients'?"),
        ([*SMALL, "--factor", "clients"], 2, "--factor: 'clients' is no NAME=VALUE,VALUE"),
        ([*SMALL, "--shard", "3/2"], 2, "--shard: 3/2 makes no sense here: 1/2 to 2/2"),
        ([*SMALL, "--shard", "half"], 2, "'half' is no PART/PARTS"),
        ([*SMALL, "--seed", "-1"], 2, "--seed: -1 is out of range"),
        (
            [*SMALL, "--set", "path.uplink.rat=3 bit/s"],
            2,
            "--set path.uplink.rat: unknown key `rat`: did you mean `rate`",
        ),
        ([*SMALL, "--set", "path.uplink.queue=3 kB"], 2, "the plan varies it by its factor 'buffer_bytes'"),
        (["reproduce", "./anrw18"], 2, "anrw18: no such file"),
        ([*SMALL, "--jobs", "-1"], 2, "--jobs: -1 makes no sense here"),
        ([*SMALL, "--clientz", "1"], 2, "--clientz"),
        ([*SMALL, "--published", "nowhere.csv"], 2, "nowhere.csv: no such file"),
        (["run", "nowhere.toml"], 2, "nowhere.toml: no such file"),
        (["run", "nowhere.toml", "--trace", "queu"], 2, "--trace: unknown trace 'queu': did you mean 'queue'?"),
        (["run", "nowhere.toml", "--replications", "0"], 2, "--replications: 0 makes no sense here"),
        (["run", "nowhere.toml", "--seed", "-1"], 2, "--seed: -1 is out of range"),
        (["run", "."], 2, ".: a folder, not a file"),
        (["report", "nowhere"], 2, "nowhere: no results here (there is no manifest.json)"),
    ],
)
def test_a_request_that_makes_no_sense(program: Millpond, arguments: list[str], code: int, told: str) -> None:
    said = program(*arguments)
    assert said.code == code
    assert len(said.lines) == 1
    assert told in said.err
    assert said.out == ""
    assert not Path("results").exists()


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ('queue = "8 packets"', 'quue = "8 packets"', "did you mean `queue`"),
        ('rate = "30 kbit/s"', 'rate = "30 kbits"', "rate"),
        ('rate = "30 kbit/s"', 'rate = "0 kbit/s"', "rate"),
        ('delay = "415 ms"', 'delay = "415"', "no unit in `415`"),
        ("count = 2", "count = 0", "0 clients send nothing: write at least 1"),
        ('"cocoa-03"', '"cocoa-30"', "cocoa-03"),
        ("[path.uplink]", "[path.uplink", "two.toml"),
    ],
)
def test_a_scenario_with_a_slip(program: Millpond, before: str, after: str, told: str) -> None:
    assert before in SCENARIO
    Path("two.toml").write_text(SCENARIO.replace(before, after))
    said = program("run", "two.toml")
    assert said.code == 2
    assert len(said.lines) == 1
    assert "two.toml" in said.err
    assert told in said.err
    assert not Path("results").exists()


def test_a_file_of_figures_with_a_column_missing(program: Millpond) -> None:
    Path("p.csv").write_text("id,value\nx,1\n")
    said = program(*SMALL, "--published", "p.csv")
    assert (said.code, len(said.lines)) == (2, 1)
    assert "p.csv: not a file of published figures: missing columns source, locator" in said.err
    assert not Path("results").exists()


def test_results_are_never_overwritten(program: Millpond) -> None:
    program(*SMALL, "--out", "out", "--no-report")
    before = {file.name: file.stat().st_mtime_ns for file in Path("out").iterdir()}
    said = program(*SMALL, "--out", "out")
    assert (said.code, len(said.lines)) == (1, 1)
    assert "out: already holds results: choose another --out, or go on with them by --resume" in said.err
    said = program("reproduce", "anrw18", "--quick", "--out", "out", "--resume")
    assert (said.code, len(said.lines)) == (1, 1)
    assert "holds results of another plan" in said.err
    assert {file.name: file.stat().st_mtime_ns for file in Path("out").iterdir()} == before


def test_a_directory_that_cannot_be_written(program: Millpond) -> None:
    Path("file").write_text("")
    said = program(*SMALL, "--out", "file/out")
    assert (said.code, len(said.lines)) == (1, 1)
    assert "file/out: cannot write results here" in said.err


@pytest.mark.parametrize("name", ["flows.parquet", "runs.parquet", "manifest.json"])
def test_a_results_file_cut_short(program: Millpond, name: str) -> None:
    program(*SMALL, "--out", "out", "--no-report")
    file = Path("out") / name
    file.write_bytes(file.read_bytes()[:-30])
    for arguments in (["report", "out"], [*SMALL, "--out", "out", "--resume"]):
        said = program(*arguments)
        assert (said.code, len(said.lines)) == (1, 1)
        assert f"out/{name}: cut short" in said.err


def test_a_scenario_larger_than_the_machine(program: Millpond) -> None:
    Path("big.toml").write_text(SCENARIO.replace("count = 2", "count = 500000000"))
    said = program("run", "big.toml", "--out", "out")
    assert (said.code, len(said.lines)) == (1, 1)
    assert "500000001 clients need about" in said.err
    assert not Path("out").exists()


def test_whoever_reads_the_tables_may_go_away(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "millpond", *SMALL, "--out", str(tmp_path / "out"), "--no-report"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        _, err = process.communicate()
    assert b"Traceback" not in err


# ----------------------------------------------------------------------------------------------- Ctrl-C


def test_ctrl_c_stops_and_resume_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "-m", "millpond", "reproduce", "anrw18", "--controllers", "default", "--no-report"]
    command += ["--clients", "10", "--buffers", "2500,14100", "--replications", "1000", "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        child = psutil.Process(process.pid)
        # the manifest stands when the runs begin; then wait until some work has been done
        while not (out / "manifest.json").exists():
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        begun = child.cpu_times().user
        while child.cpu_times().user < begun + 0.3:
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGINT)
        printed, err = process.communicate()
    assert process.returncode == 130
    assert printed == ""
    assert "runs are kept" in err.splitlines()[-1]
    assert "Traceback" not in err
    assert not (out / "flows.parquet").exists()
    kept = json.loads((out / "manifest.json").read_text())["runs_done"]
    assert 0 < kept < 4000
    done = subprocess.run([*command, "--resume"], capture_output=True, text=True, check=True)
    assert f"{kept} runs are there already, {4000 - kept} to go" in done.stderr
    assert json.loads((out / "manifest.json").read_text())["runs_done"] == 4000
