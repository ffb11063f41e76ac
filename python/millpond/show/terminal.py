"""What the terminal shows: summaries, figures beside published ones, claims. Narrow enough for 80 columns."""

from __future__ import annotations

import math
import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import IO

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from millpond.given_files import printable
from millpond.judge.compare import OUTCOMES, Comparison, Figure, Verdict
from millpond.measure.measures import Measures
from millpond.measure.population import VARIANT, path_in_words
from millpond.plan.program import FLEET
from millpond.show import factors, labels, own
from millpond.show.factors import SERIES, Factor
from millpond.show.fleet import of_fleet
from millpond.show.places import completion, mixes
from millpond.show.scenario import of_scenario
from millpond.show.sweep import of_sweep
from millpond.show.tables import titled

#: Columns where there is no terminal to ask.
WIDTH = 100
#: Below this, numbers would be broken or cut: what a narrower terminal does with the ends of lines loses nothing.
LEAST = 80

_STYLE = {"holds": "green", "fails": "bold red", "noise": "yellow", "unjudged": "yellow"}
_SIGN = {"gt": "> ", "ge": ">= ", "lt": "< ", "le": "<= ", "approx": "~ ", "nearly": "nearly ", "up_to": "up to "}
_UNIT = {"retransmissions": "", "exchanges": "", "percent": "%"}


def console(file: IO[str] | None = None) -> Console:
    """A console as wide as the terminal."""
    stream = file or sys.stdout
    width = shutil.get_terminal_size((WIDTH, 24)).columns
    return Console(file=stream, width=max(width, LEAST), highlight=False)


def of_study(measures: Measures, comparison: Comparison) -> list[RenderableType]:
    """All tables of a study, in the order they are read: its own if it has some, else the usual ones."""
    ours = own.part(measures.results, "terminal")
    if ours is not None:
        found: list[RenderableType] = ours.of_study(measures, comparison)
        return found
    return [*completion(measures), *mixes(measures), figures(measures, comparison), *judged(measures, comparison)]


def of_results(measures: Measures) -> list[RenderableType]:
    """All tables of results that nothing was published about: those of a sweep, or of a single scenario."""
    if measures.results.manifest.get("kind") == FLEET:
        return of_fleet(measures)
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


def figures(measures: Measures, comparison: Comparison, but: Iterable[Figure] = ()) -> Table:
    """Published figures and ours, with the relative difference; without those that were shown before."""
    known = factors.of(measures.results)
    varying = {name: known[name] for name in measures.varying if name in known}
    shown = {(figure.id, figure.scenario.get("path")) for figure in but}
    table = titled(f"Figures of {comparison.study}, published ({comparison.published}) and ours")
    table.add_column("where")
    table.add_column("what")
    table.add_column("published", justify="right", min_width=9)
    table.add_column("ours", justify="right", no_wrap=True)
    table.add_column("difference", justify="right")
    before: tuple[str, str] | None = None
    for figure in comparison.figures:
        if figure.ours is None or (figure.id, figure.scenario.get("path")) in shown:
            continue
        where, what = place(figure, known, varying), f"{figure.metric.replace('_', ' ')} {figure.statistic}".strip()
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
    table = titled(f"Claims of {comparison.study}")
    table.add_column("claim", no_wrap=True)
    table.add_column("verdict", width=9)
    table.add_column("sentence, and what was measured")
    for claim in comparison.claims:
        table.add_row(
            claim.id.removeprefix(f"{comparison.study}-"),
            Text(OUTCOMES[claim.verdict], style=_STYLE[claim.verdict]),
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
        table = titled("Settings that differ")
        for name in ("setting", "published", "ours", "why"):
            table.add_column(name)
        for setting in differing:
            table.add_row(setting.metric.replace("_", " "), setting.published, setting.ours, setting.note)
        made.append(table)
    return made


def speed(measures: Measures) -> str:
    """One line: how much time was simulated, and how fast."""
    simulated = sum(float(measures.run_column(cell, "simulated_us").sum()) for cell in measures.cells) * 1e-6
    wall = sum(float(said["wall_s"]) for _, said in measures.results.folders)
    rate = f", {simulated / wall:,.0f} a second" if wall > 0 else ""
    return f"{labels.runs(measures.results.runs)}, {simulated:,.0f} s simulated in {wall:.1f} s{rate}"


def closing(comparison: Comparison) -> str:
    """One line: how the study stands. What was not run is no failure, and is said apart."""
    return comparison.closing()


def place(figure: Figure, known: Mapping[str, Factor], varying: Mapping[str, Factor]) -> str:
    """Where a figure was observed, short: what is the same in all results is left out."""
    told = figure.scenario
    words = []
    for name, value in told.items():
        if name in (SERIES, "comparator", "baseline", "direction", VARIANT) or (name in known and name not in varying):
            continue
        if name == "bin":
            words += [] if figure.bin.isdecimal() else [str(value)]
        elif name in varying:
            words.append(varying[name].say(value).replace("\N{NARROW NO-BREAK SPACE}", " "))
        else:
            words.append(str(value))
    if SERIES in told:
        words.append(str(told[SERIES]).replace(";", ", "))
    if told.get("comparator"):
        against = f" against {_side(told['baseline'])}" if told.get("baseline") else ""
        words.append(f"{_side(told['comparator'])}{against}")
    if told.get(VARIANT):
        words.append(path_in_words(str(told[VARIANT])) or f"{told[VARIANT]} delay")
    return ", ".join(word for word in words if word) or "all"


# ----------------------------------------------------------------------------------------------- helpers


def _side(told: object) -> str:
    """A side of a comparison, with room for a line to end."""
    words = re.sub(r"([a-z_]+)=", lambda found: found[1].replace("_", " ") + " ", str(told))
    return words.replace(";", ", ")


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
            text.append(f"\n{path_in_words(name) or name}: {OUTCOMES[verdict.verdict]}", _STYLE[verdict.verdict])
    return text


class Plain:
    """What is printed, with nothing from a file in it that would steer the terminal."""

    def __init__(self, renderable: RenderableType) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self._renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)


def show(renderables: Iterable[RenderableType] | Sequence[RenderableType], file: IO[str] | None = None) -> None:
    """Print tables, an empty line between two."""
    out = console(file)
    for renderable in renderables:
        out.print(Plain(renderable))
