"""The rows of one table of results by their runs: from memory, or where there are too many from its files by DuckDB.

Rows are in the order of runs, so a run, or a cell, is one stretch of them. A large table is never held: columns are
read when they are asked for, with those of the runs around, from the files of all shards, and forgotten when others
have taken their place.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from millpond.errors import MillpondError
from millpond.results.directory import Results

Column = NDArray[np.generic]

#: A table of more rows is read from its files, if DuckDB is there.
LARGE_ROWS = 5_000_000
#: So many values that were read are kept for those who ask again.
KEPT_VALUES = 8_000_000
#: A query costs 13 ms however little it reads, and who asks for a cell asks for others: some so many rows are read.
ROWS_AT_ONCE = 250_000
#: What DuckDB may take for itself.
DUCKDB_MEMORY = "400MB"


class RowsByRun:
    """A table's columns as arrays, cut by runs. A table that the results do not hold has no rows."""

    def __init__(self, results: Results, name: str) -> None:
        files = _files(results, name) if results.has(name) else None
        self._source: _Whole | _Files = _Whole(results, name) if files is None else files

    @property
    def names(self) -> frozenset[str]:
        """The columns that are kept."""
        return self._source.names

    def column(self, first: int, last: int, name: str) -> Column:
        """A column of the runs from `first` to before `last`; NaN where it is null or not kept, None of texts."""
        return self._source.column(first, last, name)


def of(results: Results, name: str) -> RowsByRun:
    """The rows of a table, by one reader for all who ask: what one has read the next does not read again."""
    if name not in results.readers:
        results.readers[name] = RowsByRun(results, name)
    found: RowsByRun = results.readers[name]
    return found


# ----------------------------------------------------------------------------------------------- helpers


class _Whole:
    """All rows of the columns that were asked for, in memory: a table of clients has four times as many columns."""

    def __init__(self, results: Results, name: str) -> None:
        self._results, self._name = results, name
        self._columns: dict[str, Column] = {}
        self.names = frozenset(results.columns(name) if results.has(name) else ())

    def column(self, first: int, last: int, name: str) -> Column:
        runs = self._column("run")
        # of the column's own type: else the whole column is converted each time
        start, stop = np.searchsorted(runs, np.array((first, last), runs.dtype))
        return self._column(name)[start:stop]

    def _column(self, name: str) -> Column:
        if name not in self._columns:
            if not self.names:
                self._columns[name] = np.empty(0)
            elif name == "run" and "run" not in self.names:
                raise MillpondError(
                    f"{self._results.files(self._name)[0]}: damaged (no column run): run the study again"
                )
            elif name not in self.names:
                self._columns[name] = np.full(len(self._column("run")), np.nan)
            else:
                self._columns[name] = _array(self._results.column(self._name, name))
        return self._columns[name]


@dataclass(eq=False)
class _Block:
    """What was read of the runs from `first` to before `last`."""

    first: int
    last: int
    columns: dict[str, Column] = field(default_factory=dict)

    @property
    def values(self) -> int:
        return sum(map(len, self.columns.values()))


class _Files:
    """Rows that stay in their files."""

    def __init__(self, duckdb: Any, files: list[Path], names: frozenset[str], runs_at_once: int) -> None:
        self.names = names
        self._files = [str(file) for file in files]
        self._runs_at_once = runs_at_once
        #: The one that was asked for last at the end.
        self._kept: list[_Block] = []
        #: Columns that were asked for of any stretch, in the order of the first time.
        self._asked: dict[str, None] = {"run": None}
        self._duckdb = duckdb
        self._connection = duckdb.connect(config={"memory_limit": DUCKDB_MEMORY, "threads": 1})

    def column(self, first: int, last: int, name: str) -> Column:
        block = self._block(first, last)
        if name not in block.columns:
            self._read(block, name)
        runs = block.columns["run"]
        start, stop = np.searchsorted(runs, np.array((first, last), runs.dtype))
        return block.columns[name][start:stop]

    def _block(self, first: int, last: int) -> _Block:
        """The block that holds these runs."""
        held = next((block for block in self._kept if block.first <= first and last <= block.last), None)
        if held is None:
            begin = first - first % self._runs_at_once
            held = _Block(begin, max(last, begin + self._runs_at_once))
        else:
            self._kept.remove(held)
        self._kept.append(held)
        return held

    def _read(self, block: _Block, name: str) -> None:
        # who goes through cells asks for the same of each
        self._asked[name] = None
        wanted = [each for each in self._asked if each not in block.columns]
        quoted = ", ".join('"' + (each if each in self.names else "run").replace('"', '""') + '"' for each in wanted)
        # several shards are put in the order of runs; within a run rows stay as they are
        order = "ORDER BY run, file_row_number" if len(self._files) > 1 else ""
        query = f"SELECT {quoted} FROM read_parquet(?, file_row_number = true) WHERE run >= ? AND run < ? {order}"
        try:
            found = self._connection.sql(query, params=[self._files, block.first, block.last]).to_arrow_table()
        except self._duckdb.Error as error:
            told = str(error).splitlines()[0]
            raise MillpondError(f"{self._files[0]}: cannot be read: {told}: run the study again") from None
        for number, each in enumerate(wanted):
            block.columns[each] = (
                _array(found.column(number)) if each in self.names else np.full(found.num_rows, np.nan)
            )
        while len(self._kept) > 1 and sum(kept.values for kept in self._kept) > KEPT_VALUES:
            self._kept.pop(0)


def _files(results: Results, name: str) -> _Files | None:
    """The table as files, if it is large and DuckDB is there."""
    named = f"{name}.parquet"
    kept = (manifest["files"].get(named, {}) for _, manifest in results.folders)
    rows = sum(int(file.get("rows", 0)) for file in kept)
    if rows <= LARGE_ROWS:
        return None
    files = results.files(name)
    if not all(file.is_file() for file in files):
        return None
    try:
        duckdb = importlib.import_module("duckdb")
    except ImportError:
        return None
    names = pq.read_schema(files[0]).names
    return _Files(duckdb, files, frozenset(names), max(1, results.runs * ROWS_AT_ONCE // rows))


def _array(column: pa.ChunkedArray) -> Column:
    if pa.types.is_string(column.type):
        column = column.dictionary_encode()
    if not pa.types.is_dictionary(column.type):
        return np.asarray(column.to_numpy())
    # a word is kept once, however many rows have it
    coded = column.unify_dictionaries().combine_chunks()
    coded = coded.chunk(0) if isinstance(coded, pa.ChunkedArray) else coded
    words = np.array([*coded.dictionary.to_pylist(), None], dtype=object)
    chosen: Column = words[coded.indices.fill_null(len(words) - 1).to_numpy(zero_copy_only=False)]
    return chosen
