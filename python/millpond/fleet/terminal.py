"""What the terminal shows of an answer, and the same as Markdown for a ticket."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.markup import escape
from rich.text import Text

from millpond.fleet import assumed, told
from millpond.fleet.answer import Answer
from millpond.fleet.remedies import Remedy
from millpond.show.tables import titled

_STYLE = {
    "safe": "bold green", "strained": "bold yellow", "congested": "bold yellow", "collapse": "bold red",
    "lost": "bold red",
}  # fmt: skip
#: Columns that a terminal has no room for; the page and Markdown have them.
_NOT_HERE = ("sooner by", "others late")
#: What a remedy is is read, and figures are looked up: its column is this wide at least.
_WIDE = 24


def tables(answer: Answer) -> list[RenderableType]:
    """The answer first, then what would help, then the edge."""
    made: list[RenderableType] = [Text(told.headline(answer), style=_STYLE[answer.as_it_is.verdict])]
    made += [Text(plain(line)) for line in told.lead(answer)]
    facts = titled("As it is")
    facts.show_header = False
    for row in told.facts(answer):
        facts.add_row(*(escape(plain(cell)) for cell in row))
    made += [facts, _remedies("What would help, the best first", answer, None)]
    if answer.shares:
        made.append(_remedies("On new firmware only", answer, answer.shares))
    lines = [*told.untried(answer), *(told.edge(answer, edge) for edge in answer.edges)]
    lines += ["", f"Assumed. {told.CHANGED_BY}", *(f"* {line}" for line in assumed.lines(answer))]
    return [*made, *(Text(plain(line)) for line in lines)]


def markdown(answer: Answer) -> str:
    """The same in short, to paste into a ticket."""
    lines = [f"## {told.headline(answer)}", ""]
    lines += [*told.lead(answer), ""]
    lines += ["| as it is | |", "|---|---|", *(f"| {name} | {value} |" for name, value in told.facts(answer)), ""]
    lines += [f"| {' | '.join(told.REMEDIES)} |", "|---" * len(told.REMEDIES) + "|"]
    lines += [f"| {' | '.join(row)} |" for row in told.remedies(answer)]
    if further := [*told.untried(answer), *(told.edge(answer, edge) for edge in answer.edges)]:
        lines += ["", *(f"- {line}" for line in further)]
    lines += ["", f"Assumed by millpond {answer.version} fleet. {told.CHANGED_BY}", ""]
    lines += [f"- {line}" for line in assumed.lines(answer)]
    return plain("\n".join(lines)) + "\n"


def plain(text: str) -> str:
    """The text with the signs of a keyboard."""
    return text.replace("\N{NARROW NO-BREAK SPACE}", " ").replace(told.MINUS, "-")


# ----------------------------------------------------------------------------------------------- helpers


def _remedies(title: str, answer: Answer, chosen: Sequence[Remedy] | None) -> RenderableType:
    made = titled(title)
    shown = [at for at, name in enumerate(told.REMEDIES) if name not in _NOT_HERE]
    for at in shown:
        made.add_column(told.REMEDIES[at], justify="left" if at < 3 else "right", min_width=_WIDE if at == 0 else None)
    for row in told.remedies(answer, chosen):
        cells = [Text(plain(cell)) for cell in row]
        cells[2].stylize(_STYLE[row[2]])
        made.add_row(*(cells[at] for at in shown))
    return made
