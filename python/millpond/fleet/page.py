"""What is shown of an answer: its first part for those who decide, the rest for those who build."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial

from millpond.fleet import pictures, told
from millpond.fleet.answer import Answer
from millpond.fleet.remedies import Remedy
from millpond.fleet.verdict import VERDICTS, Verdict
from millpond.show import html
from millpond.show.document import Document, Entry, Listing, Picture, Row, Section, Tone

FOOTER = (
    "Every number was measured in simulated runs of the described fleet. The controllers and the endpoint in them are "
    "the ones that ship; the cell is a model of rate, delay, buffer, loss and, if its path has it, access."
)
#: Rows of the table on the first page.
FEW = 4


#: How good the words of verdicts are.
_TONES: dict[Verdict, Tone] = {
    "safe": "good", "strained": "unsure", "congested": "unsure", "collapse": "bad", "lost": "bad",
}  # fmt: skip


def document(answer: Answer) -> Document:
    """All that is shown of an answer, in every format."""
    by = f"Fleet question, answered by millpond {answer.version}: {len(answer.seeds)} runs of each setting"
    return Document(told.headline(answer), by, FOOTER, partial(sections, answer))


def render(answer: Answer) -> str:
    """The page as text: one file that opens offline."""
    return html.render(document(answer))


def sections(answer: Answer) -> list[Section]:
    """What stands on the page, in order."""
    return [_short(answer), _course(answer), _helps(answer), *_edge(answer), _assumed(answer)]


# ----------------------------------------------------------------------------------------------- helpers


def _short(answer: Answer) -> Section:
    done = Picture(
        "done",
        "Share of the devices that are done",
        "Against the time since the event, in one run; the higher and the further left, the better. Done is a "
        "device of which every request of the event was answered.",
        partial(pictures.done, answer),
    )
    few = [remedy for remedy in answer.remedies if remedy.outcome.verdict == "safe"][:FEW] or answer.remedies[:FEW]
    rows = tuple((row[0], row[1], row[2], row[4], row[5]) for row in _rows(answer, few))
    header = ("what would help most", "needs", "verdict", "never report", "done after")
    helps = Listing("in-short", header, rows, numeric=(3, 4), detail=True)
    return Section("summary", "In short", tuple(told.lead(answer)), (done,), (helps,))


def _course(answer: Answer) -> Section:
    best = answer.best
    beside = "" if best is None else f" Beside it: {best.outcome.change.title}."
    collapse = Picture(
        "collapse",
        "Queue and goodput ratio",
        "Above, how much waits at the busiest link (left scale) and how long a new packet has to wait for it (right "
        f"scale); below, how much of what the link carries completes an exchange. One run.{beside}",
        partial(pictures.collapse, answer),
    )
    rows = tuple(told.facts(answer))
    facts = Listing("facts", ("as it is", "median, and range over the runs"), rows, numeric=(1,))
    return Section("course", "What happens", (f"Goal: {answer.fleet.goal}.",), (collapse,), (facts,))


def _helps(answer: Answer) -> Section:
    caption = (
        f"The best first: {' before '.join(VERDICTS)}, then the sooner, then the less trouble. Equal seeds draw equal "
        "random numbers, so that remedies are compared run by run; in brackets the 95 % interval of the mean. Done: "
        "the share that the goal names. Others late: until reports of other devices reach the server in at most 1.1 "
        "times the time that they took before the event."
    )
    numeric = tuple(range(3, len(told.REMEDIES)))
    listings = [Listing("remedies", told.REMEDIES, _rows(answer), caption, numeric)]
    paragraphs = told.untried(answer)
    if answer.shares:
        only = "The best of the controllers on some of the devices only, as when old firmware stays in the field."
        rows = _rows(answer, answer.shares)
        listings.append(Listing("shares", told.REMEDIES, rows, only, numeric, title="On new firmware only"))
    if answer.gateway is not None:
        rows = tuple((line, "") for line in answer.gateway.splitlines())
        title = "gateway.toml, of a gateway that asks for devices"
        listings.append(Listing("gateway", ("to copy, for millpond gateway", ""), rows, title=title, folded=True))
    if answer.fleet.keys.old_firmware:
        paragraphs.append(
            f"{answer.fleet.keys.old_firmware:.0%} of the devices stay as they are: what needs devices' settings or "
            "firmware reaches the others alone."
        )
    return Section("help", "What would help", tuple(paragraphs), listings=tuple(listings))


def _edge(answer: Answer) -> list[Section]:
    if not answer.edges:
        return []
    picture = Picture(
        "edge",
        "How many devices the cell takes",
        "Above, the share of runs that are safe, with its 95 % interval; below, when the share that the goal names is "
        "done, and the goal (dashed). The dotted line is the knee: the largest fleet that was found safe.",
        partial(pictures.edges, answer),
    )
    lines = tuple(told.edge(answer, edge) for edge in answer.edges)
    return [
        Section("edge", "How far it is to the edge", lines),
        Section("edges", "Fleets of every size", (), (picture,)),
    ]


def _assumed(answer: Answer) -> Section:
    listings = []
    if (drawn := answer.as_it_is.drawn) is not None:
        scenario = json.dumps(drawn.scenario, indent=1, ensure_ascii=False)
        rows = tuple((line, "") for line in scenario.splitlines())
        listings.append(Listing("scenario", ("scenario", ""), rows, title="The scenario as it is, in full", folded=True,
                                detail=True))  # fmt: skip
    lines = (told.CHANGED_BY, *told.assumed(answer))
    return Section("assumed", "What was assumed", lines, listings=tuple(listings))


def _rows(answer: Answer, chosen: Sequence[Remedy] | None = None) -> tuple[Row, ...]:
    """The rows below `told.REMEDIES`, verdicts in their colours."""
    rows = told.remedies(answer, chosen)
    tones = [answer.as_it_is, *(remedy.outcome for remedy in (answer.remedies if chosen is None else chosen))]
    return tuple(
        (*row[:2], Entry(row[2], _TONES[outcome.verdict]), *row[3:]) for row, outcome in zip(rows, tones, strict=True)
    )
