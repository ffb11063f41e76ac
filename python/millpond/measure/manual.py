"""The page of the manual that lists every metric, written from the registry: `python -m millpond.measure.manual`."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from millpond.measure.metric import Metric
from millpond.measure.metrics import ALIASES, METRICS

_GRAINS = {
    "client": ("Of clients", "One value for each client, from the table `flows`."),
    "group": (
        "Of groups",
        "Of all clients of a group together, from the tables `delays`, `reported` and `births`. Delays are "
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
        "Every number that a claim, a table or a figure shows is one of these: claims of a study, the terminal, "
        "the report and `millpond.evaluate(metrics=...)` read one registry (`python/millpond/measure/metrics.py`), "
        "from which this page is written. A share is written in percent, `1` is its unit. The statistic is the one "
        "that is meant where none is named, taken of each run by itself; the number shown is its mean over the runs, "
        "and the 95 % interval beside it is Student's around that mean, ended where the quantity ends (0 and 1 of a "
        "share, 0 of a time or a count). It takes three runs. Any of `min`, `p10`, `p25`, `median`, `p75`, `p90`, "
        "`p95`, `p99`, `max`, `mean`, `max-min`, `spread` (the same in medians), `variance` and `count` can be "
        "asked for. Extremes (`min`, `max`, `max-min`, `spread`, `count`) are those of all values of all runs and have "
        "no interval; a percentile asked for by name of runs that have one value each is one over the runs, with "
        "Woodruff's interval; figures beside published ones are percentiles of all values together, as printed ones "
        "are. Percentiles interpolate between order statistics.",
        "Completion times are those of clients that completed; how many of all they cover stands beside them. What "
        "results of an earlier version do not hold is missing, not zero. What the words of the tables mean (born, "
        "answered, failed, never finished, delivered) stands in the [glossary](glossary.md).",
    ]
    for grain, (title, told) in _GRAINS.items():
        rows = {name: metric for name, metric in METRICS.items() if metric.grain == grain}
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
    return part if part[0] in "|#" else textwrap.fill(part, 138, break_long_words=False, break_on_hyphens=False)


def _table(metrics: Mapping[str, Metric]) -> str:
    lines = ["| metric | unit | statistic | better | what it is |", "|---|---|---|---|---|"]
    lines += [
        f"| `{name}` | {metric.unit} | {metric.usual} | {metric.better} | {metric.summary} |"
        for name, metric in metrics.items()
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    print(page(), end="")
