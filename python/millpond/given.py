"""What runs, sweeps and studies give: tables, metrics, and how they stand beside what was published."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from millpond.errors import MillpondError, UsageError
from millpond.judge.compare import Comparison
from millpond.measure import summary
from millpond.measure.frame import Asked, Frame, measure
from millpond.measure.measures import Measures
from millpond.measure.sites import Sites
from millpond.measure.window import Window
from millpond.plan.program import FLEET
from millpond.real import columns
from millpond.real.columns import Live
from millpond.results import provenance
from millpond.results.directory import Results
from millpond.results.factor import Value
from millpond.results.html_table import html_table
from millpond.show import terminal
from millpond.show.document import Document
from millpond.show.plot import plot
from millpond.studies import pages, reproduction

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure
    from rich.console import RenderableType


class Run:
    """What a scenario gave. Everything is read from the results directory."""

    def __init__(self, results: Results, report: Path | None = None) -> None:
        self.results = results
        #: The HTML report, if one was written.
        self.report = report

    def __repr__(self) -> str:
        cells, runs = len(self.results.cells), self.results.runs
        where = "in memory" if self.results.is_in_memory else f"in {self.directory}"
        return (
            f"<{type(self).__name__} of {self.results.manifest['name']}: {cells} setting{'' if cells == 1 else 's'}, "
            f"{runs} run{'' if runs == 1 else 's'} {where}>"
        )

    def _repr_html_(self) -> str:
        return html_table(self.summary, repr(self).strip("<>"))

    @property
    def directory(self) -> Path:
        """The results directory."""
        return self.results.directory

    @cached_property
    def measures(self) -> Measures:
        """The metrics by population of clients."""
        return Measures(self.results)

    @cached_property
    def summary(self) -> pa.Table:
        """One row for each population of clients, of a fleet for each site: times in s, retransmissions per client."""
        if self.results.manifest["kind"] == FLEET:
            return Sites(self.measures).to_table()
        return summary.table(self.measures)

    @cached_property
    def live(self) -> Live | None:
        """What real programs did beside it; None if none were run."""
        return columns.read(self.directory, self.measures, None)

    @property
    def statement(self) -> str:
        """A paragraph for a paper: what made these results, and how to make them again."""
        return provenance.statement([manifest for _, manifest in self.results.folders])

    @cached_property
    def document(self) -> Document:
        """What is shown of it, in the terminal and on the page alike."""
        return pages.document(self.results)

    @property
    def tables(self) -> list[RenderableType]:
        """What the program prints; `rich.print` shows each."""
        return terminal.render(self.document)

    def frame(
        self, metrics: Asked | Sequence[Asked], by: Sequence[str] | None = None, window: Window | None = None
    ) -> Frame:
        """Metrics run by run, and what they come to: see `millpond.measure.frame.measure`."""
        return measure(self.measures, metrics, by, window)

    def plot(self, metric: Asked = "fct", x: str = "", series: str = "algorithm", **only: Value) -> Figure:
        """A metric over a factor as a figure for a paper, lines with intervals.

        Args:
            metric: Its name, or a pair of metric and statistic.
            x: The factor along the axis; left out: the first that varies beside the series.
            series: What the lines are.
            only: Of further factors the value that is meant.
        """
        varying = [name for name in self.measures.varying if name != series]
        if not x and not varying:
            raise UsageError(f"{self.directory}: nothing varies but {series}: a figure needs a factor along its axis")
        x = x or varying[0]
        return plot(self.frame(metric, [x, series, *only]).where(**only), x, series)

    def table(self, name: str) -> pa.Table:
        """A result table with the scenario columns of each row's cell before its own: times in microseconds."""
        return with_scenario(self.results, name)

    def to_pandas(self, name: str = "flows") -> pandas.DataFrame:
        """The same as a data frame. Raises `MillpondError` if pandas is not installed."""
        try:
            return self.table(name).to_pandas()
        except ImportError:
            raise MillpondError("to_pandas needs pandas: pip install pandas (or use .table, an Arrow table)") from None


class Reproduction(Run):
    """What a study gave, and how it stands beside what was published."""

    def __init__(self, results: Results, published: Path | str | None = None, report: Path | None = None) -> None:
        super().__init__(results, report)
        self._published = published

    @cached_property
    def comparison(self) -> Comparison:
        """Every published figure, claim and setting, with ours."""
        return reproduction.compare(self.results, self._published, self.measures)

    @cached_property
    def live(self) -> Live | None:
        """What real programs did beside it, and what was published of that; None if none were run."""
        return columns.read(self.directory, self.measures, self.comparison)

    @cached_property
    def document(self) -> Document:
        """What is shown of it, beside what was published."""
        return pages.document(self.results, self.comparison)

    def to_json(self) -> dict[str, Any]:
        """The comparison for programs, and if real programs were run what they did: what `--json` prints."""
        return self.comparison.to_json() | ({} if self.live is None else {"live": self.live.to_json()})


def with_scenario(results: Results, name: str) -> pa.Table:
    """A table of the results with every factor of each row's cell before its own columns; `cells` has them."""
    table = results.table(name)
    if name == "cells":
        return table
    if "run" in table.column_names:
        runs = results.table("runs")
        first = runs.column("run").to_numpy()
        cells = runs.column("cell").to_numpy()[np.searchsorted(first, table.column("run").to_numpy())]
    else:
        cells = table.column("cell").to_numpy()
    ours = table.column_names
    known = dict.fromkeys(key for cell in results.cells for key in cell.columns)
    # groups name their algorithm themselves
    for position, key in enumerate(key for key in known if not (key == "algorithm" and key in ours)):
        values = pa.array([cell.columns.get(key) for cell in results.cells])
        chosen = values.take(pa.array(cells))
        if key == "algorithm" and "group" in table.column_names:
            chosen = _by_group(results, cells, table)
        # a factor may be called as a column is
        table = table.add_column(position, f"{key} (factor)" if key in ours else key, chosen)
    return table


# ----------------------------------------------------------------------------------------------- helpers


def _by_group(results: Results, cells: Any, table: pa.Table) -> pa.Array:
    most = max(len(cell.groups) for cell in results.cells)
    names = np.full((len(results.cells), most), "", dtype=object)
    for cell in results.cells:
        for group in cell.groups:
            names[cell.number, group.index] = group.algorithm
    return pa.array(names[cells, table.column("group").to_numpy()])
