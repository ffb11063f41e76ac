"""What is shown of two sides: algorithms or values of a factor, and loads of real servers; and of directories."""

from __future__ import annotations

import math

from millpond.judge.loads import Loads, Pair, Value
from millpond.judge.side_by_side import Line, SideBySide
from millpond.measure.metrics import METRICS
from millpond.results.shards import Overview
from millpond.show import labels
from millpond.show.document import Listing, Row, Section


def side_by_side(found: SideBySide, p_values: bool = False) -> Section:
    """A row for each place and metric; one that is the same everywhere on both sides is told below."""
    metrics = dict.fromkeys(line.metric for line in found.lines)
    still = [name for name in metrics if all(line.is_equal for line in found.lines if line.metric == name)]
    rows: list[Row] = []
    before = ""
    for line in found.lines:
        if line.metric in still:
            continue
        if line.place and line.place != before:
            rows.append((line.place,))
        before = line.place
        metric = METRICS[line.metric]
        verdict = line.verdict.removeprefix("within the ")
        one, other = metric.written(line.one), metric.written(line.other)
        sure = (_number(line.p_holm), _number(line.effect)) if p_values else ()
        margin = (line.beside_margin,) if found.margin is not None else ()
        told_of = (line.metric, one, other, f"{line.difference:+.4g}", _ends(line), verdict)
        rows.append((*told_of, *sure, *margin))
    noisy = any("noise" in row for row in rows)
    told = ["noise: the 95 % interval of the difference, over runs, holds 0"] if noisy else []
    told += ["p: Holm's, of all lines together; effect: in standard deviations of a run"] if p_values else []
    told += [f"the same everywhere: {', '.join(still)}"] if still else []
    listing = Listing(
        "side-by-side",
        (
            *("metric", found.one, found.other, "difference", "95 % of it", f"{found.one} has"),
            *(("p", "effect") if p_values else ()),
            *(("margin",) if found.margin is not None else ()),
        ),
        tuple(rows),
        "; ".join(told),
        numeric=(1, 2, 3, 4),
    )
    alone = () if rows else (listing.caption,)
    return Section("side-by-side", f"{found.one} beside {found.other}, {found.pairing}", alone, listings=(listing,))


def loads(found: Loads) -> Section:
    """What was not alike first, then a table for each controller, then what the figures can say."""
    told = []
    if found.unlike:
        unlike = (f"{key} {_plain(one)} / {_plain(other)}" for key, (one, other) in found.unlike.items())
        told.append(f"Not alike: {'; '.join(unlike)}. Differences below may come from that.")
    if not found.has_intervals:
        told.append(
            "Fewer than three runs of a side: how much equal runs differ is not known, and neither is whether these "
            "differences mean anything. `millpond load --runs 5` gives intervals."
        )
    else:
        told.append("95 % of it: Welch's interval of the difference of means over runs; inconclusive: it holds 0.")
    if any(value.is_bound for pair in found.pairs for line in pair.lines for value in (line.one, line.other)):
        told.append("≥: requests had no answer when a load ended; of lower bounds there is no difference.")
    return Section("loads", "", tuple(told), listings=tuple(map(_load, found.pairs)))


def overview(found: Overview) -> Section:
    """What results directories hold together: a row for each."""
    rows = []
    for folder in found.folders:
        number, of = folder.shard
        runs = f"{folder.manifest['runs_done']} of {folder.manifest['runs']}"
        state = "complete" if folder.fault is None else str(folder.manifest["state"])
        rows.append((str(folder.place), f"{number} of {of}" if of > 1 else "whole", runs, state))
    counts = ", ".join(f"{name} {count:,}" for name, count in found.rows.items() if name in ("runs", "flows"))
    whole = "they fit together" if not found.faults else "they are no whole yet"
    told = f"{found.runs_done} of {found.runs} runs; rows: {counts or 'none'}; {whole}"
    title = f"{found.first['title']} ({found.first['plan_hash'][:19]})"
    listing = Listing("folders", ("folder", "shard", "runs", "state"), tuple(rows), told)
    return Section("overview", title, listings=(listing,))


# ----------------------------------------------------------------------------------------------- helpers


def _ends(line: Line) -> str:
    """The interval of the difference; that there is no spread is said, not shown as a sure number."""
    if line.low is None or line.high is None:
        return ""
    return f"in all {line.runs} pairs" if line.low == line.high else f"{line.low:.4g} to {line.high:.4g}"


def _number(value: float) -> str:
    return "" if math.isnan(value) else "<0.0001" if 0 <= value < 1e-4 else f"{value:.2g}"


def _load(pair: Pair) -> Listing:
    one, other = pair.one, pair.other
    names = one.controller if one.controller == other.controller else f"{one.controller} / {other.controller}"
    rows = []
    for line in pair.lines:
        interval = "" if line.interval is None else f"{line.interval[0]:.4g} to {line.interval[1]:.4g}"
        difference = "" if line.difference is None else f"{line.difference:+.4g}"
        rows.append((line.metric, _written(line.one), _written(line.other), difference, interval, line.verdict))
    return Listing(
        f"load-{one.controller}",
        ("", "first", "second", "difference", "95 % of it", "second has"),
        tuple(rows),
        numeric=(1, 2, 3, 4),
        title=f"{one.name} beside {other.name}, {names}, {len(one.runs)} and {len(other.runs)} runs",
    )


def _written(value: Value) -> str:
    if math.isinf(value.value):
        return "never"
    return f"{'≥ ' if value.is_bound else ''}{labels.number(value.value, 4)}"


def _plain(value: object) -> str:
    return "none" if value is None else str(value)
