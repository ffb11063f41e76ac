"""What is shown of controllers: the list of them, and one with everything known of it, its waits drawn."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from millpond.controllers import series
from millpond.controllers.catalogue import Entry, families, state
from millpond.controllers.peer import SECOND, Make
from millpond.controllers.requirements import KEY, REQUIREMENTS, Judgement, Verdict
from millpond.errors import UsageError
from millpond.results.store import write_text
from millpond.show import document, labels
from millpond.show.document import Document, Listing, Picture, Plot, Row, Section, Tone

FORMS = (".svg", ".html")

CAPTION = (
    "Above: the wait after each copy of an exchange that nobody answers; the line has the lowest draw, the band "
    "reaches to the highest. Middle: first waits after an exchange (grey, with the wait in force at its end) that was "
    "answered after so many retransmissions; each exchange that follows is answered at once, and its thin line shows "
    "how long the second wait would have been. Below: first waits on a path whose round-trip time changes and which "
    "loses the first copies of two exchanges. Waits are on logarithmic scales; middle and below have the middle draw."
)
FOOTER = "Every figure was measured by driving the controller itself in invented time."
BAR, STEPS = 13, 56
"""Characters of the longest bar, and of a line over time."""

_TONES: dict[Verdict, Tone] = {
    "met": "good", "partly": "unsure", "not met": "bad", "endpoint": "", "not applicable": "quiet",
}  # fmt: skip
_BLOCKS = "▏▎▍▌▋▊▉█"
_LEVELS = "▁▂▃▄▅▆▇█"


def check(file: Path) -> None:
    """Raises `UsageError` if no file of this name can be written."""
    if file.suffix not in FORMS:
        raise UsageError(f"--out: {file}: the name must end in {' or '.join(FORMS)}")


def write(file: Path, one: Entry, makes: Mapping[str, Make], version: str) -> None:
    """Write the picture (`.svg`) or the page (`.html`); the file appears whole or not at all.

    The same controllers give the same bytes.
    """
    from millpond.show import drawing, html

    check(file)
    svg = file.suffix == ".svg"
    write_text(file, drawing.svg(_plot(makes).draw()) if svg else html.render(explanation(one, makes, version)))


def overview(found: Sequence[Entry], version: str) -> Document:
    """All controllers: what they are, which requirements they meet, which parameters they have."""
    return Document("Controllers", f"Driven by millpond {version}", FOOTER, lambda: overview_sections(found))


def overview_sections(found: Sequence[Entry]) -> list[Section]:
    """The same, part by part."""
    listed = tuple((one.name, str(one.state_bytes or ""), state(one), one.source) for one in found)
    marks: list[Row] = [
        (one.name, *(document.Entry(j.mark, _TONES[j.verdict]) for j in one.judgements)) for one in found
    ]
    ids = ("name", *(one.id for one in REQUIREMENTS))
    told = tuple((one.id, one.title, one.text, one.source) for one in REQUIREMENTS)
    return [
        Section(
            "controllers",
            "Controllers",
            listings=(Listing("controllers", ("name", "bytes", "numbers kept", "source"), listed, numeric=(1,)),),
        ),
        Section("requirements", "Requirements", (KEY,), listings=(Listing("marks", ids, tuple(marks)),)),
        Section(
            "said",
            "What the requirements say",
            listings=(Listing("said", ("", "in short", "what", "source"), told),),
        ),
        Section(
            "parameters",
            "Parameters",
            listings=tuple(
                Listing(
                    f"parameters-{family.members[0]}",
                    ("parameter", "takes", "default", "other defaults"),
                    family.rows,
                    title=f"Parameters of {', '.join(family.members)}",
                )
                for family in families(found)
                if family.rows
            ),
        ),
    ]


def explanation(one: Entry, makes: Mapping[str, Make], version: str) -> Document:
    """One controller: what it is, its parameters, every verdict with its evidence, and its waits beside the others'."""
    sections = [
        Section("summary", "In short", (one.summary,), listings=(_facts(one),)),
        Section("requirements", "Requirements", listings=(_verdicts(one.judgements),)),
    ]
    if one.parameters:
        rows = tuple((parameter.name, parameter.legal, parameter.value) for parameter in one.parameters)
        listing = Listing("parameters", ("parameter", "takes", "value"), rows)
        sections.append(Section("parameters", "Parameters", listings=(listing,)))
    drawn = Picture("waits", f"Waits of {' and '.join(makes)}", CAPTION, partial(_plot, makes))
    listings = (*_unanswered(makes), _aftermaths(makes), _trace(makes))
    sections.append(Section("waits", "Waits", pictures=(drawn,), listings=listings))
    return Document(f"Controller {one.name}", f"Driven by millpond {version}", FOOTER, lambda: sections)


# ----------------------------------------------------------------------------------------------- tables


def _facts(one: Entry) -> Listing:
    size = "" if one.state_bytes is None else f"{one.state_bytes} with its parameters"
    rows = [
        ("source", one.source),
        ("readings", f"{', '.join(one.readings)} (docs/appendix/interpretations.md)" if one.readings else ""),
        ("keeps", state(one)),
        ("bytes for each peer", size),
        ("copies told apart by", "" if one.naming == "none" else one.naming),
        ("NON made confirmable", f"every {one.confirmable_every}th" if one.confirmable_every else ""),
    ]
    return Listing("facts", ("", ""), tuple(row for row in rows if row[1]))


def _verdicts(judgements: tuple[Judgement, ...]) -> Listing:
    rows = tuple(
        (
            one.requirement.id,
            document.Entry(one.requirement.title, more=one.requirement.text),
            document.Entry(f"{one.mark} {one.verdict}".replace(" ", "\N{NO-BREAK SPACE}"), _TONES[one.verdict]),
            re.sub(r"(?<=\d) s\b", "\N{NO-BREAK SPACE}s", one.evidence),
        )
        for one in judgements
    )
    return Listing("verdicts", ("", "requirement", "verdict", "measured"), rows)


def _unanswered(makes: Mapping[str, Make]) -> tuple[Listing, ...]:
    """A table for each past: the waits after every copy, and their bars."""
    found = {name: series.unanswered(make) for name, make in makes.items()}
    listings = []
    for place, past in enumerate(one.past for one in next(iter(found.values()))):
        lines = [one[place] for one in found.values()]
        scale = _Scale([us for one in lines for us in (*one.lowest_us, *one.highest_us)])
        rows = []
        for copy in range(series.COPIES):
            cells: list[str] = []
            for one in lines:
                there = copy < len(one.lowest_us)
                low, high = (one.lowest_us[copy], one.highest_us[copy]) if there else (0, 0)
                told = _number(low) if low == high else f"{_number(low)} to {_number(high)}"
                cells += [told, scale.bar(low)] if there else ["", ""]
            rows.append((str(copy), *cells))
        listings.append(
            Listing(
                f"unanswered-{place}",
                ("copy", *(head for name in found for head in (name, ""))),
                tuple(rows),
                "Lowest to highest draw; bars are logarithmic, of the lowest.",
                numeric=(0, *range(1, 2 * len(found), 2)),
                title=f"Waits of an exchange nobody answers, {past} (s)",
                folded=True,
            )
        )
    return tuple(listings)


def _aftermaths(makes: Mapping[str, Make]) -> Listing:
    found = {name: series.aftermaths(make) for name, make in makes.items()}
    rows: list[Row] = []
    for place, retransmissions in enumerate(series.RETRANSMISSIONS):
        for name, after in ((name, one[place]) for name, one in found.items()):
            waits = (
                f"{_number(one)} ({_number(two)})" if two > 2.1 * one else _number(one)
                for one, two in zip(after.first_us, after.second_us, strict=True)
            )
            rows.append((str(retransmissions), name, _number(after.before_us), _number(after.in_force_us), *waits))
    later = tuple(f"{number} later" for number in range(1, series.FOLLOWING + 1))
    return Listing(
        "aftermaths",
        ("r", "", "its first wait", "in force", *later),
        tuple(rows),
        "The peer had answered ten times at once. In brackets the second wait, where it is more than twice the first.",
        numeric=tuple(range(2, 4 + len(later))),
        title="First waits (s) after an answer with r retransmissions",
        folded=True,
    )


def _trace(makes: Mapping[str, Make]) -> Listing:
    """A line of blocks for the path's round-trip time and for each controller's first waits, on one scale."""
    end = series.STORY[-1].until_s
    found = {name: series.trace(make) for name, make in makes.items()}
    lengths = [us for points in found.values() for point in points for us in (point.first_us, point.rtt_us)]
    scale = _Scale(lengths)
    moments = [(step + 0.5) * end / STEPS for step in range(STEPS)]
    path = [next(phase.rtt_us for phase in series.STORY if at < phase.until_s) for at in moments]
    rows = [("path", "".join(" " if us is None else scale.level(us) for us in path))]
    for name, points in found.items():
        line = ""
        for at, rtt_us in zip(moments, path, strict=True):
            begun = [point for point in points if point.at_s <= at]
            line += scale.level(begun[-1].first_us) if begun and rtt_us is not None else " "
        rows.append((name, line))
    phases, begun_s = "", 0
    for phase in series.STORY:
        phases = phases.ljust(round(begun_s / end * STEPS)) + phase.title
        begun_s = phase.until_s
    blocks = tuple((name, line.replace(" ", "\N{NO-BREAK SPACE}")) for name, line in (("", phases), *rows))
    span = f"{_number(min(lengths))} to {_number(max(lengths))} s"
    title = f"First waits on a path that changes, {end} s ({span}, logarithmic)"
    return Listing("trace", ("", ""), blocks, title=title, folded=True)


# ----------------------------------------------------------------------------------------------- helpers


def _plot(makes: Mapping[str, Make]) -> Plot:
    from millpond.show.controllers import picture

    return picture.waits(makes)


class _Scale:
    """A logarithmic scale for lengths of time."""

    def __init__(self, lengths: Sequence[int]) -> None:
        self._low = math.log(min(lengths))
        self._width = max(math.log(max(lengths)) - self._low, 1e-9)

    def bar(self, us: int) -> str:
        """A bar; the shortest length still has one."""
        eighths = max(1, round(8 * BAR * (0.06 + 0.94 * (math.log(us) - self._low) / self._width)))
        whole, rest = divmod(eighths, 8)
        return _BLOCKS[-1] * whole + (_BLOCKS[rest - 1] if rest else "")

    def level(self, us: int) -> str:
        """One character."""
        return _LEVELS[min(len(_LEVELS) - 1, int(len(_LEVELS) * (math.log(us) - self._low) / self._width))]


def _number(us: int) -> str:
    return labels.number(us / SECOND, 3)
