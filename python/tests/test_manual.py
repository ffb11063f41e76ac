"""The manual and the example scenario say what the program does."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from manual import commands, metrics, words
from millpond import _engine
from millpond.plan.toml_file import read_tree

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
FIRST = ROOT / "scenarios" / "first.toml"

# Every optional table is there, so that its keys are.
FULL = """
[path.uplink]
rate = "60 kbit/s"
delay = "215 ms"
queue = "8 packets"
jitter = { from = "10 ms", to = "20 ms" }
loss = { kind = "gilbert-elliott", p = 0.01 }
loss_of = "each-client"
[path.downlink]
rate = "30 kbit/s"
delay = "415 ms"
queue = "2500 B"
jitter = { from = "10 ms", to = "20 ms" }
loss = { kind = "markov", good_loss = 0.0, bad_loss = 0.5, good_dwell = "10 s", bad_dwell = "1 s" }
[[clients]]
count = 1
controller = { preset = "rfc7252", max-wait = "60 s" }
"""


def keys(tree: Any) -> set[str]:
    if isinstance(tree, list):
        return {key for branch in tree for key in keys(branch)}
    if isinstance(tree, dict):
        return set(tree) | {key for branch in tree.values() for key in keys(branch)}
    return set()


def test_the_reference_explains_every_key_of_a_scenario() -> None:
    scenario = _engine.Scenario.from_toml(FULL, "test.toml")
    page = (ROOT / "docs" / "scenario.md").read_text(encoding="utf-8")
    explained = re.sub(r"^```.*?^```", "", page, flags=re.DOTALL | re.MULTILINE)
    words = set(re.findall(r"[\w-]+", " ".join(re.findall(r"`[^`]+`", explained))))
    known = keys(json.loads(scenario.to_json()))
    assert {"rate", "jitter", "good_dwell", "1-h", "max-wait", "until"} <= known
    assert known - words == set()


def test_the_manual_names_every_preset() -> None:
    page = (ROOT / "docs" / "controllers.md").read_text(encoding="utf-8")
    assert [name for name, *_ in _engine.presets() if f"`{name}`" not in page] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8"))
    broken = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert broken == []


def test_the_first_scenario_shows_what_the_readme_says() -> None:
    scenario = _engine.Scenario.from_toml(FIRST.read_text(encoding="utf-8"), str(FIRST))
    outcome = _engine.Batch([(scenario, 1, 0)]).next()
    assert outcome is not None
    flows = pa.table(outcome.tables()["flows"]).group_by("controller")
    sums = flows.aggregate([("retransmissions", "sum"), ("unnecessary", "sum"), ("fct_us", "approximate_median")])
    standard, cocoa = (next(row for row in sums.to_pylist() if row["controller"] == c) for c in ("rfc7252", "cocoa-03"))
    assert standard["fct_us_approximate_median"] < cocoa["fct_us_approximate_median"]
    assert standard["retransmissions_sum"] > 4 * cocoa["retransmissions_sum"]
    assert standard["unnecessary_sum"] > standard["retransmissions_sum"] / 2


def test_the_list_of_commands_is_what_the_program_tells() -> None:
    # if not: python -m manual.commands > docs/appendix/commands.md
    assert (ROOT / "docs" / "appendix" / "commands.md").read_text(encoding="utf-8") == commands.page()


def test_the_manual_lists_every_metric_as_the_registry_has_it() -> None:
    assert (ROOT / "docs" / "appendix" / "metrics.md").read_text(encoding="utf-8") == metrics.page()


def test_the_glossary_has_every_word_of_claims() -> None:
    assert words.page() in (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")


def test_crates_depend_on_no_higher_floor_than_the_architecture_says() -> None:
    page = (ROOT / "docs" / "concepts.md").read_text(encoding="utf-8")
    floors: dict[str, int] = {}
    floor = 0
    for line in page.partition("```text\n")[2].partition("```")[0].splitlines():
        if (found := re.match(r" floor (\d)", line)) is not None:
            floor = int(found[1])
        floors |= dict.fromkeys(re.findall(r"crates/(\w+)", line), floor)
    assert set(floors) == {file.parent.name for file in ROOT.glob("crates/*/Cargo.toml")}
    for crate, at in floors.items():
        needed = read_tree(ROOT / "crates" / crate / "Cargo.toml").get("dependencies", {})
        used = [name.removeprefix("millpond-") for name in needed if name.startswith("millpond-")]
        assert [name for name in used if floors[name] > at] == [], crate
