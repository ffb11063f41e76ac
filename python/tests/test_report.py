"""The report page: whole, offline, the same bytes every time, and never stopped by what is missing."""

from __future__ import annotations

import base64
import dataclasses
import json
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import synthetic_results

from millpond.errors import MillpondError, UsageError
from millpond.judge.compare import Comparison
from millpond.results.directory import MANIFEST, Results
from millpond.results.store import write_table
from millpond.studies.pages import write_report

STUDY_SECTIONS = [
    "summary", "reported", "over-time", "completion", "transmissions", "unnecessary", "mixes", "phase", "figures",
    "claims", "run",
]  # fmt: skip
SMALL: dict[str, Any] = {"clients": (1, 100, 400), "buffers": (2500, 1410000), "replications": 1}
SMALLER: dict[str, Any] = {**SMALL, "workloads": ("continuous",), "algorithms": ("default", "default_fb1")}


class Page(HTMLParser):
    """What a browser would find: elements, and every address it would follow or fetch."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.words += data

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attrs for name, attrs in self.elements if name == tag]

    def ids(self) -> list[str]:
        return [attrs["id"] for _, attrs in self.elements if "id" in attrs]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> tuple[Results, Comparison, Path]:
    results = synthetic_results.study(tmp_path_factory.mktemp("study"), **SMALL)
    comparison = synthetic_results.comparison(results)
    return results, comparison, write_report(results.directory, comparison)


@pytest.fixture(scope="module")
def page(study: tuple[Results, Comparison, Path]) -> Page:
    return Page(study[2].read_text(encoding="utf-8"))


def test_every_section_is_there_and_in_the_table_of_contents(page: Page) -> None:
    assert [attrs["id"] for attrs in page.all("section")] == STUDY_SECTIONS
    linked = [attrs["href"] for attrs in page.all("a") if attrs["href"].startswith("#")]
    assert linked == [f"#{name}" for name in STUDY_SECTIONS]


def test_ids_are_unique(page: Page) -> None:
    assert len(page.ids()) == len(set(page.ids()))


def test_every_kind_of_picture_is_drawn_and_who_is_done_by_when_is_the_first(page: Page) -> None:
    drawn = [attrs["id"] for attrs in page.all("figure")]
    assert drawn[0].startswith("reported")
    kinds = [name.partition("-")[0] for name in drawn]
    for kind in ("reported", "queue", "fct", "histogram", "unnecessary", "mix", "phase"):
        assert kind in kinds
    for kind in ("queue", "histogram"):
        assert kinds.count(kind) == 2  # both workloads of the most crowded place were traced
    assert "missing" not in [attrs.get("class") for attrs in page.all("p")]


def test_it_opens_offline(page: Page) -> None:
    for _, attrs in page.elements:
        for name in ("src", "href", "srcset", "poster", "data", "action"):
            assert re.match(r"(#|data:|$)", attrs.get(name, "")), attrs
    assert not {"script", "link", "iframe", "object"} & {tag for tag, _ in page.elements}


def test_pictures_inside_fetch_nothing(page: Page) -> None:
    for attrs in page.all("img"):
        svg = _svg(attrs)
        assert not re.search(r'(href|src)="(?!#|data:image/png)', svg)
        assert not re.search(r"url\(http|@import", svg)


def test_pictures_are_whole_svg_with_alternative_texts(page: Page) -> None:
    images = page.all("img")
    assert images
    for attrs in images:
        assert len(attrs["alt"]) > 40
        assert ET.fromstring(_svg(attrs)).tag.endswith("svg")


def test_every_picture_has_a_caption_and_its_numbers(page: Page) -> None:
    downloads = {attrs["download"]: attrs["href"] for attrs in page.all("a") if "download" in attrs}
    for attrs in page.all("figure"):
        rows = _csv(downloads[f"{attrs['id']}.csv"])
        assert len(rows) > 1
        assert all(len(row) == len(rows[0]) for row in rows)
    assert len(page.all("figcaption")) == len(page.all("figure"))


def test_the_same_results_give_the_same_bytes(study: tuple[Results, Comparison, Path]) -> None:
    results, comparison, file = study
    before = file.read_bytes()
    assert write_report(results.directory, comparison) == file
    assert file.read_bytes() == before


def test_it_is_reasonably_small(study: tuple[Results, Comparison, Path]) -> None:
    assert study[2].stat().st_size < 5_000_000


def test_figures_stand_beside_the_published_ones(page: Page) -> None:
    assert "\N{ALMOST EQUAL TO} 2\N{NARROW NO-BREAK SPACE}425" in page.words
    assert "2426.1" in page.words
    assert "+0.05\N{NARROW NO-BREAK SPACE}%" in page.words
    assert "99.00 to 103.0" in page.words


def test_claims_are_listed_with_verdict_measured_figure_and_reason(page: Page) -> None:
    for words in (
        "✓ holds",
        "✗ fails",
        "cannot be judged",
        "median 12 s < 14 s",
        "the other way round",
        "cites other work",
    ):
        assert words in page.words


def test_what_calibrates_is_marked_and_counted_apart_as_in_the_terminal(tmp_path: Path) -> None:
    results = synthetic_results.study(tmp_path, **SMALLER)
    told = synthetic_results.comparison(results)
    (first, *figures), (claim, *claims) = told.figures, told.claims
    told = dataclasses.replace(
        told,
        figures=[dataclasses.replace(first, calibrates="a queue counts bytes"), *figures],
        claims=[dataclasses.replace(claim, calibrates="hosts take no time"), *claims],
    )
    words = Page(write_report(tmp_path, told).read_text(encoding="utf-8")).words
    assert f"Ours beside what is published: {told.closing()}." in words
    assert "apart from 1 figure and 1 claim by which the test bed was read" in words
    assert "calibrates: a queue counts bytes" in words
    assert "calibrates: hosts take no time" in words


def test_text_from_outside_is_escaped(study: tuple[Results, Comparison, Path]) -> None:
    text = study[2].read_text(encoding="utf-8")
    assert "a &lt;note&gt;" in text
    assert "<note>" not in text


def test_the_head_says_what_was_run(page: Page) -> None:
    for words in (
        "Is CoAP Congestion Safe?",
        "millpond reproduce anrw18",
        "millpond 0.1.0",
        "n = ",
        "clients unfinished",
        "requests failed, never finished",
    ):
        assert words in page.words


def test_the_lead_is_computed(page: Page) -> None:
    # worst by construction: CoCoA, random, 5.3 useless copies a message
    assert "With 400 clients, random, infinite buffer, CoCoA sends each message" in page.words
    assert "only 15.9\N{NARROW NO-BREAK SPACE}% of the bytes" in page.words
    assert "In the same place it is prevented by" in page.words
    assert "instead, the same CoCoA keeps a goodput ratio of" in page.words


def test_no_collapse_is_said_when_there_is_none(tmp_path: Path) -> None:
    results = synthetic_results.study(tmp_path, **{**SMALL, "clients": (1, 100)})
    words = Page(write_report(results.directory).read_text(encoding="utf-8")).words
    assert "No link collapses in these runs." in words
    assert "Congestion collapse is a link" not in words


@pytest.mark.parametrize(
    ("left_out", "told"),
    [
        ({"traces": False}, "no run was traced"),
        ({"mixes": False}, "no mix was run"),
        ({"jitter": False}, "path with jitter was not run"),
        ({"clients": (1,)}, "No client made one in these runs."),
        ({"algorithms": ("cocoa",), "workloads": ("random",)}, "no mix was run"),
    ],
)
def test_what_is_missing_is_left_out_with_a_sentence_why(tmp_path: Path, left_out: dict[str, Any], told: str) -> None:
    results = synthetic_results.study(tmp_path, **{**SMALLER, **left_out})
    found = Page(write_report(results.directory, synthetic_results.comparison(results)).read_text(encoding="utf-8"))
    assert told in found.words
    assert [attrs["id"] for attrs in found.all("section")] == STUDY_SECTIONS


def test_a_study_without_published_figures_is_drawn(tmp_path: Path) -> None:
    results = synthetic_results.study(tmp_path, **{**SMALLER, "clients": (1,)})
    words = Page(write_report(results.directory).read_text(encoding="utf-8")).words
    assert "No published figures were given." in words


def test_a_queue_trace_without_shares_is_drawn(tmp_path: Path) -> None:
    results = synthetic_results.study(tmp_path, **SMALLER)
    _drop(results, "share_trace")
    drawn = [attrs["id"] for attrs in Page(write_report(tmp_path).read_text(encoding="utf-8")).all("figure")]
    assert any(name.startswith("queue-") for name in drawn)


def test_a_single_scenario_has_its_own_page(tmp_path: Path) -> None:
    results = synthetic_results.single(tmp_path)
    found = Page(write_report(results.directory).read_text(encoding="utf-8"))
    sections = ["summary", "over-time", "completion", "transmissions", "unnecessary", "links", "run"]
    assert [attrs["id"] for attrs in found.all("section")] == sections
    assert [attrs["id"] for attrs in found.all("figure")] == ["reported", "queue", "fct", "histogram"]
    assert "No client made an unnecessary retransmission." in found.words
    assert "20 of 20 clients in 1 run had all their answers" in found.words
    assert "packets offered" in found.words


def test_unfinished_clients_are_counted_and_completion_times_say_whose_they_are(tmp_path: Path) -> None:
    results = synthetic_results.single(tmp_path, traces=False, unfinished=True)
    words = Page(write_report(results.directory).read_text(encoding="utf-8")).words
    share = "(80.0\N{NARROW NO-BREAK SPACE}%)"
    assert f"16 of 20 clients in 1 run had all their answers {share}; 4 had not finished when the run ended" in words
    assert "99\N{NARROW NO-BREAK SPACE}% of all clients never" in words
    assert f"Of 16 of 20 clients {share}; the others have none (" in words
    assert "the run was not traced" in words


def test_a_lost_request_is_told_though_its_client_came_to_its_end(tmp_path: Path) -> None:
    results = synthetic_results.single(tmp_path, traces=False)
    flows = results.table("flows").to_pydict()
    flows["failed"][3:10] = [2] * 7
    _replace(results, "flows", pa.table(flows))
    page = Page(write_report(tmp_path).read_text(encoding="utf-8"))
    assert "13 of 20 clients in 1 run had all their answers" in page.words
    assert "7 lost at least one request" in page.words
    assert "Default CoAP (rfc7252): 3 of 10 clients" in page.words


def test_unlike_groups_have_medians_of_their_own(tmp_path: Path) -> None:
    words = Page(write_report(synthetic_results.single(tmp_path).directory).read_text(encoding="utf-8")).words
    assert "The median client of Default CoAP (rfc7252) made" in words
    assert "The median client of CoCoA (cocoa-03) made" in words
    assert "The median client made" not in words


def test_groups_of_one_controller_are_told_apart_by_what_differs(tmp_path: Path) -> None:
    results = synthetic_results.single(tmp_path)
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    names = "rfc7252", "rfc7252, ack-timeout 20 s"
    for group, name in zip(manifest["cells"][0]["groups"], names, strict=True):
        group["algorithm"] = name
    (tmp_path / MANIFEST).write_text(json.dumps(manifest))
    words = Page(write_report(results.directory).read_text(encoding="utf-8")).words
    assert "Default CoAP (rfc7252)" in words
    assert "Default CoAP (rfc7252, ack-timeout 20 s)" in words


def test_the_busiest_link_is_named_and_no_share_is_above_one(tmp_path: Path) -> None:
    results = synthetic_results.single(tmp_path)
    links = results.table("links").to_pydict()
    for row, name in enumerate(links["link"]):
        links["busy_us"][row] = 9 if name == "uplink" else 3
        links["useful_bytes"][row] = 2 * links["delivered_bytes"][row]
    _replace(results, "links", pa.table(links))
    words = Page(write_report(tmp_path).read_text(encoding="utf-8")).words
    assert "The busiest link is the uplink: 100.0\N{NARROW NO-BREAK SPACE}%" in words
    assert "200.0" not in words


def test_a_loss_is_told_with_its_rate(tmp_path: Path) -> None:
    results = synthetic_results.single(tmp_path)
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    path = manifest["cells"][0]["scenario"]["path"]
    path["uplink"]["loss"] = {"kind": "bernoulli", "rate": 0.1}
    path["downlink"]["loss"] = {"kind": "markov", "good_loss": 0, "bad_loss": 0.5, "bad_dwell": "100 ms"}
    (tmp_path / MANIFEST).write_text(json.dumps(manifest))
    words = Page(write_report(results.directory).read_text(encoding="utf-8")).words
    assert "bernoulli, 10\N{NARROW NO-BREAK SPACE}%" in words
    assert "bad loss 50\N{NARROW NO-BREAK SPACE}%, bad dwell 100 ms" in words


def test_nothing_is_written_when_there_are_no_results(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no results here"):
        write_report(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_results_cut_short_are_refused_and_the_old_page_stays(tmp_path: Path) -> None:
    results = synthetic_results.single(tmp_path)
    before = write_report(results.directory).read_bytes()
    flows = tmp_path / "flows.parquet"
    flows.write_bytes(flows.read_bytes()[:-7])
    with pytest.raises(MillpondError, match="cut short"):
        write_report(tmp_path)
    assert (tmp_path / "report.html").read_bytes() == before


def test_a_page_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    results = synthetic_results.single(tmp_path)
    (tmp_path / "report.html").mkdir()
    with pytest.raises(MillpondError, match=r"report\.html: cannot be written"):
        write_report(results.directory)


def test_a_figure_that_could_not_be_measured_is_a_dash(tmp_path: Path) -> None:
    results = synthetic_results.study(tmp_path, **{**SMALLER, "clients": (1,)})
    comparison = synthetic_results.comparison(results)
    only = [figure for figure in comparison.figures if figure.ours is None]
    words = Page(
        write_report(tmp_path, dataclasses.replace(comparison, figures=only)).read_text(encoding="utf-8")
    ).words
    assert f"none of {len(only)} figures is among what was run" in words
    assert "\N{EN DASH}" in words


def _svg(image: dict[str, str]) -> str:
    head, _, body = image["src"].partition(",")
    assert head == "data:image/svg+xml;base64"
    return base64.b64decode(body).decode()


def _csv(address: str) -> list[list[str]]:
    text = base64.b64decode(address.partition(",")[2]).decode()
    return [line.split(",") for line in text.splitlines()]


def _replace(results: Results, table: str, rows: pa.Table) -> None:
    size = write_table(results.directory / f"{table}.parquet", rows)
    manifest = json.loads((results.directory / MANIFEST).read_text())
    manifest["files"][f"{table}.parquet"]["bytes"] = size
    (results.directory / MANIFEST).write_text(json.dumps(manifest))


def _drop(results: Results, table: str) -> None:
    manifest = json.loads((results.directory / MANIFEST).read_text())
    del manifest["files"][f"{table}.parquet"]
    (results.directory / MANIFEST).write_text(json.dumps(manifest))
    (results.directory / f"{table}.parquet").unlink()
