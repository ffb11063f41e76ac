"""A sweep of one's own: in one folder, resumed, in shards, read together; and what two programs may not do at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
import small_sweep
from invented import Invented

import millpond
from millpond import MillpondError, Results, UsageError
from millpond.plan import study
from millpond.results.store import alone_in
from millpond.run import campaign
from millpond.run.campaign import Interrupted, Watcher
from millpond.run.jobs import Job

TABLES = ("cells", "groups", "runs", "flows", "histogram", "links")


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    return small_sweep.write(tmp_path)


def test_a_plan_of_any_folder_is_swept(plan: Path, tmp_path: Path) -> None:
    done = millpond.sweep(plan, out=tmp_path / "out", report=False)
    assert (done.results.study, done.results.manifest["kind"]) == ("queues", "sweep")
    assert done.table("runs").column_names[:4] == ["queue", "clients[0].count", "algorithm", "path"]
    assert done.table("runs").num_rows == 16
    assert (tmp_path / "out" / "study" / "plan.toml").read_text() == small_sweep.PLAN


def test_a_tree_is_swept_as_well_as_a_file(plan: Path, tmp_path: Path) -> None:
    of_file = millpond.sweep(plan, seed=7, out=tmp_path / "file", report=False)
    of_tree = millpond.sweep(small_sweep.tree(), seed=7, out=tmp_path / "tree", report=False)
    assert of_file.results.manifest["seeds"] == [7, 8]
    assert of_tree.results.table("flows").equals(of_file.results.table("flows"))


def test_shards_are_read_together_as_if_they_were_one(plan: Path, tmp_path: Path) -> None:
    whole = millpond.sweep(plan, out=tmp_path / "whole", report=False).results
    folders = [tmp_path / "parts" / name for name in "abc"]
    for number, folder in enumerate(folders, start=1):
        millpond.sweep(plan, out=folder, shard=(number, 3), report=False)
    for together in (Results.open(folders), Results.open(folders[::-1]), Results.open(tmp_path / "parts")):
        for name in TABLES:
            assert together.table(name).equals(whole.table(name)), name


def test_what_is_no_whole_of_shards_is_refused(plan: Path, tmp_path: Path) -> None:
    one, two, other = (tmp_path / name for name in ("one", "two", "other"))
    millpond.sweep(plan, out=one, shard=(1, 2), report=False)
    with pytest.raises(UsageError, match=r"one: of 2 shards 2 is missing: run --shard 2/2"):
        Results.open(one)
    millpond.sweep(plan, out=two, shard=(2, 2), report=False)
    millpond.sweep(plan, out=other, shard=(2, 2), seed=1, report=False)
    with pytest.raises(UsageError, match="other: of another plan than"):
        Results.open([one, other])
    with pytest.raises(UsageError, match="the same shard as"):
        Results.open([one, one, two])
    with pytest.raises(MillpondError, match="one: holds shard 1 of 2 of this plan: choose another out"):
        millpond.sweep(plan, out=one, shard=(2, 2), resume=True, report=False)
    with pytest.raises(MillpondError, match="one: holds results of another plan"):
        millpond.sweep(plan, out=one, shard=(1, 2), replications=1, resume=True, report=False)


def test_a_sweep_that_was_stopped_goes_on(plan: Path, tmp_path: Path) -> None:
    program = study.unfold(study.load(plan))
    whole = campaign.carry_out(program, tmp_path / "whole", on=Invented())

    class Stop(Watcher):
        is_told = False

        def finished(self, job: Job) -> None:  # noqa: ARG002
            if not self.is_told:
                self.is_told = True
                raise KeyboardInterrupt

    with pytest.raises(Interrupted, match=r"of 16 runs are kept in .*: --resume goes on"):
        campaign.carry_out(program, tmp_path / "out", on=Invented(), watcher=Stop())
    done = campaign.carry_out(program, tmp_path / "out", on=Invented(), resume=True)
    assert done.table("flows").equals(whole.table("flows"))


def test_two_programs_in_one_folder_are_refused(plan: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    hold = (
        f"from pathlib import Path\nfrom millpond.results.store import alone_in\nwith alone_in(Path({str(out)!r})):\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", f"{hold} print('held', flush=True)\n input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(MillpondError, match="out: another program is writing results here"):
            millpond.sweep(plan, out=out, report=False)
        assert [file.name for file in out.iterdir()] == [".lock"]
        other.communicate("go\n")
    assert not out.exists()
    with alone_in(out):
        pass


def test_nothing_is_written_into_a_folder_of_somebody_elses(plan: Path, tmp_path: Path) -> None:
    out = tmp_path / "mine"
    out.mkdir()
    (out / "letter.txt").write_text("dear")
    refused = r"not empty and not results of ours \(it holds letter.txt\)"
    with pytest.raises(MillpondError, match=refused):
        millpond.sweep(plan, out=out)
    with pytest.raises(MillpondError, match=refused):
        millpond.run(small_sweep.tree()["scenario"] | TWO, out=out)
    assert [file.name for file in out.iterdir()] == ["letter.txt"]


TWO = {"clients": [{"count": 2, "controller": "rfc7252", "exchanges": 3}]}


def test_nothing_is_left_of_a_sweep_that_cannot_be(plan: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r'changes\["path.uplink.rat"\]: unknown key `rat`'):
        millpond.sweep(plan, changes={"path.uplink.rat": "1 bit/s"}, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_places_beside_the_factors_can_be_set(plan: Path, tmp_path: Path) -> None:
    done = millpond.sweep(
        plan, changes={"path.downlink.delay": "300 ms"}, factors={"queue": ["3 kB"]}, out=tmp_path / "out", report=False
    )
    for cell in done.results.cells:
        assert (
            cell.scenario["path"]["downlink"] | {"delay": "300 ms", "queue": "3000 B"}
            == cell.scenario["path"]["downlink"]
        )
    with pytest.raises(UsageError, match=r"changes\[.path.uplink.\]: the plan varies it by its factor 'queue'"):
        millpond.sweep(plan, changes={"path.uplink": {}}, out=tmp_path / "other")


def test_a_controller_of_ones_own_with_settings_is_a_guest(plan: Path, tmp_path: Path, patient: Path) -> None:
    own = {"own": str(patient) + ":Patient", "first_s": 4.0}
    done = millpond.sweep(plan, controllers=["cocoa-03", own], out=tmp_path / "out", report=False)
    names = done.results.table("cells").column("algorithm").unique().to_pylist()
    assert names == ["cocoa-03", f"{patient}:Patient?first_s=4.0"]
    (kept,) = (tmp_path / "out" / "controllers").rglob("*.py")
    assert kept.read_text() == patient.read_text()


def test_a_scenario_may_be_a_tree(tmp_path: Path) -> None:
    scenario = small_sweep.tree()["scenario"] | TWO
    done = millpond.run(scenario, clients=5, changes={"path.uplink.queue": "30 kB"}, out=tmp_path / "out", report=False)
    assert isinstance(done.table("flows"), pa.Table)
    assert done.table("flows").num_rows == 5
    assert done.results.cells[0].scenario["path"]["uplink"]["queue"] == "30000 B"
    with pytest.raises(UsageError, match=r"clients: 2 for 1 group\(s\) of clients: give one number"):
        millpond.run(scenario, clients=[1, 2], out=tmp_path / "other")
