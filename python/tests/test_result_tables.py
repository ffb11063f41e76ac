"""Results that answer questions without this program: the tables of cells and groups, the documented query, checks."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import small_sweep

import millpond
from millpond import MillpondError, Results, _engine, cli
from millpond.controllers import own
from millpond.results import provenance, shards
from millpond.results.directory import EARLIER, Cell, Group
from millpond.run import verify
from millpond.run.campaign import cells_table, groups_table

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("swept")
    return millpond.sweep(small_sweep.write(folder), out=folder / "out", report=False).directory


@pytest.fixture
def copied(swept: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(swept, tmp_path / "copy"))


def answered(query: str) -> list[Any]:
    found = duckdb.sql(query)
    assert found is not None
    return found.fetchall()


def test_factors_are_columns_of_their_own_kinds() -> None:
    def cell(number: int, **columns: str | int | float) -> Cell:
        return Cell(number, f"c{number}", columns, (Group(0, 3, "a", "meters", "a"),), 2 * number, 2)

    cells = [cell(0, clients=1, loss=0.5, name="x"), cell(1, clients=2, loss=1), cell(2, clients=4, loss=2, name=7)]
    table = cells_table(cells)
    kinds = {"clients": pa.int64(), "loss": pa.float64(), "name": pa.string()}
    assert {name: table.schema.field(name).type for name in kinds} == kinds
    assert table.column("name").to_pylist() == ["x", None, "7"]
    assert table.column("first_run").to_pylist() == [0, 2, 4]
    assert groups_table(cells, {"a": "Algorithm A"}).to_pylist()[2] == {
        "cell": 2, "group": 0, "name": "meters", "label": "Algorithm A", "algorithm": "a", "clients": 3,
        "transport": "udp", "traffic": "requests",
    }  # fmt: skip


def test_the_query_of_the_manual_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = ROOT / "python" / "millpond" / "scenarios" / "sweeps" / "queues.toml"
    out = tmp_path / "out"
    millpond.sweep(plan, factors={"devices": [20], "queue": ["2 kB", "8 kB"]}, replications=1, out=out, report=False)
    queries = re.findall(r"```sql\n(.*?)```", (ROOT / "docs" / "results.md").read_text(), re.DOTALL)
    assert len(queries) == 1
    monkeypatch.chdir(out)
    found = answered(queries[0])
    assert [row[:3] for row in found] == [
        (algorithm, queue, 20) for algorithm in ("cocoa-03", "fasor", "rfc7252") for queue in ("2 kB", "8 kB")
    ]
    assert all(row[3] > 0 and row[4] == 0 for row in found)


def test_every_run_finds_its_cell(swept: Path) -> None:
    runs = answered(
        f"SELECT run, cell, replication, run - first_run FROM '{swept}/runs.parquet' JOIN '{swept}/cells.parquet' "
        "USING (cell) ORDER BY run"
    )
    assert [row[0] for row in runs] == list(range(16))
    assert all(replication == of_cell for _, _, replication, of_cell in runs)


def test_the_manifest_tells_what_made_the_results(swept: Path) -> None:
    manifest = json.loads((swept / "manifest.json").read_text())
    for name, file in manifest["files"].items():
        assert provenance.digest(swept / name) == file["sha256"]
        assert pq.read_metadata(swept / name).num_rows == file["rows"]
    tree = provenance.tree_state()
    assert tree is None or re.fullmatch("[0-9a-f]{40}", tree["commit"])
    assert manifest["tree"] is None or set(manifest["tree"]) == {"commit", "clean"}
    assert manifest["factors"]["queue"] == {"label": "buffer", "unit": "", "scale": "linear", "words": {}}


@pytest.mark.parametrize(("built", "told"), [(None, None), (("a" * 40, False), {"commit": "a" * 40, "clean": False})])
def test_the_commit_is_that_of_the_engine_where_there_is_no_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, built: tuple[str, bool] | None, told: dict[str, object] | None
) -> None:
    monkeypatch.setattr(_engine, "commit", lambda: built)
    assert provenance.tree_state(tmp_path) == told
    (tmp_path / ".git").mkdir()
    assert provenance.tree_state(tmp_path) == told


def test_results_are_verified_and_stated(swept: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["results", "verify", str(swept), "--runs", "4"])
    out, _ = capfd.readouterr()
    assert ended.value.code == 0
    first, _, statement = out.strip().split("\n")
    assert re.search(r"\d+ tables are as they were written; 4 of 16 runs gave the same rows again", first)
    manifest = json.loads((swept / "manifest.json").read_text())
    for part in (manifest["version"], "8 cells, 16 runs", manifest["plan_hash"][:23], "How long a queue may be"):
        assert part in statement
    assert statement == millpond.Run(Results.open(swept)).statement


def test_a_table_that_was_changed_is_named(copied: Path) -> None:
    file = copied / "flows.parquet"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    ((folder, manifest),) = shards.folders_of(copied)
    with pytest.raises(MillpondError, match=r"flows.parquet: changed since it was written"):
        verify.tables_unchanged(folder, manifest)


def test_rows_that_another_scenario_would_give_are_found(copied: Path) -> None:
    ((folder, manifest),) = shards.folders_of(copied)
    manifest["seeds"] = [seed + 1 for seed in manifest["seeds"]]
    with pytest.raises(MillpondError, match=r"run \d+ \(.*\) gave other rows of \w+ than were kept"):
        verify.runs_again(folder, manifest)
    manifest["version"] = "0.0.1"
    with pytest.raises(MillpondError, match=r"results of version 0.0.1, this is .*: verify with that version"):
        verify.runs_again(folder, manifest)


def test_tables_of_another_build_are_refused_in_one_line(copied: Path) -> None:
    ((folder, manifest),) = shards.folders_of(copied)
    runs = pq.read_table(folder / "runs.parquet")
    pq.write_table(runs.drop_columns(["arrivals"]), folder / "runs.parquet")
    manifest["files"]["runs.parquet"]["bytes"] = (folder / "runs.parquet").stat().st_size
    with pytest.raises(MillpondError, match=r"runs has no column 'arrivals', another build of this version made it"):
        verify.runs_again(folder, manifest)


def test_results_with_the_names_of_an_earlier_version_open_and_run_again(tmp_path: Path) -> None:
    scenario = small_sweep.tree()["scenario"] | {
        "clients": [{"count": 2, "controller": "rfc7252", "exchanges": 3}],
        "timeline": [{"at": "1 s", "kind": "outage", "for": "1 s"}],
    }
    folder = millpond.run(scenario, out=tmp_path / "out", report=False).directory
    metrics = ["delivery_ratio", "event_delay", "requests_answered"]
    expected = millpond.open_results(folder).frame(metrics).table
    earlier = {now: name for name, now in EARLIER.items() if name != "births"}
    manifest = json.loads((folder / "manifest.json").read_text())
    for name in ("runs", "flows", "arrivals"):
        table = pq.read_table(folder / f"{name}.parquet")
        assert "arrivals" in table.column_names
        (folder / f"{name}.parquet").unlink()
        file = folder / ("births.parquet" if name == "arrivals" else f"{name}.parquet")
        pq.write_table(table.rename_columns([earlier.get(column, column) for column in table.column_names]), file)
        told = manifest["files"].pop(f"{name}.parquet")
        manifest["files"][file.name] = told | {"bytes": file.stat().st_size}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    results = millpond.open_results(folder)
    assert results.results.has("arrivals")
    assert results.frame(metrics).table.equals(expected)
    assert verify.runs_again(folder, manifest) == [0]


def test_the_kept_source_of_a_controller_is_what_is_verified(tmp_path: Path, patient: Path) -> None:
    scenario = small_sweep.tree()["scenario"] | {
        "clients": [{"count": 2, "controller": {"own": f"{patient}:Patient", "first_s": 4.0}, "exchanges": 3}]
    }
    millpond.run(scenario, out=tmp_path / "out", report=False)
    patient.unlink()
    ((folder, manifest),) = shards.folders_of(tmp_path / "out")
    assert verify.runs_again(folder, manifest, run_code=True) == [0]


@pytest.fixture
def with_code(tmp_path: Path) -> tuple[Path, Path]:
    """Results with a controller that leaves a mark wherever it is executed, and the mark."""
    mark = tmp_path / "executed"
    source = "import millpond\nfrom pathlib import Path\n" + f"Path({str(mark)!r}).touch()\n" + MARKING
    (tmp_path / "marking.py").write_text(source, encoding="utf-8")
    scenario = small_sweep.tree()["scenario"] | {
        "clients": [{"count": 1, "controller": {"own": f"{tmp_path / 'marking.py'}:Marking"}, "exchanges": 2}]
    }
    millpond.run(scenario, out=tmp_path / "out", report=False)
    mark.unlink()
    return tmp_path / "out", mark


MARKING = """
class Marking(millpond.Controller):
    def on_start(self, exchange, length, cx):
        return 2e6

    def on_timeout(self, exchange, cx):
        return 4e6

    def on_reply(self, exchange, sample, cx):
        pass
"""
COMMANDS = {
    "verify": lambda out: ["results", "verify", str(out)],
    "capture": lambda out: ["capture", str(out), str(out.parent / "again.pcapng")],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_code_that_came_with_results_runs_only_when_told_to(
    with_code: tuple[Path, Path], command: str, capfd: pytest.CaptureFixture[str]
) -> None:
    out, mark = with_code
    # the file that the manifest names is still where it was, and is not what is asked for
    (out.parent / "marking.py").write_text(f"open({str(mark)!r}, 'w')\n", encoding="utf-8")
    _forget()

    def call(*further: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as ended:
            cli.main([*COMMANDS[command](out), *further])
        return int(ended.value.code or 0), capfd.readouterr().err

    code, told = call()
    assert (code, mark.exists()) == (2, False)
    assert "code that came with these results: read" in told
    assert "add --run-code" in told
    assert len(told.strip().splitlines()) == 1
    assert call("--run-code")[0] == 0
    assert mark.exists()
    mark.unlink()
    _forget()
    (kept,) = out.glob("controllers/*/marking.py")
    kept.write_text(kept.read_text(encoding="utf-8") + "\n# another\n", encoding="utf-8")
    code, told = call("--run-code")
    assert (code, mark.exists()) == (2, False)
    assert "not the code that these results were made with" in told
    (kept.parent / "random.py").write_text(f"open({str(mark)!r}, 'w')\n", encoding="utf-8")
    code, told = call("--run-code")
    assert (code, mark.exists()) == (2, False)


def _forget() -> None:
    """As a fresh process: nothing of these files was loaded before."""
    own._files.clear()
