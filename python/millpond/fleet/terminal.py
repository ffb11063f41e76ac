"""What the terminal shows of an answer, and the same as Markdown for a ticket."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.markup import escape
from rich.text import Text

from millpond.fleet import told
from millpond.fleet.answer import Answer
from millpond.fleet.remedies import Remedy
from millpond.show.tables import titled

_STYLE = {"safe": "bold green", "strained": "bold yellow", "collapse": "bold red"}
_CAPTION = "Sooner by: mean over pairs of equal seeds. Others late: until reports arrive in 1.1 times as before."


def tables(answer: Answer) -> list[RenderableType]:
    """The answer first, then what would help, then the edge."""
    made: list[RenderableType] = [Text(told.headline(answer), style=_STYLE[answer.as_it_is.verdict])]
    made += [Text(_plain(line)) for line in told.lead(answer)]
    facts = titled("As it is")
    facts.show_header = False
    for row in told.facts(answer):
        facts.add_row(*(escape(_plain(cell)) for cell in row))
    made += [facts, _remedies("What would help, the best first", answer, None)]
    if answer.shares:
        made.append(_remedies("On new firmware only", answer, answer.shares))
    made += [Text(_plain(told.edge(answer, edge))) for edge in answer.edges]
    return made


def markdown(answer: Answer) -> str:
    """The same in short, to paste into a ticket."""
    lines = [f"## {told.headline(answer)}", ""]
    lines += [*told.lead(answer), ""]
    lines += ["| as it is | |", "|---|---|", *(f"| {name} | {value} |" for name, value in told.facts(answer)), ""]
    lines += [f"| {' | '.join(told.REMEDIES)} |", "|---" * len(told.REMEDIES) + "|"]
    lines += [f"| {' | '.join(row)} |" for row in told.remedies(answer)]
    if answer.edges:
        lines += ["", *(f"- {told.edge(answer, edge)}" for edge in answer.edges)]
    seeds = answer.seeds
    lines += ["", f"Seeds {seeds[0]} to {seeds[-1]}; millpond fleet."]
    return _plain("\n".join(lines)) + "\n"


# ----------------------------------------------------------------------------------------------- helpers


def _remedies(title: str, answer: Answer, chosen: Sequence[Remedy] | None) -> RenderableType:
    made = titled(title)
    for at, name in enumerate(told.REMEDIES):
        made.add_column(name, justify="left" if at < 3 else "right")
    for row in told.remedies(answer, chosen, interval=False):
        cells = [Text(_plain(cell)) for cell in row]
        cells[2].stylize(_STYLE[row[2]])
        made.add_row(*cells)
    made.caption = _CAPTION
    return made


def _plain(text: str) -> str:
    return text.replace("\N{NARROW NO-BREAK SPACE}", " ").replace(told.MINUS, "-")
