"""What the pictures are drawn from: cells picked by their scenario columns, columns as arrays, spreads of figures.

Reads only a results directory. Times come out in seconds, sizes in bytes, missing values as NaN.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millpond.errors import MillpondError
from millpond.measure.population import column_in_words, path_in_words
from millpond.measure.statistics import PERCENTILES, take
from millpond.results.directory import BASE_COLUMNS, Cell, Group, Results, Value
from millpond.show.report import labels

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]

FIXED, JITTERED = "fixed", "jittered"
"""The path variants of a study that tells a fixed delay from a varying one."""
UPLINK, DOWNLINK = "uplink", "downlink"
PANELS = 8
"""At most so many panels a picture; more are spread over several."""

_UNITS = {"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9}


class Missing(MillpondError):
    """A picture cannot be drawn from these results. The message is the sentence that stands in its place."""


@dataclass(frozen=True)
class Rows:
    """The numbers behind a picture, as a reader may download them."""

    header: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]

    def to_csv(self) -> str:
        """The rows as comma-separated text with a header line."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.header)
        for row in self.rows:
            writer.writerow([f"{value:.6g}" if isinstance(value, float) else value for value in row])
        return out.getvalue()


@dataclass(frozen=True)
class Spread:
    """The percentiles that are drawn, of the finished flows of a cell or of one group of clients."""

    n: int
    minimum: float
    p10: float
    p25: float
    median: float
    p75: float
    p90: float
    maximum: float

    @staticmethod
    def of(values: Floats) -> Spread | None:
        """Percentiles by linear interpolation between order statistics; None if no value is finite."""
        finite = values[np.isfinite(values)]
        if finite.size == 0:
            return None
        wanted = ("min", "p10", "p25", "median", "p75", "p90", "max")
        return Spread(int(finite.size), *np.quantile(finite, [PERCENTILES[name] for name in wanted]).tolist())

    HEADER = ("n", "min", "p10", "p25", "median", "p75", "p90", "max")

    def row(self) -> tuple[object, ...]:
        """The fields in the order of `HEADER`."""
        return (self.n, self.minimum, self.p10, self.p25, self.median, self.p75, self.p90, self.maximum)


@dataclass(frozen=True)
class View:
    """Which cells a picture is about: those on one path variant with these values of further columns."""

    path: str
    only: Mapping[str, Value]

    def covers(self, cell: Cell) -> bool:
        """Whether the cell is drawn."""
        return variant(cell) == self.path and all(cell.columns.get(name) == value for name, value in self.only.items())

    @property
    def words(self) -> str:
        """What tells this view from others, as in `high loss, as meant`; empty if there is nothing to tell."""
        told = [column_in_words(name, value) for name, value in self.only.items()]
        return ", ".join(word for word in (*told, path_in_words(self.path)) if word)

    @property
    def name(self) -> str:
        """The same for the name of a picture."""
        return "-".join(re.sub(r"[^a-z0-9]+", "-", str(value).lower()) for value in (*self.only.values(), self.path))


class Data:
    """Results, cut by cell. Every column is converted once and then sliced, so that a whole study draws in seconds."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self.cells = list(results.cells)
        names = sorted({name for cell in self.cells for name in cell.columns if name not in BASE_COLUMNS})
        #: Further columns that tell cells of these results apart.
        self.varying = tuple(name for name in names if len({cell.columns.get(name, "") for cell in self.cells}) > 1)
        #: The path variants, in the order of cells.
        self.paths = tuple(dict.fromkeys(variant(cell) for cell in self.cells)) or (FIXED,)
        self._columns: dict[tuple[str, str], Floats] = {}
        self._runs: dict[str, Integers] = {}
        self._words: dict[tuple[str, str], tuple[list[str], Integers]] = {}

    @staticmethod
    def of(results: Results | Data) -> Data:
        """The same results, cut by cell; what is cut already stays as it is."""
        return results if isinstance(results, Data) else Data(results)

    # -- cells ------------------------------------------------------------------------------------------------------

    def plain(self, view: View | None = None, workload: str | None = None) -> list[Cell]:
        """Cells with one kind of controller, of one view (else of the first path), and of one workload if given."""
        view = view or View(self.paths[0], {})
        return [
            cell
            for cell in self.cells
            if not cell.mixed and view.covers(cell) and (workload is None or cell.columns.get("workload") == workload)
        ]

    def views(self) -> list[View]:
        """The views of these results: each path variant, cut by further columns until few enough panels are left.

        A varying delay is no view of its own: it stands beside the fixed one.
        """
        return [view for path in self.paths if path != JITTERED for view in self.parts(View(path, {}))]

    @cached_property
    def stage(self) -> View:
        """Where the study looks closely: the place of the first traced run, else of the first cell; the first path."""
        plain = self.plain()
        chosen = next((cell for cell, _ in self.traced(plain)), plain[0] if plain else None)
        return View(self.paths[0], {name: chosen.columns.get(name, "") for name in self.varying} if chosen else {})

    def place(self, cell: Cell) -> tuple[Value, ...]:
        """Clients and further columns of a cell: what a panel is about."""
        return (int(number(cell, "clients")), *(cell.columns.get(name, "") for name in self.varying))

    def place_in_words(self, place: Sequence[Value], view: View) -> str:
        """The title of a panel: what the view does not say already."""
        return ", ".join((labels.clients(int(place[0])), *self.further_in_words(place, view)))

    def further_in_words(self, place: Sequence[Value], view: View) -> list[str]:
        """What a place is beyond its number of clients and what the view says already."""
        told = zip(self.varying, place[1:], strict=True)
        words = (column_in_words(name, value) for name, value in told if name not in view.only)
        return [word for word in words if word]

    def parts(self, view: View) -> list[View]:
        """The view, or if it has too many places, parts of it by the values of one further column after another."""
        plain = self.plain(view)
        if len({self.place(cell) for cell in plain}) <= PANELS:
            return [view] if plain else []
        found = {name: dict.fromkeys(cell.columns.get(name, "") for cell in plain) for name in self.varying}
        several = {name: values for name, values in found.items() if len(values) > 1}
        if not several:
            return [view]
        name = min(several, key=lambda name: len(several[name]))
        return [part for value in several[name] for part in self.parts(View(view.path, {**view.only, name: value}))]

    def workloads(self, view: View | None = None) -> list[str]:
        """The workloads of the results, or of a view, in the order of first appearance."""
        cells = self.cells if view is None else [cell for cell in self.cells if view.covers(cell)]
        return list(dict.fromkeys(str(cell.columns["workload"]) for cell in cells if "workload" in cell.columns))

    def controllers(self) -> list[str]:
        """The controllers of the results, presets first in the order of the palette, then the others."""
        return ordered(name for cell in self.cells for name in members(cell))

    # -- columns ----------------------------------------------------------------------------------------------------

    def values(
        self, table: str, column: str, cell: Cell, group: Group | None = None, link: str | None = None
    ) -> Floats:
        """One column of the cell's rows, only those of a client group or of a link if given. `_us` becomes seconds."""
        span = self._span(table, cell)
        values = self._column(table, column)[span]
        if group is not None:
            values = values[self._column(table, "group")[span] == group.index]
        if link is not None:
            values = values[self._on(table, link, span)]
        return values

    def spread(self, column: str, cell: Cell, group: Group | None = None) -> Spread | None:
        """The spread of a column of `flows` over all replications; None if no client has a value."""
        return Spread.of(self.values("flows", column, cell, group))

    def unfinished(self, cell: Cell) -> int:
        """Clients that had not finished when their run ended."""
        return int(np.isnan(self.values("flows", "fct_us", cell)).sum())

    def histogram(self, cell: Cell, group: Group | None = None) -> dict[int, int]:
        """Exchanges by number of retransmissions, over all replications, without gaps between the bins."""
        bins = self.values("histogram", "retransmissions", cell, group).astype(np.int64)
        counts = self.values("histogram", "exchanges", cell, group).astype(np.int64)
        if bins.size == 0:
            return {}
        total = np.bincount(bins, weights=counts)
        return {k: int(n) for k, n in enumerate(total)}

    # -- links ------------------------------------------------------------------------------------------------------

    def links(self, cell: Cell) -> list[str]:
        """The names of the cell's links."""
        names, codes = self._codes("links", "link")
        return [names[code] for code in dict.fromkeys(codes[self._span("links", cell)].tolist())]

    def bottleneck(self, cell: Cell) -> str:
        """The link that is busy longest."""
        names = self.links(cell)
        if not names:
            return DOWNLINK
        return max(names, key=lambda name: float(self.values("links", "busy_us", cell, link=name).sum()))

    def useful_share(self, cell: Cell) -> float:
        """Useful bytes over all bytes that the bottleneck carried, median over the runs; NaN if it carried none."""
        link = self.bottleneck(cell)
        carried = self.values("links", "delivered_bytes", cell, link=link) + self.values(
            "links", "dropped_radio_bytes", cell, link=link
        )
        useful = self.values("links", "useful_bytes", cell, link=link)
        return take(useful[carried > 0] / carried[carried > 0], "median")

    def traced(self, cells: Sequence[Cell]) -> list[tuple[Cell, int]]:
        """Those of the cells that have a traced run, with the number of their first one."""
        found = ((cell, self.first_run("queue_trace", cell)) for cell in cells)
        return [(cell, run) for cell, run in found if run is not None]

    def trace(self, table: str, run: int, link: str, columns: Sequence[str]) -> list[Floats]:
        """Columns of a trace of one run and link, in the order of time."""
        span = self._run_span(table, run)
        mine = self._on(table, link, span)
        picked = [self._column(table, column)[span][mine] for column in columns]
        order = np.argsort(picked[0], kind="stable") if picked else slice(None)
        return [values[order] for values in picked]

    # -- single runs ------------------------------------------------------------------------------------------------

    def has(self, table: str, *columns: str) -> bool:
        """Whether the results hold this table with these columns."""
        return self.results.has(table) and set(columns) <= set(self.results.table(table).column_names)

    def first_run(self, table: str, cell: Cell) -> int | None:
        """The first run of the cell of which a table holds rows; None if there is none."""
        if not self.results.has(table):
            return None
        runs = self._run_column(table)
        at = int(np.searchsorted(runs, cell.first_run))
        found = at < runs.size and runs[at] < cell.first_run + cell.replications
        return int(runs[at]) if found else None

    def rows(self, table: str, run: int, columns: Sequence[str], flow: int | None = None) -> list[Floats]:
        """Columns of one run's rows of a table, or of one flow's, in the order in which they were written."""
        span = self._run_span(table, run)
        mine = slice(None) if flow is None else self._column(table, "flow")[span] == flow
        return [self._column(table, column)[span][mine] for column in columns]

    def words(self, table: str, run: int, column: str, flow: int | None = None) -> list[str]:
        """A column of text of the same rows; empty where nothing is said."""
        span = self._run_span(table, run)
        names, codes = self._codes(table, column)
        codes = codes[span] if flow is None else codes[span][self._column(table, "flow")[span] == flow]
        return [names[code] if code >= 0 else "" for code in codes.tolist()]

    # -- helpers ----------------------------------------------------------------------------------------------------

    def _run_span(self, table: str, run: int) -> slice:
        runs = self._run_column(table)
        return slice(int(np.searchsorted(runs, run)), int(np.searchsorted(runs, run, side="right")))

    def _run_column(self, table: str) -> Integers:
        if table not in self._runs:
            self._runs[table] = self.results.table(table).column("run").to_numpy().astype(np.int64)
        return self._runs[table]

    def _span(self, table: str, cell: Cell) -> slice:
        runs = self._run_column(table)
        return slice(
            int(np.searchsorted(runs, cell.first_run)),
            int(np.searchsorted(runs, cell.first_run + cell.replications)),
        )

    def _column(self, table: str, column: str) -> Floats:
        key = (table, column)
        if key not in self._columns:
            values = self.results.table(table).column(column).to_numpy().astype(np.float64)
            self._columns[key] = values / 1e6 if column.endswith("_us") else values
        return self._columns[key]

    def _on(self, table: str, link: str, span: slice) -> npt.NDArray[np.bool_]:
        names, codes = self._codes(table, "link")
        code = names.index(link) if link in names else -1
        found: npt.NDArray[np.bool_] = codes[span] == code
        return found

    def _codes(self, table: str, column: str) -> tuple[list[str], Integers]:
        """The words of a column of text, and which of them each row has (-1: none)."""
        key = (table, column)
        if key not in self._words:
            found = self.results.table(table).column(column).combine_chunks()
            encoded = found if pa.types.is_dictionary(found.type) else found.dictionary_encode()
            names = [str(name) for name in encoded.dictionary.to_pylist()]
            self._words[key] = names, encoded.indices.fill_null(-1).to_numpy().astype(np.int64)
        return self._words[key]


def variant(cell: Cell) -> str:
    """The cell's path variant: `fixed` or `jittered`."""
    return str(cell.columns.get("path", FIXED))


def members(cell: Cell) -> list[str]:
    """The presets of the cell's client groups, each once."""
    return list(dict.fromkeys(labels.preset(group.algorithm) for group in cell.groups))


def only(cell: Cell) -> str:
    """The one preset of a cell that is not mixed."""
    return members(cell)[0]


def number(cell: Cell, column: str) -> float:
    """A scenario column as a number; NaN if the cell does not have it."""
    try:
        return float(cell.columns.get(column, "nan"))
    except ValueError:
        return float("nan")


def rate(cell: Cell, link: str) -> float | None:
    """The link's rate in bit/s as the scenario says it; None if it is unlimited or not said."""
    said = cell.scenario.get("path", {}).get(link, {}).get("rate")
    if isinstance(said, int | float):
        return float(said) or None
    found = re.fullmatch(r"\s*([\d.]+)\s*(\S+)\s*", str(said))
    if found is None or found[2] not in _UNITS:
        return None
    return float(found[1]) * _UNITS[found[2]] or None


def ordered(names: Iterable[str]) -> list[str]:
    """Each name once: presets in the palette's order, then the others as they come."""
    seen = dict.fromkeys(names)
    known = [name for name in labels.CONTROLLERS if name in seen]
    return known + [name for name in seen if name not in labels.CONTROLLERS]
