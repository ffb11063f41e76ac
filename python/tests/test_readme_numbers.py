"""Numbers that the README tells: measured anew, or those of the page that holds them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import millpond
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
    assert f"useful for {last['stored']} s; before a calm server" in WORDS
    assert f"and the last of 400 devices is done after {last['stored']} s." in WORDS
    assert f"the last device is done after {last['calm']} s]" in WORDS
    assert f"are done after {last['calm']} s: no device needs another timer" in WORDS
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


def test_real_devices_are_quoted_from_the_page_that_has_them() -> None:
    page = (ROOT / "docs/calm-server.md").read_text(encoding="utf-8")
    rows = [[part.strip() for part in line.split("|")[1:5]] for line in page.splitlines() if line.startswith("| ")]
    took = {(row[0], row[2]): row[3] for row in rows if len(row) == 4 and row[1] == "endless"}
    calm, every = (
        [took[stack, copies].removesuffix(" s") for stack in ("libcoap", "aiocoap")] for copies in ("calmly", "all")
    )
    assert f"need {calm[0]} and {calm[1]} s instead of {every[0]} and {every[1]}" in WORDS


def test_every_study_is_in_the_table_and_no_other() -> None:
    told = re.findall(r"^\| `millpond reproduce (\w+)", README, re.MULTILINE)
    assert sorted(told) == sorted(path.parent.name for path in (ROOT / "scenarios/studies").glob("*/plan.toml"))


def test_the_study_of_the_demo_is_as_large_as_told() -> None:
    plan = parse((ROOT / "scenarios/studies/anrw18/plan.toml").read_text(encoding="utf-8"), "anrw18")
    matrix = plan["matrix"]
    count = {4: "four", 6: "six"}
    assert (
        f"up to {max(matrix['clients'])} clients, {count[len(matrix['buffer_bytes'])]} buffer sizes, "
        f"{count[len(matrix['algorithm'])]} controllers, {plan['replications']} replications"
    ) in WORDS


def test_the_toolchain_asked_for_is_the_newest_that_a_crate_needs() -> None:
    files = [ROOT / "Cargo.toml", *ROOT.glob("crates/*/Cargo.toml")]
    versions = [re.search(r'^rust-version = "([\d.]+)"', file.read_text(), re.MULTILINE) for file in files]
    newest = max((found[1] for found in versions if found), key=lambda text: tuple(map(int, text.split("."))))
    assert f"a Rust toolchain ({newest} or newer)" in WORDS
