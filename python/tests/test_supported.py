"""The page of supported standards and limits: the source cites the standards, and has the limits."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "supported.md").read_text(encoding="utf-8")
SOURCE = "".join(file.read_text(encoding="utf-8") for file in sorted(ROOT.glob("crates/*/src/**/*.rs")))


def rows(heading: str) -> list[list[str]]:
    """The rows of the table below a heading."""
    part = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_every_supported_standard_is_cited_where_it_is_implemented() -> None:
    told = {number for standard, *_ in rows("Standards") for number in re.findall(r"RFC (\d+)", standard)}
    assert len(told) > 20
    assert {number for number in told if not re.search(rf"RFC ?{number}\b", SOURCE)} == set()


def test_messages_of_the_troubleshooting_page_are_those_of_the_source() -> None:
    page = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8").partition("## C library")[0]
    told = [text for line in page.splitlines() for text in re.findall(r"^\| `([^`]+)`", line)]
    assert len(told) > 10
    python = "".join(file.read_text(encoding="utf-8") for file in sorted((ROOT / "python/millpond").rglob("*.py")))
    assert [text for text in told if text not in SOURCE + python] == []


def test_exit_codes_are_those_of_the_program() -> None:
    source = (ROOT / "crates/cli/src/failure.rs").read_text(encoding="utf-8")
    codes = source.partition("fn exit_code(&self)")[2].partition("\n    }\n")[0]
    page = (
        (ROOT / "docs" / "command-line.md")
        .read_text(encoding="utf-8")
        .partition("| exit code |")[2]
        .partition("\n\n")[0]
    )
    told = {code for row in re.findall(r"^\| ([\d, ]+) \|", page, re.MULTILINE) for code in row.split(", ")}
    assert told == {"0", *re.findall(r"=> (\d+),", codes)}
