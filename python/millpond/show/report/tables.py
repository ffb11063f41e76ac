"""The tables of the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from millpond.judge.compare import Comparison, Figure
from millpond.measure.population import column_in_words, path_in_words
from millpond.results.directory import Cell, Value
from millpond.show.report import labels, story
from millpond.show.report.data import Data, Rows
from millpond.show.report.figures.histogram import METRIC as HISTOGRAM
from millpond.show.report.parts import Listing, Section

APART = 0.05
"""Figures that differ by more than this share are set in bold."""

_QUALIFIERS = {
    "approx": "\N{ALMOST EQUAL TO} ",
    "nearly": "nearly ",
    "lt": "< ",
    "le": "\N{LESS-THAN OR EQUAL TO} ",
    "gt": "> ",
    "ge": "\N{GREATER-THAN OR EQUAL TO} ",
    "up_to": "\N{LESS-THAN OR EQUAL TO} ",
}


def at_a_glance(found: Sequence[story.Glance]) -> Listing:
    """The hardest place of a study, a row for each controller and workload."""
    rows = [
        (
            labels.controller(g.controller),
            g.workload,
            labels.percent(g.useful_share),
            f"{g.copies:.2f}",
            labels.plain(g.unnecessary),
            labels.number(g.completion),
            "collapsed" if g.collapsed else "",
        )
        for g in found
    ]
    return Listing(
        "glance",
        (
            "controller",
            "clients",
            "useful share of the bottleneck",
            "copies per exchange (mean)",
            "unnecessary retransmissions per client (median)",
            "flow completion time (median, s)",
            "",
        ),
        tuple(rows),
        f"With {found[0].place}. Collapsed: less than {labels.percent(story.LEAST)} of the bytes are useful.",
        numeric=(2, 3, 4, 5),
        strong=frozenset(row for row, g in enumerate(found) if g.collapsed),
    )


def published_figures(comparison: Comparison) -> Section:
    """Every published figure beside ours."""
    header = ("statistic", "published", "ours", "unit", "difference", "95 % interval", "n", "note")
    columns = ("id", "metric", "statistic", "bin", "where", "qualifier", "unit", "published", "ours", "relative", "n")
    plain = [
        (
            *(f.id, f.metric, f.statistic, f.bin, _conditions(f.scenario), f.qualifier, f.unit),
            *(f.published, f.ours, f.relative, f.n),
        )
        for f in comparison.figures
    ]
    rows: list[tuple[str, ...]] = []
    strong = set()
    before = ""
    for figure in comparison.figures:
        place = ", ".join(part for part in (labels.metric(figure.metric), _conditions(figure.scenario)) if part)
        if place != before:
            rows.append((place[:1].upper() + place[1:],))
            before = place
        if figure.relative is not None and abs(figure.relative) > APART and not _bound_kept(figure):
            strong.add(len(rows))
        rows.append(_figure_row(figure))
    return Section(
        "figures",
        "Ours beside the published figures",
        (
            "The difference is (ours \N{MINUS SIGN} published) / published; n is the number of values behind our "
            "figure; the interval is a 95\N{NARROW NO-BREAK SPACE}% t-interval over replications of the same statistic "
            f"taken run by run. Bold: more than 5\N{NARROW NO-BREAK SPACE}% apart. Published figures: "
            f"{comparison.published}.",
        ),
        listings=(
            Listing(
                "figures-table",
                header,
                tuple(rows),
                numeric=(1, 2, 4, 5, 6),
                strong=frozenset(strong),
                data=Rows(columns, tuple(plain)),
            ),
        ),
    )


def published_claims(comparison: Comparison) -> Section:
    """Every published sentence with its verdict."""
    told = []
    for name in comparison.variants() or [""]:
        counts, where = comparison.counts(name), f"{path_in_words(name)}: " if name else ""
        told.append(
            f"{where}{counts['holds']} hold, {counts['fails']} do not hold, {counts['unjudged']} cannot be judged"
        )
    words = "; ".join(told)
    return Section(
        "claims",
        "The published claims",
        (
            f"{words[:1].upper()}{words[1:]}. Each is judged by code; where one does not hold, the measured figure and "
            "the reason stand beside it.",
        ),
        claims=tuple(comparison.claims),
    )


def published_settings(comparison: Comparison) -> Listing:
    """Every published setting beside ours, folded away."""
    rows = [
        (
            s.id,
            labels.metric(s.metric),
            _conditions(s.scenario),
            s.published,
            s.ours,
            "same" if s.same else "differs",
            s.note,
        )
        for s in comparison.settings
    ]
    return Listing(
        "settings-table",
        ("id", "setting", "where", "published", "ours", "", "note"),
        tuple(rows),
        strong=frozenset(row for row, s in enumerate(comparison.settings) if not s.same),
        folded=f"Published settings of the test bed and the algorithms beside ours ({len(rows)})",
    )


def groups(data: Data) -> Listing:
    """The client groups of a single scenario."""
    cell = data.cells[0]
    rows = []
    for group in cell.groups:
        spread = data.spread("fct_us", cell, group)
        extra = data.spread("unnecessary", cell, group)
        total = data.values("flows", "fct_us", cell, group).size
        rows.append(
            (
                str(group.index + 1),
                labels.count(group.count),
                labels.controller(labels.preset(group.algorithm)),
                labels.number(spread.median if spread else None),
                labels.number(spread.p90 if spread else None),
                labels.plain(extra.median if extra else None),
                labels.count(total - (spread.n if spread else 0)),
            )
        )
    header = (
        "group",
        "clients",
        "controller",
        "flow completion time (median, s)",
        "90th percentile (s)",
        "unnecessary retransmissions per client (median)",
        "clients unfinished (all runs)",
    )
    return Listing("groups", header, tuple(rows), numeric=(1, 3, 4, 5, 6))


def links(data: Data) -> Listing:
    """What each link of a single scenario carried, dropped and held."""
    cell = data.cells[0]
    whole = float(data.values("runs", "simulated_us", cell).mean())
    rows = []
    for link in data.links(cell):

        def mean(column: str, link: str = link) -> float:
            return float(data.values("links", column, cell, link=link).mean())

        carried, busy = mean("delivered_bytes") + mean("dropped_radio_bytes"), mean("busy_us")
        rows.append(
            (
                link,
                labels.count(mean("offered_packets")),
                labels.count(mean("dropped_queue_packets")),
                labels.count(mean("dropped_radio_packets")),
                labels.count(mean("delivered_packets")),
                labels.percent(mean("useful_bytes") / carried if carried else None),
                labels.percent(busy / whole if whole else None),
                labels.number(mean("queue_mean_bytes")),
                labels.number(mean("queue_p95_bytes")),
                labels.number(mean("queue_max_bytes")),
            )
        )
    header = (
        "link",
        "packets offered",
        "dropped at the queue",
        "lost on the air",
        "delivered",
        "useful share",
        "busy",
        "queue: mean (B)",
        "95th percentile (B)",
        "largest (B)",
    )
    caption = "Of one run, mean over the replications." if cell.replications > 1 else ""
    return Listing("links-table", header, tuple(rows), caption, numeric=tuple(range(1, len(header))))


def manifest(data: Data) -> Listing:
    """What was run, by what, and how much came of it."""
    said: Mapping[str, Any] = data.results.manifest
    runs = sum(cell.replications for cell in data.cells)
    flows = sum(cell.replications * sum(group.count for group in cell.groups) for cell in data.cells)
    seeds = [str(seed) for seed in said.get("seeds", [])]
    told = seeds if len(seeds) <= 3 else [seeds[0], seeds[1], "\N{HORIZONTAL ELLIPSIS}", seeds[-1]]
    settings = f"{labels.count(len(data.cells))} settings" if len(data.cells) > 1 else "1 setting"
    rows = [
        ("results of", ": ".join(str(said[key]) for key in ("name", "title") if said.get(key))),
        ("program", f"millpond {said.get('version', '')}"),
        ("command", " ".join(str(word) for word in said.get("command", []))),
        ("runs", f"{labels.count(runs)}: {settings}, replications of each: {data.results.replications}"),
        ("seeds", f"{', '.join(told)} ({len(seeds)} in manifest.json)"),
        ("clients in all runs", f"n = {labels.count(flows)}"),
        ("clients unfinished", labels.count(float(said.get("unfinished_flows", 0)))),
    ]
    if data.results.study is not None:
        paths = said.get("paths", {})
        rows += [(path_in_words(path), paths[path]) for path in data.paths if path_in_words(path) and paths.get(path)]
        rows += [(name, _words(data.cells, name)) for name in data.varying]
        rows += [
            ("clients of a run", _values(data.cells, "clients", labels.count)),
            ("buffers", _values(data.cells, "buffer_bytes", labels.buffer)),
            ("workloads", "; ".join(labels.workload(name) for name in data.workloads())),
            ("controllers", ", ".join(labels.controller(name) for name in data.controllers())),
        ]
    if said.get("platform"):
        rows.append(("machine", f"{said['platform']}, Python {said.get('python', '')}"))
    if said.get("wall_s"):
        workers = int(said.get("workers", 0))
        threads = f" on {workers} thread{'s' if workers != 1 else ''}" if workers else ""
        rows.append(("took", f"{labels.number(float(said['wall_s']), 3)} s{threads}"))
        simulated = sum(float(data.values("runs", "simulated_us", cell).sum()) for cell in data.cells)
        rate = labels.count(simulated / float(said["wall_s"]))
        rows.append(("simulated", f"{labels.count(simulated)} s, {rate} s in each second"))
    return Listing("manifest", ("", ""), tuple(rows))


def path_settings(cell: Cell) -> Listing:
    """The two links as the scenario of a cell gives them."""
    path = cell.scenario.get("path", {})
    rows = []
    for link in ("uplink", "downlink"):
        said = path.get(link, {})
        loss, jitter = said.get("loss"), said.get("jitter")
        rows.append(
            (
                link,
                str(said.get("rate", "")),
                str(said.get("delay", "")),
                f"{jitter.get('from')} to {jitter.get('to')}" if isinstance(jitter, dict) else "none",
                str(said.get("queue", "")),
                str(loss.get("kind", "none")) if isinstance(loss, dict) else "none",
            )
        )
    return Listing(
        "path",
        ("link", "rate", "delay", "jitter", "queue", "loss"),
        tuple(rows),
        f"The path of the first setting ({cell.id}); every setting stands in full in manifest.json.",
    )


def _figure_row(figure: Figure) -> tuple[str, ...]:
    statistic = labels.statistic(figure.statistic, figure.bin)
    if figure.metric == HISTOGRAM:
        statistic = f"{figure.bin} retransmission{'' if figure.bin == '1' else 's'}"
    interval = "" if figure.interval is None else " to ".join(labels.number(bound) for bound in figure.interval)
    return (
        statistic,
        f"{_QUALIFIERS.get(figure.qualifier, '')}{labels.as_printed(figure.published)}",
        labels.as_printed(figure.ours),
        figure.unit,
        labels.percent(figure.relative, signed=True),
        interval,
        labels.count(figure.n) if figure.ours is not None else "",
        figure.note,
    )


def _bound_kept(figure: Figure) -> bool:
    """Whether the published figure is only a bound ("beyond 3 s"), and ours keeps it."""
    if figure.ours is None:
        return False
    if figure.qualifier in ("gt", "ge"):
        return figure.ours >= figure.published
    return figure.qualifier in ("lt", "le", "up_to") and figure.ours <= figure.published


def _conditions(scenario: Mapping[str, Value]) -> str:
    """Where a figure was observed, in words; what is the same in a whole study is left out."""
    told = []
    for name, value in scenario.items():
        if name in ("error_profile", "payload", "bin", "baseline", "direction"):
            continue
        if name == "clients" and not isinstance(value, str):
            told.append(labels.clients(value))
        elif name == "buffer_bytes" and not isinstance(value, str):
            told.append(labels.buffer(value))
        elif name == "algorithm":
            told.append(_algorithms(value))
        elif name == "comparator":
            against = f" against {_algorithms(scenario['baseline'])}" if scenario.get("baseline") else ""
            direction = f": {scenario['direction']}" if scenario.get("direction") else ""
            told.append(f"{_algorithms(value)}{against}{direction}")
        elif name == "path":
            told.append(path_in_words(str(value)) or f"{value} delay")
        else:
            told.append(f"{name} {value}" if name in ("clients", "buffer_bytes") else str(value))
    return ", ".join(told)


def _algorithms(value: Value) -> str:
    return ", ".join(labels.controller(labels.preset(part)) for part in str(value).split(";"))


def _words(cells: Sequence[Cell], column: str) -> str:
    found = dict.fromkeys(column_in_words(column, cell.columns.get(column, "")) for cell in cells)
    return ", ".join(word for word in found if word)


def _values(cells: Sequence[Cell], column: str, write: Callable[[float], str]) -> str:
    found = sorted({float(cell.columns[column]) for cell in cells if column in cell.columns})
    return ", ".join(write(value) for value in found)
