"""The help of the program: verbs in groups with a line each, and examples that the verbs understand."""

from __future__ import annotations

import re
import shlex

import click
import pytest

from millpond import _engine, cli

VERBS = {name: verb for name, verb in cli.program.commands.items() if name not in dict(_engine.live_verbs())}


def told(*words: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        cli.main([*words, "--help"])
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_every_verb_stands_in_one_group_with_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    grouped = [verb for verbs in cli.program.groups.values() for verb in verbs if verb in cli.program.commands]
    assert sorted(grouped) == sorted(cli.program.commands)
    page = told(capsys=capsys)
    for title, verbs in cli.program.groups.items():
        if not cli.program.commands.keys() & set(verbs):
            continue
        assert f"\n{title}:\n" in page
    for verb in cli.program.commands:
        (line,) = re.findall(rf"^  {verb} +(.+)$", page, re.MULTILINE)
        assert not line.endswith("..."), line


@pytest.mark.parametrize("name", VERBS)
def test_the_help_of_every_verb_ends_with_examples_that_it_understands(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    verb = VERBS[name]
    assert isinstance(verb, click.Command)
    examples = told(name, capsys=capsys).partition("\n  Examples:\n")[2].splitlines()
    assert examples
    flags = {flag for param in verb.params if isinstance(param, click.Option) for flag in param.opts}
    for line in examples:
        assert line.startswith("    millpond ")
        words = shlex.split(line)
        assert words[1] == name
        if not isinstance(verb, click.Group):
            assert {word.partition("=")[0] for word in words if word.startswith("--")} <= flags, line
