"""The catalogue in the terminal: tables, and small drawings made of blocks. Narrow enough for 100 columns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from millpond.controllers import series
from millpond.controllers.catalogue import Entry, families, state
from millpond.controllers.peer import SECOND, Make
from millpond.controllers.requirements import KEY, REQUIREMENTS, Judgement, Verdict
from millpond.show import labels

BAR = 24
"""Characters of the longest bar."""
STEPS = 84
"""Characters of a line over time."""

_STYLE: dict[Verdict, str] = {
    "met": "green",
    "partly": "yellow",
    "not met": "bold red",
    "endpoint": "cyan",
    "not applicable": "dim",
}
_BLOCKS = "▏▎▍▌▋▊▉█"
_LEVELS = "▁▂▃▄▅▆▇█"


def overview(found: Sequence[Entry]) -> Iterator[RenderableType]:
    """All controllers: what they are, which requirements they meet, which parameters they have."""
    yield _controllers(found)
    yield _matrix(found)
    yield Text(f"{KEY}\n{_in_lines([f'{one.id} {one.title}' for one in REQUIREMENTS])}\n")
    for family in families(found):
        yield _parameters(f"Parameters of {', '.join(family.members)}", family.rows)
    yield Text("millpond controllers NAME explains one and draws its waits")


def explanation(one: Entry, makes: Mapping[str, Make]) -> Iterator[RenderableType]:
    """One controller: what it is, its parameters, every verdict with its evidence, and its waits beside the others'."""
    yield _facts(one)
    yield Text()
    if one.parameters:
        yield _parameters("Parameters", [(p.name, p.legal, p.value, "") for p in one.parameters])
    yield _verdicts(one.judgements)
    yield from _unanswered(makes)
    yield _aftermaths(makes)
    yield Text()
    yield _trace(makes)


# ----------------------------------------------------------------------------------------------- tables


def _controllers(found: Sequence[Entry]) -> RenderableType:
    table = _table()
    table.add_column("name", no_wrap=True)
    table.add_column("bytes", justify="right")
    table.add_column("keeps", max_width=34)
    table.add_column("source")
    for one in found:
        table.add_row(one.name, str(one.state_bytes or ""), state(one), escape(one.source))
    return _under("Controllers: bytes for each peer, numbers kept, source", table)


def _matrix(found: Sequence[Entry]) -> RenderableType:
    table = _table()
    table.add_column("name", no_wrap=True)
    for requirement in REQUIREMENTS:
        table.add_column(requirement.id, justify="center", no_wrap=True)
    for one in found:
        table.add_row(one.name, *(Text(judgement.mark, _STYLE[judgement.verdict]) for judgement in one.judgements))
    return _under("Requirements", table)


def _parameters(title: str, rows: Sequence[tuple[str, str, str, str]]) -> RenderableType:
    table = _table()
    table.add_column("parameter", no_wrap=True)
    table.add_column("takes")
    table.add_column("default", no_wrap=True)
    differ = any(but for *_, but in rows)
    if differ:
        table.add_column("other defaults")
    for *cells, but in rows:
        table.add_row(*map(escape, cells), *([escape(but)] if differ else []))
    return _under(title, table)


def _facts(one: Entry) -> RenderableType:
    table = _bare_table()
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    size = f" ({one.state_bytes} bytes with its parameters)" if one.state_bytes else ""
    facts = {
        "what": one.summary,
        "source": one.source,
        "readings": f"{', '.join(one.readings)} (docs/readings.md)" if one.readings else "",
        "keeps": f"{state(one)}{size}",
        "wishes": _wishes(one),
    }
    for what, told in facts.items():
        if told:
            table.add_row(what, escape(told))
    return _under(one.name, table)


def _wishes(one: Entry) -> str:
    told = []
    if one.naming != "none":
        told.append(f"copies told apart by {one.naming}")
    if one.confirmable_every:
        told.append(f"every {one.confirmable_every}th plain message confirmable")
    return ", ".join(told)


def _verdicts(judgements: Sequence[Judgement]) -> RenderableType:
    table = _table()
    table.add_column("", no_wrap=True)
    table.add_column("requirement", max_width=28)
    table.add_column("verdict", no_wrap=True)
    table.add_column("measured")
    for one in judgements:
        verdict = Text(one.verdict, _STYLE[one.verdict])
        table.add_row(one.requirement.id, one.requirement.title, verdict, escape(one.evidence))
    return _under("Requirements", table)


# ----------------------------------------------------------------------------------------------- drawings


def _unanswered(makes: Mapping[str, Make]) -> Iterator[RenderableType]:
    drawn = {name: series.unanswered(make) for name, make in makes.items()}
    for place, past in enumerate(one.past for one in next(iter(drawn.values()))):
        lines = {name: found[place] for name, found in drawn.items()}
        scale = _Scale([us for one in lines.values() for us in (*one.lowest_us, *one.highest_us)])
        table = _table()
        table.add_column("copy", justify="right")
        for name in lines:
            table.add_column(name, justify="right", no_wrap=True)
            table.add_column("", min_width=BAR, no_wrap=True)
        for copy in range(series.COPIES):
            cells: list[str] = []
            for one in lines.values():
                if copy >= len(one.lowest_us):
                    cells += ["", ""]
                    continue
                low, high = one.lowest_us[copy], one.highest_us[copy]
                cells += [_number(low) if low == high else f"{_number(low)} to {_number(high)}", scale.bar(low)]
            table.add_row(str(copy), *cells, end_section=copy == 4)
        yield _under(f"Waits of an exchange nobody answers, {past} (s; lowest to highest draw; logarithmic)", table)


def _aftermaths(makes: Mapping[str, Make]) -> RenderableType:
    table = _table()
    table.caption = "in brackets the second wait, where it is more than twice the first"
    table.add_column("r", justify="right")
    table.add_column("", no_wrap=True)
    table.add_column("its first wait", justify="right")
    table.add_column("in force", justify="right")
    for number in range(1, series.FOLLOWING + 1):
        table.add_column(f"{number} later", justify="right", no_wrap=True)
    found = {name: series.aftermaths(make) for name, make in makes.items()}
    for place, retransmissions in enumerate(series.RETRANSMISSIONS):
        for turn, (name, after) in enumerate((name, one[place]) for name, one in found.items()):
            waits = zip(after.first_us, after.second_us, strict=True)
            table.add_row(
                "" if turn else str(retransmissions),
                name,
                _number(after.before_us),
                _number(after.in_force_us),
                *(f"{_number(one)} ({_number(two)})" if two > 2.1 * one else _number(one) for one, two in waits),
                end_section=turn == len(found) - 1,
            )
    return _under(
        "First waits (s) after an answer with r retransmissions; the peer had answered ten times at once", table
    )


def _trace(makes: Mapping[str, Make]) -> RenderableType:
    """A line of blocks for the path's round-trip time and for each controller's first waits, on one scale."""
    end = series.STORY[-1].until_s
    found = {name: series.trace(make) for name, make in makes.items()}
    lengths = [us for points in found.values() for point in points for us in (point.first_us, point.rtt_us)]
    scale = _Scale(lengths)
    span = f"{_number(min(lengths))} to {_number(max(lengths))} s"
    table = _bare_table()
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    moments = [(step + 0.5) * end / STEPS for step in range(STEPS)]
    table.add_row("", Text(_phases(end), style="dim"))
    path = [next(phase.rtt_us for phase in series.STORY if at < phase.until_s) for at in moments]
    levels = "".join(" " if us is None else scale.level(us) for us in path)
    table.add_row(Text("path", style="dim"), Text(levels, style="dim"))
    for name, points in found.items():
        line = ""
        for at, rtt_us in zip(moments, path, strict=True):
            begun = [point for point in points if point.at_s <= at]
            line += scale.level(begun[-1].first_us) if begun and rtt_us is not None else " "
        table.add_row(name, line)
    return _under(f"First waits on a path that changes, {end} s ({span}, logarithmic)", table)


def _phases(end: int) -> str:
    line, begun = "", 0
    for phase in series.STORY:
        line = line.ljust(round(begun / end * STEPS)) + phase.title
        begun = phase.until_s
    return line


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


# ----------------------------------------------------------------------------------------------- helpers


def _under(title: str, table: Table) -> Group:
    """The table under its title, which may be wider than the table."""
    return Group(Text(title, style="bold"), table)


def _table() -> Table:
    return Table(caption_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)


def _bare_table() -> Table:
    return Table(box=None, show_header=False, pad_edge=False)


def _number(us: int) -> str:
    return labels.number(us / SECOND, 3)


def _in_lines(words: Sequence[str], columns: int = 2) -> str:
    """Words in columns."""
    rows = math.ceil(len(words) / columns)
    wide = max(len(word) for word in words[:rows]) + 3
    lines = []
    for row in range(rows):
        line = [word.ljust(wide) for word in words[row::rows]]
        lines.append("".join(line).rstrip())
    return "\n".join(lines)
