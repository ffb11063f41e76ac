"""Shards of a plan: run as a batch scheduler runs them, told together, and read as one."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import slurm
import small_sweep

import millpond
from millpond import UsageError
from millpond.results import shards


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan, its whole, and its three shards as the array of jobs makes them."""
    home = tmp_path_factory.mktemp("shards")
    plan = small_sweep.write(home)
    millpond.sweep(plan, out=home / "whole", report=False)
    for number in (1, 2, 3):
        array_job(home, number, 3)
    return home


def array_job(home: Path, number: int, of: int) -> None:
    """One job of the array, as SLURM begins it: by its environment."""
    told = {"SLURM_ARRAY_TASK_ID": str(number), "SLURM_ARRAY_TASK_COUNT": str(of), "SLURM_CPUS_PER_TASK": "1"}
    slurm.job(home, "sweep.sbatch", told, "queues.toml", "shards").check_returncode()


def results(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "millpond", "results", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_an_array_of_jobs_gives_shards_that_fit_together(home: Path) -> None:
    done = results(home / "shards")
    assert (done.returncode, done.stderr) == (0, "")
    assert "16 of 16 runs" in done.stdout
    assert "they fit together" in done.stdout
    told = json.loads(results(home / "shards", "--json").stdout)
    whole = json.loads((home / "whole" / "manifest.json").read_text())
    assert told["rows"] == {name.removesuffix(".parquet"): file["rows"] for name, file in whole["files"].items()}
    assert [folder["shard"] for folder in told["folders"]] == [[1, 3], [2, 3], [3, 3]]


def test_results_of_nothing_ask_for_a_folder() -> None:
    done = results()
    told = "millpond: DIR is missing: name a folder, as in `millpond results results/anrw18`\n"
    assert (done.returncode, done.stderr) == (2, told)


def test_a_job_that_is_sent_again_runs_nothing_twice(home: Path) -> None:
    before = (home / "shards" / "shard-2-of-3" / "manifest.json").read_text()
    array_job(home, 2, 3)
    assert (home / "shards" / "shard-2-of-3" / "manifest.json").read_text() == before


def test_what_does_not_fit_is_named_all_of_it(home: Path, tmp_path: Path) -> None:
    for number in (1, 2):
        shutil.copytree(home / "shards" / f"shard-{number}-of-3", tmp_path / f"shard-{number}")
    shutil.copytree(tmp_path / "shard-1", tmp_path / "shard-1-copied")
    millpond.sweep(home / "queues.toml", out=tmp_path / "other", seed=5, shard=(3, 3), report=False)
    cut = tmp_path / "shard-2" / "flows.parquet"
    cut.write_bytes(cut.read_bytes()[:-1])
    done = results(tmp_path)
    assert done.returncode == 1
    faults = "\n".join(done.stderr.splitlines())
    assert "shard-1-copied: the same shard as" in faults
    assert "other: of another plan than" in faults
    assert "of 3 shards 3 is missing: run --shard 3/3" in faults
    assert "flows.parquet: cut short" in faults
    assert len(done.stderr.splitlines()) == 4
    assert "they are no whole yet" in done.stdout


def test_an_unfinished_shard_is_told_with_what_it_holds(home: Path, tmp_path: Path) -> None:
    whole = tmp_path / "shards"
    shutil.copytree(home / "shards", whole)
    file = whole / "shard-3-of-3" / "manifest.json"
    manifest = json.loads(file.read_text())
    file.write_text(json.dumps({**manifest, "state": "running", "runs_done": 2}))
    found = shards.overview([whole])
    assert found.runs_done == 13
    assert found.faults == (
        f"{whole / 'shard-3-of-3'}: these results are unfinished (2 of 5 runs were kept): run the same command with "
        "--resume first",
    )


def test_cuts_of_a_plan_in_two_ways_do_not_fit(home: Path, tmp_path: Path) -> None:
    millpond.sweep(home / "queues.toml", out=tmp_path / "half", shard=(2, 2), report=False)
    found = shards.overview([home / "shards" / "shard-1-of-3", tmp_path / "half"])
    assert any("cut a plan in one way" in fault for fault in found.faults)


def test_a_whole_is_told_as_well_and_nothing_is_no_place(home: Path, tmp_path: Path) -> None:
    assert "whole" in results(home / "whole").stdout
    with pytest.raises(UsageError, match="no results here"):
        shards.overview([tmp_path])
    done = results("verfy", home / "whole")
    assert (done.returncode, "did you mean 'verify'" in done.stderr) == (2, True)
    assert results(tmp_path / "nowhere").returncode == 2


def test_the_examples_name_flags_that_there_are() -> None:
    told = subprocess.run(
        [sys.executable, "-m", "millpond", "sweep", "--help"], capture_output=True, text=True, check=True
    )
    for example in sorted(slurm.EXAMPLES.iterdir()):
        text = example.read_text()
        assert "millpond sweep" in text
        for word in text.split("millpond sweep", 2)[-1].split():
            if word.startswith("--") and word.strip('-"\\').isalpha():
                assert word.rstrip('"') in told.stdout, f"{example.name}: {word}"
