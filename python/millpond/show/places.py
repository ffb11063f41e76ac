"""What the terminal shows of every place of a study: completion times and copies in vain, a column a controller."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from millpond.measure.measures import Measures
from millpond.measure.population import VARIANT, Population, path_in_words
from millpond.results.directory import Cell, Value
from millpond.show import factors, labels
from millpond.show.factors import SERIES, Factor
from millpond.show.tables import titled

#: At most so many algorithms side by side, and so many rows before values along the last factor are left out.
_ABREAST, _MANY = 6, 60


def completion(measures: Measures, keep: Callable[[Population], bool] = lambda _: True) -> list[Table]:
    """Median completion time and unnecessary retransmissions: a column an algorithm, a row a place.

    The factor with fewest words makes a table each. Many algorithms are spread over several tables; of many places only
    the smallest and the largest value of the last factor are shown.
    """
    alone = [p for p in measures.populations() if not p.partner and keep(p)]
    if not alone:
        return []
    frame = _Frame.of(measures, alone)
    note, tables = "", max(1, len({p.column(frame.parts) for p in alone}))
    if frame.last and len({population.but(algorithm="") for population in alone}) > _MANY * tables:
        values = frame.spoken[frame.last].ordered(p.value(frame.last) for p in alone)
        alone = [population for population in alone if population.column(frame.last) in (values[0], values[-1])]
        note = f"the smallest and the largest {frame.spoken[frame.last].label}; the report has all"
    algorithms = list(dict.fromkeys(population.algorithm for population in alone))
    count = -(-len(algorithms) // _ABREAST)
    size = -(-len(algorithms) // max(1, count))
    made = [
        table
        for start in range(0, len(algorithms), size)
        for table in _completion(
            measures, frame, [p for p in alone if p.algorithm in algorithms[start : start + size]], note
        )
    ]
    # columns have room for the plan's names only; the report writes them out
    made[0].caption = "; ".join(filter(None, (str(made[0].caption or ""), _called(measures, algorithms)))) or None
    return made


def mixes(measures: Measures) -> list[Table]:
    """Two populations on one bottleneck: each beside the other, and as when all clients were like it."""
    mixed = [population for population in measures.populations() if population.partner]
    if not mixed:
        return []
    frame = _Frame.of(measures, mixed)
    names = [*frame.names, *([frame.last] if frame.last else []), *([frame.parts] if frame.parts else [])]
    table = titled("Half and half: median completion time in s / unnecessary retransmissions per client")
    for name in names:
        table.add_column(frame.spoken[name].label, justify="right", no_wrap=True)
    for name in ("half", "beside"):
        table.add_column(name)
    table.add_column("in the mix", justify="right")
    table.add_column("all alike", justify="right")
    for population in mixed:
        like = population.but(partner="")
        table.add_row(
            *(escape(frame.tick(name, population)) for name in names),
            population.algorithm,
            population.partner,
            pair(measures, population),
            pair(measures, like) if measures.has(like) else "",
        )
    return [table]


def pair(measures: Measures, population: Population) -> str:
    """The median completion time, of which share of the clients if not of all, and the copies in vain."""
    fct = measures.sample("fct", population)
    median, needless = (measures.estimate(name, population) for name in ("fct", "unnecessary_retx_per_client"))
    share = f"({fct.n / (fct.n + fct.missing):.0%})" if fct.missing else ""
    return f"{_short(median.value)}{share}/{needless.value:.0f}"


# ----------------------------------------------------------------------------------------------- helpers


def _called(measures: Measures, algorithms: Sequence[str]) -> str:
    """What the plan's names of algorithms stand for, where they do not say it themselves."""
    names = {name: labels.algorithm(measures.results.manifest, name) for name in algorithms}
    return ", ".join(f"{name} is {label}" for name, label in names.items() if label != name)


class _Frame:
    """Which factor makes tables, which columns, and which the last column, that marks readings of the test bed."""

    def __init__(self, spoken: Mapping[str, Factor], parts: str, names: Sequence[str], last: str) -> None:
        self.spoken, self.parts, self.names, self.last = spoken, parts, tuple(names), last

    @staticmethod
    def of(measures: Measures, found: Sequence[Population]) -> _Frame:
        spoken = factors.of(measures.results)
        cells: list[Cell] = list({cell.number: cell for cell in map(measures.cell, found)}.values())
        first = cells[0].columns.get(VARIANT, "")
        named = [name for name in factors.varying(cells, spoken) if name not in (SERIES, VARIANT)]
        last = factors.across([cell for cell in cells if cell.columns.get(VARIANT, "") == first], named)
        words = [name for name in named if any(isinstance(cell.columns.get(name, ""), str) for cell in cells)]
        parts = min(words, key=lambda name: len({cell.columns.get(name, "") for cell in cells})) if words else ""
        others = [name for name in named if name not in (last, parts)]
        return _Frame(spoken, parts, sorted(others, key=lambda name: name not in words), last)

    def tick(self, name: str, population: Population) -> str:
        value = population.column(name)
        return "" if value is None else self.spoken[name].tick(value)


def _completion(measures: Measures, frame: _Frame, alone: Sequence[Population], note: str) -> list[Table]:
    algorithms = list(dict.fromkeys(population.algorithm for population in alone))
    paths = list(dict.fromkeys(str(population.column(VARIANT) or "") for population in alone))
    made = []
    for part in dict.fromkeys(population.column(frame.parts) for population in alone):
        told = f", {frame.spoken[frame.parts].say(part)}" if frame.parts and part is not None else ""
        table = titled(f"Median flow completion time in s / unnecessary retransmissions per client{told}")
        for name in frame.names:
            table.add_column(frame.spoken[name].label.replace(" ", "\n"), justify="right", no_wrap=True)
        if frame.last or len(paths) > 1:
            table.add_column(frame.spoken[frame.last].label if frame.last else "", justify="right", no_wrap=True)
        for algorithm in algorithms:
            table.add_column(algorithm.replace("_", "\n"), justify="right", no_wrap=True)
        here = dict.fromkeys(p.but(algorithm="") for p in alone if p.column(frame.parts) == part)
        before: tuple[Any, ...] | None = None
        covered = False
        for place in _ranked(frame, list(here), paths):
            cells = []
            for algorithm in algorithms:
                population = place.but(algorithm=algorithm)
                cells.append(pair(measures, population) if measures.has(population) else "")
            covered = covered or any("(" in cell for cell in cells)
            where = tuple(escape(frame.tick(name, place)) for name in frame.names)
            if before not in (None, where):
                table.add_section()
            # one table may hold several readings: others than the first are marked, and the caption says how
            mark = "~" * paths.index(str(place.column(VARIANT) or ""))
            last = [f"{mark}{frame.tick(frame.last, place)}"] if frame.last or len(paths) > 1 else []
            table.add_row(*(where if before != where else [""] * len(where)), *last, *cells)
            before = where
        marks = [f"{'~' * number} {path_in_words(path)}" for number, path in enumerate(paths) if number]
        unit = frame.spoken[frame.last].unit if frame.last else ""
        words = (
            ", ".join(marks),
            f"{frame.spoken[frame.last].label}s in {unit}" if unit else "",
            "(60%): times of so many of the clients, the others did not come to their end" if covered else "",
            note,
        )
        table.caption = "; ".join(word for word in words if word) or None
        made.append(table)
    return made


def _ranked(frame: _Frame, places: list[Population], paths: Sequence[str]) -> list[Population]:
    """In the order of the columns: numbers by size, words as they come."""
    names = [*frame.names, *([frame.last] if frame.last else [])]
    orders: dict[str, dict[Value, int]] = {
        name: {v: rank for rank, v in enumerate(frame.spoken[name].ordered(p.value(name) for p in places))}
        for name in names
    }
    return sorted(
        places,
        key=lambda p: (
            *(orders[name][p.value(name)] for name in names),
            paths.index(str(p.column(VARIANT) or "")),
        ),
    )


def _short(seconds: float) -> str:
    if math.isnan(seconds):
        return "-"
    return f"{seconds:.1f}" if seconds < 1000 else f"{seconds:.0f}"
