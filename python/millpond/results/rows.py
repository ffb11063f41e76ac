"""The rows of one table of results, as arrays cut by runs.

Rows are in the order of runs, so a run, or a cell, is one stretch of them. A large table is never held: columns are
read from the files of all shards when they are asked for, with those of the runs around, and forgotten when others have
taken their place.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from millpond.errors import MillpondError
from millpond.results.directory import Cell, Results, as_named, as_written, file_of, in_order

Column = NDArray[np.generic]

#: A table of more rows is read from its files, some of its runs at a time.
LARGE_ROWS = 5_000_000
#: So many values that were read are kept for those who ask again.
KEPT_VALUES = 8_000_000
#: Who asks for a cell asks for others: some so many rows are read at once.
ROWS_AT_ONCE = 250_000


@dataclass(eq=False)
class _Block:
    """What was read of the runs from `first` to before `last`."""

    first: int
    last: int
    columns: dict[str, Column] = field(default_factory=dict)


class TableRows:
    """A table's columns. One that the results do not hold, as those of an earlier version may not, has no rows."""

    def __init__(self, results: Results, name: str) -> None:
        self._results, self._name = results, name
        self.names = frozenset(results.columns(name) if results.has(name) else ())
        kept = [manifest["files"].get(file_of(manifest, name), {}) for _, manifest in results.folders]
        rows = sum(int(file.get("rows", 0)) for file in kept)
        #: The files that columns are read from a stretch at a time; none of a small table, which is read whole.
        self._files: list[Path] = results.files(name) if rows > LARGE_ROWS and not results.is_in_memory else []
        self._runs_at_once = max(1, results.runs * ROWS_AT_ONCE // max(1, rows))
        #: The one that was asked for last at the end.
        self._kept: list[_Block] = []
        #: Columns that were asked for of any stretch, in the order of the first time.
        self._asked: dict[str, None] = {"run": None}

    def of(self, cell: Cell, name: str, group: int | None = None) -> Column:
        """A column of a cell's rows, or of those of one of its groups; NaN where it is null or not kept at all."""
        first, last = cell.first_run, cell.first_run + cell.replications
        values = self.column(first, last, name)
        if group is None:
            return values
        chosen: Column = values[self.column(first, last, "group") == group]
        return chosen

    def of_run(self, run: int, name: str) -> Column:
        """A column of the rows of one run."""
        return self.column(run, run + 1, name)

    def column(self, first: int, last: int, name: str) -> Column:
        """A column of the runs from `first` to before `last`; NaN where it is null or not kept, None of texts."""
        if not self.names:
            return np.empty(0)
        block = self._block(first, last)
        # who goes through cells asks for the same of each
        self._asked[name] = None
        runs, values = (self._read(block, one) for one in ("run", name))
        # of the column's own type: else the whole column is converted each time
        start, stop = np.searchsorted(runs, np.array((first, last), runs.dtype))
        return values[start:stop]

    # ----------------------------------------------------------------------------------------------- helpers

    def _block(self, first: int, last: int) -> _Block:
        """The block that holds these runs."""
        held = next((block for block in self._kept if block.first <= first and last <= block.last), None)
        if held is None:
            begin = first - first % self._runs_at_once
            # a small table is one block
            held = _Block(begin, max(last, begin + self._runs_at_once)) if self._files else _Block(0, 1 << 62)
        else:
            self._kept.remove(held)
        self._kept.append(held)
        return held

    def _read(self, block: _Block, name: str) -> Column:
        if name not in block.columns:
            if name not in self.names:
                if name == "run":
                    raise MillpondError(
                        f"{self._results.files(self._name)[0]}: damaged (no column run): run the study again"
                    )
                block.columns[name] = np.full(len(self._read(block, "run")), np.nan)
            elif not self._files:
                block.columns[name] = _array(self._results.column(self._name, name))
            else:
                wanted = [one for one in self._asked if one in self.names and one not in block.columns]
                found = self._stretch(block, wanted)
                block.columns.update({one: _array(found.column(one)) for one in wanted})
            while len(self._kept) > 1 and self._held() > KEPT_VALUES:
                self._kept.pop(0)
        return block.columns[name]

    def _held(self) -> int:
        return sum(len(values) for block in self._kept for values in block.columns.values())

    def _stretch(self, block: _Block, columns: Iterable[str]) -> pa.Table:
        """Columns of the rows of a block, from the groups of rows of each file that hold any."""
        parts = []
        for file in self._files:
            try:
                with pq.ParquetFile(file) as opened:
                    told = opened.metadata
                    place = opened.schema_arrow.get_field_index("run")
                    chosen = [
                        number
                        for number in range(told.num_row_groups)
                        if _overlaps(told.row_group(number).column(place).statistics, block)
                    ]
                    wanted = as_written(opened.schema_arrow.names, list(dict.fromkeys(("run", *columns))))
                    part = as_named(opened.read_row_groups(chosen, columns=wanted))
            except (pa.ArrowException, OSError) as error:
                why = str(error).splitlines()[0]
                raise MillpondError(f"{file}: cannot be read: {why}: run the study again") from None
            runs = part.column("run").to_numpy()
            start, stop = np.searchsorted(runs, (block.first, block.last))
            parts.append(part.slice(start, stop - start))
        # shards are put in the order of runs; within a run rows stay as they are
        return parts[0] if len(parts) == 1 else in_order(parts)


def of(results: Results, name: str) -> TableRows:
    """The rows of a table, by one reader for all who ask: what one has read the next does not read again."""
    if name not in results.readers:
        results.readers[name] = TableRows(results, name)
    found: TableRows = results.readers[name]
    return found


def _overlaps(told: pq.Statistics | None, block: _Block) -> bool:
    return told is None or not told.has_min_max or (told.min < block.last and told.max >= block.first)


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
