"""The pages of the studies list the verdict on every claim, as a full run wrote it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from millpond.errors import UsageError
from millpond.judge.compare import Comparison, Verdict
from millpond.studies import manual

ROOT = Path(__file__).parents[2]
STUDIES = sorted(file.parent.name for file in (ROOT / "scenarios" / "studies").glob("*/claims.toml"))
ID = re.compile(r"\bc\d+\b")


@pytest.mark.parametrize("study", STUDIES)
def test_a_page_has_a_verdict_on_every_claim_and_no_other(study: str) -> None:
    text = (ROOT / "docs" / f"{study}.md").read_text(encoding="utf-8")
    _, begin, rest = text.partition(manual.BEGIN)
    table, end, _ = rest.partition(manual.END)
    assert begin, "the page has no verdicts of a full run"
    assert end, "the verdicts have no end"
    rows = [ID.findall(line) for line in table.splitlines()[3:] if line.startswith("|")]
    assert rows, "the verdicts are empty"
    assert all(len(ids) == len(set(ids)) for ids in rows), "a claim has two verdicts on one reading"
    claims = (ROOT / "scenarios" / "studies" / study / "claims.toml").read_text(encoding="utf-8")
    assert set(re.findall(r'^\[\[claim\]\]\nid = ".*-(c\d+)"', claims, re.MULTILINE)) <= {
        name for ids in rows for name in ids
    }


@pytest.mark.parametrize("study", STUDIES)
def test_why_a_claim_fails_is_told_without_figures_of_a_run(study: str) -> None:
    """What was measured stands beside the reason, from the run at hand."""
    claims = (ROOT / "scenarios" / "studies" / study / "claims.toml").read_text(encoding="utf-8")
    for reason in re.findall(r'^if_it_fails = "(.*)"$', claims, re.MULTILINE):
        assert not re.search(r"\d ?(%|percent|points|times|ms\b)|\d\.\d", reason), reason


def test_claims_are_listed_by_their_verdicts_on_each_reading() -> None:
    claim = Verdict("any-c01", "", "holds", "", "")
    typed = replace(claim, id="any-c02", variants={"typed": claim, "meant": replace(claim, verdict="noise")})
    both = Comparison("any", "1", claims=[replace(claim, verdict="unjudged"), typed])
    assert manual.page(both).splitlines()[2:] == [
        "| typed | 1: c02 | none | none | 1: c01 |",
        "| meant | none | 1: c02 | none | 1: c01 |",
    ]
    assert manual.page(Comparison("any", "1", claims=[claim])).splitlines()[2:] == ["| 1: c01 | none | none | none |"]


def test_verdicts_stand_where_the_page_has_a_place_for_them() -> None:
    page = f"before\n{manual.BEGIN}\nold\n{manual.END}\nafter\n"
    assert manual.written_into(page, "new") == f"before\n{manual.BEGIN}\n\nnew\n\n{manual.END}\nafter\n"
    with pytest.raises(UsageError, match="no place for verdicts"):
        manual.written_into("a page", "new")
