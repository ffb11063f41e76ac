"""Published figures matched with ours: by scenario columns, metric and statistic."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from millpond.judge.checks import Check, carry_out
from millpond.judge.claims import resolved
from millpond.judge.compare import Figure
from millpond.judge.published import Condition, Published, Row
from millpond.judge.rows import HISTOGRAM, UnreadableError, change_of, changes, conditions_of, select
from millpond.measure.estimate import LEAST_RUNS, Estimate, pooled, taken
from millpond.measure.measures import Measures
from millpond.measure.metrics import METRICS
from millpond.measure.population import Population
from millpond.measure.sample import Sample
from millpond.measure.statistics import bulk, bulk_range
from millpond.measure.statistics import known as known_statistic
from millpond.plan.study import Reading
from millpond.results.factor import PATH, Value

#: A published statistic: half the 95 % interval of what stands in the row beside it.
HALF = "ci95_half"


def match(
    published: Published, measures: Measures, reading: Reading, compared: Mapping[str, Check] | None = None
) -> list[Figure]:
    """Every published number that a run could give, ours beside it, or why not; in the order of the file.

    Those are the rows of results, and of claims that state a number. A row that holds on several path variants gives
    one figure for each. `compared` has the rows, by their ids, that are comparisons themselves.
    """
    figures: list[Figure] = []
    for row in published.rows:
        if row["category"] != "result":
            continue
        told = [reading.unmeasured[name] for name in (row.id, row["metric"]) if name in reading.unmeasured]
        if row.value is not None and told:
            figures.append(_unmatched(row, row.value, told[0]))
        elif row.value is not None and compared and row.id in compared:
            figures.extend(_of_comparison(row, row.value, compared[row.id], measures))
        elif row.is_claim:
            figures.extend(_of_claim(row, measures, reading))
        elif row.value is not None:
            figures.extend(_of_result(row, row.value, measures, reading))
    return figures


# ----------------------------------------------------------------------------------------------- results


def _of_result(row: Row, value: float, measures: Measures, reading: Reading) -> list[Figure]:
    try:
        chosen = _populations(row, measures, reading)
        return [_measured(row, value, path, ps, measures, reading, len(chosen) > 1) for path, ps in chosen.items()]
    except UnreadableError as error:
        return [_unmatched(row, value, str(error))]


def _measured(
    row: Row,
    value: float,
    path: str,
    populations: Sequence[Population],
    measures: Measures,
    reading: Reading,
    several: bool,
) -> Figure:
    metric, statistic = reading.metric(row["metric"]), row["statistic"]
    note = "" if len(populations) == 1 else f"over {len(populations)} cells"
    interval: tuple[float, float] | None = None
    if metric == HISTOGRAM:
        ours, n, words = _histogram(row, populations, measures, reading)
        note = "; ".join(word for word in (note, words) if word)
    else:
        name = METRICS[metric].name
        scale = METRICS[name].factor(row["unit"])
        if scale is None:
            raise UnreadableError(f"unit {row['unit']!r} cannot be compared with {METRICS[name].unit!r}")
        if name == "fct_increase_vs_1_client" and not all(measures.has(p.but(clients=1)) for p in populations):
            raise UnreadableError("not run: clients=1")
        statistic = _statistic(row, name)
        sample = Sample.pooled([measures.sample(name, population) for population in populations])
        if sample.n == 0:
            raise UnreadableError("nothing to measure")
        if row["unit"] == "runs":
            # so many of the runs: the share of ours, of as many as theirs
            scale, statistic = float(reading.replications), "mean"
        if row["statistic"] == HALF:
            ours, n = _half(sample, METRICS[name].usual, scale), sample.n
        else:
            found = _take(row, name, statistic, sample, populations, measures, reading.confidence).scaled(scale)
            ours, n = found.value, sample.n
            interval = found.interval if len(populations) == 1 else None
        if sample.missing:
            note = "; ".join(
                word for word in (note, f"{sample.missing} flows did not finish and are not in it") if word
            )
    place = path if several or path != "fixed" else ""
    return replace(_figure(row, value, note, ours, n, place), interval=interval)


def _populations(row: Row, measures: Measures, reading: Reading) -> dict[str, list[Population]]:
    """The populations a result row is about, by path variant."""
    metric = reading.metric(row["metric"])
    if metric != HISTOGRAM and metric not in METRICS:
        raise UnreadableError(f"metric {metric!r} is not measured by these runs")
    conditions = conditions_of(row, measures, reading)
    names = {population.algorithm for population in measures.populations()}
    wanted = row.list("algorithm") or tuple(name for name in reading.algorithms if name in names)
    chosen: list[Population] = []
    for name in wanted:
        if name not in names:
            raise UnreadableError(f"not run: algorithm={name}")
        found, missing = select(measures, conditions, name)
        if missing:
            raise UnreadableError(f"not run: {missing[0]}")
        chosen.extend(found)
    if not chosen:
        raise UnreadableError("not run")
    first = _variant(chosen[0])
    variants = {first: chosen}
    for other in map(str, measures.values(PATH)):
        moved = [population.but(**{PATH: other}) for population in chosen]
        there = other != first and all(measures.has(population) for population in moved)
        # a variant that changes nothing of these cells has nothing further to say
        if there and any(_tree(measures, a) != _tree(measures, b) for a, b in zip(chosen, moved, strict=True)):
            variants[other] = moved
    return variants


def _variant(population: Population) -> str:
    return str(population.column(PATH) or "")


def _tree(measures: Measures, population: Population) -> Mapping[str, object]:
    return measures.cell(population).scenario


def _histogram(
    row: Row, populations: Sequence[Population], measures: Measures, reading: Reading
) -> tuple[float, int, str]:
    counts = [measures.histogram(population) for population in populations]
    total = sum(sum(count.values()) for count in counts)
    if total == 0:
        raise UnreadableError("nothing to measure")
    text = row["bin"]
    condition = Condition.of_bin(text)
    if text.isdecimal():
        found = sum(count.get(int(text), 0) for count in counts)
    elif condition is not None:
        found = sum(n for count in counts for k, n in count.items() if condition.met(k))
    else:
        raise UnreadableError(f"bin {text!r} is no number of retransmissions")
    if row["unit"] == "percent":
        return 100 * found / total, total, ""
    factor_ = reading.replications / (measures.results.replications * len(populations))
    words = ""
    if factor_ != 1:
        words = f"counted over {measures.results.replications} replications, scaled to {reading.replications}"
    return found * factor_, total, words


def _statistic(row: Row, metric: str) -> str:
    statistic = row["statistic"]
    if statistic == HALF:
        return METRICS[metric].usual
    if statistic in ("", "value", "typical") or (statistic == "percent" and METRICS[metric].unit == "1"):
        return METRICS[metric].usual
    if not known_statistic(statistic) or (statistic == "count" and METRICS[metric].unit == "s"):
        raise UnreadableError(f"statistic {statistic!r} is not one this program takes")
    return statistic


def _half(sample: Sample, usual: str, scale: float) -> float:
    """Half the 95 % interval over runs of the metric's usual statistic."""
    half = taken(sample, usual).estimate().half
    if math.isnan(half):
        raise UnreadableError(f"so few runs do not tell how much runs differ: it takes at least {LEAST_RUNS}")
    return scale * half


def _take(
    row: Row,
    metric: str,
    statistic: str,
    sample: Sample,
    populations: Sequence[Population],
    measures: Measures,
    confidence: float,
) -> Estimate:
    """What is printed is of all values of all runs together, and ours is taken alike."""
    if statistic not in ("range_low", "range_high") or not row["qualifier"]:
        return pooled(sample, statistic).estimate(confidence, METRICS[metric].within(statistic))
    # "almost all": the shortest range that holds most; of exchanges, where they are known, not of clients' means
    end = 0 if statistic == "range_low" else 1
    counts = _needless_counts(metric, populations, measures)
    if counts:
        found = bulk(counts)
        return Estimate(math.nan if found is None else float(found[end]), None, None, 0)
    return Estimate(bulk_range(sample.values)[end], None, None, 0)


def _needless_counts(metric: str, populations: Sequence[Population], measures: Measures) -> dict[int, int]:
    """Exchanges by number of (unnecessary) retransmissions; without losses every retransmission is unnecessary."""
    if metric not in ("unnecessary_retx_per_exchange", "retx_per_exchange"):
        return {}
    lost = sum(float(measures.sample("packet_losses", population).values.sum()) for population in populations)
    if metric == "unnecessary_retx_per_exchange" and lost > 0:
        return {}
    counts: dict[int, int] = {}
    for population in populations:
        for k, n in measures.histogram(population).items():
            counts[k] = counts.get(k, 0) + n
    return counts


def _of_comparison(row: Row, value: float, text: Check, measures: Measures) -> Iterable[Figure]:
    """A row about a difference or about several places: the mean, smallest or largest of what is found there."""
    scale = 1.0 if text.quantity == "relative" else METRICS[text.metric].factor(row["unit"])
    if scale is None:
        yield _unmatched(row, value, f"unit {row['unit']!r} cannot be compared")
        return
    several = len(measures.values(PATH)) > 1
    before: list[float] = []
    for number, path in enumerate(measures.values(PATH)):
        finding = carry_out(resolved(text, measures, str(path)), measures)
        found = [scale * point.quantity for point in finding.points]
        if finding.missing or not found:
            if number == 0:
                yield _unmatched(
                    row, value, f"not run: {finding.missing[0]}" if finding.missing else "nothing to measure"
                )
            continue
        if found != before:
            pick = {"range_low": min, "min": min, "range_high": max, "max": max}.get(row["statistic"], np.mean)
            note = "" if len(found) == 1 else f"{min(found):.4g} to {max(found):.4g} over {len(found)} points"
            yield _figure(row, value, note, float(pick(found)), len(found), str(path) if several else "")
        before = found


# ----------------------------------------------------------------------------------------------- claims


def _of_claim(row: Row, measures: Measures, reading: Reading) -> Iterable[Figure]:
    """A claim that states a relative change: ours is the mean of the changes at all its points, in percent."""
    change = change_of(row)
    if change is None:
        if row.value is not None and len(row.list("metric")) == 1:
            yield from _of_value_claim(row, row.value, measures, reading)
        return
    value = row.value if row.value is not None and row["unit"] == "percent" else 100 * abs(change)
    sign = -1.0 if change < 0 else 1.0
    try:
        checks = [resolved(text, measures) for text in changes(row, measures, reading)]
        missing = [word for check in checks for word in check.missing]
        if missing:
            raise UnreadableError(f"not run: {missing[0]}")
        findings = [carry_out(check, measures) for check in checks]
        points = [point for finding in findings for point in finding.points]
        if not points:
            gone = [what for finding in findings for what in finding.missing]
            raise UnreadableError(f"not run: {gone[0]}" if gone else "nothing to measure")
    except UnreadableError as error:
        yield _unmatched(row, value, str(error))
        return
    paths = list(dict.fromkeys(_variant(point.of) for point in points))
    size = len([point for point in points if _variant(point.of) == paths[0]])
    for path in paths:
        here = [100 * sign * point.quantity for point in points if _variant(point.of) == path]
        if len(here) != size:
            continue
        ours = max(here) if row["qualifier"] == "up_to" else sum(here) / len(here)
        note = "" if len(here) == 1 else f"{min(here):.0f} to {max(here):.0f} over {len(here)} points"
        figure = _figure(row, value, note, ours, len(here), path if len(paths) > 1 else "")
        yield replace(figure, statistic=row["statistic"] or "median", unit="percent")


def _of_value_claim(row: Row, value: float, measures: Measures, reading: Reading) -> Iterable[Figure]:
    """A claim that states a plain number of one side, such as "about one unnecessary retransmission"."""
    names = row.list("comparator")
    cells = dict(row.cells)
    if all("=" not in name for name in names):
        cells["algorithm"] = ";".join(names) or row["algorithm"]
    for figure in _of_result(replace(row, cells=cells), value, measures, reading):
        extra = {key: figure.scenario[key] for key in ("path", "unmatched") if key in figure.scenario}
        yield replace(figure, scenario={**_scenario(row, ""), **extra})


# ----------------------------------------------------------------------------------------------- helpers


def _scenario(row: Row, path: str) -> Mapping[str, Value]:
    told = row.scenario()
    if row["bin"]:
        told["bin"] = int(row["bin"]) if row["bin"].isdecimal() else row["bin"]
    for column in ("baseline", "comparator", "direction"):
        if row.is_claim and row[column]:
            told[column] = row[column]
    if path:
        told["path"] = path
    return told


def _unmatched(row: Row, value: float, why: str) -> Figure:
    found = _figure(row, value, why)
    return replace(found, scenario={**found.scenario, "unmatched": why})


def _figure(row: Row, value: float, note: str, ours: float | None = None, n: int = 0, path: str = "") -> Figure:
    """The published number of a row, and ours of so many values beside it."""
    return Figure(
        id=row.id,
        scenario=_scenario(row, path),
        metric=row["metric"],
        statistic=row["statistic"],
        bin=row["bin"],
        qualifier=row["qualifier"],
        unit=row["unit"],
        published=value,
        ours=ours,
        n=n,
        note=note,
    )
