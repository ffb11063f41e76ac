"""Studies whose cells differ in more than clients, buffer and workload: populations, claims, figures, pictures."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
import small_study
from published_rows import MakeRows

from millpond.errors import UsageError
from millpond.judge import claim_file, claims, figures
from millpond.judge.compare import Comparison, Verdict
from millpond.measure.measures import Measures
from millpond.measure.population import Population
from millpond.plan import study
from millpond.plan.study import Plan
from millpond.results.directory import Results
from millpond.show import terminal as tables
from millpond.show.report.grid import Grid
from millpond.studies import reproduction
from millpond.studies.pages import document, render

FACTORS = ("clients", "buffer_bytes", "workload", "config", "payload")
HERE = Population.of("cocoa", clients=400, buffer_bytes=2500, workload="random", path="as-typed").but(
    config="four-host", payload=176
)


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return study.load(small_study.write(tmp_path_factory.mktemp("plan") / "small"))


@pytest.fixture(scope="module")
def results(plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> Results:
    return small_study.run(tmp_path_factory.mktemp("small") / "out", plan)


@pytest.fixture(scope="module")
def measures(results: Results) -> Measures:
    return Measures(results)


@pytest.fixture(scope="module")
def comparison(results: Results, measures: Measures) -> Comparison:
    return reproduction.compare(results, measures=measures)


def judged(tmp_path: Path, measures: Measures, check: str, apart: bool = True) -> Verdict:
    file = tmp_path / "claims.toml"
    file.write_text(f"[[claim]]\nid = 'c'\nsays = 'so'\nreading = 'as told'\n[[claim.check]]\n{check}\n")
    return claims.judge(claim_file.read(file, FACTORS, {"payload": 68}).claims["c"], measures, apart)


# ----------------------------------------------------------------------------------------------- populations


def test_a_population_is_told_by_every_column_that_differs(measures: Measures) -> None:
    assert set(measures.varying) == {"config", "payload", "clients", "buffer_bytes", "workload", "path"}
    assert measures.has(HERE)
    assert not measures.has(HERE.but(payload=68, config="two-host"))
    assert not measures.has(Population.of("cocoa", clients=400, buffer_bytes=2500, workload="random", path="as-typed"))
    assert measures.place(HERE) == "clients 400, buffer bytes 2 500, random, four-host, payload 176, as typed"
    assert measures.cell(HERE).scenario["server"]["payload"] == "176 B"


def test_a_column_that_is_the_same_everywhere_may_be_left_out(plan: Plan, tmp_path: Path) -> None:
    narrow = Measures(small_study.run(tmp_path / "out", plan.quick()))
    assert narrow.constant == {"config": "four-host", "buffer_bytes": 28200}
    short = Population.of("cocoa", clients=400, buffer_bytes=28200, workload="random", path="as-typed").but(payload=176)
    assert narrow.has(short)
    assert narrow.has(short.but(config="four-host"))
    assert not narrow.has(short.but(config="two-host"))
    assert narrow.sample("fct", short).n == narrow.sample("fct", short.but(config="four-host")).n == 400


# ----------------------------------------------------------------------------------------------- claims


def test_claims_are_judged_on_each_path_by_itself(comparison: Comparison) -> None:
    longer, more = comparison.claims
    assert {name: v.verdict for name, v in longer.variants.items()} == {"as-typed": "holds", "as-meant": "holds"}
    assert more.verdict == "fails"
    assert comparison.variants() == ("as-typed", "as-meant")
    assert comparison.counts("as-meant") == {"holds": 1, "fails": 1, "noise": 0, "unjudged": 0}
    told = more.to_json()["variants"]["as-meant"]
    assert told["verdict"] == "fails"
    assert "as meant" in told["measured"]


def test_a_path_that_was_not_run_for_a_claim_is_left_out(tmp_path: Path, measures: Measures) -> None:
    check = (
        "metric = 'fct'\nabove = 0\n"
        "each = { config = 'two-host', clients = 10, buffer_bytes = 2500, workload = 'continuous' }\n"
        "of = { algorithm = 'cocoa' }"
    )
    found = judged(tmp_path, measures, check)
    assert (found.verdict, found.variants) == ("holds", {})


def test_together_a_claim_must_hold_on_every_path(tmp_path: Path, measures: Measures) -> None:
    check = (
        "metric = 'makespan'\nabove = 0\n"
        "each = { config = 'four-host', clients = 10, buffer_bytes = 2500, workload = 'random', algorithm = 'cocoa' }"
    )
    assert len(judged(tmp_path, measures, check, apart=False).points) == 2
    assert len(judged(tmp_path, measures, check).points) == 1


def test_a_column_that_is_not_named_means_the_usual_value(tmp_path: Path, measures: Measures) -> None:
    check = (
        "metric = 'makespan'\nabove = 0\n"
        "each = { config = 'four-host', clients = 10, buffer_bytes = 2500, workload = 'random', algorithm = 'cocoa' }"
    )
    assert "payload 68" in judged(tmp_path, measures, check).points[0]
    with pytest.raises(UsageError, match="a check says nothing about config: add it to `each`"):
        judged(tmp_path, measures, check.replace("config = 'four-host', ", ""))


def test_ratios_are_compared(tmp_path: Path, measures: Measures) -> None:
    # 9 of CoCoA's against 196 of Default CoAP's, whatever the payload
    check = (
        "metric = 'unnecessary_retx_per_client'\nover = { algorithm = 'default' }\nat_least = 0\nat_most = 0\n"
        "each = { config = 'four-host', clients = 400, buffer_bytes = 2500, workload = 'random' }\n"
        "of = { payload = 176, algorithm = 'cocoa' }\nagainst = { payload = 68, algorithm = 'cocoa' }"
    )
    found = judged(tmp_path, measures, check)
    assert found.verdict == "holds"
    assert "cocoa to default 0.04592 times against [payload 68] 0.04592 times (+0.0%)" in found.measured


def test_what_was_not_run_is_named(tmp_path: Path, measures: Measures) -> None:
    check = (
        "metric = 'fct'\nabove = 0\neach = { config = 'four-host', payload = 296, clients = 10, buffer_bytes = 2500, "
        "workload = 'random', algorithm = 'cocoa' }"
    )
    found = judged(tmp_path, measures, check)
    assert (found.verdict, found.reason) == ("unjudged", "not run: payload 296")


# ----------------------------------------------------------------------------------------------- rows of a file


@pytest.mark.parametrize(
    ("change", "points", "told"),
    [
        ({}, 1, ""),
        ({"payload": "68;176"}, 2, ""),
        ({"payload": "", "baseline": "payload=68", "comparator": "payload=176", "algorithm": "cocoa"}, 1, ""),
        ({"config": "six-host"}, 0, "config=six-host"),
        ({"payload": "150"}, 0, "payload=150"),
        ({"topology": "chain"}, 0, "topology=chain is no part"),
    ],
)
def test_rows_choose_by_any_column(
    rows: MakeRows, measures: Measures, plan: Plan, change: dict[str, str], points: int, told: str
) -> None:
    row = {
        "kind": "claim", "claim_id": "x", "config": "four-host", "payload": "176", "clients": "400",
        "buffer_bytes": "2500", "workload": "random", "metric": "unnecessary_retx_per_client",
        "baseline": "default", "comparator": "cocoa", "direction": "lower", "relative_change": "-0.5",
    }  # fmt: skip
    found = figures.match(rows(row | change), measures, plan.reading)[0]
    assert (found.n, found.ours is None) == (points, not points)
    assert told in found.note


def test_a_metric_may_have_another_name_in_the_source(comparison: Comparison, measures: Measures) -> None:
    typed, meant = comparison.figures
    assert (typed.metric, typed.scenario["path"], meant.scenario["path"]) == ("fct", "as-typed", "as-meant")
    assert typed.ours == pytest.approx(measures.sample("makespan", HERE).take("mean"))


# ----------------------------------------------------------------------------------------------- what is shown


def test_tables_have_a_column_for_each(
    measures: Measures, comparison: Comparison, capsys: pytest.CaptureFixture[str]
) -> None:
    tables.show(tables.render(document(measures.results, comparison)))
    shown = re.sub(r"\s+", " ", capsys.readouterr().out).replace("\N{NARROW NO-BREAK SPACE}", " ")
    assert "continuous, as meant" in shown
    assert "400 four-host 176 2 500 433.1/196" in shown
    assert "as typed: 1 claim holds, 1 fails; as meant: 1 claim holds" in shown


def test_views_cut_places_until_few_are_left(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    grid = Grid(results)
    assert (grid.across, grid.first) == ("buffer_bytes", "as-typed")
    told = [grid.words(view) for view in grid.views()]
    assert told == ["as typed, continuous", "as typed, random", "as meant"]
    # no trace of a queue is invented, so the last cell is looked at closely
    assert [stage.only["payload"] for stage in grid.stages] == [176]
    monkeypatch.setattr("millpond.show.report.grid.PANELS", 2)
    views = grid.views()
    assert grid.words(views[0]) == "as typed, continuous, two-host"
    assert [len({grid.place(cell) for cell in grid.plain(view)}) for view in views] == [1, *[2] * 8]


class _Ids(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        self.found += [value or "" for name, value in attrs if name == "id"]


def test_the_report_draws_every_place_and_says_each_verdict(results: Results, comparison: Comparison) -> None:
    page = render(results, comparison)
    ids = _Ids(page).found
    assert len(ids) == len(set(ids))
    for name in ("places-as-typed", "fct-as-meant", "retransmissions-as-typed-continuous"):
        assert name in ids
    assert "mixes" not in ids
    assert "With clients 400, continuous, four-host, as typed, payload 68" in page
    assert "As typed: 1 claim holds, 1 fails; as meant: 1 claim holds" in page
    assert page.partition('id="claims-table"')[2].partition("</table>")[0].count("as meant</th><td") == 2
