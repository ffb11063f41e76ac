"""Small multiples of a sweep: any metric over any factor, a panel for each pair of values of two others."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from millpond.errors import UsageError, unknown
from millpond.measure.estimate import Estimate
from millpond.measure.measures import Measures
from millpond.measure.metrics import ALIASES, METRICS
from millpond.measure.population import Population
from millpond.results.directory import Results, Value
from millpond.show.factors import LOGARITHMIC, SERIES
from millpond.show.report import style
from millpond.show.report.data import Data
from millpond.show.report.figures import marks
from millpond.show.report.figures.clock import Clock
from millpond.show.report.values import Missing, Rows, Spread

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
    def of(data: Data, rows: str = "", columns: str = "", across: str = "") -> Layout:
        """The factors named; for those left out, factors that vary, those with most values first.

        Raises `UsageError` for a factor that the results do not have, or one that is named twice.
        """
        told = [name for name in (rows, columns, across) if name]
        if SERIES in told:
            raise UsageError(f"{SERIES}: stands in every panel, as colours: rows, columns and axis are other factors")
        for name in told:
            if name not in data.factors:
                raise UsageError(unknown("factor", name, [known for known in data.factors if known != SERIES]))
            if told.count(name) > 1:
                raise UsageError(f"factor {name!r} is named twice: rows, columns and axis need one each")
        left = [name for name in (data.across, *data.varying) if name and name not in told]
        left[1:] = sorted(left[1:], key=lambda name: -len({cell.columns.get(name, "") for cell in data.cells}))
        across = across or (left.pop(0) if left else "")
        columns = columns or (left.pop(0) if left else "")
        return Layout(rows or (left.pop(0) if left else ""), columns, across)

    @property
    def names(self) -> tuple[str, ...]:
        """The factors that it has a place for."""
        return tuple(name for name in (self.rows, self.columns, self.across) if name)


def small_multiples(
    results: Results | Data, metric: str = "fct", *, rows: str = "", columns: str = "", across: str = "",
    lines: bool = True,
) -> Figure:  # fmt: skip
    """A metric over one factor, a line for each controller, a panel for each value of two other factors.

    With `lines` the usual statistic and its 95 % interval over runs, else boxes of all values. A factor that has no
    place has its first value; the title says which.

    Raises:
        UsageError: for an unknown metric or factor.
        Missing: if no value of the metric is known.
    """
    data = Data.of(results)
    measures, layout = Measures(data.results), Layout.of(data, rows, columns, across)
    known = METRICS[_metric(metric)]
    shown, note = _shown(data, measures, layout)
    points = {population: measures.estimate(known.name, population) for population in shown}
    if not any(np.isfinite(point.value) for point in points.values()):
        raise Missing(f"{known.title}: not drawn, these results do not hold it.")
    down, beside = _values(data, layout.rows), _values(data, layout.columns)
    if len(down) * len(beside) > MOST:
        raise Missing(f"{known.title}: {len(down)} by {len(beside)} panels are too many: name other factors.")
    names = [name for name in data.controllers() if any(p.algorithm == name for p in shown)]
    ends = [bound for p in points.values() if np.isfinite(p.value) for bound in (p.value, *(p.interval or ()))]
    clock = Clock.of([max(ends)] if known.unit == "s" else [])
    with style.applied():
        width = min(style.WIDTH, 3.0 + 2.9 * len(beside))
        figure = Figure(figsize=(width, 2.3 * len(down) + 1.1), layout="constrained")
        panels = figure.subplots(len(down), len(beside), sharex=True, sharey=True, squeeze=False)
        for row, this in enumerate(down):
            for column, that in enumerate(beside):
                panel = panels[row][column]
                here = [p for p in shown if _is(p, layout.rows, this) and _is(p, layout.columns, that)]
                for name in names:
                    mine = [p for p in here if p.algorithm == name]
                    _paint(panel, data, measures, known.name, layout.across, mine, points, name, names, lines)
                told = [data.factors[n].say(v) for n, v in ((layout.rows, this), (layout.columns, that)) if n]
                panel.set_title(", ".join(word for word in told if word), fontsize=10)
                _axis(panel, data, layout.across, lines)
                if row == len(down) - 1 and layout.across:
                    panel.set_xlabel(data.factors[layout.across].axis)
                if column == 0:
                    words = clock.label(known.title) if known.unit == "s" else known.axis
                    panel.set_ylabel(textwrap.fill(words, LONGEST))
        if known.unit == "1":
            panels[0][0].yaxis.set_major_formatter(lambda value, _: f"{100 * value:g}")
        clock.mark(panels[0][0].yaxis, max(ends))
        if lines and min(ends) >= 0:
            panels[0][0].set_ylim(0, max(ends) * 1.08 or 1)
        if note:
            figure.suptitle(note, x=0.01, ha="left", fontsize=10)
        if names != [""]:
            marks.legend_below(figure, marks.line_keys(data, names), max(1, int(width // 2.6)))
    return figure


def small_multiples_rows(results: Results | Data, metric: str = "fct") -> Rows:
    """The metric of every cell: the usual statistic and its interval, where there are several runs."""
    data = Data.of(results)
    measures, name = Measures(data.results), _metric(metric)
    rows = []
    for population in measures.populations():
        point = measures.estimate(name, population)
        low, high = point.interval or ("", "")
        where = (measures.cell(population).columns.get(factor, "") for factor in data.columns)
        rows.append((*where, population.algorithm, population.partner, point.value, low, high))
    return Rows((*data.columns, "controller", "beside", name, "ci95_low", "ci95_high"), tuple(rows))


# ----------------------------------------------------------------------------------------------- helpers


def _metric(name: str) -> str:
    known = ALIASES.get(name, name)
    if known not in METRICS:
        raise UsageError(unknown("metric", name, METRICS))
    return known


def _shown(data: Data, measures: Measures, layout: Layout) -> tuple[list[Population], str]:
    """The populations that are drawn: where factors without a place have the value that the sweep looks at closely."""
    fixed: dict[str, Value] = {}
    stage = data.stages[0].only if data.stages else {}
    for name in data.columns:
        if name not in layout.names:
            fixed[name] = stage.get(name, data.cells[0].columns.get(name, ""))
    shown = [
        population
        for population in measures.populations()
        if not population.partner
        and all(measures.cell(population).columns.get(name, "") == value for name, value in fixed.items())
    ]
    return shown, ", ".join(word for name, value in fixed.items() if (word := data.factors[name].say(value)))


def _values(data: Data, factor: str) -> list[Value]:
    if not factor:
        return [""]
    return data.factors[factor].ordered(cell.columns.get(factor, "") for cell in data.cells)


def _is(population: Population, factor: str, value: Value) -> bool:
    return not factor or population.column(factor) == value


def _scaled(data: Data, factor: str) -> bool:
    """Whether the factor has an axis of its own scale, instead of one step a value."""
    values = _values(data, factor)
    return bool(factor) and data.numeric(factor) and len(values) > 2


def _axis(panel: Axes, data: Data, factor: str, lines: bool) -> None:
    values = _values(data, factor)
    told = [data.factors[factor].tick(value) for value in values] if factor else [""]
    if lines and _scaled(data, factor):
        if data.factors[factor].scale == LOGARITHMIC and all(float(value) > 0 for value in values):
            panel.set_xscale("log")
            panel.minorticks_off()
        panel.set_xticks([float(value) for value in values], told, fontsize=8.5)
    else:
        panel.set_xticks(range(len(values)), told, fontsize=8.5)
        panel.set_xlim(-0.5, len(values) - 0.5)


def _paint(
    panel: Axes, data: Data, measures: Measures, metric: str, across: str, mine: Sequence[Population],
    points: dict[Population, Estimate], name: str, names: Sequence[str], lines: bool,
) -> None:  # fmt: skip
    """One controller in one panel: its points along the axis, joined where the axis is one of numbers."""
    values, look = _values(data, across), data.looks[name]
    scaled = lines and _scaled(data, across)
    # where the axis has steps, controllers stand beside each other
    shift = 0.0 if scaled else (names.index(name) - (len(names) - 1) / 2) * min(0.8 / len(names), 0.2)
    steps: dict[Value, int] = {value: step for step, value in enumerate(values)}
    found = sorted(((steps[p.value(across)] if across else 0, p) for p in mine), key=lambda pair: pair[0])
    at = [float(values[step]) if scaled else step + shift for step, _ in found]
    drawn = [points[population] for _, population in found]
    if not lines:
        spreads = [Spread.of(measures.sample(metric, population).values) for _, population in found]
        there = [(x, spread) for x, spread in zip(at, spreads, strict=True) if spread is not None]
        width = 0.8 * min(0.8 / len(names), 0.2)
        marks.boxes(panel, look, [x for x, _ in there], [spread for _, spread in there], width)
        return
    for x, point in zip(at, drawn, strict=True):
        if point.interval is not None:
            panel.plot([x, x], point.interval, color=look.colour, linewidth=1.2, zorder=2)
    panel.plot(
        at, [point.value for point in drawn], color=look.colour, marker=look.marker, markersize=5.0,
        linestyle=look.dash if scaled else "none", markeredgecolor=style.INK, markeredgewidth=0.6, zorder=3,
    )  # fmt: skip
