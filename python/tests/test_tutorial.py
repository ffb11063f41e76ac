"""The tutorial: its files are as it says, and its numbers are what comes out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import millpond
from millpond import cli
from millpond.measure.population import Population

PAGE = (Path(__file__).parents[2] / "docs" / "tutorial-collapse.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> millpond.Run:
    folder = tmp_path_factory.mktemp("reader")
    for block in re.findall(r"^```toml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE):
        name = re.match(r"# (\S+)\n", block)
        assert name is not None
        (folder / name[1]).write_text(block, encoding="utf-8")
    return millpond.sweep(folder / "plan.toml", out=folder / "out", report=False)


def population(controller: str, devices: int, server: str) -> Population:
    factors: dict[str, Any] = {"clients[0].count": devices, "server.duplicates": server}
    return Population.of(controller, path="fixed", **factors)


def test_the_table_is_what_the_plan_gives(swept: millpond.Run) -> None:
    head, _, *rows = (line for line in PAGE.splitlines() if line.startswith("|"))
    controllers = re.findall(r"`([\w-]+)`", head)
    for row in rows:
        devices, server, *told = [cell.strip() for cell in row.strip("|").split("|")]
        for controller, number in zip(controllers, told, strict=True):
            who = population(controller, int(devices), server)
            assert f"{swept.measures.usual('fct', who):.4g}" == number, (row, controller)


def test_the_comparison_is_what_is_told(swept: millpond.Run, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["compare", str(swept.results.directory), "rfc7252", "cocoa-03", "--metric", "fct"])
    assert not ended.value.code
    printed = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    told = [" ".join(line.split()) for line in PAGE.splitlines() if line.startswith("      fct ")]
    assert len(told) == 3
    assert set(told) <= set(printed)


def test_the_cell_collapses(swept: millpond.Run) -> None:
    assert swept.measures.usual("wasted_share", population("rfc7252", 200, "stored")) > 2 / 3
