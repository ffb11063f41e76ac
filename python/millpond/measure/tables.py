"""One table of a results directory, its columns as arrays, cut by the cells that its rows belong to."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from millpond.results.directory import Cell, Results

Column = NDArray[np.generic]


class CutTable:
    """Rows in the order of runs, so that a cell is a slice of them. A column is converted when it is first asked for.

    A table that the results do not hold, as those of an earlier version may not, has no rows.
    """

    def __init__(self, results: Results, name: str) -> None:
        self._table: pa.Table | None = results.table(name) if results.has(name) else None
        self._columns: dict[str, Column] = {}

    def __contains__(self, column: str) -> bool:
        return self._table is not None and column in self._table.column_names

    def of(self, cell: Cell, column: str, group: int | None = None) -> Column:
        """A column of a cell's rows, or of those of one of its groups; NaN where it is null or not kept at all."""
        values = self._of_cell(cell, column)
        if group is None:
            return values
        chosen: Column = values[self._of_cell(cell, "group") == group]
        return chosen

    def of_run(self, run: int, column: str) -> Column:
        """A column of the rows of one run."""
        runs = self._column("run")
        return self._column(column)[np.searchsorted(runs, run) : np.searchsorted(runs, run, side="right")]

    def _of_cell(self, cell: Cell, column: str) -> Column:
        runs = self._column("run")
        start, stop = np.searchsorted(runs, (cell.first_run, cell.first_run + cell.replications))
        return self._column(column)[start:stop]

    def _column(self, name: str) -> Column:
        if name not in self._columns:
            self._columns[name] = self._converted(name)
        return self._columns[name]

    def _converted(self, name: str) -> Column:
        if self._table is None:
            return np.empty(0)
        if name not in self._table.column_names:
            return np.full(self._table.num_rows, np.nan)
        column = self._table.column(name)
        if pa.types.is_string(column.type) or pa.types.is_dictionary(column.type):
            # a word is kept once, however many rows have it
            coded = column.combine_chunks().dictionary_encode() if pa.types.is_string(column.type) else column
            coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
            words = np.array([*coded.dictionary.to_pylist(), None], dtype=object)
            chosen: Column = words[coded.indices.fill_null(len(words) - 1).to_numpy(zero_copy_only=False)]
            return chosen
        return np.asarray(column.to_numpy())
