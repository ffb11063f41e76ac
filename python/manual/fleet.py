"""The figures of the page `docs/fleet.md`, each part of which is measured anew: `python -m manual.fleet`."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

from millpond.fleet import answer, description, told
from millpond.fleet.answer import Answer
from millpond.fleet.change import AS_IT_IS
from millpond.fleet.outcome import demand, simulate
from millpond.fleet.security import COSTS
from millpond.fleet.verdict import BARELY, MEANS, SURE, VERDICTS, WORDS
from millpond.show import labels, text

PAGE = Path("docs/fleet.md")
#: The fleets of its first two commands.
FIRST = {"devices": 400, "cell.profile": "nbiot-anrw18", "event.kind": "power-cut", "everyday.every": "1 d"}
DEEP = {"devices": 400, "cell.buffer": "1410 kB"}
SEEDS = range(1, 21)

_PART = re.compile(r"(<!-- measured: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
#: Not on the page: they are in the report.
_LEFT_OUT = ("sooner by", "others late")


def written(page: str) -> str:
    """The page with every part that is measured as it comes out now."""
    found = parts()
    return _PART.sub(lambda part: f"{part[1]}{found[part[2]]}{part[3]}", page)


def parts() -> Mapping[str, str]:
    """The parts that are measured, by name."""
    first, deep = (_asked(changes, largest) for changes, largest in ((FIRST, True), (DEEP, False)))
    return {
        "begins": _indented([told.headline(first), *told.lead(first)]),
        "remedies": _table(first),
        "firmware": _prose(_firmware(first)),
        "largest": "".join(f"* {text.plain(told.edge(first, edge))}\n" for edge in first.edges),
        "deep": _indented([told.headline(deep), *told.lead(deep)]),
        "words": _words(),
        "security": _security(),
    }


# ----------------------------------------------------------------------------------------------- helpers


def _asked(changes: Mapping[str, object], largest: bool) -> Answer:
    known = description.read(None, changes)
    return answer.find(known, SEEDS, largest=largest, pictures=False)


def _indented(lines: Sequence[str]) -> str:
    return (
        "\n"
        + "".join(f"    {line}\n" for sentence in lines for line in textwrap.wrap(text.plain(sentence), 100))
        + "\n"
    )


def _prose(sentences: Sequence[str]) -> str:
    return textwrap.fill(text.plain(" ".join(sentences)), 120, break_on_hyphens=False) + "\n"


def _table(found: Answer) -> str:
    shown = [at for at, name in enumerate(told.REMEDIES) if name not in _LEFT_OUT]
    header, *rows = (f"| {' | '.join(row[at] for at in shown)} |" for row in (told.REMEDIES, *told.remedies(found)))
    return "\n" + text.plain("\n".join([header, "|---" * len(shown) + "|", *rows])) + "\n\n"


def _firmware(found: Answer) -> list[str]:
    told_of = [
        f"on {100 * one.outcome.change.reach:g} % of the devices in {one.outcome.count('safe')} of {len(SEEDS)} runs"
        for one in found.shares
    ]
    whose = found.shares[0].outcome.change.title.split(" on ")[0]
    return [f"{whose}, the best of the controllers, makes the fleet safe {', '.join(told_of)}."]


def _security() -> str:
    rows = []
    for name, security in COSTS.items():
        known = description.read(None, {**FIRST, "security": name})
        found = simulate(known, AS_IT_IS, demand(known), SEEDS)
        flights = 2 * len(security.flights) + (security.last > 0)
        never, useful = (labels.percent(found.median(what)) for what in ("never", "useful"))
        done, sent = told.time(found.median("goal_s")), f"{found.median('bytes'):.0f} B"
        row = (f'`"{name}"`', str(flights), done, never, sent, useful, found.verdict)
        rows.append(f"| {' | '.join(row)} |")
    header = "| `security` | flights | done | never report | bytes a device sends | useful | verdict |\n"
    return "\n" + header + "|---" * 7 + "|\n" + text.plain("\n".join(rows)) + "\n\n"


def _words() -> str:
    rows = [f"| {word} | *{WORDS[word]}*: {MEANS[word]} |" for word in VERDICTS]
    return (
        "\n| word | of a run |\n|---|---|\n" + "\n".join(rows) + "\n\n" + _prose([
            "A run has the last of these words whose condition it meets.",
            f"A fleet is *safe* if at least {100 * SURE:g} % of its runs are; else it has the worst word such that at "
            "least half of its runs have it or a worse one, and no better than *strained*.",
            "A goal is told to be barely above what the cell can carry if it leaves less than "
            f"{BARELY:g} times the least time in which that can be done.",
        ])
    )  # fmt: skip


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
