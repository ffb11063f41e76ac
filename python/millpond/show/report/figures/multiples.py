"""Small multiples of a sweep: any metric over any factor, a panel for each pair of values of two others."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.axes import Axes

from millpond.errors import UsageError, unknown
from millpond.measure import metrics
from millpond.measure.measures import Measures
from millpond.measure.metric import Metric
from millpond.measure.population import Population
from millpond.results.directory import Results
from millpond.results.factor import ALGORITHM, LOGARITHMIC, Value
from millpond.show.document import Missing, Plot, Rows
from millpond.show.report.figures import facets
from millpond.show.report.figures.clock import Clock
from millpond.show.report.figures.facets import Point, Spec
from millpond.show.report.figures.matrix import series_of
from millpond.show.report.grid import Grid, Spread

MOST = 24
"""At most so many panels; more would be too small to read."""
LONGEST = 26
"""So many letters find room beside a panel; what is longer is broken."""


@dataclass(frozen=True)
class Layout:
    """Which factor makes rows, columns and the axis of the panels. Empty: none does."""

    rows: str
    columns: str
    across: str

    @staticmethod
    def of(grid: Grid, rows: str = "", columns: str = "", across: str = "") -> Layout:
        """The factors named; for those left out, factors that vary, those with most values first.

        Raises `UsageError` for a factor that the results do not have, or one that is named twice.
        """
        told = [name for name in (rows, columns, across) if name]
        if ALGORITHM in told:
            raise UsageError(
                f"{ALGORITHM}: stands in every panel, as colours: rows, columns and axis are other factors"
            )
        for name in told:
            if name not in grid.factors:
                raise UsageError(unknown("factor", name, [known for known in grid.factors if known != ALGORITHM]))
            if told.count(name) > 1:
                raise UsageError(f"factor {name!r} is named twice: rows, columns and axis need one each")
        left = [name for name in (grid.across, *grid.varying) if name and name not in told]
        left[1:] = sorted(left[1:], key=lambda name: -len({cell.columns.get(name, "") for cell in grid.cells}))
        across = across or (left.pop(0) if left else "")
        columns = columns or (left.pop(0) if left else "")
        return Layout(rows or (left.pop(0) if left else ""), columns, across)

    @property
    def names(self) -> tuple[str, ...]:
        """The factors that it has a place for."""
        return tuple(name for name in (self.rows, self.columns, self.across) if name)


def small_multiples(
    results: Results | Grid, metric: str = "fct", *, rows: str = "", columns: str = "", across: str = "",
    lines: bool = True,
) -> Plot:  # fmt: skip
    """A metric over one factor, a line for each controller, a panel for each value of two other factors.

    With `lines` the usual statistic and its 95 % interval over runs, else boxes of all values. A factor that has no
    place has its first value; the title says which.

    Raises:
        UsageError: for an unknown metric or factor.
        Missing: if no value of the metric is known.
    """
    grid = Grid.of(results)
    measures, layout, known = grid.measures, Layout.of(grid, rows, columns, across), metrics.metric(metric)
    found = {population: measures.estimate(known.name, population) for population in measures.populations()}
    if not any(np.isfinite(one.value) for one in found.values()):
        raise Missing(f"{known.title}: not drawn, these results do not hold it.")
    shown, note = _shown(grid, measures, layout)
    points = []
    for population in shown:
        values = measures.sample(known.name, population).values
        spread = Spread.around(found[population]) if lines else Spread.of(values)
        row, column, x = (population.value(n) if n else "" for n in (layout.rows, layout.columns, layout.across))
        if spread is not None and np.isfinite(spread.median):
            points.append(Point(row, column, x, population.algorithm, spread))
    down, beside = _values(grid, layout.rows), _values(grid, layout.columns)
    if len(down) * len(beside) > MOST:
        raise Missing(f"{known.title}: {len(down)} by {len(beside)} panels are too many: name other factors.")
    if not points:
        raise Missing(f"{known.title}: not drawn, these results do not hold it.")
    spec = _spec(grid, known, layout, points, lines, note)
    told = []
    for population, point in found.items():
        where = (measures.cell(population).columns.get(factor, "") for factor in grid.columns)
        low, high = point.interval or ("", "")
        told.append((*where, population.algorithm, population.partner, point.value, low, high))
    header = (*grid.columns, "controller", "beside", known.name, "ci95_low", "ci95_high")
    return Plot(Rows(header, tuple(told)), partial(facets.draw, points, spec))


# ----------------------------------------------------------------------------------------------- helpers


def _spec(grid: Grid, known: Metric, layout: Layout, points: Sequence[Point], lines: bool, note: str) -> Spec:
    clock = Clock.of([max(p.spread.p90 for p in points)] if known.unit == "s" else [])
    words = clock.label(known.title) if known.unit == "s" else known.axis
    values, factor = _values(grid, layout.across), grid.factors.get(layout.across)
    numeric = bool(factor) and lines and grid.numeric(layout.across) and len(values) > 2

    def title(row: Value, column: Value) -> str:
        told = ((layout.rows, row), (layout.columns, column))
        return ", ".join(filter(None, (grid.factors[name].say(value) for name, value in told if name)))

    def marked(panel: Axes, *_: Value) -> None:
        clock.mark(panel.yaxis, max(p.spread.p90 for p in points))

    return Spec(
        "line" if lines else "box",
        textwrap.fill(words, LONGEST),
        series_of(grid),
        x=factor.axis if factor is not None else "",
        tick=factor.tick if factor is not None else lambda _: "",
        title=title,
        xs=values,
        rows=_values(grid, layout.rows),
        columns=_values(grid, layout.columns),
        numeric=numeric,
        log_x=numeric and factor is not None and factor.scale == LOGARITHMIC and min(map(float, values)) > 0,
        shared=True,
        percent=known.unit == "1",
        height=2.4,
        note=note,
        further=marked,
    )


def _shown(grid: Grid, measures: Measures, layout: Layout) -> tuple[list[Population], str]:
    """The populations that are drawn: where factors without a place have the value that the sweep looks at closely."""
    fixed: dict[str, Value] = {}
    stage = grid.stages[0].only if grid.stages else {}
    for name in grid.columns:
        if name not in layout.names:
            fixed[name] = stage.get(name, grid.cells[0].columns.get(name, ""))
    shown = [
        population
        for population in measures.populations()
        if not population.partner
        and all(measures.cell(population).columns.get(name, "") == value for name, value in fixed.items())
    ]
    return shown, ", ".join(word for name, value in fixed.items() if (word := grid.factors[name].say(value)))


def _values(grid: Grid, factor: str) -> list[Value]:
    if not factor:
        return [""]
    return grid.factors[factor].ordered(cell.columns.get(factor, "") for cell in grid.cells)
