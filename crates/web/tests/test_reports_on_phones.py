"""Reports on phones and desks: nothing sticks out, numbers stand beside their names, a touched picture grows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import millpond
from millpond import cli

WIDTH = 390


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("fleet") / "out"
    few = ["--devices", "10", "--seeds", "2", "--set", "everyday.others=2", "--set", "try_controllers=['cocoa-03']"]
    with pytest.raises(SystemExit) as ended:
        cli.main(["fleet", *few, "--out", str(out)])
    assert ended.value.code in (0, None)
    return out / "report.html"


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three factors, three controllers and several runs, so that every number has an interval."""
    lossy = {"uplink": {"loss": {"kind": "bernoulli", "rate": 0.1}}, "profile": "nbiot-anrw18"}
    plan = {
        "scenario": {"path": lossy, "clients": [{"count": 2, "controller": "rfc7252", "exchanges": 20}]},
        "replications": 4,
        "matrix": {
            "size_of_the_queue": ["2500 B", "14100 B"],
            "clients[0].count": [10, 60],
            "algorithm": ["rfc7252", "cocoa-03", "fasor-token"],
        },
        "vary": {"size_of_the_queue": {"places": ["path.uplink.queue", "path.downlink.queue"]}},
    }
    done = millpond.sweep(plan, out=tmp_path_factory.mktemp("sweep") / "out")
    assert done.report is not None
    return done.report


def test_no_column_of_a_sweep_is_cut_on_a_desk(browser: Any, sweep: Path) -> None:
    page = browser.new_page(viewport={"width": 1200, "height": 844})
    page.goto(sweep.as_uri())
    assert " to " in page.locator("#overview td.parts span span").nth(1).inner_text()
    hidden = "e => e.parentElement.scrollWidth - e.parentElement.clientWidth"
    assert page.locator("#overview").evaluate(hidden) <= 0
    page.close()


def test_on_a_phone_an_interval_stands_beside_its_value(browser: Any, sweep: Path) -> None:
    page = browser.new_page(viewport={"width": WIDTH, "height": 844})
    page.goto(sweep.as_uri())
    parts = page.locator("#overview td.parts").first.locator("span span")
    value, interval = parts.nth(0).bounding_box(), parts.nth(1).bounding_box()
    assert interval["y"] > value["y"] or 0 < interval["x"] - value["x"] - value["width"] < 8
    assert page.evaluate("document.documentElement.scrollWidth") <= WIDTH
    page.close()


def test_nothing_sticks_out_and_a_row_is_a_card(browser: Any, report: Path) -> None:
    page = browser.new_page(viewport={"width": WIDTH, "height": 844}, reduced_motion="reduce")
    page.goto(report.as_uri())
    sticks_out = (
        "width => Array.from(document.querySelectorAll('main *'), e => e.getBoundingClientRect().right > width)"
    )
    assert not any(page.evaluate(sticks_out, WIDTH))
    cell = page.locator("#remedies td[data-label='sent per message']").first
    assert cell.evaluate("e => getComputedStyle(e, '::before').content") == '"sent per message"'
    picture = page.locator("#done img")
    whole = picture.bounding_box()["width"]
    page.locator("#done .wide").focus()
    assert picture.bounding_box()["width"] > 1.5 * whole
    assert page.evaluate("document.documentElement.scrollWidth") <= WIDTH, "the picture is moved, not the page"
    page.close()


def test_on_a_desk_tables_are_tables(browser: Any, report: Path) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 844})
    page.goto(report.as_uri())
    assert page.locator("#remedies td").first.evaluate("e => getComputedStyle(e).display") == "table-cell"
    assert page.locator("#remedies thead").is_visible()
    page.close()
