"""From result tables to the metrics the studies print.

A `Population` names the clients of one cell that a statement is about; `Measures` turns a population and the name of a
metric into a `Sample`: its values, one per client (or per run, for a metric of a link), and the run of each. Nothing
here walks over rows in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from millpond.measure import statistics
from millpond.measure.evidence import KINDS, Evidence
from millpond.measure.statistics import Floats, t_interval, take
from millpond.results.directory import BASE_COLUMNS, Cell, Results, Value

Ints = NDArray[np.int64]

#: A download has one size, which need not be told each time.
_BULK_SIZE = ("bulk", "payload")
#: Path variants that are told in other words than their names.
_PATHS = {"fixed": "", "jittered": "jittered delay"}


@dataclass(frozen=True)
class Population:
    """The clients with one algorithm in one cell. `partner` is the other algorithm of a mix of populations.

    `more` holds the columns beyond these that tell the cells of the results apart, by name. A column that is the same
    in all results need not be named.
    """

    clients: int
    buffer_bytes: int
    workload: str
    algorithm: str
    path: str
    partner: str = ""
    more: tuple[tuple[str, Value], ...] = ()

    def but(self, **changes: Any) -> Population:
        """The same with some columns changed."""
        further = dict(self.more)
        own: dict[str, Any] = {}
        for name, value in changes.items():
            if name in _FIELDS:
                own[name] = value
            else:
                further[name] = value
        return replace(self, **{"more": tuple(sorted(further.items())), **own})

    def column(self, name: str) -> Value | None:
        """The value of a column; None if it is none of these clients'."""
        return getattr(self, name) if name in _FIELDS else dict(self.more).get(name)

    @property
    def place(self) -> str:
        """Where these clients are, without their algorithm."""
        words = [clients_in_words(self.clients), f"{self.buffer_bytes} B", self.workload]
        words += [column_in_words(name, value) for name, value in self.more if (self.workload, name) != _BULK_SIZE]
        words.append(path_in_words(self.path))
        return ", ".join(word for word in words if word)

    @property
    def who(self) -> str:
        """Their algorithm, and in a mix the one they share the bottleneck with."""
        return f"{self.algorithm} (beside {self.partner})" if self.partner else self.algorithm

    def __str__(self) -> str:
        return f"{self.who}, {self.place}"


_FIELDS = frozenset(field.name for field in fields(Population)) - {"more"}


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
        Metric("throughput", "1/s", "median", "answered exchanges of a client a second, over its completion time"),
        Metric("makespan", "s", "median", "first copy of any client sent to last answer of any accepted"),
        Metric("fct_spread", "s", "max-min", "spread of the flow completion times"),
        Metric("fct_increase_vs_1_client", "s", "max", "flow completion time less the median of one client"),
        Metric("rtt", "s", "median", "first copy sent to answer accepted, mean over a client's exchanges"),
        Metric("rtt_true", "s", "median", "the answered copy sent to answer accepted, mean over exchanges"),
        Metric("rtt_strong", "s", "median", "as rtt, over exchanges of a single copy only"),
        Metric("rto", "s", "median", "wait after an exchange's first copy, mean over a client's exchanges"),
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
        Metric("goodput", "bit/s", "median", "application payload received over the completion time"),
        Metric("connections", "connections", "mean", "TCP connections that a client opened"),
        Metric("segments_sent", "segments", "median", "data segments sent to a client, repeated ones included"),
        Metric("retransmitted_segments", "segments", "median", "data segments sent to a client once more"),
        Metric("needless_segments", "segments", "median", "data segments that a client had already"),
        Metric("lost_segments", "segments", "median", "packets to a client that a full queue or the radio dropped"),
        Metric("timeouts", "timeouts", "median", "expiries of the server's retransmission timer, per client"),
        Metric("timeouts_per_run", "timeouts", "median", "the same of all clients of a run"),
        Metric("longest_rto", "s", "median", "longest retransmission timeout that the server armed for a client"),
        Metric("first_timeout", "s", "median", "from a client's request to the first such expiry"),
        Metric("spread_in_run", "1", "median", "slowest less fastest client of a run, in medians of it"),
        Metric("one_flow_faster", "1", "mean", "runs whose fastest client is 15 % ahead of the next"),
        Metric("one_flow_slower", "1", "mean", "runs whose slowest client takes 15 % longer than the next"),
        Metric("alike_in_run", "1", "mean", "runs whose slowest client takes at most 15 % longer than the fastest"),
        Metric("last_starts_last", "1", "mean", "runs whose last client to start is the last to finish"),
        Metric("names_last_rightly", "1", "mean", "replies after a retransmission that rightly name the last copy"),
        Metric("names_last_wrongly", "1", "mean", "the same that wrongly do so"),
        Metric("names_earlier_rightly", "1", "mean", "the same that rightly name an earlier copy"),
        Metric("names_earlier_wrongly", "1", "mean", "the same that wrongly do so"),
        Metric("naming_error", "round trips", "mean", "by how much those that name a wrong copy are mistaken"),
        Metric("rto_in_rtts", "round trips", "median", "first wait over true round-trip time, means over exchanges"),
    )
}  # fmt: skip

#: Other names for the same metrics.
ALIASES = {
    "wasted_share": "link_capacity_wasted_on_unnecessary_retx",
    "rtt_first": "rtt",
    "first_attempt_success": "share_of_exchanges_without_retx",
}

#: The direction in which a metric of these is better.
SMALLER_IS_BETTER = {
    "fct", "makespan", "rtt", "rtt_true", "retransmissions_per_client", "retx_per_exchange",
    "unnecessary_retx_per_client", "unnecessary_retx_per_exchange", "packets_dropped_per_client", "packet_losses",
    "queue", "link_capacity_wasted_on_unnecessary_retx", "fct_spread",
}  # fmt: skip
LARGER_IS_BETTER = {"throughput", "share_of_exchanges_without_retx"}

#: How many of a unit make the base unit of a metric.
UNITS: dict[str, dict[str, float]] = {
    "s": {"s": 1.0, "ms": 1e3, "us": 1e6, "min": 1 / 60},
    "1": {"": 1.0, "1": 1.0, "percent": 100.0, "percent of runs": 100.0, "fraction": 1.0, "runs": 1.0},
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
        #: Columns beyond those that every study has, and whether they differ between cells.
        seen: dict[str, dict[Value, None]] = {}
        for name in dict.fromkeys(name for cell in self.cells for name in cell.columns if name not in BASE_COLUMNS):
            seen[name] = dict.fromkeys(cell.columns.get(name, "") for cell in self.cells)
        self.varying = tuple(sorted(name for name, values in seen.items() if len(values) > 1))
        self.constant: dict[str, Value] = {name: next(iter(seen[name])) for name in seen if name not in self.varying}
        self._places: dict[Population, tuple[Cell, int | None]] = {}
        for cell in self.cells:
            for population, group in _populations(cell, self.varying):
                self._places.setdefault(population, (cell, group))
        self._kept: dict[tuple[str, Population], Sample] = {}
        self._evidence = Evidence(results)

    def populations(self) -> Iterable[Population]:
        """Every population the results hold, in the order of cells."""
        return self._places.keys()

    def values(self, column: str) -> tuple[Value, ...]:
        """The values that a column has in the results, in the order of cells; none if no cell has it."""
        if column in self.constant:
            return (self.constant[column],)
        return tuple(dict.fromkeys(v for v in (p.column(column) for p in self._places) if v is not None))

    def has(self, population: Population) -> bool:
        """Whether the results hold this population."""
        return self._known(population) is not None

    def cell(self, population: Population) -> Cell:
        """The cell the population lives in. Raises KeyError if the results do not hold it."""
        return self._place(population)[0]

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
        cell, group = self._place(population)
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

    def named(self, metric: str, population: Population) -> Sample:
        """A metric of what replies name; runs without such replies have no value."""
        cell, group = self._place(population)
        kind = KINDS.get(metric)
        values = self._evidence.errors(cell, group) if kind is None else self._evidence.shares(cell, kind, group)
        there = np.isfinite(values)
        return Sample(values[there], self._evidence.runs(cell)[there], int(np.count_nonzero(~there)))

    # ----------------------------------------------------------------------------------------------- columns

    def flow_column(self, population: Population, column: str) -> NDArray[np.generic]:
        """A column of the population's rows of the `flows` table, as it stands there (NaN where it is null)."""
        cell, group = self._place(population)
        rows = self._flow_rows[cell.number]
        if column not in self._flows:
            # results of an earlier version: no value is known
            return np.full(len(self.flow_column(population, "run")), np.nan)
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

    # ----------------------------------------------------------------------------------------------- places

    def _known(self, population: Population) -> Population | None:
        """The population as the results name it; None if they do not hold it."""
        if population in self._places:
            return population
        if any(self.constant.get(name, value) != value for name, value in population.more):
            return None
        short = replace(population, more=tuple(pair for pair in population.more if pair[0] not in self.constant))
        return short if short in self._places else None

    def _place(self, population: Population) -> tuple[Cell, int | None]:
        known = self._known(population)
        if known is None:
            raise KeyError(population)
        return self._places[known]


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


def _throughput(measures: Measures, population: Population) -> Floats:
    completed = measures.flow_column(population, "completed").astype(np.float64)
    lasted = measures.flow_column(population, "fct_us").astype(np.float64) * 1e-6
    rate: Floats = np.divide(completed, lasted, out=np.full(len(lasted), np.nan), where=lasted > 0)
    return rate


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


def _rto_in_rtts(measures: Measures, population: Population) -> Floats:
    wait = measures.flow_column(population, "first_wait_mean_us").astype(np.float64)
    rtt = measures.flow_column(population, "rtt_true_mean_us").astype(np.float64)
    ratio: Floats = np.divide(wait, rtt, out=np.full(len(wait), np.nan), where=rtt > 0)
    return ratio


def _named(metric: str) -> Compute:
    return lambda measures, population: measures.named(metric, population)


def _sum(*columns: str) -> Callable[[Measures, Population], NDArray[np.generic]]:
    def total(measures: Measures, population: Population) -> Floats:
        added: Floats = np.sum([measures.flow_column(population, name).astype(np.float64) for name in columns], axis=0)
        return added

    return total


def _either(one: str, other: str) -> Callable[[Measures, Population], NDArray[np.generic]]:
    """A column, or where it has no value another one."""

    def chosen(measures: Measures, population: Population) -> Floats:
        first = measures.flow_column(population, one).astype(np.float64)
        second = measures.flow_column(population, other).astype(np.float64)
        return np.where(np.isnan(first), second, first)

    return chosen


def _goodput(measures: Measures, population: Population) -> Floats:
    bits = 8 * measures.flow_column(population, "body_bytes").astype(np.float64)
    lasted = measures.flow_column(population, "fct_us").astype(np.float64) * 1e-6
    rate: Floats = np.divide(bits, lasted, out=np.full(len(lasted), np.nan), where=lasted > 0)
    return rate


def _each_run(column: str, function: Callable[[Floats], float], scale: float = 1.0) -> Compute:
    """One value for each run: a function of its clients' values. A run with an unfinished client has none."""

    def compute(measures: Measures, population: Population) -> Sample:
        values = measures.flow_column(population, column).astype(np.float64) * scale
        runs = measures.flow_column(population, "run").astype(np.int64)
        names, starts = np.unique(runs, return_index=True)
        found = np.array([function(part) for part in np.split(values, starts[1:])])
        there = np.isfinite(found)
        return Sample(found[there], names[there], int(np.count_nonzero(~there)))

    return compute


def _retransmissions(measures: Measures, population: Population) -> Floats:
    """Of either transport: copies of a message, or segments sent again by client and server."""
    ends = ("fast_retransmits", "timeout_retransmits", "request_retransmits")
    segments = _sum(*ends)(measures, population)
    messages = measures.flow_column(population, "retransmissions").astype(np.float64)
    return np.where(np.isnan(segments), messages, segments)


def _last_starts_last(measures: Measures, population: Population) -> Sample:
    begun = measures.flow_column(population, "first_send_us").astype(np.float64)
    ended = begun + measures.flow_column(population, "fct_us").astype(np.float64)
    runs = measures.flow_column(population, "run").astype(np.int64)
    names, starts = np.unique(runs, return_index=True)
    pairs = zip(np.split(begun, starts[1:]), np.split(ended, starts[1:]), strict=True)
    found = np.array([float(np.argmax(b) == np.argmax(e)) if np.all(np.isfinite(e)) else np.nan for b, e in pairs])
    there = np.isfinite(found)
    return Sample(found[there], names[there], int(np.count_nonzero(~there)))


def _queue(measures: Measures, cell: Cell) -> Floats:
    return measures.link_column(cell, "queue_mean_bytes", "downlink")


def _increase(measures: Measures, population: Population) -> Sample:
    alone = measures.sample("fct", population.but(clients=1, partner=""))
    mine = measures.sample("fct", population)
    return replace(mine, values=mine.values - alone.take("median"))


_FUNCTIONS: dict[str, Compute] = {
    "fct": _flows(_plain("fct_us"), 1e-6),
    "fct_spread": _flows(_plain("fct_us"), 1e-6),
    "throughput": _flows(_throughput),
    "rto": _flows(_plain("first_wait_mean_us"), 1e-6),
    "fct_increase_vs_1_client": _increase,
    "rtt": _flows(_plain("rtt_first_mean_us"), 1e-6),
    "rtt_true": _flows(_plain("rtt_true_mean_us"), 1e-6),
    "rtt_strong": _flows(_plain("rtt_strong_mean_us"), 1e-6),
    "retransmissions_per_client": _flows(_retransmissions),
    "retx_per_exchange": _flows(_per_exchange("retransmissions")),
    "unnecessary_retx_per_client": _flows(_either("spurious", "unnecessary")),
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
    "rto_in_rtts": _flows(_rto_in_rtts),
    "goodput": _flows(_goodput),
    "connections": _flows(_plain("connections")),
    "segments_sent": _flows(_plain("segments")),
    "retransmitted_segments": _flows(_sum("fast_retransmits", "timeout_retransmits")),
    "needless_segments": _flows(_plain("spurious")),
    "lost_segments": _flows(_sum("dropped_queue", "dropped_radio")),
    "timeouts": _flows(_plain("timeouts")),
    "timeouts_per_run": _each_run("timeouts", lambda values: float(np.sum(values))),
    "longest_rto": _flows(_plain("longest_rto_us"), 1e-6),
    "first_timeout": _flows(_plain("first_timeout_us"), 1e-6),
    "spread_in_run": _each_run("fct_us", statistics.spread),
    "one_flow_faster": _each_run("fct_us", statistics.one_ahead),
    "one_flow_slower": _each_run("fct_us", statistics.one_behind),
    "alike_in_run": _each_run("fct_us", statistics.alike),
    "last_starts_last": _last_starts_last,
    **{metric: _named(metric) for metric in (*KINDS, "naming_error")},
}


# ----------------------------------------------------------------------------------------------- helpers


def clients_in_words(number: object) -> str:
    """`1 client`, `50 clients`."""
    return f"{number} client" if number == 1 else f"{number} clients"


def column_in_words(name: str, value: Value) -> str:
    """A further column as part of a place: `176 B payload`, `high loss`; nothing for an empty value."""
    if name == "payload":
        return f"{value} B payload"
    if name == "ratio":
        return f"first wait {value} round trips"
    if name == "server":
        return f"replies {value}"
    if name == "bottleneck":
        return "" if value == "none" else f"{value} for all"
    if name == "error_profile":
        share = f"{value} %" if str(value).isdecimal() else str(value)
        return f"{share} loss".replace("none", "no")
    return str(value)


def path_in_words(path: str) -> str:
    """A path variant as part of a place; nothing for the usual one."""
    return _PATHS.get(path, path.replace("-", " "))


def _populations(cell: Cell, varying: Sequence[str]) -> Iterable[tuple[Population, int | None]]:
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
                more=tuple((name, columns.get(name, "")) for name in varying),
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
