"""What the pictures are drawn from: cells picked by their scenario columns, columns as arrays, spreads of figures.

Reads only a results directory. Times come out in seconds, sizes in bytes, missing values as NaN.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from millpond.controllers.own import is_own
from millpond.measure.clients import OVER_TCP, of_either_transport
from millpond.measure.estimate import AMOUNT, Estimate, mean, taken
from millpond.measure.links import useful_share
from millpond.measure.measures import Measures
from millpond.measure.reported import Reported
from millpond.measure.sample import Sample
from millpond.plan.quantity import BITS_PER_SECOND
from millpond.results.directory import Cell, Group, Results, Value
from millpond.results.rows import TableRows
from millpond.results.rows import of as rows_of
from millpond.show import factors, labels
from millpond.show.factors import SERIES, Factor
from millpond.show.report import style
from millpond.show.report.values import Floats, Spread, View

#: The first of some runs, and the one behind the last.
Runs: TypeAlias = tuple[int, int]

VARIANT = "path"
"""The factor that tells readings of a test bed apart; no picture mixes them."""
UPLINK, DOWNLINK = "uplink", "downlink"
STAGES = 4
"""At most so many places are looked at closely."""
PANELS = 8
"""At most so many panels a picture; more are spread over several."""


class Data:
    """Results, cut by cell. Every column is converted once and then sliced."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self.cells = list(results.cells)
        #: Every factor of the results, as the plan declares it.
        self.factors: dict[str, Factor] = factors.of(results)
        #: The first reading of the test bed; empty if it was not varied.
        self.first = next((str(cell.columns.get(VARIANT, "")) for cell in self.cells), "")
        alike = [cell for cell in self.cells if not cell.mixed and cell.columns.get(VARIANT, "") == self.first]
        named = [name for name in self.factors if name != SERIES]
        #: The factor along the axis of a panel; empty if no factor of numbers was varied.
        self.across = factors.across(alike, [name for name in named if name != VARIANT])
        #: The other factors that tell cells apart, beside whose clients they are.
        self.varying = tuple(name for name in factors.varying(self.cells, named) if name != self.across)
        #: The readings of the test bed, in the order of cells.
        self.paths = tuple(dict.fromkeys(str(cell.columns.get(VARIANT, "")) for cell in self.cells)) or ("",)
        self.reported = Reported(results)
        self._spreads: dict[tuple[str, int, int | None], Spread | None] = {}

    @staticmethod
    def of(results: Results | Data) -> Data:
        """The same results, cut by cell; what is cut already stays as it is."""
        return results if isinstance(results, Data) else Data(results)

    # -- cells ------------------------------------------------------------------------------------------------------

    @property
    def whole(self) -> View:
        """All cells on the first reading of the test bed."""
        return View({VARIANT: self.first} if VARIANT in self.varying else {})

    def plain(self, view: View | None = None) -> list[Cell]:
        """Cells with one kind of controller, of one view (else of the first reading of the test bed)."""
        view = view or self.whole
        return [cell for cell in self.cells if not cell.mixed and view.covers(cell)]

    def views(self) -> list[View]:
        """The views of these results: cut by one factor after another until few enough panels are left.

        No view mixes readings of the test bed.
        """
        variants = dict.fromkeys(cell.columns.get(VARIANT, "") for cell in self.cells)
        return [part for name in variants for part in self.parts(View({VARIANT: name} if len(variants) > 1 else {}))]

    def parts(self, view: View) -> list[View]:
        """The view, or if it has too many places, parts of it by the values of one further factor after another."""
        plain = self.plain(view)
        if len({self.place(cell) for cell in plain}) <= PANELS:
            return [view] if plain else []
        found = {name: dict.fromkeys(cell.columns.get(name, "") for cell in plain) for name in self.varying}
        several = {name: values for name, values in found.items() if len(values) > 1}
        # words before numbers, then the factor with fewest values
        name = min(several, key=lambda name: (_numeric(several[name]), len(several[name])))
        return [part for value in several[name] for part in self.parts(view.but(**{name: value}))]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the factors that `spot` gives values of."""
        return (*self.varying, *([self.across] if self.across else []))

    @cached_property
    def stages(self) -> list[View]:
        """The places that the study looks at closely: those with traced runs, at most `STAGES`; one at least."""
        plain = self.plain()
        traced = [cell for cell, _ in self.traced(plain)]
        places = dict.fromkeys(self.spot(cell) for cell in traced or plain[-1:])
        names = (*self.varying, *([self.across] if self.across else []))
        return [View(dict(zip(names, place, strict=True))) for place in list(places)[:STAGES]]

    def spot(self, cell: Cell) -> tuple[Value, ...]:
        """Where a cell is, its place along the axis included."""
        return (*self.place(cell), *([cell.columns.get(self.across, "")] if self.across else []))

    def place(self, cell: Cell) -> tuple[Value, ...]:
        """What a panel is about: the factors beside the one along the axis."""
        return tuple(cell.columns.get(name, "") for name in self.varying)

    def ranked(self, places: Iterable[tuple[Value, ...]]) -> list[tuple[Value, ...]]:
        """Each place once: as they come, but by size where only one number differs."""
        seen = list(dict.fromkeys(places))
        words = [at for at in range(len(self.varying)) if not _numeric(place[at] for place in seen)]
        return self.in_order(seen, words)

    def in_order(self, places: Iterable[tuple[Value, ...]], first: Sequence[int] = ()) -> list[tuple[Value, ...]]:
        """Each place once, by one column after another, some of them first: words as they come, numbers by size."""
        seen = list(dict.fromkeys(places))
        count = len(seen[0]) if seen else 0
        orders = [
            {value: rank for rank, value in enumerate(self.factors[name].ordered(place[at] for place in seen))}
            for at, name in enumerate(self.columns[:count])
        ]
        columns = [*first, *(at for at in range(count) if at not in first)]
        return sorted(seen, key=lambda place: [orders[at][place[at]] for at in columns])

    def along(self, cells: Iterable[Cell]) -> list[Value]:
        """Where cells stand along the axis, in order; one empty value if nothing is along it."""
        if not self.across:
            return [""]
        return self.factors[self.across].ordered(cell.columns.get(self.across, "") for cell in cells)

    def at(self, cell: Cell) -> Value:
        """Where a cell stands along the axis."""
        return cell.columns.get(self.across, "") if self.across else ""

    def belongs(self, said: Mapping[str, object], cell: Cell, names: Iterable[str]) -> bool:
        """Whether what is said of a published figure means this cell, by these of its columns.

        A factor that a figure does not name has its usual value: nothing, `none`, or the first reading of the test bed.
        """
        for name in names:
            here = cell.columns.get(name, "")
            usual = self.first if name == VARIANT else here if here in ("", "none") else None
            if str(said.get(name, usual)) != str(here):
                return False
        return True

    def numeric(self, name: str) -> bool:
        """Whether a factor is one of numbers."""
        return _numeric(cell.columns.get(name, "") for cell in self.cells)

    # -- words ------------------------------------------------------------------------------------------------------

    def place_in_words(self, place: Sequence[Value], view: View) -> str:
        """The title of a panel: what the view does not say already."""
        return ", ".join(self.further_in_words(place, view))

    def further_in_words(self, place: Sequence[Value], view: View) -> list[str]:
        """The same, word by word."""
        told = zip(self.varying, place, strict=True)
        words = (self.factors[name].say(value) for name, value in told if name not in view.only)
        return [word for word in words if word]

    def spot_in_words(self, cell: Cell) -> str:
        """Where a cell is, in words."""
        names = (*self.varying, *([self.across] if self.across else []))
        words = [self.factors[name].say(cell.columns.get(name, "")) for name in names]
        return ", ".join(word for word in words if word)

    def words(self, view: View) -> str:
        """What tells a view from others, as in `high loss, as meant`; empty if there is nothing to tell."""
        told = [self.factors[name].say(value) for name, value in view.only.items() if name in self.factors]
        return ", ".join(word for word in told if word)

    def since(self, cells: Iterable[Cell]) -> str:
        """What times of being done count from: `the start`, `the first event that concerns the group`, or either."""
        found = {event for cell in cells for event in self.reported.since(cell)}
        words = "the first event that concerns the group"
        return "the start" if found <= {0} else words if 0 not in found else f"the start, or {words}"

    # -- controllers ------------------------------------------------------------------------------------------------

    @cached_property
    def presets(self) -> dict[str, str]:
        """The preset behind each algorithm of the results, or its own name if it has none."""
        found: dict[str, str] = {}
        for cell in self.cells:
            for group in cell.groups:
                found.setdefault(group.algorithm, labels.preset(group.algorithm, clients_of(cell, group)))
        return found

    def controllers(self, cells: Iterable[Cell] | None = None) -> list[str]:
        """The algorithms of the results or of some cells: presets first, in the order of the palette, then others."""
        seen = dict.fromkeys(name for cell in (self.cells if cells is None else cells) for name in members(cell))
        order = {name: rank for rank, name in enumerate(labels.CONTROLLERS)}
        return sorted(seen, key=lambda name: order.get(self.presets[name], len(order)))

    def label(self, algorithm: str) -> str:
        """What an algorithm is called, the same in tables and pictures."""
        return labels.algorithm(self.results.manifest, algorithm)

    @cached_property
    def looks(self) -> dict[str, style.Look]:
        """How each algorithm is drawn wherever it appears: its preset's look, the accent for one of one's own."""
        return style.looks(
            {name: self.presets[name] for name in self.controllers()}, {n for n in self.presets if is_own(n)}
        )

    # -- columns ----------------------------------------------------------------------------------------------------

    def values(
        self, table: str, column: str, cell: Cell, group: Group | None = None, link: str | None = None
    ) -> Floats:
        """One column of the cell's rows, only those of a client group or of a link if given. `_us` becomes seconds."""
        runs = _runs_of(cell)
        values = self._column(table, column, runs)
        if group is not None:
            values = values[self._column(table, "group", runs) == group.index]
        if link is not None:
            values = values[self._on(table, link, runs)]
        return values

    def spread(self, column: str, cell: Cell, group: Group | None = None) -> Spread | None:
        """The spread of a column of `flows` over all replications; None if no client has a value."""
        key = (column, cell.number, None if group is None else group.index)
        if key not in self._spreads:
            self._spreads[key] = Spread.of(self.values("flows", column, cell, group))
        return self._spreads[key]

    def estimated(self, column: str, cell: Cell, group: Group | None = None, statistic: str = "median") -> Estimate:
        """The statistic of a column of `flows` as it is shown everywhere: of each run, its mean over the runs."""
        values, runs = (self.values("flows", name, cell, group) for name in (column, "run"))
        return taken(Sample.of(values, runs), statistic).estimate(within=AMOUNT)

    def estimate(self, column: str, cell: Cell, group: Group | None = None, statistic: str = "median") -> float:
        """The same without its interval."""
        return self.estimated(column, cell, group, statistic).value

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
        return [str(name) for name in dict.fromkeys(self._cut("links").column(*_runs_of(cell), "link").tolist())]

    @cached_property
    def measures(self) -> Measures:
        """The metrics of these results, by the one registry."""
        return Measures(self.results)

    def bottleneck(self, cell: Cell) -> str:
        """The link that is busy longest, or that the plan names."""
        return self.measures.bottleneck(cell) or DOWNLINK

    def useful_share(self, cell: Cell) -> float:
        """The metric `useful_share` of the cell; NaN if its bottleneck carried nothing."""
        return mean(useful_share(self.measures, cell, self.bottleneck(cell))).value

    def traced(self, cells: Sequence[Cell]) -> list[tuple[Cell, int]]:
        """Those of the cells that have a traced run, with the number of their first one."""
        found = ((cell, self.first_run("queue_trace", cell)) for cell in cells)
        return [(cell, run) for cell, run in found if run is not None]

    def trace(self, table: str, run: int, link: str, columns: Sequence[str]) -> list[Floats]:
        """Columns of a trace of one run and link, in the order of time."""
        mine = self._on(table, link, (run, run + 1))
        picked = [self._column(table, column, (run, run + 1))[mine] for column in columns]
        order = np.argsort(picked[0], kind="stable") if picked else slice(None)
        return [values[order] for values in picked]

    # -- single runs ------------------------------------------------------------------------------------------------

    def has(self, table: str, *columns: str) -> bool:
        """Whether the results hold this table with these columns."""
        return self.results.has(table) and set(columns) <= self._cut(table).names

    def first_run(self, table: str, cell: Cell) -> int | None:
        """The first run of the cell of which a table holds rows; None if there is none."""
        if not self.results.has(table):
            return None
        runs = self._cut(table).column(*_runs_of(cell), "run")
        return int(runs[0]) if runs.size else None

    def rows(self, table: str, run: int, columns: Sequence[str], flow: int | None = None) -> list[Floats]:
        """Columns of one run's rows of a table, or of one flow's, in the order in which they were written."""
        only = (run, run + 1)
        mine = slice(None) if flow is None else self._column(table, "flow", only) == flow
        return [self._column(table, column, only)[mine] for column in columns]

    def texts(self, table: str, run: int, column: str, flow: int | None = None) -> list[str]:
        """A column of text of the same rows; empty where nothing is said."""
        only = (run, run + 1)
        found = self._cut(table).column(*only, column)
        found = found if flow is None else found[self._column(table, "flow", only) == flow]
        return ["" if word is None else str(word) for word in found.tolist()]

    # -- helpers ----------------------------------------------------------------------------------------------------

    def _cut(self, table: str) -> TableRows:
        return rows_of(self.results, table)

    def _column(self, table: str, column: str, runs: Runs) -> Floats:
        if table == "flows" and column in OVER_TCP:
            return of_either_transport(column, lambda name: self._raw(table, name, runs))
        return self._raw(table, column, runs)

    def _raw(self, table: str, column: str, runs: Runs) -> Floats:
        values = self._cut(table).column(*runs, column).astype(np.float64)
        return values / 1e6 if column.endswith("_us") else values

    def _on(self, table: str, link: str, runs: Runs) -> npt.NDArray[np.bool_]:
        found: npt.NDArray[np.bool_] = self._cut(table).column(*runs, "link") == link
        return found


def _runs_of(cell: Cell) -> Runs:
    return cell.first_run, cell.first_run + cell.replications


def members(cell: Cell) -> list[str]:
    """The algorithms of the cell's client groups, each once."""
    return list(dict.fromkeys(group.algorithm for group in cell.groups))


def only(cell: Cell) -> str:
    """The one algorithm of a cell that is not mixed."""
    return members(cell)[0]


def clients_of(cell: Cell, group: Group) -> Mapping[str, Any]:
    """The table of a group's clients in the scenario of its cell."""
    tables = cell.scenario.get("clients", ())
    return tables[group.index] if group.index < len(tables) else {}


def number(cell: Cell, column: str) -> float:
    """A scenario column as a number; NaN if the cell does not have it."""
    try:
        return float(cell.columns.get(column, "nan"))
    except ValueError:
        return float("nan")


def links_of(cell: Cell) -> dict[str, Mapping[str, Any]]:
    """The links of a cell's scenario by name, as it describes them."""
    network: Mapping[str, Any] = cell.scenario.get("network") or {}
    named: Mapping[str, Any] = network.get("links") or cell.scenario.get("path") or {}
    return {name: said for name, said in named.items() if isinstance(said, Mapping) and "rate" in said}


def rate(cell: Cell, link: str) -> float | None:
    """The link's rate in bit/s as the scenario says it; None if it is unlimited, not said, or changes in the run."""
    if any(event.get("kind") == "rate" and event.get("link") == link for event in cell.scenario.get("timeline") or ()):
        return None
    said = links_of(cell).get(link, {}).get("rate")
    if isinstance(said, int | float):
        return float(said) or None
    found = re.fullmatch(r"\s*([\d.]+)\s*(\S+)\s*", str(said))
    if found is None or found[2] not in BITS_PER_SECOND:
        return None
    return float(found[1]) * BITS_PER_SECOND[found[2]] or None


def _numeric(values: Iterable[Value]) -> bool:
    return all(not isinstance(value, str) for value in values)
