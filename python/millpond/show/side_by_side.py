"""What the terminal shows of two algorithms, or two values of a factor, side by side."""

from __future__ import annotations

import math

from rich import box
from rich.markup import escape
from rich.table import Table

from millpond.judge.side_by_side import Line, SideBySide
from millpond.measure.metrics import METRICS


def table(found: SideBySide, p_values: bool = False) -> Table:
    """A row for each place and metric; one that is the same everywhere on both sides is told below."""
    still = [name for name in _metrics(found) if all(line.is_equal for line in found.lines if line.metric == name)]
    made = Table(
        title=escape(f"{found.one} beside {found.other}, {found.pairing}"),
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    # a place is a row of its own: beside the metrics there is no room for it
    made.add_column("metric", overflow="fold")
    for name in (found.one, found.other, "difference", "95 % of it"):
        made.add_column(escape(name), justify="right", no_wrap=True)
    made.add_column(escape(f"{found.one} has"), no_wrap=True)
    for name in (*(("p", "effect") if p_values else ()), *(("margin",) if found.margin is not None else ())):
        made.add_column(name, no_wrap=True)
    before, noisy = None, False
    for line in found.lines:
        if line.metric in still:
            continue
        metric = METRICS[line.metric]
        verdict = "equal" if line.is_equal else line.verdict.removeprefix("within the ")
        noisy = noisy or verdict == "noise"
        if before not in (None, line.place):
            made.add_section()
        if line.place and line.place != before:
            made.add_row(escape(line.place), style="bold")
        made.add_row(
            escape(f" {line.metric}" if line.place else line.metric),
            metric.written(line.one),
            metric.written(line.other),
            f"{line.difference:+.4g}",
            _ends(line),
            verdict,
            *((_number(line.p_holm), _number(line.effect)) if p_values else ()),
            *((line.beside_margin,) if found.margin is not None else ()),
        )
        before = line.place
    told = ["noise: the 95 % interval of the difference, over runs, holds 0"] if noisy else []
    told += ["p: Holm's, of all lines together; effect: in standard deviations of a run"] if p_values else []
    told += [f"the same everywhere: {', '.join(still)}"] if still else []
    made.caption = escape("; ".join(told)) or None
    return made


def _ends(line: Line) -> str:
    """The interval of the difference; that there is no spread is said, not shown as a sure number."""
    if line.low is None or line.high is None:
        return ""
    return f"in all {line.runs} pairs" if line.low == line.high else f"{line.low:.4g} to {line.high:.4g}"


def _number(value: float) -> str:
    return "" if math.isnan(value) else "<0.0001" if 0 <= value < 1e-4 else f"{value:.2g}"


def _metrics(found: SideBySide) -> list[str]:
    return list(dict.fromkeys(line.metric for line in found.lines))
