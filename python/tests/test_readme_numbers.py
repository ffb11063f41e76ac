"""Numbers that the README tells: measured anew, or those of the page that holds them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import millpond
from millpond import cli
from millpond.measure.population import Population
from millpond.plan.toml_file import parse

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
#: Without line breaks, so that no number is torn from its words.
WORDS = " ".join(README.split())


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> millpond.Run:
    out = tmp_path_factory.mktemp("cell") / "out"
    return millpond.sweep(ROOT / "scenarios/sweeps/calm-cell.toml", out=out, report=False)


def value(cell: millpond.Run, metric: str, server: str) -> float:
    return cell.measures.usual(metric, Population.of("rfc7252", server=server, path="fixed"))


def test_the_cell_of_the_first_picture_is_what_is_measured(cell: millpond.Run) -> None:
    last = {server: round(value(cell, "clients_done_100", server)) for server in ("stored", "calm")}
    assert f"useful for {last['stored']} s; with a calm server" in WORDS
    assert f"Of 400 devices the last is done after {last['stored']} s," in WORDS
    assert f"the last device is done after {last['calm']} s]" in WORDS
    assert f"it is done after {last['calm']} s; the link alone takes" in WORDS
    assert value(cell, "useful_share", "stored") == pytest.approx(1 / 5, abs=0.02), "one byte in five"
    assert value(cell, "wasted_share", "stored") == pytest.approx(4 / 5, abs=0.02), "four of five bytes"
    assert value(cell, "useful_share", "calm") > 0.95, "nearly every byte"


def test_the_queues_of_the_first_picture_are_what_is_measured(cell: millpond.Run) -> None:
    for server, told in (("stored", "the queue stays at 190 kB"), ("calm", "the queue stays at 36 kB")):
        assert told in WORDS
        number = float(told.split()[4])
        assert value(cell, "queue", server) / 1000 == pytest.approx(number, rel=0.06), server


def test_what_the_link_alone_takes_follows_by_arithmetic() -> None:
    scenario = parse((ROOT / "scenarios/sweeps/calm-cell.toml").read_text(encoding="utf-8"), "calm-cell")["scenario"]
    group = scenario["clients"][0]
    # IPv4 and UDP, CoAP, Content-Format, payload marker and payload
    bits = group["count"] * group["exchanges"] * (28 + 4 + 1 + 1 + 60) * 8
    assert f"the link alone takes {bits / 30_000:.0f} s" in WORDS


def test_every_study_is_linked_and_no_other() -> None:
    told = re.findall(r"\[`(\w+)`\]\(docs/[\w/]+\.md\)", README)
    assert sorted(told) == sorted(path.parent.name for path in (ROOT / "scenarios/studies").glob("*/plan.toml"))


@pytest.mark.parametrize(("page", "most"), [("README.md", 700), ("CONTRIBUTING.md", 1300)])
def test_the_first_pages_stay_short(page: str, most: int) -> None:
    assert len((ROOT / page).read_text(encoding="utf-8").split()) <= most


def test_the_fleet_answers_as_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    block = README[README.index("    $ millpond fleet") :]
    command, _, told = block[: block.index("\n\n")].partition("\n")
    with pytest.raises(SystemExit):
        cli.main([*shlex.split(command)[2:], "--out", str(tmp_path / "fleet")])
    printed = " ".join(capsys.readouterr().out.split())
    for line in told.splitlines():
        assert line.strip() in printed


def test_the_toolchain_asked_for_is_the_newest_that_a_crate_needs() -> None:
    files = [ROOT / "Cargo.toml", *ROOT.glob("crates/*/Cargo.toml")]
    versions = [re.search(r'^rust-version = "([\d.]+)"', file.read_text(), re.MULTILINE) for file in files]
    newest = max((found[1] for found in versions if found), key=lambda text: tuple(map(int, text.split("."))))
    assert f"Rust {newest} or newer" in WORDS
