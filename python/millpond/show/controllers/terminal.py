"""The catalogue in the terminal: tables, and small drawings made of blocks. Narrow enough for 80 columns."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from millpond.controllers import series
from millpond.controllers.catalogue import Entry, families, state
from millpond.controllers.peer import SECOND, Make
from millpond.controllers.requirements import KEY, REQUIREMENTS, Judgement, Verdict
from millpond.show import labels

BAR = 24
"""Characters of the longest bar, where there is room."""
STEPS = 84
"""Characters of a line over time, where there is room."""
NAME = 18
"""Characters of a name; one that is longer goes on below."""

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
    yield _Fitted(partial(_unanswered, makes))
    yield _Fitted(partial(_aftermaths, makes))
    yield Text()
    yield _Fitted(partial(_trace, makes))


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
        "readings": f"{', '.join(one.readings)} (docs/appendix/interpretations.md)" if one.readings else "",
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


@dataclass(frozen=True)
class _Fitted:
    """What is drawn for so many columns as there are."""

    draw: Callable[[int], Iterable[RenderableType]]

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        yield from self.draw(options.max_width)


def _unanswered(makes: Mapping[str, Make], columns: int) -> Iterator[RenderableType]:
    # beside the number of the copy each controller has its waits and its bars, all of them a space apart
    bar = min(BAR, (columns - len("copy")) // len(makes) - NAME - 4)
    drawn = {name: series.unanswered(make) for name, make in makes.items()}
    for place, past in enumerate(one.past for one in next(iter(drawn.values()))):
        lines = {name: found[place] for name, found in drawn.items()}
        scale = _Scale([us for one in lines.values() for us in (*one.lowest_us, *one.highest_us)], bar)
        table = _table()
        table.add_column("copy", justify="right")
        for name in lines:
            table.add_column(_folded(name), justify="right", no_wrap=True)
            table.add_column("", min_width=bar, no_wrap=True)
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


def _aftermaths(makes: Mapping[str, Make], columns: int) -> Iterator[RenderableType]:
    table = _table()
    table.caption = "in brackets the second wait, where it is more than twice the first"
    table.add_column("r", justify="right")
    table.add_column("", no_wrap=True)
    table.add_column("its first wait", justify="right", min_width=5)
    table.add_column("in force", justify="right", min_width=5)
    for number in range(1, series.FOLLOWING + 1):
        table.add_column(f"{number} later", justify="right", no_wrap=True)
    found = {name: series.aftermaths(make) for name, make in makes.items()}
    # two waits beside each other where there is room for them
    between = " " if columns >= NAME + (series.FOLLOWING + 2) * len(" 0.961 (2.88)") else "\n"
    for place, retransmissions in enumerate(series.RETRANSMISSIONS):
        for turn, (name, after) in enumerate((name, one[place]) for name, one in found.items()):
            waits = zip(after.first_us, after.second_us, strict=True)
            table.add_row(
                "" if turn else str(retransmissions),
                _folded(name),
                _number(after.before_us),
                _number(after.in_force_us),
                *(
                    f"{_number(one)}{between}({_number(two)})" if two > 2.1 * one else _number(one)
                    for one, two in waits
                ),
                end_section=turn == len(found) - 1,
            )
    yield _under(
        "First waits (s) after an answer with r retransmissions; the peer had answered ten times at once", table
    )


def _trace(makes: Mapping[str, Make], columns: int) -> Iterator[RenderableType]:
    """A line of blocks for the path's round-trip time and for each controller's first waits, on one scale."""
    end = series.STORY[-1].until_s
    found = {name: series.trace(make) for name, make in makes.items()}
    lengths = [us for points in found.values() for point in points for us in (point.first_us, point.rtt_us)]
    scale = _Scale(lengths)
    span = f"{_number(min(lengths))} to {_number(max(lengths))} s"
    table = _bare_table()
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    steps = min(STEPS, columns - min(NAME, max(map(len, ("path", *makes)))) - 2)
    moments = [(step + 0.5) * end / steps for step in range(steps)]
    table.add_row("", Text(_phases(end, steps), style="dim"))
    path = [next(phase.rtt_us for phase in series.STORY if at < phase.until_s) for at in moments]
    levels = "".join(" " if us is None else scale.level(us) for us in path)
    table.add_row(Text("path", style="dim"), Text(levels, style="dim"))
    for name, points in found.items():
        line = ""
        for at, rtt_us in zip(moments, path, strict=True):
            begun = [point for point in points if point.at_s <= at]
            line += scale.level(begun[-1].first_us) if begun and rtt_us is not None else " "
        table.add_row(_folded(name), line)
    yield _under(f"First waits on a path that changes, {end} s ({span}, logarithmic)", table)


def _phases(end: int, steps: int) -> str:
    line, begun = "", 0
    for phase in series.STORY:
        line = line.ljust(round(begun / end * steps)) + phase.title
        begun = phase.until_s
    return line


class _Scale:
    """A logarithmic scale for lengths of time."""

    def __init__(self, lengths: Sequence[int], bar: int = BAR) -> None:
        self._bar = bar
        self._low = math.log(min(lengths))
        self._width = max(math.log(max(lengths)) - self._low, 1e-9)

    def bar(self, us: int) -> str:
        """A bar; the shortest length still has one."""
        eighths = max(1, round(8 * self._bar * (0.06 + 0.94 * (math.log(us) - self._low) / self._width)))
        whole, rest = divmod(eighths, 8)
        return _BLOCKS[-1] * whole + (_BLOCKS[rest - 1] if rest else "")

    def level(self, us: int) -> str:
        """One character."""
        return _LEVELS[min(len(_LEVELS) - 1, int(len(_LEVELS) * (math.log(us) - self._low) / self._width))]


# ----------------------------------------------------------------------------------------------- helpers


def _folded(name: str) -> str:
    return "\n".join(textwrap.wrap(name, NAME))


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
