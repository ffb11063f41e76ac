"""Which numbers of a page come from where: comments beside them, which a reader does not see.

    the last is done after 2449<!--=last--> s            the next value of the number `last` of `page.toml`
    2449<!--=last.2--> s                                 its second value
    2449<!--=anrw18:last.2--> s                          on a page of something else
    <!--= waits times in columns 3 to 4, rows 1 to 2 -->   before a table: the numbers of these cells, row by row, are
                                                         of `waits` and `times` in turn; columns and rows count from 1,
                                                         rows without those of the head

In place of the name of a number `%3` stands for the change, in percent, from the number in the third column of the row
to the number before, and `-` for a number that is none of ours.

    <!-- from: millpond reproduce upc19 --live -->       numbers of other origin: by itself all up to the next heading,
                                                         else those of its paragraph or point of a list
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from manual.numbers import Kept
from millpond.errors import UsageError, unknown

NUMBER = re.compile(r"(?:(?<=[\s|(*])[-+]|(?<![\w.,-]))\d+(?:,\d{3})*(?:\.\d+)?(?!\w)")

_INLINE = re.compile(rf"({NUMBER.pattern})(\**)<!--=([\w:-]+?)(?:\.(\d+))?-->")
_TABLE = re.compile(r"^<!--= ([\w:%. -]+?) in columns? (\d+)(?: to (\d+))?(?:, rows? (\d+)(?: to (\d+))?)? -->$", re.M)
_RULE = re.compile(r"^\|(?:\s*:?-+:?\s*\|)+\s*$")

#: What is no number of a run: code, comments, where links lead, chapters of documents, years.
_NO_NUMBERS = re.compile(
    r"^```.*?^```|^ {4,}(?![ *-]).*?$|<!-- verdicts .*?<!-- end of the verdicts -->|`[^`]*`|\]\([^)]*\)|§[\d.]+"
    r"|\b(?:RFC|[Ss]ections?|[Cc]hapter|Table|Figure|draft|Linux|Californium|libcoap) [\d.]+\d(?: (?:to|and) [\d.]+\d)?"
    r"|\b(?:19|20)\d\d\b(?! [sBk])|\b9[59] % intervals|https?://\S+|doi \S+|\b\d+x\d+\b",
    re.DOTALL | re.MULTILINE,
)
_FROM = re.compile(r"<!-- from: (.+?) -->")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_POINT_OF_A_LIST = re.compile(r"^ {0,3}(?:[*-]|\d+\.) ", re.MULTILINE)


@dataclass(frozen=True)
class Mark:
    """A number of a page, where it stands, and the value that it tells."""

    start: int
    end: int
    written: str
    #: The number's name, with that of its study if it is not the page's own.
    id: str
    #: Which of its values, from 1.
    point: int
    #: It is the change, in percent, from this figure to that value.
    beside: float | None = None


@dataclass(frozen=True)
class Fault:
    """A number of a page that is not what a run gave."""

    line: int
    written: str
    right: str
    of: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.written} is {self.right}: {self.of}"


def marks(text: str) -> list[Mark]:
    """The marked numbers of a page, in their order. Raises `UsageError` for a mark that marks nothing."""
    found = [_inline(match) for match in _INLINE.finditer(text)]
    told = {match.end() for match in _INLINE.finditer(text)}
    for match in re.finditer(r"<!--=\S+?-->", text):
        if match.end() not in told:
            raise UsageError(f"line {_line(text, match.start())}: {match[0]} stands behind no number")
    for match in _TABLE.finditer(text):
        cells = list(_in_table(text, match))
        if not cells and match[1] != "-":
            raise UsageError(f"line {_line(text, match.start())}: {match[0]}: there is no number in these cells")
        found.extend(cells)
    count: Counter[str] = Counter()
    numbered = []
    for mark in sorted(found, key=lambda mark: mark.start):
        if not mark.point and mark.beside is None:
            count[mark.id] += 1
        numbered.append(Mark(mark.start, mark.end, mark.written, mark.id, mark.point or count[mark.id], mark.beside))
    return numbered


def rewritten(text: str, values: Kept) -> str:
    """The page with the marked numbers as the values are; those of which there is no value stay."""
    for mark in reversed(marks(text)):
        if mark.id in values:
            text = text[: mark.start] + _right(text, mark, values)[0] + text[mark.end :]
    return text


def faults(text: str, values: Kept) -> list[Fault]:
    """The marked numbers that are not what the values say. Raises `UsageError` for one of which there is no value."""
    found = []
    for mark in marks(text):
        if mark.id not in values:
            raise UsageError(f"line {_line(text, mark.start)}: {unknown('number', mark.id, values)}")
        right, of = _right(text, mark, values)
        if right != mark.written:
            found.append(Fault(_line(text, mark.start), mark.written, right, of))
    return found


def unmarked(text: str, known: Collection[str]) -> list[str]:
    """Numbers that nothing says the origin of, each with the words around it.

    Those of less than two digits are left out, and those that `known` has, such as published figures.
    """
    covered = {place for mark in marks(text) for place in range(mark.start, mark.end)}
    covered |= {n for match in _TABLE.finditer(text) for n in _skipped(text, match)}
    found = []
    for start, block in _blocks(text):
        plain = _COMMENT.sub(lambda match: " " * len(match[0]), block)
        for match in NUMBER.finditer(plain):
            digits = match[0].replace(",", "").lstrip("+-")
            if start + match.start() in covered or len(digits) < 2 or digits in known:
                continue
            around = plain[max(0, match.start() - 30) : match.end() + 20]
            found.append(f"line {_line(text, start + match.start())}: {match[0]} in “{' '.join(around.split())}”")
    return found


def shown(value: float, like: str, *, signed: bool = False) -> str:
    """A value as a number is written: with as many digits, its sign if it has one, its thousands apart or not.

    With `signed` it has one unless it is nought.
    """
    decimals = len(like.partition(".")[2])
    if decimals == 0:
        digits = like.replace(",", "").lstrip("+-")
        zeros = len(digits) - len(digits.rstrip("0"))
        # noughts at the end are figures as long as there are three
        decimals = -min(zeros, max(0, len(digits) - 3))
    rounded = round(value, decimals) + 0.0
    sign = "+" if like.startswith("+") or (signed and rounded) else ""
    comma = "," if "," in like else ""
    return f"{rounded:{sign}{comma}.{max(0, decimals)}f}"


# ----------------------------------------------------------------------------------------------- helpers


def _inline(match: re.Match[str]) -> Mark:
    return Mark(match.start(1), match.end(1), match[1], match[3], int(match[4] or 0))


def _rows(text: str, match: re.Match[str]) -> Iterator[list[tuple[int, str]]]:
    """The cells of each row that a table's mark speaks of, and where they begin."""
    place = text.find("\n|", match.end())
    lines = []
    while place >= 0 and text[place + 1 : place + 2] == "|":
        end = text.find("\n", place + 1)
        lines.append((place + 1, text[place + 1 : end if end >= 0 else len(text)]))
        place = end
    rules = [number for number, (_, line) in enumerate(lines) if _RULE.match(line)]
    if not rules or text[match.end() : lines[0][0]].replace("\n", "") != "".join(
        other[0] for other in _TABLE.finditer(text, match.end(), lines[0][0])
    ):
        raise UsageError(f"line {_line(text, match.start())}: {match[0]} stands before no table")
    body = lines[rules[0] + 1 :]
    top, bottom = int(match[4] or 1), int(match[5] or match[4] or len(body))
    for start, line in body[top - 1 : bottom]:
        cells, at = [], start + 1
        for cell in line.strip().strip("|").split("|"):
            cells.append((at, cell))
            at += len(cell) + 1
        yield cells


def _numbers(text: str, match: re.Match[str]) -> Iterator[tuple[int, str, str, list[tuple[int, str]]]]:
    """The numbers of a table's mark in their order: where, as written, whose, and the cells of the row."""
    ids = match[1].split()
    first, last = int(match[2]), int(match[3] or match[2])
    for cells in _rows(text, match):
        turn = 0
        for at, cell in cells[first - 1 : last]:
            for number in NUMBER.finditer(f" {cell}"):
                yield at + number.start() - 1, number[0], ids[turn % len(ids)], cells
                turn += 1


def _in_table(text: str, match: re.Match[str]) -> Iterator[Mark]:
    before = ""
    for start, written, name, cells in _numbers(text, match):
        if name.startswith("%"):
            figure = NUMBER.search(f" {cells[int(name[1:]) - 1][1]}")
            if figure is None or not before:
                raise UsageError(f"line {_line(text, start)}: {name}: there is no number to compare with")
            yield Mark(start, start + len(written), written, before, 0, float(figure[0].replace(",", "")))
        elif name != "-":
            before = name
            yield Mark(start, start + len(written), written, name, 0)


def _skipped(text: str, match: re.Match[str]) -> Iterator[int]:
    return (start for start, _, name, _ in _numbers(text, match) if name == "-")


def _right(text: str, mark: Mark, values: Kept) -> tuple[str, str]:
    """What should be written, and what that is of."""
    points = values[mark.id]
    if not 1 <= mark.point <= len(points):
        raise UsageError(
            f"line {_line(text, mark.start)}: {mark.written} would be value {mark.point} of {mark.id!r}, which has "
            f"{len(points)}"
        )
    one = points[mark.point - 1]
    if mark.beside is None:
        return shown(one.value, mark.written), one.of
    change = 100 * (one.value - mark.beside) / mark.beside
    return shown(change, mark.written.lstrip("+"), signed=True), f"{one.of}, beside {mark.beside:g}"


def _blocks(text: str) -> Iterator[tuple[int, str]]:
    """Paragraphs, points of lists and tables that no comment gives another origin, and where they begin."""
    plain = _NO_NUMBERS.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    elsewhere = False
    for match in re.finditer(r"(?:^.*\S.*\n?)+", plain, re.MULTILINE):
        starts = [0, *(point.start() for point in _POINT_OF_A_LIST.finditer(match[0]) if point.start())]
        for start, end in zip(starts, [*starts[1:], len(match[0])], strict=True):
            block = match[0][start:end]
            if block.startswith("#"):
                elsewhere = False
            origin = _FROM.search(block)
            if origin and not _COMMENT.sub("", block).strip():
                elsewhere = True
            elif not origin and not elsewhere:
                yield match.start() + start, block


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1
