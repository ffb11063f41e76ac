"""What real programs did beside a study, in the terminal: published, simulated and live."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from millpond.measure.measures import Measures
from millpond.measure.population import path_in_words
from millpond.real.columns import Beside, Live
from millpond.show import factors
from millpond.show.tables import titled


def tables(live: Live, measures: Measures) -> list[RenderableType]:
    """A table of completion times, one of copies where they were counted, what was not counted or run, what differs."""
    table = titled("Completion times in s: published, simulated and live (real programs over the same path)")
    table.add_column("where")
    table.add_column("", no_wrap=True)
    for name in ("published", "simulated", "live", "difference"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in live.settings:
        for number, line in enumerate(one.lines):
            where = f"{place(one, measures)}\n{counted(one)}" if number == 0 else ""
            simulated = " / ".join(seconds(value) for value in line.simulated)
            change = "" if line.relative is None else f"{line.relative:+.2%}"
            table.add_row(where, line.statistic, seconds(line.published), simulated, seconds(line.live), change)
        table.add_section()
    made: list[RenderableType] = [table]
    made += [Text(line) for line in remarks(live, measures)]
    return made


def remarks(live: Live, measures: Measures) -> list[str]:
    """Lines on readings, copies, runs that are not counted, programs that were not there, and what differs."""
    lines = []
    several = dict.fromkeys(one.variants for one in live.settings if len(one.variants) > 1)
    for names in several:
        lines.append(f"Simulated: {' / '.join(path_in_words(name) or name for name in names)}.")
    for one in live.settings:
        if one.copies is not None:
            share = "" if one.needed is None else f"; {one.needed:.0%} of the answers that came back were needed"
            if one.answered is not None and one.answered < 1:
                share += f"; {one.answered:.1%} of the exchanges were answered"
            lines.append(f"Live, {place(one, measures)}: {one.copies:.2f} copies of each request{share}.")
    bounds = dict.fromkeys(
        (run.lateness["bound_p99_us"] / 1e3, run.lateness["bound_max_us"] / 1e3)
        for one in live.settings
        for run in one.runs
        if run.lateness
    )
    for usual, worst in bounds:
        lines.append(f"A live run counts if 99 % of its packets were at most {usual:g} ms late and all {worst:g} ms.")
    for one in live.settings:
        for run in one.runs:
            if not run.valid:
                lines.append(f"Not valid and not counted: {place(one, measures)}, run {run.number}: {run.why}.")
            elif run.limit_s is not None:
                lines.append(f"Ended after {run.limit_s:.0f} s: {place(one, measures)}, run {run.number}.")
    for skipped in live.skipped:
        told = ", ".join(f"{value}" for name, value in skipped.columns.items() if name in ("algorithm", "clients"))
        lines.append(f"Skipped: {told}{f', {skipped.label}' if skipped.label else ''}: {skipped.why}.")
    return [*lines, *(f"Live differs from the study: {told}" for told in live.stated)]


def place(one: Beside, measures: Measures) -> str:
    """A setting in a few words: its factors that differ between cells, its algorithm, its label."""
    known = factors.of(measures.results)
    words = [
        known[name].say(value).replace("\N{NARROW NO-BREAK SPACE}", " ")
        for name, value in one.columns.items()
        if name in known and name in measures.varying
    ]
    algorithm = str(measures.results.manifest.get("labels", {}).get(one.algorithm, one.algorithm))
    return ", ".join(filter(None, [*words, algorithm, one.label]))


def counted(one: Beside) -> str:
    """How many runs and clients the live figures are of."""
    late = len(one.runs) - len(one.counted)
    words = [f"{len(one.counted)} live run{'' if len(one.counted) == 1 else 's'}, {one.clients} clients"]
    words += [f"{one.unfinished} did not finish"] * bool(one.unfinished) + [f"{late} late, not counted"] * bool(late)
    return f"({'; '.join(words)})"


def seconds(value: float | None) -> str:
    """A time as such tables have it."""
    return "-" if value is None else f"{value:.3f}" if value < 1000 else f"{value:.1f}"
