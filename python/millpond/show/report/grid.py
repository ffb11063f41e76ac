"""Places of settings: the axis of a panel, the factors that distinguish panels, and what is called how.

Numbers come from the metrics alone, `Grid.measures`; what was traced of a run is read as it stands. Times come out in
seconds, sizes in bytes, missing values as NaN.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from millpond.controllers.own import is_own
from millpond.measure.estimate import Estimate
from millpond.measure.measures import Measures
from millpond.measure.metrics import METRICS
from millpond.measure.statistics import PERCENTILES
from millpond.plan.values import in_base
from millpond.results.directory import Cell, Group, Results
from millpond.results.factor import ALGORITHM, PARTNER, PATH, Value
from millpond.results.rows import TableRows
from millpond.show import labels
from millpond.show.report import style

UPLINK, DOWNLINK = "uplink", "downlink"
STAGES = 4
"""At most so many places are looked at closely."""
PANELS = 8
"""At most so many panels a picture; more are spread over several."""


@dataclass(frozen=True)
class Facet:
    """Which cells a picture is about: those where these factors have these values."""

    only: Mapping[str, Value]

    def covers(self, cell: Cell) -> bool:
        """Whether the cell is drawn."""
        return all(cell.columns.get(name, "") == value for name, value in self.only.items())

    def but(self, **only: Value) -> Facet:
        """The same, limited further."""
        return Facet({**self.only, **only})

    @property
    def name(self) -> str:
        """The same for the name of a picture; empty for all cells."""
        return "-".join(
            re.sub(r"[^a-z0-9]+", "-", str(value).lower()).strip("-") or "none" for value in self.only.values()
        )


class Grid:
    """Results, and how their cells are laid out."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self.cells = list(results.cells)
        #: Every factor of the results, as the plan declares it.
        self.factors = results.factors
        #: The first reading of the test bed; empty if it was not varied.
        self.first = next((str(cell.columns.get(PATH, "")) for cell in self.cells), "")
        alike = [cell for cell in self.cells if not cell.mixed and cell.columns.get(PATH, "") == self.first]
        named = [name for name in self.factors if name != ALGORITHM]
        #: The factor along the axis of a panel; empty if no factor of numbers was varied.
        self.across = across(alike, [name for name in named if name != PATH])
        #: The other factors that distinguish cells, beside whose clients they are.
        self.varying = tuple(name for name in varying(self.cells, named) if name != self.across)
        #: The readings of the test bed, in the order of cells.
        self.paths = tuple(dict.fromkeys(str(cell.columns.get(PATH, "")) for cell in self.cells)) or ("",)
        #: The metrics of these results, by the one registry.
        self.measures = Measures(results)
        self.reported = self.measures.reported
        self._spreads: dict[tuple[str, int, int | None], Spread | None] = {}

    @staticmethod
    def of(results: Results | Grid) -> Grid:
        """The same results, cut by cell; what is cut already stays as it is."""
        return results if isinstance(results, Grid) else Grid(results)

    # -- cells ------------------------------------------------------------------------------------------------------

    @property
    def whole(self) -> Facet:
        """All cells on the first reading of the test bed."""
        return Facet({PATH: self.first} if PATH in self.varying else {})

    def plain(self, view: Facet | None = None) -> list[Cell]:
        """Cells with one kind of controller, of one view (else of the first reading of the test bed)."""
        view = view or self.whole
        return [cell for cell in self.cells if not cell.mixed and view.covers(cell)]

    def views(self) -> list[Facet]:
        """The views of these results: cut by one factor after another until few enough panels are left.

        No view mixes readings of the test bed.
        """
        variants = dict.fromkeys(cell.columns.get(PATH, "") for cell in self.cells)
        return [part for name in variants for part in self.parts(Facet({PATH: name} if len(variants) > 1 else {}))]

    def parts(self, view: Facet) -> list[Facet]:
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
    def stages(self) -> list[Facet]:
        """The places that the study looks at closely: those with traced runs, at most `STAGES`; one at least."""
        plain = self.plain()
        traced = [cell for cell, _ in self.traced(plain)]
        places = dict.fromkeys(self.spot(cell) for cell in traced or plain[-1:])
        names = (*self.varying, *([self.across] if self.across else []))
        return [Facet(dict(zip(names, place, strict=True))) for place in list(places)[:STAGES]]

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
        if said.get(PARTNER) and not cell.mixed:
            return False
        for name in names:
            here = cell.columns.get(name, "")
            usual = self.first if name == PATH else here if here in ("", "none") else None
            if str(said.get(name, usual)) != str(here):
                return False
        return True

    def numeric(self, name: str) -> bool:
        """Whether a factor is one of numbers."""
        return _numeric(cell.columns.get(name, "") for cell in self.cells)

    # -- words ------------------------------------------------------------------------------------------------------

    def place_in_words(self, place: Sequence[Value], view: Facet) -> str:
        """The title of a panel: what the view does not say already."""
        return ", ".join(self.further_in_words(place, view))

    def further_in_words(self, place: Sequence[Value], view: Facet) -> list[str]:
        """The same, word by word."""
        told = zip(self.varying, place, strict=True)
        words = (self.factors[name].say(value) for name, value in told if name not in view.only)
        return [word for word in words if word]

    def spot_in_words(self, cell: Cell) -> str:
        """Where a cell is, in words."""
        names = (*self.varying, *([self.across] if self.across else []))
        words = [self.factors[name].say(cell.columns.get(name, "")) for name in names]
        return ", ".join(word for word in words if word)

    def words(self, view: Facet) -> str:
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
                found.setdefault(group.algorithm, cell.preset(group) or labels.preset(group.algorithm))
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
        """How each algorithm is drawn wherever it appears: its preset's look, the accent for a user's."""
        return style.looks(
            {name: self.presets[name] for name in self.controllers()}, {n for n in self.presets if is_own(n)}
        )

    # -- numbers ----------------------------------------------------------------------------------------------------

    def spread(self, metric: str, cell: Cell, group: Group | None = None) -> Spread | None:
        """How the values of a metric are spread over all replications; None if no client has one."""
        key = (metric, cell.number, None if group is None else group.index)
        if key not in self._spreads:
            self._spreads[key] = Spread.of(self.measures.sample(metric, self.measures.of(cell, group)).values)
        return self._spreads[key]

    def estimated(self, metric: str, cell: Cell, group: Group | None = None, statistic: str = "") -> Estimate:
        """The usual statistic of a metric, or another one, as it is shown everywhere."""
        statistic = "" if statistic == METRICS[metric].usual else statistic
        return self.measures.estimate(metric, self.measures.of(cell, group), statistic)

    def bottleneck(self, cell: Cell) -> str:
        """The link that is busy longest, or that the plan names."""
        return self.measures.bottleneck(cell) or DOWNLINK

    # -- what was traced of single runs -----------------------------------------------------------------------------

    def has(self, table: str, *columns: str) -> bool:
        """Whether the results hold this table with these columns."""
        return self.results.has(table) and set(columns) <= self._table(table).names

    def first_run(self, table: str, cell: Cell) -> int | None:
        """The first run of the cell of which a table holds rows; None if there is none."""
        runs = self._table(table).of(cell, "run")
        return int(runs[0]) if runs.size else None

    def traced(self, cells: Sequence[Cell], table: str = "queue_trace") -> list[tuple[Cell, int]]:
        """Those of the cells that have a traced run, with the number of their first one."""
        found = ((cell, self.first_run(table, cell)) for cell in cells)
        return [(cell, run) for cell, run in found if run is not None]

    def rows(self, table: str, run: int, columns: Sequence[str], **only: Value) -> list[Any]:
        """Columns of one run's rows of a table, as they were written; those alone where other columns say so.

        `_us` becomes seconds; a text is empty where nothing is said.
        """
        rows = self._table(table)
        mine = np.ones(len(rows.of_run(run, "run")), dtype=bool)
        for name, value in only.items():
            mine &= rows.of_run(run, name) == value
        return [_plain(rows.of_run(run, column)[mine], column) for column in columns]

    def _table(self, name: str) -> TableRows:
        return self.measures.table(name)


def _plain(values: Any, column: str) -> Any:
    if values.dtype == object:
        return np.array(["" if word is None else str(word) for word in values.tolist()], dtype=object)
    numbers = values.astype(np.float64)
    return numbers / 1e6 if column.endswith("_us") else numbers


def members(cell: Cell) -> list[str]:
    """The algorithms of the cell's client groups, each once."""
    return list(dict.fromkeys(group.algorithm for group in cell.groups))


def only(cell: Cell) -> str:
    """The one algorithm of a cell that is not mixed."""
    return members(cell)[0]


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
    return in_base(links_of(cell).get(link, {}).get("rate")) or None


def _numeric(values: Iterable[Value]) -> bool:
    return all(not isinstance(value, str) for value in values)


Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]


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

    @staticmethod
    def around(found: Estimate) -> Spread:
        """A number and its interval; it is its own interval where it has none."""
        low, high = found.interval or (found.value, found.value)
        return Spread(found.n, low, low, low, found.value, high, high, high)

    HEADER = ("n", "min", "p10", "p25", "median", "p75", "p90", "max")

    def row(self) -> tuple[object, ...]:
        """The fields in the order of `HEADER`."""
        return (self.n, self.minimum, self.p10, self.p25, self.median, self.p75, self.p90, self.maximum)


def varying(cells: Iterable[Cell], names: Iterable[str]) -> list[str]:
    """Those of the columns that differ between the cells."""
    columns = [cell.columns for cell in cells]
    return [name for name in names if len({said.get(name, "") for said in columns}) > 1]


def across(cells: Iterable[Cell], names: Iterable[str]) -> str:
    """The factor that an axis shows best: one of numbers that is varied at most places; the last of several.

    Empty if no factor of numbers varies.
    """
    cells = list(cells)
    best, most = "", 0.0
    for name in varying(cells, names):
        values = {cell.columns.get(name, "") for cell in cells}
        if any(isinstance(value, str) for value in values):
            continue
        places: dict[tuple[tuple[str, Value], ...], set[Value]] = {}
        for cell in cells:
            place = tuple((key, value) for key, value in cell.columns.items() if key != name)
            places.setdefault(place, set()).add(cell.columns.get(name, ""))
        share = sum(map(len, places.values())) / (len(places) * len(values))
        if share >= most:
            best, most = name, share
    return best
