"""What is shown is one document: every renderer has its numbers, all of them and no others."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest
import small_sweep
import synthetic_results

import millpond
from millpond.show import html, terminal, text
from millpond.show.document import Document, Entry, Listing, value_and_interval
from millpond.studies import pages


class Tables(HTMLParser):
    """The words in the cells of every table of a page, by the table's name."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: dict[str, str] = {}
        self._name, self._inside = "", False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self._name = dict(attrs)["id"] or ""
            self.found[self._name] = ""
        self._inside = tag in ("td", "th", "span") or (self._inside and tag in ("li", "ul"))
        self._inside &= tag not in ("details", "summary", "li")
        if self._name:
            self.found[self._name] += " "

    def handle_data(self, data: str) -> None:
        if self._name and self._inside:
            self.found[self._name] += data


def cells(listing: Listing) -> str:
    return " ".join(str(cell) for row in listing.rows for cell in row)


def numbers(words: str) -> Counter[str]:
    plain = words.replace("\N{NARROW NO-BREAK SPACE}", "").replace("\N{NO-BREAK SPACE}", "")
    return Counter(re.findall(r"\d+(?:\.\d+)?", plain))


@pytest.fixture(scope="module", params=["run", "sweep", "study", "fleet"])
def shown(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Document:
    folder: Path = tmp_path_factory.mktemp(request.param)
    if request.param == "study":
        results = synthetic_results.study(
            folder, clients=(1, 100, 400), buffers=(2500, 1410000), replications=1, workloads=("continuous",)
        )
        return pages.document(results, synthetic_results.comparison(results))
    if request.param == "sweep":
        return millpond.sweep(small_sweep.write(folder), out=folder / "out", report=False).document
    scenario = Path(millpond.__file__).parent / "scenarios"
    if request.param == "fleet":
        plan = scenario / "sweeps" / "fleet.toml"
        return millpond.sweep(plan, out=folder / "out", report=False, replications=3).document
    return millpond.run(scenario / "proxy.toml", clients=[5], replications=3, out=folder / "out", report=False).document


def test_the_page_has_the_numbers_of_every_table_and_no_others(shown: Document) -> None:
    found = Tables(html.render(shown)).found
    listings = [listing for section in shown.sections for listing in section.listings]
    assert listings
    assert set(found) == {listing.name for listing in listings}
    for listing in listings:
        heads = numbers(" ".join(listing.header)) if any(listing.header) else Counter()
        assert numbers(found[listing.name]) == numbers(cells(listing)) + heads, listing.name


@pytest.mark.parametrize("width", [80, 240])
def test_the_terminal_has_the_numbers_of_every_table_that_it_shows(
    shown: Document, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for section in shown.sections:
        for listing in section.listings:
            out = io.StringIO()
            terminal.show([terminal.Shown(listing)], out)
            told = out.getvalue()
            assert max(map(len, told.splitlines())) <= width
            short = [
                [cell.text if isinstance(cell, Entry) else cell for cell in row]
                for row in listing.rows[: terminal.MANY]
            ]
            numeric = " ".join(row[at] for row in short if len(row) > 1 for at in listing.numeric)
            assert not numbers(numeric) - numbers(told), listing.name
            if width > 80:
                words = re.sub(r"\s+", "", told)
                parts = [part for row in short for cell in row for part in value_and_interval(cell)]
                assert all(re.sub(r"\s+", "", part) in words for part in parts), listing.name


def test_markdown_latex_and_csv_have_them_too(shown: Document) -> None:
    ticket = text.markdown(shown)
    for section in shown.sections:
        for listing in section.listings:
            wanted = numbers(cells(listing))
            assert not wanted - numbers(text.latex(listing).replace(r"\,", "")), listing.name
            if not section.detail and not listing.detail:
                assert not numbers(text.plain(cells(listing))) - numbers(ticket), listing.name
            if listing.data is None:
                assert not wanted - numbers(text.csv(listing)), listing.name
                rows = json.loads(text.table_as_json(listing))["rows"]
                assert rows == [list(map(str, row)) for row in listing.rows], listing.name
