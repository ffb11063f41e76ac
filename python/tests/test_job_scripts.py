"""The job scripts of the examples, by what they do: a real scheduler and real workers, begun as SLURM begins them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import psutil
import pytest
import slurm
import small_sweep

import millpond

ALLOCATION = {"SLURM_NTASKS": "2", "SLURM_CPUS_PER_TASK": "1"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    small_sweep.write(tmp_path)
    return tmp_path


def tables(out: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in out.glob("*.parquet")}


def left_over(home: Path) -> list[str]:
    """Programs of a job that are there still."""
    found = (process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"]))
    return [" ".join(words) for words in found if any(str(home) in word for word in words)]


def test_a_cluster_in_an_allocation_gives_the_bytes_of_one_machine(home: Path) -> None:
    millpond.sweep(home / "queues.toml", out=home / "here", report=False)
    done = slurm.job(home, "dask.sbatch", ALLOCATION, "queues.toml", "out")
    assert done.returncode == 0, done.stderr
    assert tables(home / "out") == tables(home / "here")
    assert not list(home.glob("dask-*.json"))
    assert left_over(home) == []


def test_a_job_that_is_sent_again_finds_its_results(home: Path) -> None:
    millpond.sweep(home / "queues.toml", out=home / "out", report=False)
    before = (home / "out" / "manifest.json").read_text()
    done = slurm.job(home, "dask.sbatch", ALLOCATION, "queues.toml", "out")
    assert done.returncode == 0, done.stderr
    assert (home / "out" / "manifest.json").read_text() == before


def test_without_a_scheduler_the_job_ends_and_says_why(home: Path) -> None:
    lacking = {"dask": "echo no room for a scheduler >&2; exit 3"}
    done = slurm.job(home, "dask.sbatch", ALLOCATION, "queues.toml", "out", programs=lacking)
    assert done.returncode != 0
    assert "no room for a scheduler" in done.stderr
    assert not (home / "out").exists()


def test_a_sweep_that_fails_fails_the_job(home: Path) -> None:
    done = slurm.job(home, "dask.sbatch", ALLOCATION, "nowhere.toml", "out")
    assert done.returncode == 2
    assert "nowhere.toml" in done.stderr
    assert left_over(home) == []


@pytest.mark.parametrize("script", sorted(file.name for file in slurm.EXAMPLES.glob("*.sbatch")))
def test_a_script_reads_as_a_shell_reads_it(script: str) -> None:
    subprocess.run(["bash", "-n", str(slurm.EXAMPLES / script)], check=True)
    if (program := shutil.which("shellcheck")) is not None:
        subprocess.run([program, str(slurm.EXAMPLES / script)], check=True)


def test_the_rules_of_snakemake_make_shards_and_their_report(home: Path) -> None:
    program = shutil.which("snakemake")
    if program is None:
        pytest.skip("Snakemake is not installed")
    shutil.copyfile(slurm.EXAMPLES / "Snakefile", home / "Snakefile")
    command = [program, "--cores", "2", "--config", "plan=queues.toml", "shards=2"]
    subprocess.run(command, cwd=home, check=True, capture_output=True)
    assert (home / "shards" / "report.html").is_file()
