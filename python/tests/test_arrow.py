"""Other libraries read the engine's tables in place, through the Arrow PyCapsule interface alone."""

from __future__ import annotations

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from millpond import _engine
from millpond.results.store import plain

SCENARIO = """
[path.uplink]
rate = "60 kbit/s"
delay = "215 ms"
queue = "14100 B"
[path.downlink]
rate = "30 kbit/s"
delay = "415 ms"
queue = "14100 B"
[[clients]]
count = 100
controller = "rfc7252"
exchanges = 2
"""


@pytest.fixture(scope="module")
def flows() -> _engine.Table:
    batch = _engine.Batch([(_engine.Scenario.from_toml(SCENARIO, "test.toml"), 1, 3)])
    outcome = batch.next()
    assert outcome is not None
    return outcome.tables()["flows"]


def addresses(table: object, names: list[str]) -> list[int]:
    """Where the values of these columns lie in memory."""
    read = pa.table(table)
    return [read[name].chunk(0).buffers()[1].address for name in names]


NUMBERS = ["run", "flow", "fct_us", "first_send_us", "rtt_first_mean_us"]


def test_pyarrow_shares_the_columns(flows: _engine.Table) -> None:
    first, second = pa.table(flows), pa.table(flows)
    assert first.num_rows == flows.num_rows == len(flows) == 100
    assert first.column_names == flows.column_names
    assert addresses(first, NUMBERS) == addresses(second, NUMBERS)


def test_pyarrow_reads_the_schema_alone(flows: _engine.Table) -> None:
    schema = pa.schema(flows)
    assert schema.field("fct_us").type == pa.int64()
    assert schema.field("fct_us").nullable
    assert not schema.field("flow").nullable
    assert schema.field("controller").type == pa.dictionary(pa.int32(), pa.string())
    assert schema == pa.table(flows).schema


def test_polars_shares_the_columns(flows: _engine.Table) -> None:
    frame = pl.DataFrame(flows)
    assert frame.shape == (100, len(flows.column_names))
    assert addresses(frame, NUMBERS) == addresses(flows, NUMBERS)


def test_pandas_shares_the_columns(flows: _engine.Table) -> None:
    frame = pa.table(flows).to_pandas(types_mapper=pd.ArrowDtype)
    shared = [pa.array(frame[name].array).buffers()[1].address for name in NUMBERS]
    assert shared == addresses(flows, NUMBERS)
    assert list(frame["flow"]) == list(range(100))


def test_duckdb_scans_in_place(flows: _engine.Table) -> None:
    connection = duckdb.connect()
    connection.register("flows", flows)
    plan = connection.sql("explain select sum(completed) from flows").fetchall()[0][1]
    assert "ARROW_SCAN" in plan
    assert connection.sql("select controller, count(*), sum(completed) from flows group by 1").fetchall() == [
        ("rfc7252", 100, 200)
    ]


def test_tables_of_several_runs_are_read_at_once(flows: _engine.Table) -> None:
    batch = _engine.Batch([(_engine.Scenario.from_toml(SCENARIO, "test.toml"), 2, 4)])
    outcome = batch.next()
    assert outcome is not None
    tables = outcome.tables()
    both = flows.followed_by([tables["flows"], flows])
    assert both.num_rows == len(both) == 300
    read = pa.table(both)
    assert {column.num_chunks for column in read.columns} == {1}, "every piece of a column costs its reader"
    each = pa.concat_tables([pa.table(flows), pa.table(tables["flows"]), pa.table(flows)])
    assert read.schema == each.schema
    assert plain(read) == plain(each)
    assert flows.num_rows == 100
    with pytest.raises(ValueError, match="tables of different columns: join those of one name"):
        flows.followed_by([tables["runs"]])


def test_a_table_outlives_its_run() -> None:
    batch = _engine.Batch([(_engine.Scenario.from_toml(SCENARIO, "test.toml"), 1, 3)])
    outcome = batch.next()
    assert outcome is not None
    read = pa.table(outcome.tables()["flows"])
    del batch, outcome
    assert read["flow"].to_pylist() == list(range(100))
