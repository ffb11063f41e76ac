"""What the terminal shows of two loads side by side."""

from __future__ import annotations

import math

from rich.console import RenderableType
from rich.markup import escape
from rich.text import Text

from millpond.judge.loads import Loads, Pair, Value
from millpond.show import labels
from millpond.show.tables import titled


def tables(found: Loads) -> list[RenderableType]:
    """What was not alike first, then a table for each controller, then what the figures can say."""
    made: list[RenderableType] = []
    if found.unlike:
        told = "; ".join(f"{key} {_plain(one)} / {_plain(other)}" for key, (one, other) in found.unlike.items())
        made.append(Text(f"Not alike: {told}. Differences below may come from that."))
    made += [_table(pair) for pair in found.pairs]
    return [*made, *map(Text, words(found))]


def words(found: Loads) -> list[str]:
    """What the figures can say and what they cannot."""
    values = [value for pair in found.pairs for line in pair.lines for value in (line.one, line.other)]
    told = []
    if not found.has_intervals:
        told.append(
            "Fewer than three runs of a side: how much equal runs differ is not known, and neither is whether these "
            "differences mean anything. `millpond load --runs 5` gives intervals."
        )
    else:
        told.append("95 % of it: Welch's interval of the difference of means over runs; inconclusive: it holds 0.")
    if any(value.is_bound for value in values):
        told.append("≥: requests had no answer when a load ended; of lower bounds there is no difference.")
    return told


# ----------------------------------------------------------------------------------------------- helpers


def _table(pair: Pair) -> RenderableType:
    one, other = pair.one, pair.other
    names = one.controller if one.controller == other.controller else f"{one.controller} / {other.controller}"
    runs = f"{len(one.runs)} and {len(other.runs)} runs"
    made = titled(escape(f"{one.name} beside {other.name}, {names}, {runs}"))
    made.add_column("")
    for name in ("first", "second", "difference", "95 % of it"):
        made.add_column(name, justify="right", no_wrap=True)
    made.add_column("second has")
    for line in pair.lines:
        interval = "" if line.interval is None else f"{line.interval[0]:.4g} to {line.interval[1]:.4g}"
        difference = "" if line.difference is None else f"{line.difference:+.4g}"
        made.add_row(line.metric, _written(line.one), _written(line.other), difference, interval, line.verdict)
    return made


def _written(value: Value) -> str:
    if math.isinf(value.value):
        return "never"
    return f"{'≥ ' if value.is_bound else ''}{labels.number(value.value, 4)}"


def _plain(value: object) -> str:
    return "none" if value is None else str(value)
