"""Results larger than memory: read from their files a cell at a time, they tell the same as from memory."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import small_sweep

import millpond
from millpond import MillpondError, Results
from millpond.measure import measures as measuring
from millpond.measure.measures import Measures
from millpond.measure.metrics import METRICS
from millpond.results import directory, rows
from millpond.results.rows import TableRows
from millpond.studies import pages as page


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep with traces, whole and in three shards."""
    place = tmp_path_factory.mktemp("large")
    tree = small_sweep.tree(trace={"tables": ["queue", "share", "rto"]}, replications=3)
    millpond.sweep(tree, out=place / "whole", report=False)
    for number in (1, 2, 3):
        millpond.sweep(tree, out=place / "shards" / str(number), shard=(number, 3), report=False)
    return place


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every table is large, and nothing that was read is kept for long."""
    monkeypatch.setattr(rows, "LARGE_ROWS", 0)
    monkeypatch.setattr(rows, "KEPT_VALUES", 1000)
    monkeypatch.setattr(rows, "ROWS_AT_ONCE", 10)
    monkeypatch.setattr(measuring, "KEPT_VALUES", 10)

    def never(_: Results, name: str) -> Any:
        raise AssertionError(f"{name} was read whole")

    monkeypatch.setattr(Results, "table", never)


def told(place: Path) -> dict[tuple[str, str], tuple[float, ...]]:
    measures = Measures(Results.open(place))
    found = {}
    for population in measures.populations():
        for name, metric in METRICS.items():
            if name == "fct_increase_vs_1_client":
                continue  # nothing here has a single client
            sample = measures.sample(name, population)
            found[name, measures.place(population) + population.algorithm] = (
                sample.take(metric.usual), float(sample.n), *sample.by_run(metric.usual).values()
            )  # fmt: skip
    return found


@pytest.mark.parametrize("folder", ["whole", "shards"])
def test_every_metric_is_the_same_from_files(place: Path, folder: str, request: pytest.FixtureRequest) -> None:
    from_memory = told(place / "whole")
    request.getfixturevalue("large")
    from_files = told(place / folder)
    assert from_files.keys() == from_memory.keys()
    for key, values in from_memory.items():
        assert np.array_equal(from_files[key], values, equal_nan=True), key
    assert any(not math.isnan(values[0]) for values in from_memory.values())


def test_the_report_is_the_same_from_files(place: Path, request: pytest.FixtureRequest) -> None:
    from_memory = page.render(Results.open(place / "whole"))
    request.getfixturevalue("large")
    assert page.render(Results.open(place / "whole")) == from_memory


def test_rows_of_a_run_keep_their_order_over_shards(place: Path, large: None) -> None:
    assert large is None
    results = Results.open(place / "shards")
    flows = TableRows(results, "flows")
    runs = flows.column(0, 24, "run")
    assert runs.tolist() == sorted(runs.tolist())
    for run in range(24):
        flow = flows.column(run, run + 1, "flow").tolist()
        assert flow == list(range(len(flow)))


def test_cells_are_read_many_at_once(place: Path, large: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert large is None
    results = Results.open(place / "whole")
    asked: list[str] = []
    read = TableRows._stretch

    def counted(table: TableRows, block: Any, columns: Any) -> pa.Table:
        asked.append(str(block.first))
        return read(table, block, columns)

    monkeypatch.setattr(TableRows, "_stretch", counted)
    for at_once, most in ((1, len(results.cells)), (250_000, 1)):
        monkeypatch.setattr(rows, "ROWS_AT_ONCE", at_once)
        asked.clear()
        flows = TableRows(results, "flows")
        for cell in results.cells:
            assert len(flows.column(cell.first_run, cell.first_run + cell.replications, "fct_us"))
        assert len(asked) == most


def test_a_large_table_that_cannot_be_read_is_one_line(place: Path, large: None) -> None:
    assert large is None
    results = Results.open(place / "whole")
    flows = TableRows(results, "flows")
    file = place / "whole" / "flows.parquet"
    content = file.read_bytes()
    try:
        file.write_bytes(content[: len(content) // 2])
        with pytest.raises(MillpondError, match=r"flows\.parquet: cannot be read: .*: run the study again"):
            flows.column(0, 4, "fct_us")
    finally:
        file.write_bytes(content)


def test_of_a_table_in_one_file_no_column_is_read_that_nobody_asks_for_and_none_twice(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[tuple[str, ...]] = []
    table = directory.read_table

    def noted(file: Path, **told: Any) -> pa.Table:
        read.append((file.stem, *told["columns"]))
        return table(file, **told)

    monkeypatch.setattr(directory, "read_table", noted)
    results = Results.open(place / "whole")
    for _ in range(2):
        flows = rows.of(results, "flows")
        for cell in results.cells:
            assert len(flows.of(cell, "fct_us"))
            assert np.isnan(flows.of(cell, "no such column")).all()
    assert sorted(read) == [("flows", "fct_us"), ("flows", "run")]


def test_a_table_without_runs_is_one_line(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "whole", tmp_path / "whole")
    file = tmp_path / "whole" / "flows.parquet"
    pq.write_table(pq.read_table(file).drop_columns(["run"]), file)
    manifest = tmp_path / "whole" / "manifest.json"
    told = json.loads(manifest.read_text())
    told["files"]["flows.parquet"]["bytes"] = file.stat().st_size
    manifest.write_text(json.dumps(told))
    results = Results.open(tmp_path / "whole")
    with pytest.raises(MillpondError, match=r"flows\.parquet: damaged \(no column run\): run the study again"):
        TableRows(results, "flows").of(results.cells[0], "no such column")
