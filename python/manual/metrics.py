"""The page of the manual that lists every metric, written from the registry: `python -m manual.metrics`."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from millpond.measure.metric import Metric
from millpond.measure.metrics import ALIASES, METRICS

_TITLES = {
    "client": ("Of clients", "One value for each client, from the table `flows`."),
    "group": (
        "Of groups",
        "Of all clients of a group together, from the tables `delays`, `reported` and `arrivals`. Delays are "
        "distributions: percentiles up to `p99` are those of every request, and lie at most 1/64 too high. Times "
        "until so much was done count from the start of the run, or from the first event of the timeline that "
        "brings requests; where so much was never done there is no value. How long an event is felt is told for the"
        " first event of a timeline.",
    ),
    "run": ("Of runs", "One value for each run."),
    "link": (
        "Of the bottleneck",
        "One value for each run. The bottleneck is the link that is busy longest in the cell, or the one that the "
        "plan names.",
    ),
}


def page() -> str:
    """The page, in Markdown."""
    parts = [
        "# Metrics",
        "Claims, the terminal, reports and `millpond.evaluate(metrics=...)` take every number from one registry "
        "(`python/millpond/measure/metrics.py`), from which this page is written. A share is in percent, `1` is its "
        "unit. The statistic is the one that is meant where none is named, taken of each run; shown is its mean over "
        "the runs, with Student's 95 % interval, limited to the range of the quantity (three runs at least). "
        "`min`, `p10`, `p25`, `median`, `p75`, `p90`, `p95`, `p99`, `max`, `mean`, `max-min`, `spread` (the same in "
        "medians), `variance`, `count` and `total` can be asked for. Extremes (`min`, `max`, `max-min`, `spread`, "
        "`count`) are those of all values of all runs and have no interval; a percentile of runs that have one value "
        "each has Woodruff's; figures beside published ones are percentiles of all values together. Percentiles "
        "interpolate between order statistics.",
        "Who never finishes has no completion time: a number is of those who have a value, and how many have none "
        "stands beside it. Percentiles that end in `-of-all` (`median-of-all`) count them as later than everybody. "
        "What results do not hold is missing, not zero. The "
        "words of the tables are in the [glossary](../glossary.md).",
    ]
    for per, (title, told) in _TITLES.items():
        rows = {name: metric for name, metric in METRICS.items() if metric.per == per}
        parts += [f"## {title}", told, _table(rows)]
    others = "\n".join(f"| `{name}` | `{meant}` |" for name, meant in ALIASES.items())
    parts += [
        "## Other names",
        "Published figures have some of them under other names:",
        f"| name | metric |\n|---|---|\n{others}",
    ]
    return "\n\n".join(map(_wrapped, parts)) + "\n"


def _wrapped(part: str) -> str:
    """Prose in lines of readable length; tables and headings as they are."""
    return part if part[0] in "|#" else textwrap.fill(part, 120, break_long_words=False, break_on_hyphens=False)


def _table(metrics: Mapping[str, Metric]) -> str:
    lines = ["| metric | unit | statistic | better | what it is |", "|---|---|---|---|---|"]
    lines += [
        f"| `{name}` | {metric.unit} | {metric.usual} | {metric.better} | {metric.summary} |"
        for name, metric in metrics.items()
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    print(page(), end="")
