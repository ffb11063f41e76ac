"""A study folder of one's own: figures under its own factors, few columns, and claims that no figure speaks of."""

from __future__ import annotations

from pathlib import Path

import pytest

import millpond
from millpond.api import Reproduction
from millpond.errors import UsageError
from millpond.studies import pages as page

PLAN = """\
name = "mine"
title = "What they found"
source = "Author: Title, place, year"
published = "published.csv"
claims = "claims.toml"
replications = 3
[matrix]
devices = [1, 10]
algorithm = ["rfc7252", "cocoa-03"]
[vary.devices]
places = ["clients[0].count"]
[scenario]
path = "nbiot-anrw18"
[[scenario.clients]]
controller = "rfc7252"
exchanges = 3
"""
CLAIMS = """\
[[claim]]
id = "alone"
says = "One device needs the same time with both."
[[claim.check]]
metric = "fct"
each = { devices = [1] }
of = { algorithm = "cocoa-03" }
against = { algorithm = "rfc7252" }
within = "similar"
"""
HEADER = "id,source,locator,category,kind,devices,algorithm,metric,statistic,value,unit\n"
FIGURES = """\
one,mine,Fig. 1,result,table,1,rfc7252,fct,median,2,s
ten,mine,Fig. 1,result,table,10,cocoa-03,fct,median,2,s
many,mine,Fig. 1,result,table,500,rfc7252,fct,median,2,s
"""


def study(folder: Path, published: str) -> Path:
    folder.mkdir()
    for name, text in (("plan.toml", PLAN), ("claims.toml", CLAIMS), ("published.csv", published)):
        (folder / name).write_text(text)
    return folder


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Reproduction:
    folder = tmp_path_factory.mktemp("mine")
    return millpond.reproduce(str(study(folder / "study", HEADER + FIGURES)), out=folder / "out", report=False)


def test_a_column_named_like_a_factor_says_where_a_figure_was_observed(done: Reproduction) -> None:
    one, ten, many = done.comparison.figures
    assert [figure.scenario["devices"] for figure in (one, ten, many)] == [1, 10, 500]
    # of ten devices each waits for the others' packets
    assert one.ours is not None
    assert ten.ours is not None
    assert 0 < one.ours < ten.ours
    assert (many.ours, many.scenario["unmatched"]) == (None, "not run: devices=500")


def test_a_claim_that_no_figure_speaks_of_is_judged_all_the_same(done: Reproduction) -> None:
    (claim,) = done.comparison.claims
    assert (claim.id, claim.verdict) == ("alone", "holds")


def test_a_word_that_is_no_category_is_told_before_anything_runs(tmp_path: Path) -> None:
    folder = study(tmp_path / "study", HEADER + FIGURES.replace("result,", "results,", 1))
    told = r"published\.csv: line 2: category: unknown word 'results': did you mean 'result'\?"
    with pytest.raises(UsageError, match=told):
        millpond.reproduce(str(folder), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_page_counts_one_comparison_as_one(done: Reproduction) -> None:
    assert "<summary>1 comparison</summary>" in page.render(done.results, done.comparison)


def test_the_page_says_of_a_claim_what_the_glossary_says(tmp_path: Path) -> None:
    folder = study(tmp_path / "study", HEADER + FIGURES)
    alone = millpond.reproduce(str(folder), factors={"devices": [10]}, out=tmp_path / "out", report=False)
    assert "cannot be judged</td>" in page.render(alone.results, alone.comparison)
