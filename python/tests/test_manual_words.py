"""The manual's length, its lines, and words that only this project would understand."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
#: What is read as the manual. Studies, reports and the appendix are looked up, and mostly generated.
COUNTED = sorted(DOCS.glob("*.md"))
PAGES = sorted([*COUNTED, *DOCS.glob("studies/*.md"), *DOCS.glob("reports/*.md")])
#: Lists, whose lines are those of the code.
APPENDIX = sorted(DOCS.glob("appendix/*.md"))
#: 40,000, and the pages on diagnosis, firmware, the gateway and OSCORE.
MOST_WORDS = 45_000

#: Words that nobody outside this project knows, each with the field's.
PRIVATE = {
    r"in vain": "spurious, useless",
    r"luck(?:y|iest)?": "random stream, common random numbers, by chance",
    r"strangers?": "unvalidated address",
    r"who(?:so)?ever": "a client that, anybody who",
    r"mend(?:s|ed|ing)?": "fix",
    r"owed|owes": "pending",
    r"born": "arrived",
    r"(?:how|so|as|every) (?:so )?manieth": "n-th",
    r"useful share": "goodput ratio",
    r"plain messages?": "non-confirmable message",
    r"(?:kept|carried) waits?": "persisted backoff",
    r"grains?": "observation unit",
    r"agendas?": "event calendar",
    r"painters?": "render workers",
    r"lots?(?= of| was| before|,)": "split (train, test)",
    r"of which it is said": "(say it directly)",
    r"one's own": "your own",
    r"needless copies|further cop(?:y|ies)|copies sent": "retransmissions, duplicates",
    r"let go|hush(?:ed)?": "cancel, ack only",
    r"hand(?:ed|s|ing)? on": "forward",
}
_PRIVATE = re.compile(rf"\b(?:{'|'.join(PRIVATE)})\b", re.IGNORECASE)

_BLOCK = re.compile(r"^```.*?^```|^ {4,}(?![*-]|\d\.).*?$", re.DOTALL | re.MULTILINE)
#: What is spelt as the code spells it, quoted, or not read: code, comments, names of links.
_SPELT = re.compile(r"``.+?``|`[^`]*`|<!--.*?-->|\]\([^)]*\)|\"[^\"]*\"", re.DOTALL)


def prose(text: str) -> str:
    """A page without what is code, as many lines long."""
    return _SPELT.sub(lambda part: re.sub(r"[^\n]", " ", part[0]), _BLOCK.sub(lambda b: "\n" * b[0].count("\n"), text))


def private(text: str) -> list[str]:
    """The private words of a page, each with its line."""
    read = prose(text)
    return [f"line {read.count(chr(10), 0, word.start()) + 1}: {word[0]}" for word in _PRIVATE.finditer(read)]


def test_the_manual_is_short_enough_to_be_read() -> None:
    words = {page.name: len(page.read_text(encoding="utf-8").split()) for page in COUNTED}
    assert sum(words.values()) <= MOST_WORDS, sorted(words.items(), key=lambda told: -told[1])[:10]


@pytest.mark.parametrize("page", [*PAGES, *APPENDIX], ids=lambda page: str(page.relative_to(DOCS)))
def test_a_page_uses_the_words_of_the_field(page: Path) -> None:
    assert private(page.read_text(encoding="utf-8")) == [], "instead: " + ", ".join(PRIVATE.values())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_lines_are_no_longer_than_120_characters(page: Path) -> None:
    """But those of tables, of code, and those that a link or a command makes long; comments are not seen."""
    text = re.sub(r"<!--.*?-->|(?<!`)`[^`\n]{40,}`(?!`)", "", page.read_text(encoding="utf-8"))
    lines = _BLOCK.sub(lambda b: "\n" * b[0].count("\n"), text).splitlines()
    long = [
        n for n, line in enumerate(lines, 1) if len(line) > 120 and line.lstrip()[0] not in "|!<" and "](" not in line
    ]
    assert long == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_tables_stand_by_themselves(page: Path) -> None:
    """A line of text beside a row would be taken for a part of the table, or the table for text."""
    lines = [
        line.lstrip() for line in _BLOCK.sub(lambda b: "\n" * b[0].count("\n"), page.read_text("utf-8")).splitlines()
    ]
    beside = [
        n
        for n, (one, other) in enumerate(pairwise(lines), 1)
        if one and other and one.startswith("|") != other.startswith("|") and not (one + other).count("<!--")
    ]
    assert beside == []


#: A comment of Rust, without what it quotes.
_COMMENT = re.compile(r"(?:^|\s)//[/!]?(.*)$", re.MULTILINE)
CRATES = sorted(folder for folder in (ROOT / "crates").iterdir() if folder.is_dir())


@pytest.mark.parametrize("crate", CRATES, ids=lambda crate: crate.name)
def test_comments_use_the_words_of_the_field(crate: Path) -> None:
    found = [
        f"{file.relative_to(ROOT)}: {word[0]}"
        for file in sorted(crate.rglob("*.rs"))
        for comment in _COMMENT.findall(file.read_text(encoding="utf-8"))
        for word in _PRIVATE.finditer(_SPELT.sub(" ", comment))
    ]
    assert found == [], "instead: " + ", ".join(PRIVATE.values())


#: A text of Rust, without the values that it shows.
_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_SHOWN = re.compile(r"\{[^{}]*\}")


def _texts(file: Path) -> Iterator[str]:
    """What a file says to somebody: the texts of a program that are more than a name, or all of another file."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".py":
        said = (node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
        yield from (one for one in said if isinstance(one, str) and " " in one)
    elif file.suffix == ".rs":
        without = _COMMENT.sub("", text)
        yield from (_SHOWN.sub(" ", one) for one in _TEXT.findall(without) if " " in one)
    else:
        yield text


SAID = {
    **{f"crates/{crate.name}": sorted(crate.glob("src/**/*.rs")) for crate in CRATES},
    "python/millpond": sorted((ROOT / "python/millpond").rglob("*.py")),
    "scenarios": sorted((ROOT / "python/millpond/scenarios").rglob("*.toml")),
    "crates/web/page": [*(ROOT / "crates/web/page").rglob("*.js"), *(ROOT / "crates/web/page").rglob("*.html")],
}


@pytest.mark.parametrize("files", SAID.values(), ids=SAID)
def test_messages_use_the_words_of_the_field(files: list[Path]) -> None:
    found = [
        f"{file.relative_to(ROOT)}: {word[0]}"
        for file in files
        for text in _texts(file)
        for word in _PRIVATE.finditer(_SPELT.sub(" ", text))
    ]
    assert found == [], "instead: " + ", ".join(PRIVATE.values())


def test_private_words_are_found_in_prose_and_not_in_code() -> None:
    text = 'A stranger\n\n    whoever\n\n`born`, "luck" <!-- mend -->\n\n* it is in vain\n'
    assert private(text) == ["line 1: stranger", "line 7: in vain"]
