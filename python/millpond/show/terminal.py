"""What the terminal shows: summaries, figures beside published ones, claims. Narrow enough for 80 columns."""

from __future__ import annotations

import math
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import IO, Any

from rich import box
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from millpond.judge.compare import Comparison, Figure, Verdict
from millpond.measure.measures import Measures
from millpond.measure.population import VARIANT, Population, clients_in_words, path_in_words
from millpond.show import own
from millpond.show.scenario import of_scenario
from millpond.show.sweep import of_sweep

#: Columns where there is no terminal to ask.
WIDTH = 100

#: At most so many algorithms side by side, and so many rows before buffers are left out.
_ABREAST, _MANY = 6, 60

#: What a table tells in columns of its own, in its title or by a mark.
_OWN_COLUMNS = ("clients", "buffer_bytes", "workload", VARIANT)

_STYLE = {"holds": "green", "fails": "bold red", "noise": "yellow", "unjudged": "yellow"}
_VERDICT = {"holds": "holds", "fails": "does not hold", "noise": "within the noise", "unjudged": "cannot be judged"}
_SIGN = {"gt": "> ", "ge": ">= ", "lt": "< ", "le": "<= ", "approx": "~ ", "nearly": "nearly ", "up_to": "up to "}
_UNIT = {"retransmissions": "", "exchanges": "", "percent": "%"}


def console(file: IO[str] | None = None) -> Console:
    """A console as wide as the terminal."""
    stream = file or sys.stdout
    width = None if stream.isatty() else shutil.get_terminal_size((WIDTH, 24)).columns
    return Console(file=stream, width=width, highlight=False)


def of_study(measures: Measures, comparison: Comparison) -> list[RenderableType]:
    """All tables of a study, in the order they are read: its own if it has some, else the usual ones."""
    ours = own.part(measures.results, "terminal")
    if ours is not None:
        found: list[RenderableType] = ours.of_study(measures, comparison)
        return found
    return [*completion(measures), *mixes(measures), figures(comparison), *judged(measures, comparison)]


def of_results(measures: Measures) -> list[RenderableType]:
    """All tables of results that nothing was published about: those of a sweep, or of a single scenario."""
    if measures.results.manifest.get("kind") == "sweep":
        return of_sweep(measures)
    return of_scenario(measures, str(measures.results.manifest["title"]))


def judged(measures: Measures, comparison: Comparison) -> list[RenderableType]:
    """What follows the figures of a study: those not measured, claims, settings, and how the study stands."""
    return [
        *unmeasured(comparison),
        claims(comparison),
        *differing_settings(comparison),
        Text(speed(measures)),
        Text(closing(comparison)),
    ]


def completion(measures: Measures, keep: Callable[[Population], bool] = lambda _: True) -> list[Table]:
    """Median completion time and unnecessary retransmissions: a table a workload, a column an algorithm.

    Many algorithms are spread over several tables; of many places only the smallest and the largest buffer are shown.
    """
    alone = [p for p in measures.populations() if not p.partner and keep(p)]
    if not alone:
        return []
    buffers = sorted({population.column("buffer_bytes") for population in alone})
    note = ""
    if len({population.but(algorithm="") for population in alone}) > _MANY * len({p.column("workload") for p in alone}):
        alone = [population for population in alone if population.column("buffer_bytes") in (buffers[0], buffers[-1])]
        note = "the smallest and the largest buffer; the report has all"
    algorithms = list(dict.fromkeys(population.algorithm for population in alone))
    parts = -(-len(algorithms) // _ABREAST)
    size = -(-len(algorithms) // max(1, parts))
    return [
        table
        for start in range(0, len(algorithms), size)
        for table in _completion(measures, [p for p in alone if p.algorithm in algorithms[start : start + size]], note)
    ]


def _completion(measures: Measures, alone: Sequence[Population], note: str) -> list[Table]:
    algorithms = list(dict.fromkeys(population.algorithm for population in alone))
    paths = list(dict.fromkeys(population.column(VARIANT) for population in alone))
    names = sorted(name for name in measures.varying if name not in _OWN_COLUMNS)
    further = list(dict.fromkeys(_values(population, names) for population in alone))
    made = []
    for workload in dict.fromkeys(population.column("workload") for population in alone):
        table = _table(f"Median flow completion time in s / unnecessary retransmissions per client, {workload} clients")
        for name in names:
            table.add_column(name.replace("_", "\n"), no_wrap=True)
        table.add_column("clients", justify="right", no_wrap=True)
        table.add_column("buffer", justify="right", no_wrap=True)
        for algorithm in algorithms:
            table.add_column(algorithm.replace("_", "\n"), justify="right", no_wrap=True)
        here = (population.but(algorithm="") for population in alone if population.column("workload") == workload)
        places = sorted(
            dict.fromkeys(here),
            key=lambda p: (
                further.index(_values(p, names)),
                *_values(p, _OWN_COLUMNS[:2]),
                paths.index(p.column(VARIANT)),
            ),
        )
        before: tuple[Any, ...] | None = None
        for place in places:
            cells = []
            for algorithm in algorithms:
                population = place.but(algorithm=algorithm)
                cells.append(_pair(measures, population) if measures.has(population) else "")
            told = tuple(map(str, _values(place, (*names, "clients"))))
            if before not in (None, told):
                table.add_section()
            # one table may hold several path variants: others than the first are marked, and the caption says how
            name = f"{place.column('buffer_bytes')}"
            if place.column(VARIANT) != paths[0]:
                name = f"{'~' * paths.index(place.column(VARIANT))}{name}"
            table.add_row(*(told if before != told else [""] * len(told)), name, *cells)
            before = told
        marks = [f"{'~' * number} {path_in_words(path)}" for number, path in enumerate(paths) if number]
        words = (", ".join(marks), "buffers in B" if marks else "", note)
        table.caption = "; ".join(word for word in words if word) or None
        made.append(table)
    return made


def mixes(measures: Measures) -> list[Table]:
    """Two populations on one bottleneck: each beside the other, and as when all clients were like it."""
    mixed = [population for population in measures.populations() if population.partner]
    if not mixed:
        return []
    table = _table("Half and half: median completion time in s / unnecessary retransmissions per client")
    table.add_column("clients", justify="right", no_wrap=True)
    table.add_column("buffer", justify="right", no_wrap=True)
    for name in ("workload", "half", "beside"):
        table.add_column(name, no_wrap=True)
    table.add_column("in the mix", justify="right")
    table.add_column("all alike", justify="right")
    for population in mixed:
        like = population.but(partner="")
        table.add_row(
            str(population.column("clients")),
            str(population.column("buffer_bytes")),
            population.column("workload"),
            population.algorithm,
            population.partner,
            _pair(measures, population),
            _pair(measures, like) if measures.has(like) else "",
        )
    return [table]


def figures(comparison: Comparison, but: Iterable[Figure] = ()) -> Table:
    """Published figures and ours, with the relative difference; without those that were shown before."""
    shown = {(figure.id, figure.scenario.get("path")) for figure in but}
    table = _table(f"Figures of {comparison.study}, published ({comparison.published}) and ours")
    table.add_column("where")
    table.add_column("what")
    table.add_column("published", justify="right", min_width=9)
    table.add_column("ours", justify="right", no_wrap=True)
    table.add_column("difference", justify="right")
    before: tuple[str, str] | None = None
    for figure in comparison.figures:
        if figure.ours is None or (figure.id, figure.scenario.get("path")) in shown:
            continue
        where, what = place(figure), f"{figure.metric.replace('_', ' ')} {figure.statistic}".strip()
        if figure.bin.isdecimal():
            what = f"exchanges with {figure.bin} retx"
        key = (where, figure.metric)
        if before is not None and key != before:
            table.add_section()
        first = where if key != before else ""
        before = key
        published = (
            f"{_SIGN.get(figure.qualifier, '')}{_number(figure.published)} {_UNIT.get(figure.unit, figure.unit)}"
        )
        table.add_row(first, what, published.strip(), _number(figure.ours, figure.published), _difference(figure))
    return table


def unmeasured(comparison: Comparison) -> list[Text]:
    """The figures that have none of ours beside them: a line for each reason."""
    reasons: dict[str, list[str]] = {}
    for figure in comparison.figures:
        if figure.ours is None:
            reasons.setdefault(figure.note, []).append(figure.id.removeprefix(f"{comparison.study}-"))
    lines = []
    for reason, names in reasons.items():
        told = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        lines.append(Text(f"Not measured, {reason}: {told}", style="yellow"))
    return lines


def claims(comparison: Comparison) -> Table:
    """Every claim and its verdict; for those that do not hold, what was measured and why."""
    table = _table(f"Claims of {comparison.study}")
    table.add_column("claim", no_wrap=True)
    table.add_column("verdict", width=9)
    table.add_column("sentence, and what was measured")
    for claim in comparison.claims:
        table.add_row(
            claim.id.removeprefix(f"{comparison.study}-"),
            Text(_VERDICT[claim.verdict], style=_STYLE[claim.verdict]),
            _told(claim),
        )
    return table


def differing_settings(comparison: Comparison) -> list[RenderableType]:
    """Settings of the test bed that differ from the published ones."""
    differing = [setting for setting in comparison.settings if not setting.same]
    same = len(comparison.settings) - len(differing)
    made: list[RenderableType] = (
        [Text(f"{same} of {len(comparison.settings)} published settings are ours too.")] if comparison.settings else []
    )
    if differing:
        table = _table("Settings that differ")
        for name in ("setting", "published", "ours", "why"):
            table.add_column(name)
        for setting in differing:
            table.add_row(setting.metric.replace("_", " "), setting.published, setting.ours, setting.note)
        made.append(table)
    return made


def speed(measures: Measures) -> str:
    """One line: how much time was simulated, and how fast."""
    manifest = measures.results.manifest
    simulated = sum(float(measures.run_column(cell, "simulated_us").sum()) for cell in measures.cells) * 1e-6
    wall = float(manifest["wall_s"])
    rate = f", {simulated / wall:,.0f} a second" if wall > 0 else ""
    return f"{manifest['runs']} runs, {simulated:,.0f} s simulated in {wall:.1f} s{rate}"


def closing(comparison: Comparison) -> str:
    """One line: how the study stands. What was not run is no failure, and is said apart."""
    return comparison.closing()


def place(figure: Figure) -> str:
    """Where a figure was observed, short."""
    told = figure.scenario
    words = []
    if "clients" in told:
        words.append(clients_in_words(told["clients"]))
    if "buffer_bytes" in told:
        words.append(f"{told['buffer_bytes']} B")
    if "bin" in told and not figure.bin.isdecimal():
        words.append(str(told["bin"]))
    for column in ("workload", "error_profile", "algorithm", "config", "traffic"):
        if column == "error_profile":
            words += [f"{told[column]} loss"] if told.get(column, "none") != "none" else []
        elif column in told:
            words.append(str(told[column]).replace(";", ", "))
    if told.get("comparator"):
        against = f" against {_side(told['baseline'])}" if told.get("baseline") else ""
        words.append(f"{_side(told['comparator'])}{against}")
    if told.get("path"):
        words.append(path_in_words(str(told["path"])) or f"{told['path']} delay")
    return ", ".join(words) or "all"


# ----------------------------------------------------------------------------------------------- helpers


def _side(told: object) -> str:
    """A side of a comparison, with room for a line to end."""
    words = re.sub(r"([a-z_]+)=", lambda found: found[1].replace("_", " ") + " ", str(told))
    return words.replace(";", ", ")


def _table(title: str) -> Table:
    return Table(
        title=escape(title),
        title_justify="left",
        title_style="bold",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )


def _values(population: Population, names: Sequence[str]) -> tuple[Any, ...]:
    return tuple(population.column(name) for name in names)


def _pair(measures: Measures, population: Population) -> str:
    fct = measures.sample("fct", population).take("median")
    needless = measures.sample("unnecessary_retx_per_client", population).take("median")
    return f"{_short(fct)}/{needless:.0f}"


def _short(seconds: float) -> str:
    if math.isnan(seconds):
        return "-"
    return f"{seconds:.1f}" if seconds < 1000 else f"{seconds:.0f}"


def _number(value: float, like: float | None = None) -> str:
    if math.isnan(value):
        return "-"
    if like is not None and float(like).is_integer() and abs(value) >= 100 and abs(value - round(value)) < 1e-9:
        return f"{value:.0f}"
    if value == 0 or abs(value) >= 1000:
        return f"{value:.0f}"
    return f"{value:.5g}"


def _difference(figure: Figure) -> Text:
    if figure.relative is None:
        ours = figure.ours or 0.0
        return Text("same" if ours == figure.published else f"{ours - figure.published:+.4g}")
    as_said = {
        "gt": figure.relative > 0,
        "ge": figure.relative >= 0,
        "lt": figure.relative < 0,
        "le": figure.relative <= 0,
    }
    near = as_said.get(figure.qualifier, abs(figure.relative) <= 0.05)
    return Text(f"{figure.relative:+.2%}", style="" if near else "yellow")


def _told(claim: Verdict) -> Text:
    text = Text(claim.says)
    if claim.verdict == "fails":
        text.append(f"\nmeasured: {claim.measured}", style="red")
    if claim.verdict != "holds" and claim.reason:
        text.append(f"\nreason: {claim.reason}", style=_STYLE[claim.verdict])
    if len({verdict.verdict for verdict in claim.variants.values()}) > 1:
        for name, verdict in claim.variants.items():
            text.append(f"\n{path_in_words(name) or name}: {_VERDICT[verdict.verdict]}", _STYLE[verdict.verdict])
    return text


def show(renderables: Iterable[RenderableType] | Sequence[RenderableType], file: IO[str] | None = None) -> None:
    """Print tables, an empty line between two."""
    out = console(file)
    for renderable in renderables:
        out.print(renderable)
