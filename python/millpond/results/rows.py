"""The rows of one table of results by their runs: from memory, or where there are too many from its files by DuckDB.

Rows are in the order of runs, so a run, or a cell, is one stretch of them. A large table is never held: each stretch of
a column is read when it is asked for, from the files of all shards, and forgotten when others have taken its place.
"""

from __future__ import annotations

import importlib
from collections import OrderedDict
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
#: What DuckDB may take for itself.
DUCKDB_MEMORY = "400MB"


class RowsByRun:
    """A table's columns as arrays, cut by runs. A table that the results do not hold has no rows."""

    def __init__(self, results: Results, name: str) -> None:
        self._source: _Whole | _Files = _Whole(None)
        if results.has(name):
            files = _files(results, name)
            self._source = _Whole(results.table(name)) if files is None else files

    @property
    def names(self) -> frozenset[str]:
        """The columns that are kept."""
        return self._source.names

    def column(self, first: int, last: int, name: str) -> Column:
        """A column of the runs from `first` to before `last`; NaN where it is null or not kept, None of texts."""
        return self._source.column(first, last, name)


# ----------------------------------------------------------------------------------------------- helpers


class _Whole:
    """All rows in memory. A column is converted when it is first asked for."""

    def __init__(self, table: pa.Table | None) -> None:
        self._table = table
        self._columns: dict[str, Column] = {}
        self.names = frozenset(() if table is None else table.column_names)

    def column(self, first: int, last: int, name: str) -> Column:
        runs = self._column("run")
        # of the column's own type: else the whole column is converted each time
        start, stop = np.searchsorted(runs, np.array((first, last), runs.dtype))
        return self._column(name)[start:stop]

    def _column(self, name: str) -> Column:
        if name not in self._columns:
            if self._table is None:
                self._columns[name] = np.empty(0)
            elif name not in self.names:
                self._columns[name] = np.full(self._table.num_rows, np.nan)
            else:
                self._columns[name] = _array(self._table.column(name))
        return self._columns[name]


class _Files:
    """Rows that stay in their files."""

    def __init__(self, duckdb: Any, files: list[Path], names: frozenset[str]) -> None:
        self.names = names
        self._files = [str(file) for file in files]
        self._kept: OrderedDict[tuple[int, int, str], Column] = OrderedDict()
        self._held = 0
        #: Columns that were asked for of any stretch, in the order of the first time.
        self._asked: dict[str, None] = {}
        self._duckdb = duckdb
        self._connection = duckdb.connect(config={"memory_limit": DUCKDB_MEMORY, "threads": 1})

    def column(self, first: int, last: int, name: str) -> Column:
        key = (first, last, name)
        if key not in self._kept:
            self._read(first, last, name)
        self._kept.move_to_end(key)
        return self._kept[key]

    def _read(self, first: int, last: int, name: str) -> None:
        # A query costs some 30 ms however little it reads, and who goes through cells asks for the same of each.
        self._asked[name] = None
        wanted = [each for each in self._asked if (first, last, each) not in self._kept]
        quoted = ", ".join('"' + (each if each in self.names else "run").replace('"', '""') + '"' for each in wanted)
        # several shards are put in the order of runs; within a run rows stay as they are
        order = "ORDER BY run, file_row_number" if len(self._files) > 1 else ""
        query = f"SELECT {quoted} FROM read_parquet(?, file_row_number = true) WHERE run >= ? AND run < ? {order}"
        try:
            found = self._connection.sql(query, params=[self._files, first, last]).to_arrow_table()
        except self._duckdb.Error as error:
            told = str(error).splitlines()[0]
            raise MillpondError(f"{self._files[0]}: cannot be read: {told}: run the study again") from None
        for number, each in enumerate(wanted):
            column = _array(found.column(number)) if each in self.names else np.full(found.num_rows, np.nan)
            self._kept[(first, last, each)] = column
            self._held += len(column)
        while self._held > KEPT_VALUES and len(self._kept) > len(wanted):
            self._held -= len(self._kept.popitem(last=False)[1])


def _files(results: Results, name: str) -> _Files | None:
    """The table as files, if it is large and DuckDB is there."""
    named = f"{name}.parquet"
    having = [(folder, manifest) for folder, manifest in results.folders if named in manifest["files"]]
    if sum(int(manifest["files"][named].get("rows", 0)) for _, manifest in having) <= LARGE_ROWS:
        return None
    files = [folder / named for folder, _ in having]
    if not all(file.is_file() for file in files):
        return None
    try:
        duckdb = importlib.import_module("duckdb")
    except ImportError:
        return None
    names = pq.read_schema(files[0]).names
    return _Files(duckdb, files, frozenset(names))


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
