"""Published, simulated and live: percentiles of completion times side by side."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from millpond.judge.compare import Comparison
from millpond.measure.measures import Measures
from millpond.measure.population import Population
from millpond.measure.statistics import take
from millpond.real import kept
from millpond.real.kept import LiveRun, Skipped
from millpond.results.factor import PATH, Value

STATISTICS = ("min", "p10", "p25", "median", "p75", "p90", "max")
#: How exact a published figure must be to stand in such a table.
_EXACT = ("", "approx")


@dataclass(frozen=True)
class Line:
    """One percentile of the completion time, in s; None where there is none."""

    statistic: str
    published: float | None
    #: On each reading of the test bed.
    simulated: tuple[float | None, ...]
    live: float | None

    @property
    def relative(self) -> float | None:
        """(live - published) / published, or beside the first reading where nothing is published."""
        against = self.published if self.published is not None else next(iter(self.simulated), None)
        return None if self.live is None or not against else (self.live - against) / against


@dataclass(frozen=True)
class Beside:
    """One setting: what was published of it, simulated and seen of real programs."""

    algorithm: str
    columns: Mapping[str, Value]
    label: str
    variants: tuple[str, ...]
    lines: tuple[Line, ...]
    #: Every run, also those that are not counted.
    runs: tuple[LiveRun, ...]

    @property
    def counted(self) -> tuple[LiveRun, ...]:
        """The runs that the figures are of."""
        return tuple(run for run in self.runs if run.valid)

    @property
    def clients(self) -> int:
        """Clients that finished, over all counted runs."""
        return sum(len(run.fct_us) for run in self.counted)

    @property
    def unfinished(self) -> int:
        """Those that did not."""
        return sum(run.unfinished for run in self.counted)

    @property
    def copies(self) -> float | None:
        """Copies of requests an exchange; None where they cannot be counted."""
        known = [(run.copies, run.exchanges) for run in self.counted if run.copies is not None and run.exchanges]
        return sum(copies for copies, _ in known) / sum(count for _, count in known) if known else None

    @property
    def answered(self) -> float | None:
        """The share of exchanges that were answered; None if unknown."""
        known = [(run.answered, run.exchanges) for run in self.counted if run.answered is not None and run.exchanges]
        return sum(answered for answered, _ in known) / sum(count for _, count in known) if known else None

    @property
    def needed(self) -> float | None:
        """Of the packets that came out of the downlink the share that answered an exchange first; None if unknown."""
        known = [run for run in self.counted if run.answered is not None]
        delivered = sum(link["delivered_packets"] for run in known for link in run.links if link["link"] == "downlink")
        return sum(run.answered or 0 for run in known) / delivered if delivered else None


@dataclass(frozen=True)
class Live:
    """All that real programs did beside a study."""

    settings: tuple[Beside, ...]
    skipped: tuple[Skipped, ...]
    stated: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "settings": [
                {
                    "algorithm": one.algorithm,
                    "columns": dict(one.columns),
                    "label": one.label,
                    "readings": list(one.variants),
                    "runs": len(one.runs),
                    "late": len(one.runs) - len(one.counted),
                    "clients": one.clients,
                    "unfinished": one.unfinished,
                    "copies_per_exchange": one.copies,
                    "answered_share": one.answered,
                    "needed_share": one.needed,
                    "fct_s": {
                        line.statistic: {
                            "published": line.published,
                            "simulated": dict(zip(one.variants, line.simulated, strict=True)),
                            "live": line.live,
                            "relative": line.relative,
                        }
                        for line in one.lines
                    },
                }
                for one in self.settings
            ],
            "skipped": [{"columns": dict(o.columns), "label": o.label, "why": o.why} for o in self.skipped],
            "stated": list(self.stated),
        }


def read(directory: Path, measures: Measures, comparison: Comparison | None) -> Live | None:
    """What lies in a results directory; None if no real programs ran. Raises `MillpondError` for damaged files."""
    runs, skipped = kept.read(directory), kept.skipped(directory)
    if not runs and not skipped:
        return None
    order = {cell.id: cell.number for cell in measures.cells}
    groups: dict[tuple[str, str], list[LiveRun]] = {}
    for run in sorted(runs, key=lambda run: (order.get(run.cell, len(order)), run.label, run.number)):
        groups.setdefault((run.cell, run.label), []).append(run)
    settings = tuple(_beside(found, measures, comparison) for found in groups.values())
    stated = dict.fromkeys(line for one in settings for run in one.runs for line in run.stated)
    return Live(settings, tuple(skipped), tuple(stated))


def slowest(measures: Measures, columns: Mapping[str, Value]) -> float:
    """The slowest simulated client where the factors have these values, in s; NaN if nobody was simulated there."""
    population = _population(columns)
    return measures.sample("fct", population).take("max") if measures.has(population) else math.nan


# ----------------------------------------------------------------------------------------------- helpers


def _beside(runs: Sequence[LiveRun], measures: Measures, comparison: Comparison | None) -> Beside:
    first = runs[0]
    columns = {name: value for name, value in first.columns.items() if name != PATH}
    times = np.array([time * 1e-6 for run in runs if run.valid for time in run.fct_us])
    theirs = _published(columns, comparison)
    samples = []
    for variant in first.variants:
        population = _population({**first.columns, **({PATH: variant} if variant else {})})
        samples.append(measures.sample("fct", population) if measures.has(population) else None)
    lines = tuple(
        Line(
            name,
            theirs.get(name),
            tuple(None if sample is None or not sample.n else sample.take(name) for sample in samples),
            take(times, name) if len(times) else None,
        )
        for name in STATISTICS
    )
    return Beside(str(columns.pop("algorithm", "")), columns, first.label, tuple(first.variants), lines, tuple(runs))


def _population(columns: Mapping[str, Value]) -> Population:
    factors = {name: value for name, value in columns.items() if name != "algorithm"}
    return Population.of(str(columns["algorithm"]), "", **factors)


def _published(columns: Mapping[str, Value], comparison: Comparison | None) -> dict[str, float]:
    found: dict[str, float] = {}
    figures: Iterable[Any] = comparison.figures if comparison is not None else ()
    # what stands in a table goes before what the text says about it
    for figure in sorted(figures, key=lambda figure: bool(figure.qualifier)):
        if figure.metric != "fct" or figure.bin or figure.qualifier not in _EXACT or figure.unit != "s":
            continue
        told = {name: value for name, value in figure.scenario.items() if name in columns}
        everywhere = {"clients", "buffer_bytes", "workload", "algorithm"} & set(columns)
        if everywhere <= set(told) and all(str(columns[name]) == str(value) for name, value in told.items()):
            found.setdefault(figure.statistic, figure.published)
    return found
