"""Code blocks of the manual: what can be checked without running it is well formed and names what there is."""

from __future__ import annotations

import ast
import json
import re
import shlex
import textwrap
from pathlib import Path

import click
import pytest

from millpond import cli
from millpond.plan.toml_file import parse

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
_COMMAND = re.compile(r"^(?:    )?(?:\$ )?(?:\.venv/bin/)?millpond (.*?)(?:\s{2,}#.*|\s+&)?$", re.MULTILINE)

#: The same, told as where a number comes from.
_ORIGIN = re.compile(r"<!-- from: millpond (.*?)(?:, .*)? -->")


def blocks(page: Path, language: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_are_well_formed(page: Path) -> None:
    for text in blocks(page, "python"):
        ast.parse(textwrap.dedent(text))
    for text in blocks(page, "toml"):
        parse(text, page.name)
    for text in blocks(page, "json"):
        json.loads(text)


def _flags(command: click.Command) -> set[str]:
    return {flag for option in command.params if isinstance(option, click.Option) for flag in option.opts}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_name_verbs_and_flags_that_there_are(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for line in [*_COMMAND.findall(text), *_ORIGIN.findall(text)]:
        try:
            words = shlex.split(line, comments=True)
        except ValueError:
            # it goes on in the next line
            continue
        if not words or not re.fullmatch(r"[a-z]+", words[0]):
            continue
        verb = cli.program.commands.get(words[0])
        assert verb is not None, (page.name, line)
        known = _flags(verb)
        if known and not isinstance(verb, click.Group):
            own = words[: words.index("--")] if "--" in words else words
            used = {word.partition("=")[0] for word in own if re.match(r"--[a-z]", word)}
            assert used <= known | {"--help"}, (page.name, line)


def test_many_commands_were_looked_at() -> None:
    assert sum(len(_COMMAND.findall(page.read_text(encoding="utf-8"))) for page in PAGES) > 60
