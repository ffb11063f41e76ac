"""How right the diagnosis is, measured on drawn scenarios: `python -m manual.accuracy`.

    python -m manual.accuracy --set judged --count 200 --out results/judged

runs each scenario, diagnoses what the server saw and what the devices saw, and puts it beside the truth. A score is a
file, so that what was interrupted goes on where it was. The last thing printed is the page of the manual. Whatever is
chosen by looking at scores is chosen on the set `development`.
"""

from __future__ import annotations

import json
import math
import sys
import textwrap
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from manual import drawn
from millpond.diagnose import analysis, repeat, score, truth, written
from millpond.diagnose.analysis import Diagnosis, Grade
from millpond.diagnose.ends import ENDS
from millpond.diagnose.fitted import fitted
from millpond.diagnose.score import Accuracy, Figure, Score
from millpond.errors import MillpondError
from millpond.plan import scenario as scenarios
from millpond.results.store import write_text
from millpond.run import capture
from millpond.show.document import Document, Listing, Row, Section
from millpond.show.text import as_json, of_sections, plain

SEED = 1
#: Figures of the table, in its order, with what they are called.
FIGURES = {
    "path.uplink.rate_bps": "uplink rate",
    "path.downlink.rate_bps": "downlink rate",
    "path.uplink.buffer_bytes": "uplink buffer",
    "path.downlink.buffer_bytes": "downlink buffer",
    "path.uplink.loss": "uplink loss",
    "path.downlink.loss": "downlink loss",
    "path.base_rtt_s": "base round trip",
    "timers.ack_timeout_s": "ACK_TIMEOUT",
    "timers.random_factor": "ACK_RANDOM_FACTOR",
    "timers.backoff": "backoff factor",
    "timers.max_retransmit": "MAX_RETRANSMIT",
    "nstart": "NSTART",
    "period_s": "period",
}
_BOUNDS: tuple[Grade, ...] = ("at-least", "at-most")


def scored(chosen: drawn.Set, number: int, folder: Path, seeds: int) -> list[Score]:
    """The scores of a scenario, one for each end; those that lie in the folder are not made again.

    Args:
        chosen: The set.
        number: Which of its scenarios.
        folder: Where scores are kept.
        seeds: Runs of what is written from the diagnosis at the server.
    """
    file = folder / f"{chosen}-{number:04}.json"
    if file.exists():
        return [Score.from_json(told) for told in json.loads(file.read_text(encoding="utf-8"))]
    name = f"{chosen} {number}"
    scenario = scenarios.build(drawn.scenario(chosen, number), name)
    content = capture.of_run(scenario, SEED)
    true = truth.of(content, scenarios.in_full(scenario))
    scores = []
    for end in ENDS:
        found = analysis.of_capture(content, end)
        one = score.score(found, true, end, name, drawn.kind(number))
        scores.append(replace(one, repeated=_repeated(found, name, seeds)) if end == "server" and seeds else one)
    write_text(file, as_json([one.to_json() for one in scores]))
    return scores


def all_scored(chosen: drawn.Set, count: int, folder: Path, jobs: int, seeds: int) -> list[Score]:
    """The scores of the first scenarios of a set, made in so many processes."""
    folder.mkdir(parents=True, exist_ok=True)
    one = partial(scored, chosen, folder=folder, seeds=seeds)
    with (
        ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool,
        click.progressbar(pool.map(one, range(count)), length=count, file=sys.stderr) as found,
    ):
        return [score for scores in found for score in scores]


def document(scores: Sequence[Score], command: str) -> Document:
    """The tables of accuracy."""
    captures = len(scores) // len(ENDS)
    return Document(
        "Accuracy of the diagnosis",
        f"{captures} drawn scenarios of a set that was not looked at while the diagnosis was written: rate 10 to 300 "
        "kbit/s, round trip 0.1 to 4 s, loss 0 to 10 %, buffers 2 kB to 1.4 MB, 20 to 400 devices. Each was captured "
        f"at the server, and at the devices. Measured by `{command}`.",
        "",
        partial(_sections, scores),
    )


def page(shown: Document) -> str:
    """The page of the manual."""
    tables = plain(of_sections(shown.sections)).replace("### ", "## ")
    return f"# {shown.title}\n\n{textwrap.fill(shown.subtitle, 120)}\n\n{tables}"


def rows(scores: Sequence[Score], end: str) -> list[Row]:
    """How retransmissions are told at one end, by workload and over all."""
    of_end = [score for score in scores if score.end == end]
    groups = [(kind, [score for score in of_end if score.kind == kind]) for kind in drawn.KINDS]
    return [_row(name, Accuracy(group)) for name, group in (*groups, ("all", of_end)) if group]


# ----------------------------------------------------------------------------------------------- helpers


def _sections(scores: Sequence[Score]) -> list[Section]:
    header = (
        "workload", "captures", "retransmissions", "spurious: precision", "recall", "needed: precision", "recall",
        "cannot tell", "verdict right", "goodput ratio off, 90 %",
    )  # fmt: skip
    caption = (
        "Shares are of all retransmissions seen. Precision: of those labelled spurious (needed), the share that are. "
        "Recall: of those that are, the share labelled so. Last column: in 90 % of the captures the goodput ratio is "
        "off by at most so many points."
    )
    sections = []
    for end in ENDS:
        labels = Listing(f"labels-{end}", header, tuple(rows(scores, end)), caption, tuple(range(1, len(header))))
        figures = Listing(
            f"figures-{end}",
            ("figure", "exact", "wrong", "bound", "violated", "estimate", "median error", "90 % within", "not visible"),
            tuple(_figures(scores, end)),
            "How many captures have the figure with this grade. Wrong: exact, and off by more than 3 % (a loss: one "
            "point). Errors are of estimates and exact figures, of the truth; of losses in points.",
            tuple(range(1, 9)),
        )
        again = _repetitions([score for score in scores if score.end == end])
        sections.append(Section(f"at-{end}", f"Captured at the {end}", listings=(labels, figures, *again)))
    return sections


def _repeated(found: Diagnosis, name: str, seeds: int) -> dict[str, float]:
    """How far runs of what is written from a diagnosis are off."""
    with TemporaryDirectory() as folder:
        written.write(written.of(fitted(found, name), name), Path(folder))
        return {one.name: one.off for one in repeat.check(found, Path(folder), range(1, seeds + 1))}


def _repetitions(scores: Sequence[Score]) -> list[Listing]:
    """How many captures are repeated within a tenth, by workload."""
    tried = [score for score in scores if score.repeated]
    if not tried:
        return []
    rows: list[Row] = []
    for kind in (*drawn.KINDS, "all"):
        group = [score for score in tried if kind in (score.kind, "all")]
        each = (sum(abs(score.repeated[name]) <= repeat.NEAR for score in group) for name in repeat.NUMBERS)
        rows.append((kind, str(len(group)), str(sum(score.repeats for score in group)), *map(str, each)))
    return [
        Listing(
            "repeated",
            ("workload", "captures", "all within a tenth", *repeat.NUMBERS),
            tuple(rows),
            "Runs of the scenario that --write gives, beside the capture: how many are within a tenth, in all that is "
            "compared and in each.",
            tuple(range(1, 3 + len(repeat.NUMBERS))),
        )
    ]


def _row(name: str, found: Accuracy) -> Row:
    right, unknown = found.verdicts
    captures = len(found.scores)
    return (
        name,
        str(captures),
        str(sum(score.labels.seen for score in found.scores)),
        *(_percent(found.share(what, word)) for word in ("spurious", "needed") for what in ("precision", "recall")),
        _percent(found.cannot_tell),
        f"{right} of {captures}" + (f", {unknown} cannot tell" if unknown else ""),
        _number(found.goodput_off(0.9)),
    )


def _figures(scores: Sequence[Score], end: str) -> Iterable[Row]:
    accuracy = Accuracy([score for score in scores if score.end == end])
    for place, name in FIGURES.items():
        told = [score.figures[place] for score in accuracy.scores if place in score.figures]
        if not told:
            continue
        exact, bounds = accuracy.of(place, ("exact",)), accuracy.of(place, _BOUNDS)
        estimates = accuracy.of(place, ("estimate",))
        off = sorted(_off(place, figure) for figure in (*exact, *estimates))
        off = [value for value in off if not math.isnan(value)]
        unit = "" if place.endswith("loss") else " %"
        yield (
            name,
            str(len(exact)),
            str(sum(figure.is_violated(place) for figure in exact)),
            str(len(bounds)),
            str(sum(figure.is_violated(place) for figure in bounds)),
            str(len(estimates)),
            *(f"{_number(off[int(share * (len(off) - 1))])}{unit}" if off else "" for share in (0.5, 0.9)),
            str(sum(figure.value is None for figure in told)),
        )


def _off(place: str, figure: Figure) -> float:
    if figure.value is None:
        return math.nan
    if place.endswith("loss"):
        return 100 * abs(figure.value - figure.truth)
    return math.nan if figure.error is None else 100 * abs(figure.error)


def _percent(share: float) -> str:
    return "" if math.isnan(share) else f"{100 * share:.1f} %"


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.2g}" if value < 10 else f"{value:.0f}"


@click.command()
@click.option("--set", "chosen", type=click.Choice(drawn.SETS), default="development", show_default=True)
@click.option("--count", type=click.IntRange(1), default=200, show_default=True, help="Scenarios, from the first on.")
@click.option(
    "--seeds", type=click.IntRange(0), default=5, show_default=True, help="Runs of what is written from a diagnosis."
)
@click.option("--jobs", type=click.IntRange(1), default=2, show_default=True, help="Processes.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder of the scores.")
def main(chosen: drawn.Set, count: int, seeds: int, jobs: int, out: Path) -> None:
    """Measure how right the diagnosis is, and print the page about it."""
    command = f"python -m manual.accuracy --set {chosen} --count {count} --seeds {seeds} --out DIR"
    try:
        scores = all_scored(chosen, count, out, jobs, seeds)
    except MillpondError as error:
        raise click.ClickException(str(error)) from None
    click.echo(page(document(scores, command)), nl=False)
    for one, place in Accuracy(scores).violations():
        figure = one.figures[place]
        click.echo(f"{one.name}, {one.end}: {place} {figure.grade} {figure.value} is {figure.truth}", err=True)


if __name__ == "__main__":
    main()
