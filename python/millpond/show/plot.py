"""A metric over a factor as a figure, with intervals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from millpond.errors import UsageError, unknown
from millpond.show import labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from millpond.measure.frame import Frame

#: Width of a column of a paper, in inches.
COLUMN = 3.5


def plot(frame: Frame, x: str, series: str = "algorithm", width: float = COLUMN) -> Figure:
    """One metric over a factor: a line for each series, its estimates with their intervals.

    Args:
        frame: A single metric, told apart by `x` and `series`.
        x: The factor along the axis.
        series: What the lines are.
        width: Of the figure, in inches.

    Raises:
        UsageError: one line, if the frame holds several metrics, or is told apart by something else.
    """
    import matplotlib.pyplot as plt

    from millpond.show.report import style

    for name in (x, series):
        if name not in frame.by:
            raise UsageError(f"plot: {unknown('factor', name, frame.by)}")
    others = [name for name in frame.by if name not in (x, series)]
    rows = frame.estimates().to_pylist()
    several = [name for name in (*others, "metric", "statistic") if len({row[name] for row in rows}) > 1]
    if several:
        raise UsageError(f"plot: several values of {', '.join(several)}: choose one by .where, or another x or series")
    values = list(dict.fromkeys(row[x] for row in rows))
    numbers = all(isinstance(value, int | float) for value in values)
    factor = frame.factors.get(x)
    names = list(dict.fromkeys(str(row[series]) for row in rows))
    looks = style.looks({name: labels.preset(name) for name in names})
    with plt.rc_context({"font.size": 8, "pdf.fonttype": 42, "svg.fonttype": "none"}):
        figure, axes = plt.subplots(figsize=(width, 0.68 * width), layout="constrained")
        for name in names:
            mine = [row for row in rows if str(row[series]) == name and row["value"] is not None]
            at = [row[x] if numbers else values.index(row[x]) for row in mine]
            below, above = ([abs(row["value"] - _end(row, end)) for row in mine] for end in ("low", "high"))
            look = looks[name]
            axes.errorbar(
                at, [row["value"] for row in mine], (below, above), color=look.colour, linestyle=look.dash,
                marker=look.marker, markersize=4, linewidth=1.2, capsize=2, label=labels.controller(name),
            )  # fmt: skip
        if not numbers:
            axes.set_xticks(range(len(values)), [str(value) for value in values])
        elif factor is not None and factor.scale == "log":
            axes.set_xscale("log")
        axes.set_xlabel(labels.with_unit(factor.title, factor.unit) if factor else x.replace("_", " "))
        axes.set_ylabel(labels.with_unit(labels.metric(rows[0]["metric"]), rows[0]["unit"]) if rows else "")
        axes.grid(alpha=0.4, linewidth=0.4)
        if len(names) > 1:
            axes.legend(fontsize=7, frameon=False)
    # drawn where it is shown: a notebook would show it a second time
    plt.close(figure)
    return figure


# ----------------------------------------------------------------------------------------------- helpers


def _end(row: Mapping[str, Any], end: str) -> float:
    return float(row["value"] if row[end] is None else row[end])
