from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from published_rows import MakeRows

from millpond.judge import claim_file, figures
from millpond.judge.compare import Figure
from millpond.judge.published import Published
from millpond.measure.measures import Measures
from millpond.measure.population import Population
from millpond.plan.study import Plan

HERE = {"clients": "400", "buffer_bytes": "1410000", "workload": "continuous", "algorithm": "default"}


def matched(published: Published, measures: Measures, plan: Plan) -> list[Figure]:
    return figures.match(published, measures, plan.reading)


def test_every_published_number_of_the_study_is_measured(built_in: Published, fake: Measures, plan: Plan) -> None:
    found = matched(built_in, fake, plan)
    assert [figure.id for figure in found if figure.ours is None] == []
    numbered = {
        row.id for row in built_in.rows if row["category"] == "result" and not row.is_claim and row.value is not None
    }
    stated = {row.id for row in built_in.rows if row["category"] == "result" and row.is_claim and row.value is not None}
    assert {figure.id for figure in found} == numbered | stated
    assert {"anrw18-r0157", "anrw18-r0158", "anrw18-r0166", "anrw18-r0176", "anrw18-r0177"} == stated


def test_a_statistic_pools_the_flows_of_all_replications(rows: MakeRows, fake: Measures, plan: Plan) -> None:
    published = rows(HERE | {"metric": "fct", "statistic": "p90", "value": "400", "unit": "s"})
    (figure,) = matched(published, fake, plan)
    sample = fake.sample(
        "fct", Population.of("default", clients=400, buffer_bytes=1410000, workload="continuous", path="fixed")
    )
    assert figure.n == sample.n == 400 * 3
    assert figure.ours == pytest.approx(np.quantile(sample.values, 0.9))
    assert figure.relative == pytest.approx(np.quantile(sample.values, 0.9) / 400 - 1)
    assert figure.interval is not None


def test_units_are_converted(rows: MakeRows, fake: Measures, plan: Plan) -> None:
    base = HERE | {"metric": "fct", "statistic": "median", "value": "1"}
    seconds, milliseconds, wrong = matched(
        rows(base | {"unit": "s"}, base | {"unit": "ms"}, base | {"unit": "kbps"}), fake, plan
    )
    assert seconds.ours is not None
    assert milliseconds.ours == pytest.approx(1000 * seconds.ours)
    assert wrong.ours is None
    assert wrong.note == "unit 'kbps' cannot be compared with 's'"


def test_counts_are_scaled_to_the_published_replications(rows: MakeRows, fake: Measures, plan: Plan) -> None:
    published = rows(
        HERE
        | {
            "metric": "exchanges_by_retransmissions",
            "bin": "4",
            "statistic": "count",
            "value": "1",
            "unit": "exchanges",
        },
        HERE | {"metric": "exchanges_by_retransmissions", "bin": ">=4", "statistic": "count", "value": "1"},
        HERE
        | {
            "metric": "exchanges_by_retransmissions",
            "bin": "4",
            "statistic": "percent",
            "value": "90",
            "unit": "percent",
        },
    )
    count, tail, percent = matched(published, fake, plan)
    assert count.ours == tail.ours == 400 * 45 * 20
    assert count.note == "counted over 3 replications, scaled to 20"
    assert percent.ours == pytest.approx(90)


def test_an_empty_column_holds_for_all(rows: MakeRows, fake: Measures, plan: Plan) -> None:
    published = rows({"clients": "1", "metric": "fct", "statistic": "max", "value": "33", "unit": "s"})
    (figure,) = matched(published, fake, plan)
    assert figure.n == 3 * 4 * 2 * 2  # replications, buffers, workloads, and the two algorithms the text compares
    assert figure.note == "over 16 cells"


def test_a_row_that_names_a_partner_is_of_that_mix(rows: MakeRows, fake: Measures, plan: Plan) -> None:
    here = HERE | {"metric": "fct", "statistic": "median", "value": "1", "unit": "s"}
    gone = "not run: partner=cocoa"
    alone, half, none = matched(rows(here, *({**here, "partner": p} for p in ("default_fb1", "cocoa"))), fake, plan)
    assert (alone.n, half.n, none.ours) == (400 * 3, 200 * 3, None)
    assert none.scenario["unmatched"] == gone
    (place, *_) = [p for p in fake.populations() if p.algorithm == "default" and p.partner == "default_fb1"]
    at = place.but(clients=400, buffer_bytes=1410000)
    assert half.ours == pytest.approx(np.median(fake.sample("fct", at).values))


def test_a_change_within_a_mix_is_between_its_halves(rows: MakeRows, fake: Measures, plan: Plan) -> None:
    here = {**HERE, "algorithm": "", "kind": "claim", "metric": "fct", "relative_change": "-0.1"}
    published = rows({**here, "comparator": "default_fb1", "partner": "default", "baseline": "default"})
    (figure,) = matched(published, fake, plan)
    half = next(p for p in fake.populations() if (p.algorithm, p.partner) == ("default_fb1", "default"))
    mine = half.but(clients=400, buffer_bytes=1410000)
    theirs = mine.but(algorithm="default", partner="default_fb1")
    ours, others = (np.median(fake.sample("fct", p).values) for p in (mine, theirs))
    assert figure.ours == pytest.approx(100 * (1 - ours / others), abs=0.5)


def test_small_buffers_are_shown_on_both_paths(rows: MakeRows, fake: Measures, plan: Plan) -> None:
    small = HERE | {"buffer_bytes": "2500", "metric": "fct", "statistic": "median", "value": "1", "unit": "s"}
    found = matched(rows(small, small | {"clients": "50"}), fake, plan)
    assert [(figure.id, figure.scenario.get("path")) for figure in found] == [
        ("x-r0", "fixed"),
        ("x-r0", "jittered"),
        ("x-r1", None),
    ]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"clients": "25"}, "not run: clients=25"),
        ({"clients": "25;400"}, "not run: clients=25"),
        ({"algorithm": "tcp_bbr"}, "not run: algorithm=tcp_bbr"),
        ({"metric": "energy"}, "metric 'energy' is not measured by these runs"),
        ({"error_profile": "high"}, "not run: error_profile=high"),
        ({"topology": "chain"}, "topology=chain is no part of this study's plan"),
        ({"bin": "bufferbloat"}, "condition 'bufferbloat' is not one this program can select by"),
        ({"statistic": "ci99_half"}, "statistic 'ci99_half' is not one this program takes"),
    ],
)
def test_what_cannot_be_matched_says_why(
    rows: MakeRows, fake: Measures, plan: Plan, change: dict[str, str], why: str
) -> None:
    published = rows(HERE | {"metric": "fct", "statistic": "median", "value": "1", "unit": "s"} | change)
    (figure,) = matched(published, fake, plan)
    assert figure.ours is None
    assert figure.relative is None
    assert figure.note == why
    assert figure.scenario["unmatched"] == why


@pytest.mark.parametrize(
    ("comparator", "workload", "ours"), [("default_fb1", "continuous", 69.39), ("cocoa_fb2", "random", -566.7)]
)
def test_reductions_are_in_percent_of_the_baseline(
    rows: MakeRows, fake: Measures, plan: Plan, comparator: str, workload: str, ours: float
) -> None:
    published = rows(
        {
            "kind": "claim",
            "claim_id": "x-c1",
            "clients": "400",
            "buffer_bytes": "1410000",
            "workload": workload,
            "metric": "unnecessary_retx_per_client",
            "statistic": "median",
            "value": "68",
            "unit": "percent",
            "baseline": comparator.split("_")[0],
            "comparator": comparator,
            "direction": "lower",
            "relative_change": "-0.68",
        }
    )
    (figure,) = matched(published, fake, plan)
    assert figure.published == 68
    assert figure.ours == pytest.approx(ours, abs=0.05)
    assert figure.scenario["baseline"] == comparator.split("_")[0]


def test_almost_all_is_the_shortest_range_of_exchanges_that_holds_most(
    rows: MakeRows, fake: Measures, plan: Plan
) -> None:
    base = HERE | {
        "metric": "unnecessary_retx_per_exchange",
        "value": "4",
        "unit": "retransmissions",
        "qualifier": "approx",
    }
    low, high = matched(rows(base | {"statistic": "range_low"}, base | {"statistic": "range_high"}), fake, plan)
    assert (low.ours, high.ours) == (4, 4)  # 90 % of the exchanges took four


def test_a_row_that_is_a_comparison_itself_is_measured_as_one(
    rows: MakeRows, fake: Measures, plan: Plan, tmp_path: Path
) -> None:
    base = {"metric": "fct_difference", "statistic": "median", "value": "9", "unit": "s"}
    published = rows(base, base | {"statistic": "max"})
    file = tmp_path / "claims.toml"
    check = (
        "metric = 'fct'\neach = { buffer_bytes = [2500, 14100], workload = 'random', algorithm = 'default' }\n"
        "of = { clients = [10, 50] }\nagainst = { clients = 1 }\nquantity = 'difference'\n"
    )
    file.write_text("".join(f"[[figure]]\nid = 'x-r{number}'\n{check}" for number in (0, 1)))
    mean, largest = figures.match(published, fake, plan.reading, claim_file.read(file, plan.factors).figures)
    assert mean.ours == pytest.approx((9 + 49) / 2, abs=0.2)
    assert largest.ours == pytest.approx(49, abs=0.2)
    assert mean.n == 4
    assert mean.note.endswith("over 4 points")


def test_a_row_with_a_reason_is_not_measured(rows: MakeRows, fake: Measures, plan: Plan) -> None:
    reading = replace(plan.reading, unmeasured={"idle_time": "a story", "x-r1": "of one flow"})
    story = HERE | {"metric": "idle_time", "statistic": "value", "value": "400", "unit": "s"}
    found = figures.match(rows(story, story | {"metric": "fct"}), fake, reading)
    assert [(figure.ours, figure.note) for figure in found] == [(None, "a story"), (None, "of one flow")]


def test_runs_of_a_kind_are_counted_for_as_many_as_were_published(rows: MakeRows, fake: Measures, plan: Plan) -> None:
    row = HERE | {"metric": "alike_in_run", "statistic": "count", "value": "11", "unit": "runs"}
    (figure,) = figures.match(rows(row), fake, plan.reading)
    assert figure.ours == 20  # of 20: invented clients are all alike
