"""A metric over a factor as a figure, with intervals."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from millpond.errors import UsageError, unknown
from millpond.measure.estimate import Estimate
from millpond.results.factor import LOGARITHMIC, Factor
from millpond.show import labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from millpond.measure.frame import Frame

#: Width of a column of a paper, in inches.
COLUMN = 3.5
#: So many letters find room beside its panel.
LONGEST = 22


def plot(frame: Frame, x: str, series: str = "algorithm", width: float = COLUMN) -> Figure:
    """One metric over a factor: a line for each series, its estimates with their intervals.

    Args:
        frame: A single metric, distinguished by `x` and `series`.
        x: The factor along the axis.
        series: What the lines are.
        width: Of the figure, in inches.

    Raises:
        UsageError: one line, if the frame holds several metrics, or is distinguished by something else.
    """
    # pictures need more of the laboratory than frames do
    from millpond.show.report import style
    from millpond.show.report.figures import facets
    from millpond.show.report.grid import Spread

    for name in (x, series):
        if name not in frame.by:
            raise UsageError(f"plot: {unknown('factor', name, frame.by)}")
    others = [name for name in frame.by if name not in (x, series)]
    rows = frame.estimates().to_pylist()
    several = [name for name in (*others, "metric", "statistic") if len({row[name] for row in rows}) > 1]
    if several:
        raise UsageError(f"plot: several values of {', '.join(several)}: choose one by .where, or another x or series")
    factor = frame.factors.get(x, Factor(x))
    values = factor.ordered(row[x] for row in rows)
    looks = style.looks({name: labels.preset(name) for name in dict.fromkeys(str(row[series]) for row in rows)})
    there = [row for row in rows if row["value"] is not None]
    found = [(row, Estimate(row["value"], row["low"], row["high"], row["runs"])) for row in there]
    numeric = all(isinstance(value, int | float) for value in values)
    spec = facets.Spec(
        "line",
        textwrap.fill(labels.with_unit(labels.metric(rows[0]["metric"]), rows[0]["unit"]), LONGEST) if rows else "",
        {name: (labels.controller(name) if len(looks) > 1 else "", look) for name, look in looks.items()},
        x=factor.axis,
        tick=factor.tick,
        xs=values,
        wrapped=True,
        numeric=numeric,
        log_x=numeric and factor.scale == LOGARITHMIC,
        joined=True,
    )
    points = [facets.Point("", "", row[x], str(row[series]), Spread.around(one)) for row, one in found]
    with style.as_wide_as(width):
        return facets.draw(points, spec)
