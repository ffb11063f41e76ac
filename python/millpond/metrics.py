"""From result tables to the metrics the studies print.

A `Population` names the clients of one cell that a statement is about; `Measures` turns a population and the name of a
metric into a `Sample`: its values, one per client (or per run, for a metric of a link), and the run of each. Nothing
here walks over rows in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from millpond.results import Cell, Results
from millpond.statistics import Floats, t_interval, take

Ints = NDArray[np.int64]


@dataclass(frozen=True, order=True)
class Population:
    """The clients with one algorithm in one cell. `partner` is the other algorithm of a mix of populations."""

    clients: int
    buffer_bytes: int
    workload: str
    algorithm: str
    path: str
    partner: str = ""

    def but(self, **changes: object) -> Population:
        """The same with some fields changed."""
        return replace(self, **changes)  # type: ignore[arg-type]

    @property
    def place(self) -> str:
        """Where these clients are, without their algorithm."""
        path = "" if self.path == "fixed" else f", {self.path} delay"
        return f"{clients_in_words(self.clients)}, {self.buffer_bytes} B, {self.workload}{path}"

    @property
    def who(self) -> str:
        """Their algorithm, and in a mix the one they share the bottleneck with."""
        return f"{self.algorithm} (beside {self.partner})" if self.partner else self.algorithm

    def __str__(self) -> str:
        return f"{self.who}, {self.place}"


@dataclass(frozen=True)
class Sample:
    """Values of one metric in its base unit (s, bytes, packets, retransmissions, or a share of 1), and their runs."""

    values: Floats
    runs: Ints
    #: Values that do not exist, e.g. completion times of flows that never finished. Not among `values`.
    missing: int = 0

    @property
    def n(self) -> int:
        """How many values there are."""
        return len(self.values)

    def take(self, statistic: str) -> float:
        """The statistic of all values, pooled over replications; NaN for no values."""
        return take(self.values, statistic)

    def per_run(self, statistic: str) -> Floats:
        """The statistic of each run by itself, in the order of runs."""
        if self.n == 0:
            return np.empty(0)
        order = np.argsort(self.runs, kind="stable")
        runs, values = self.runs[order], self.values[order]
        starts = np.flatnonzero(np.diff(runs, prepend=runs[0] - 1))
        return np.array([take(part, statistic) for part in np.split(values, starts[1:])])

    def interval(self, statistic: str) -> tuple[float, float] | None:
        """95 % t-interval over replications of the statistic; None with a single one."""
        return t_interval(self.per_run(statistic))

    @staticmethod
    def pooled(samples: Sequence[Sample]) -> Sample:
        """All values of several samples together."""
        if not samples:
            return Sample(np.empty(0), np.empty(0, dtype=np.int64))
        return Sample(
            np.concatenate([s.values for s in samples]),
            np.concatenate([s.runs for s in samples]),
            sum(s.missing for s in samples),
        )


@dataclass(frozen=True)
class Metric:
    """What a metric is called, its base unit, and the statistic meant when a statement names none."""

    name: str
    unit: str
    usual: str
    summary: str


METRICS: dict[str, Metric] = {
    m.name: m
    for m in (
        Metric("fct", "s", "median", "flow completion time: first copy sent to last answer accepted"),
        Metric("makespan", "s", "median", "first copy of any client sent to last answer of any accepted"),
        Metric("fct_spread", "s", "max-min", "spread of the flow completion times"),
        Metric("fct_increase_vs_1_client", "s", "max", "flow completion time less the median of one client"),
        Metric("rtt", "s", "median", "first copy sent to answer accepted, mean over a client's exchanges"),
        Metric("rtt_true", "s", "median", "the answered copy sent to answer accepted, mean over exchanges"),
        Metric("rtt_strong", "s", "median", "as rtt, over exchanges of a single copy only"),
        Metric("retransmissions_per_client", "retransmissions", "median", "copies sent beyond the first"),
        Metric("retx_per_exchange", "retransmissions", "median", "the same per completed exchange"),
        Metric("unnecessary_retx_per_client", "retransmissions", "median", "copies after one whose answer arrives"),
        Metric("unnecessary_retx_per_exchange", "retransmissions", "median", "the same per completed exchange"),
        Metric("share_of_exchanges_without_retx", "1", "mean", "exchanges that took one copy"),
        Metric("necessary_retx_per_client", "retransmissions", "median", "retransmissions that were needed"),
        Metric("unnecessary_share_of_retransmissions", "1", "median", "of a client's retransmissions"),
        Metric("packets_dropped_per_client", "packets", "mean", "packets dropped at the queues, per client"),
        Metric("packet_losses", "packets", "mean", "packets dropped at the queues or lost on the air"),
        Metric("loss_rate", "1", "mean", "packets that found the downlink's queue full, of all offered to it"),
        Metric("utilisation", "1", "mean", "share of the time that the downlink is busy"),
        Metric("queue", "bytes", "mean", "time-weighted mean of the downlink queue"),
        Metric("link_capacity_wasted_on_unnecessary_retx", "1", "median", "downlink bytes that complete no exchange"),
        Metric("unfinished", "flows", "mean", "flows that did not finish"),
    )
}  # fmt: skip

#: Other names for the same metrics.
ALIASES = {"wasted_share": "link_capacity_wasted_on_unnecessary_retx", "rtt_first": "rtt"}

#: The direction in which a metric of these is better.
SMALLER_IS_BETTER = {
    "fct", "makespan", "rtt", "rtt_true", "retransmissions_per_client", "retx_per_exchange",
    "unnecessary_retx_per_client", "unnecessary_retx_per_exchange", "packets_dropped_per_client", "packet_losses",
    "queue", "link_capacity_wasted_on_unnecessary_retx", "fct_spread",
}  # fmt: skip

#: How many of a unit make the base unit of a metric.
UNITS: dict[str, dict[str, float]] = {
    "s": {"s": 1.0, "ms": 1e3, "us": 1e6, "min": 1 / 60},
    "1": {"": 1.0, "1": 1.0, "percent": 100.0, "fraction": 1.0},
    "bytes": {"bytes": 1.0, "kB": 1e-3},
}


def factor(metric: Metric, unit: str) -> float | None:
    """What a value in the metric's base unit is multiplied by to be in `unit`; None if it cannot be."""
    if unit in ("", metric.unit):
        return 1.0
    table = UNITS.get(metric.unit)
    if table is not None:
        return table.get(unit)
    # counts: 'retransmissions', 'packets', 'retransmissions per client' and the like are all plain numbers
    return None if unit in ("s", "ms", "percent") else 1.0


@dataclass(frozen=True)
class _Rows:
    """Rows of a table that belong to one cell: a slice, because rows are in the order of runs."""

    start: int
    stop: int


class Measures:
    """The metrics of one results directory. Tables are read once; cells are slices of them."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self.cells = results.cells
        self._flows = _columns(results.table("flows"))
        self._links = _columns(results.table("links"), strings=("link",))
        self._histogram = _columns(results.table("histogram"))
        self._runs = _columns(results.table("runs"))
        self._flow_rows = _slices(self.cells, self._flows["run"])
        self._link_rows = _slices(self.cells, self._links["run"])
        self._histogram_rows = _slices(self.cells, self._histogram["run"])
        self._run_rows = _slices(self.cells, self._runs["run"])
        self._places: dict[Population, tuple[Cell, int | None]] = {}
        for cell in self.cells:
            for population, group in _populations(cell):
                self._places.setdefault(population, (cell, group))
        self._kept: dict[tuple[str, Population], Sample] = {}

    def populations(self) -> Iterable[Population]:
        """Every population the results hold, in the order of cells."""
        return self._places.keys()

    def has(self, population: Population) -> bool:
        """Whether the results hold this population."""
        return population in self._places

    def cell(self, population: Population) -> Cell:
        """The cell the population lives in. Raises KeyError if the results do not hold it."""
        return self._places[population][0]

    def sample(self, metric: str, population: Population) -> Sample:
        """The values of the metric. Raises KeyError for an unknown metric or a population that was not run."""
        name = ALIASES.get(metric, metric)
        key = (name, population)
        if key not in self._kept:
            self._kept[key] = _FUNCTIONS[name](self, population)
        return self._kept[key]

    def histogram(self, population: Population, batch: str = "any") -> dict[int, int]:
        """Completed exchanges by number of retransmissions, over all replications.

        `batch`: `first`, `later` (than the first batch of a client) or `any`.
        """
        cell, group = self._places[population]
        rows, table = self._histogram_rows[cell.number], self._histogram
        chosen = slice(rows.start, rows.stop)
        keep = np.ones(rows.stop - rows.start, dtype=bool)
        if group is not None:
            keep &= table["group"][chosen] == group
        if batch != "any":
            keep &= (table["first_batch"][chosen] != 0) == (batch == "first")
        number = table["retransmissions"][chosen][keep].astype(np.int64)
        if len(number) == 0:
            return {}
        counts = np.bincount(number, weights=table["exchanges"][chosen][keep].astype(np.float64))
        return {k: round(float(count)) for k, count in enumerate(counts)}

    # ----------------------------------------------------------------------------------------------- columns

    def flow_column(self, population: Population, column: str) -> NDArray[np.generic]:
        """A column of the population's rows of the `flows` table, as it stands there (NaN where it is null)."""
        cell, group = self._places[population]
        rows = self._flow_rows[cell.number]
        values = self._flows[column][rows.start : rows.stop]
        if group is None:
            return values
        chosen: NDArray[np.generic] = values[self._flows["group"][rows.start : rows.stop] == group]
        return chosen

    def link_column(self, cell: Cell, column: str, link: str) -> Floats:
        """A column of one link's rows of a cell, one value per run."""
        rows = self._link_rows[cell.number]
        here = self._links["link"][rows.start : rows.stop] == link
        chosen: Floats = self._links[column][rows.start : rows.stop][here].astype(np.float64)
        return chosen

    def run_column(self, cell: Cell, column: str) -> NDArray[np.generic]:
        """A column of a cell's rows of the `runs` table."""
        rows = self._run_rows[cell.number]
        return self._runs[column][rows.start : rows.stop]

    def links(self) -> list[str]:
        """The names of the links, in the order of the table."""
        return list(dict.fromkeys(self._links["link"].tolist()))


# ----------------------------------------------------------------------------------------------- per metric


Compute = Callable[[Measures, Population], Sample]


def _flows(column: Callable[[Measures, Population], NDArray[np.generic]], scale: float = 1.0) -> Compute:
    def compute(measures: Measures, population: Population) -> Sample:
        values = column(measures, population).astype(np.float64) * scale
        runs = measures.flow_column(population, "run").astype(np.int64)
        there = np.isfinite(values)
        return Sample(values[there], runs[there], int(np.count_nonzero(~there)))

    return compute


def _plain(column: str) -> Callable[[Measures, Population], NDArray[np.generic]]:
    return lambda measures, population: measures.flow_column(population, column)


def _per_exchange(column: str) -> Callable[[Measures, Population], NDArray[np.generic]]:
    def ratio(measures: Measures, population: Population) -> Floats:
        top = measures.flow_column(population, column).astype(np.float64)
        completed = measures.flow_column(population, "completed").astype(np.float64)
        share: Floats = np.divide(top, completed, out=np.full(len(top), np.nan), where=completed > 0)
        return share

    return ratio


def _runs(values: Callable[[Measures, Cell], Floats]) -> Compute:
    def compute(measures: Measures, population: Population) -> Sample:
        cell = measures.cell(population)
        return Sample(values(measures, cell), measures.run_column(cell, "run").astype(np.int64))

    return compute


def _dropped(measures: Measures, cell: Cell, columns: Sequence[str]) -> Floats:
    parts = [measures.link_column(cell, column, link) for link in measures.links() for column in columns]
    total: Floats = np.sum(parts, axis=0)
    return total


def _lost(measures: Measures, cell: Cell) -> Floats:
    return _dropped(measures, cell, ("dropped_queue_packets", "dropped_radio_packets"))


def _dropped_per_client(measures: Measures, cell: Cell) -> Floats:
    return _dropped(measures, cell, ("dropped_queue_packets",)) / float(sum(g.count for g in cell.groups))


def _wasted(measures: Measures, cell: Cell) -> Floats:
    useful = measures.link_column(cell, "useful_bytes", "downlink")
    carried = measures.link_column(cell, "delivered_bytes", "downlink") + measures.link_column(
        cell, "dropped_radio_bytes", "downlink"
    )
    return 1.0 - np.divide(useful, carried, out=np.zeros(len(useful)), where=carried > 0)


def _loss_rate(measures: Measures, cell: Cell) -> Floats:
    dropped = measures.link_column(cell, "dropped_queue_packets", "downlink")
    offered = measures.link_column(cell, "offered_packets", "downlink")
    return np.divide(dropped, offered, out=np.zeros(len(dropped)), where=offered > 0)


def _utilisation(measures: Measures, cell: Cell) -> Floats:
    busy = measures.link_column(cell, "busy_us", "downlink")
    lasted = measures.run_column(cell, "simulated_us").astype(np.float64)
    return np.divide(busy, lasted, out=np.zeros(len(busy)), where=lasted > 0)


def _necessary(measures: Measures, population: Population) -> Floats:
    all_of_them = measures.flow_column(population, "retransmissions").astype(np.float64)
    needed: Floats = all_of_them - measures.flow_column(population, "unnecessary").astype(np.float64)
    return needed


def _unnecessary_share(measures: Measures, population: Population) -> Floats:
    top = measures.flow_column(population, "unnecessary").astype(np.float64)
    bottom = measures.flow_column(population, "retransmissions").astype(np.float64)
    share: Floats = np.divide(top, bottom, out=np.full(len(top), np.nan), where=bottom > 0)
    return share


def _queue(measures: Measures, cell: Cell) -> Floats:
    return measures.link_column(cell, "queue_mean_bytes", "downlink")


def _increase(measures: Measures, population: Population) -> Sample:
    alone = measures.sample("fct", population.but(clients=1, partner=""))
    mine = measures.sample("fct", population)
    return replace(mine, values=mine.values - alone.take("median"))


_FUNCTIONS: dict[str, Compute] = {
    "fct": _flows(_plain("fct_us"), 1e-6),
    "fct_spread": _flows(_plain("fct_us"), 1e-6),
    "fct_increase_vs_1_client": _increase,
    "rtt": _flows(_plain("rtt_first_mean_us"), 1e-6),
    "rtt_true": _flows(_plain("rtt_true_mean_us"), 1e-6),
    "rtt_strong": _flows(_plain("rtt_strong_mean_us"), 1e-6),
    "retransmissions_per_client": _flows(_plain("retransmissions")),
    "retx_per_exchange": _flows(_per_exchange("retransmissions")),
    "unnecessary_retx_per_client": _flows(_plain("unnecessary")),
    "unnecessary_retx_per_exchange": _flows(_per_exchange("unnecessary")),
    "necessary_retx_per_client": _flows(_necessary),
    "unnecessary_share_of_retransmissions": _flows(_unnecessary_share),
    "share_of_exchanges_without_retx": _flows(_per_exchange("strong_samples")),
    "makespan": _runs(lambda measures, cell: measures.run_column(cell, "makespan_us").astype(np.float64) * 1e-6),
    "packets_dropped_per_client": _runs(_dropped_per_client),
    "packet_losses": _runs(_lost),
    "loss_rate": _runs(_loss_rate),
    "utilisation": _runs(_utilisation),
    "queue": _runs(_queue),
    "link_capacity_wasted_on_unnecessary_retx": _runs(_wasted),
    "unfinished": _runs(lambda measures, cell: measures.run_column(cell, "unfinished").astype(np.float64)),
}


# ----------------------------------------------------------------------------------------------- helpers


def clients_in_words(number: object) -> str:
    """`1 client`, `50 clients`."""
    return f"{number} client" if number == 1 else f"{number} clients"


def _populations(cell: Cell) -> Iterable[tuple[Population, int | None]]:
    columns = cell.columns
    for group in cell.groups:
        others = [other.algorithm for other in cell.groups if other.algorithm != group.algorithm]
        yield (
            Population(
                clients=int(columns["clients"]),
                buffer_bytes=int(columns["buffer_bytes"]),
                workload=str(columns["workload"]),
                algorithm=group.algorithm,
                path=str(columns["path"]),
                partner=";".join(others),
            ),
            group.index if len(cell.groups) > 1 else None,
        )


def _columns(table: pa.Table, strings: Sequence[str] = ()) -> dict[str, NDArray[np.generic]]:
    columns: dict[str, NDArray[np.generic]] = {}
    for name in table.column_names:
        column = table.column(name)
        if pa.types.is_string(column.type) or pa.types.is_dictionary(column.type):
            if name in strings:
                columns[name] = np.array(column.to_pylist(), dtype=object)
            continue
        columns[name] = column.to_numpy()
    return columns


def _slices(cells: Sequence[Cell], runs: NDArray[np.generic]) -> dict[int, _Rows]:
    first = np.array([cell.first_run for cell in cells], dtype=np.int64)
    last = first + np.array([cell.replications for cell in cells], dtype=np.int64)
    starts = np.searchsorted(runs, first, side="left")
    stops = np.searchsorted(runs, last, side="left")
    return {cell.number: _Rows(int(a), int(b)) for cell, a, b in zip(cells, starts, stops, strict=True)}
