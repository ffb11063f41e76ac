"""The study `cocoaplus15`: every claim has a check that the plan runs, every published row finds a number of ours."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

import millpond
from millpond.errors import UsageError
from millpond.judge import claim_file
from millpond.judge.published import read
from millpond.measure.measures import Measures
from millpond.plan import study
from millpond.results.directory import Results
from millpond.studies import reproduction

NAME = "cocoaplus15"
#: About the algorithm, other papers, what is no setting, and the shape of a curve.
UNJUDGED = {f"{NAME}-c{number:02d}" for number in (5, 6, 7, 29, 33)}


@cache
def plan() -> study.Plan:
    return study.load(study.find(NAME))


@cache
def planned() -> Measures:
    """What is known of the cells before anything was run."""
    cells = [cell.cell.to_json() for cell in study.unfold(plan()).cells]
    return Measures(Results(Path("planned"), {"cells": cells, "files": {}, "kind": "study", "name": NAME}))


@cache
def written() -> claim_file.ClaimFile:
    assert plan().claims is not None
    return claim_file.read(plan().claims, plan().factors, plan().columns)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> millpond.Reproduction:
    """The 6x6 grid at few loads, two runs of each; every reading of the test bed."""
    out = tmp_path_factory.mktemp(NAME) / "out"
    few: dict[str, Sequence[str | int | float]] = {"offered_kbps": [3, 4], "topology": ["grid-6x6"]}
    three = ["default", "cocoa", "cocoa_plus"]
    return millpond.reproduce(NAME, quick=True, factors=few, controllers=three, out=out, report=False)


def test_every_published_claim_has_an_entry_that_says_it() -> None:
    assert plan().published is not None
    claims = written().claims
    assert set(claims) == set(read(plan().published).claims())  # type: ignore[arg-type]
    assert {claim.id for claim in claims.values() if claim.unjudged} == UNJUDGED
    assert all(claim.says.endswith(".") for claim in claims.values())


def test_no_claim_asks_for_what_the_plan_does_not_run() -> None:
    measures = planned()
    first = plan().paths[0].name

    def asked() -> Iterator[tuple[str, object]]:
        for claim in written().claims.values():
            for check in claim.checks:
                for of, against in claim_file.pairs(check, measures):
                    for side in (of, against):
                        if side is not None:
                            yield claim.id, side.but(path=first)

    sides = list(asked())
    assert len(sides) > 500
    assert [side for side in sides if not measures.has(side[1])] == []  # type: ignore[arg-type]


def test_loads_are_messages_of_96_bytes() -> None:
    """All nodes together have 768 bits every so often, for every load."""
    for cell in (cell.cell for cell in study.unfold(plan()).cells):
        workload = cell.scenario["clients"][0]["workload"]
        periodic = workload[0] if isinstance(workload, list) else workload
        number, unit = periodic["period"]["together"].split()
        seconds = float(number) * {"us": 1e-6, "ms": 1e-3, "s": 1.0}[unit]
        assert 0.768 / seconds == pytest.approx(float(cell.columns["offered_kbps"]), rel=1e-5), cell.id


def test_every_published_figure_of_what_was_run_finds_one_of_ours(small: millpond.Reproduction) -> None:
    assert small.comparison is not None
    reasons = set(plan().reading.unmeasured.values())
    left_out = [figure for figure in small.comparison.figures if figure.ours is None and figure.note not in reasons]
    # small runs lack topologies and loads, not metrics
    assert [figure for figure in left_out if not figure.note.startswith("not run: ")] == []
    assert sum(figure.ours is not None for figure in small.comparison.figures) >= 36
    intervals = [f for f in small.comparison.figures if f.statistic == "ci95_half" and f.ours is not None]
    assert len(intervals) >= 18


def test_of_a_file_of_ones_own_figures_are_compared_and_sentences_left_unjudged(
    small: millpond.Reproduction, tmp_path: Path
) -> None:
    assert plan().published is not None
    with plan().published.open(newline="") as stream:  # type: ignore[union-attr]
        rows = list(csv.DictReader(stream))
    usual = dict.fromkeys(rows[0], "") | {"source": NAME, "category": "result", "suspect": "0", "payload": "96"}
    cell = {"topology": "grid-6x6", "ldr": "lossy", "mac_retx": "on"}
    own = [
        usual | cell | {"id": "r1", "kind": "table", "traffic": "mixed", "algorithm": "default", "metric": "pdr",
                        "bin": "1 notification per burst", "statistic": "mean", "value": "76.7", "unit": "percent"},
        usual | cell | {"id": "r2", "kind": "claim", "claim_id": "c1", "traffic": "constant", "metric": "throughput",
                        "bin": "offered<=4kbps", "statistic": "majority", "baseline": "default",
                        "comparator": "cocoa_plus", "direction": "not_worse"},
    ]  # fmt: skip
    file = tmp_path / "own.csv"
    with file.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(usual))
        writer.writeheader()
        writer.writerows(own)
    found = reproduction.compare(small.results, file)
    assert next(figure.id for figure in found.figures if figure.ours is not None) == "r1"
    (claim,) = found.claims
    assert (claim.id, claim.verdict) == ("c1", "unjudged")
    assert claim.reason == "no check of claims.toml speaks of these rows"


def test_a_kind_of_traffic_is_run_in_the_scenarios_that_have_it() -> None:
    plan = study.load(study.find(NAME))
    whole = {one.cell.id for one in study.unfold(plan).cells if one.cell.columns["traffic"] == "global event"}
    few = plan.narrowed(factors={"traffic": ["global event"]})
    assert {one.cell.id for one in study.unfold(few).cells} == whole
    with pytest.raises(UsageError, match="--factor traffic: unknown value 'mixd': did you mean 'mixed'"):
        plan.narrowed(factors={"traffic": ["mixd"]})
