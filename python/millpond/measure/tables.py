"""One table of a results directory, its columns as arrays, cut by the cells that its rows belong to."""

from __future__ import annotations

from millpond.results import rows
from millpond.results.directory import Cell, Results
from millpond.results.rows import Column


class CutTable:
    """Rows in the order of runs, so that a cell is a slice of them.

    A table that the results do not hold, as those of an earlier version may not, has no rows.
    """

    def __init__(self, results: Results, name: str) -> None:
        self._rows = rows.of(results, name)

    def __contains__(self, column: str) -> bool:
        return column in self._rows.names

    def of(self, cell: Cell, column: str, group: int | None = None) -> Column:
        """A column of a cell's rows, or of those of one of its groups; NaN where it is null or not kept at all."""
        values = self._of_cell(cell, column)
        if group is None:
            return values
        chosen: Column = values[self._of_cell(cell, "group") == group]
        return chosen

    def of_run(self, run: int, column: str) -> Column:
        """A column of the rows of one run."""
        return self._rows.column(run, run + 1, column)

    def _of_cell(self, cell: Cell, column: str) -> Column:
        return self._rows.column(cell.first_run, cell.first_run + cell.replications, column)
