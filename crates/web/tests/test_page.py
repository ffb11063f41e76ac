"""The page in a real browser: it loads, runs, scrubs, compares, takes files, and tells errors in place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from test_address import inflating_to

SCENARIOS = Path(__file__).parents[3] / "python" / "millpond" / "scenarios"

READY = "body.ready:not(.busy)"


@pytest.fixture
def opened(browser: Any, place: str) -> Iterator[Any]:
    """A page with the collapse in it, at rest; whatever it says on the console fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(place)
    page.wait_for_selector(READY)
    yield page
    context.close()
    assert said == []


def _settled(page: Any) -> None:
    page.wait_for_function("!document.body.classList.contains('busy')")


def _set(page: Any, key: str, text: str) -> None:
    """Moves a slider to the stop that is told as `text`, by its keys as a reader would."""
    slider = page.locator(f"#set-{key}")
    slider.press("Home")
    for _ in range(60):
        _settled(page)
        if slider.get_attribute("aria-valuetext") == text:
            return
        slider.press("ArrowRight")
    raise AssertionError(f"{key}: no stop {text}")


def test_the_collapse_happens_by_itself(browser: Any, place: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 800}, reduced_motion="no-preference")
    page.goto(place)
    page.wait_for_selector(READY)
    assert page.locator("#play").inner_text() == "Pause"
    page.locator("#play", has_text="Play").wait_for(timeout=60_000)
    assert page.locator("#word-a").inner_text() == "Collapse"
    assert re.match(r"At 5:00: [\d,]+ packets wait", page.locator("#now").inner_text())
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_reader_can_use_it(browser: Any, place: str, faults: Callable[[Any], list[str]], scheme: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 800}, reduced_motion="reduce", color_scheme=scheme)
    page.goto(place)
    page.wait_for_selector(READY)
    assert faults(page) == []
    page.close()


@pytest.mark.parametrize(("width", "height"), [(720, 480), (340, 480)])
def test_in_a_frame_it_fits_without_bars(browser: Any, place: str, width: int, height: int) -> None:
    page = browser.new_page(viewport={"width": width + 20, "height": height + 20}, reduced_motion="reduce")
    page.route("**/outer", lambda route: route.fulfill(
        content_type="text/html", body=f'<iframe src="{place}" style="width:{width}px;height:{height}px;border:0">'
    ))  # fmt: skip
    frame = page.frame_locator("iframe")
    page.goto(f"{place}outer")
    frame.locator(READY).wait_for()
    assert not frame.locator(".loading").is_visible()
    inside = page.frames[1]
    assert inside.evaluate("[document.documentElement.scrollHeight, document.documentElement.scrollWidth]") == [
        height,
        width,
    ]
    for part in ("#stage-a", "#play", "#scrub", "#verdict-a"):
        box = frame.locator(part).bounding_box()
        assert box is not None, part
        assert box["height"] > 10, part
        assert box["y"] + box["height"] <= height + 10, part
    page.close()


def test_while_the_engine_is_fetched_the_page_says_that_it_loads(browser: Any, place: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    held: list[Any] = []
    page.route("**/engine_bg.wasm", lambda route: held.append(route))
    page.goto(place)
    page.get_by_role("status").filter(has_text="loading").wait_for()
    assert not page.locator("#stage-a").is_visible()
    while not held:
        page.wait_for_timeout(20)
    held[0].continue_()
    page.wait_for_selector(READY)
    assert not page.locator(".loading").is_visible()
    assert page.locator("#stage-a").is_visible()
    page.close()


def test_who_wants_no_motion_sees_the_collapse_at_rest(opened: Any) -> None:
    assert opened.locator("#play").inner_text() == "Play"
    assert opened.locator("#time").inner_text() == "2:30 / 5:00"
    assert "0 of 400 devices" in opened.locator("#now").inner_text()


def test_time_goes_to_and_fro(opened: Any) -> None:
    opened.locator("#scrub").press("Home")
    opened.wait_for_function("document.getElementById('now').textContent.startsWith('At 0:00: 0 packets')")
    quiet = opened.locator("#stage-a").screenshot()
    opened.locator("#scrub").press("End")
    opened.wait_for_function("document.getElementById('now').textContent.startsWith('At 5:00')")
    assert opened.locator("#stage-a").screenshot() != quiet
    chart = opened.locator(".plot .u-over").first.bounding_box()
    opened.mouse.click(chart["x"] + chart["width"] / 5, chart["y"] + 20)
    opened.wait_for_function("/^(0:59|1:0[01]) /.test(document.getElementById('time').textContent)")


def test_space_plays_and_arrows_step(opened: Any) -> None:
    opened.locator("h1").click()
    opened.keyboard.press("ArrowLeft")
    opened.wait_for_function("document.getElementById('time').textContent.startsWith('2:29 ')")
    opened.keyboard.press("Space")
    assert opened.locator("#play").inner_text() == "Pause"
    opened.keyboard.press("Space")
    assert opened.locator("#play").inner_text() == "Play"


def test_two_runs_stand_side_by_side_with_the_same_random_numbers(opened: Any) -> None:
    opened.locator("#beside").select_option("controller:fasor-token")
    _settled(opened)
    assert opened.locator("#side-b").is_visible()
    words = [opened.locator(f"#word-{side}").inner_text() for side in "ab"]
    assert words == ["Collapse", "Recovered"]
    opened.locator("#beside").select_option("")
    _settled(opened)
    assert not opened.locator("#side-b").is_visible()


def test_the_calm_client_ends_the_collapse_and_the_headline_says_so(opened: Any) -> None:
    assert opened.locator("h1").inner_text() == "Nothing is broken, and nothing gets through."
    opened.locator("#beside").select_option("controller:calm")
    _settled(opened)
    assert [opened.locator(f"#word-{side}").inner_text() for side in "ab"] == ["Collapse", "Recovered"]
    opened.locator("#beside").select_option("")
    opened.locator("#set-controller").select_option("calm")
    _settled(opened)
    assert opened.locator("h1").inner_text() == "It was near, and the cell came back."


def test_either_link_is_looked_at_and_the_verdict_stays(opened: Any) -> None:
    told = opened.locator("#verdict-a").inner_text()
    assert opened.locator("#link").input_value() == "downlink"
    assert opened.locator("#link option").all_inner_texts() == ["uplink", "downlink (the bottleneck)"]
    stood = opened.locator("#stage-a").screenshot()
    now = opened.locator("#now").inner_text()
    opened.locator("#link").select_option("uplink")
    assert opened.locator("#stage-a").screenshot() != stood
    assert opened.locator("#now").inner_text() != now
    assert opened.locator("#verdict-a").inner_text() == told
    opened.wait_for_function("location.hash.includes('link=uplink')")


def test_each_control_changes_the_run(opened: Any) -> None:
    told = {opened.locator("#verdict-a").inner_text()}
    for key, text in (
        ("devices", "100"),
        ("buffer", "14.1 kB"),
        ("rate", "20 kbit/s"),
        ("loss", "5 %"),
        ("spread", "2 min"),
    ):
        _set(opened, key, text)
        now = opened.locator("#verdict-a").inner_text()
        assert now not in told, key
        told.add(now)
    opened.locator("#set-controller").select_option("cocoa-03")
    _settled(opened)
    assert opened.locator("#verdict-a").inner_text() not in told
    opened.locator("#reset").click()
    _settled(opened)
    assert opened.locator("#word-a").inner_text() == "Collapse"


def test_the_power_is_cut_where_time_stands(opened: Any) -> None:
    opened.locator("#no-cut").click()
    _settled(opened)
    assert opened.locator("#word-a").inner_text() == "Calm"
    opened.locator("#scrub").fill("120")
    opened.locator("#cut").click()
    _settled(opened)
    assert opened.locator("#cut-told").inner_text() == "The power fails at 2:00."
    assert opened.locator("#word-a").inner_text() == "Collapse"


def test_the_tour_drives_the_same_controls(opened: Any) -> None:
    seen = set()
    for _ in range(4):
        opened.locator("[data-step='1']").click()
        _settled(opened)
        assert not opened.locator("#error").is_visible()
        seen.add((opened.locator("#tour h2").inner_text(), opened.locator("#beside").input_value()))
    assert len(seen) == 4
    assert opened.locator("[data-step='1']").is_disabled()


def test_an_address_brings_everything_back(opened: Any, browser: Any) -> None:
    opened.locator("#beside").select_option("buffer:14100")
    _settled(opened)
    _set(opened, "devices", "200")
    opened.locator("#scrub").fill("90")
    opened.locator("#scrub").dispatch_event("change")
    opened.wait_for_function("location.hash.includes('at=90')")
    page = browser.new_page(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    page.goto(opened.url)
    page.wait_for_selector(READY)
    for part in ("#now", "#verdict-a", "#verdict-b", "#name-b", "#time"):
        assert page.locator(part).inner_text() == opened.locator(part).inner_text(), part
    page.close()


@pytest.mark.parametrize("name", ["first", "star", "commands"])
def test_a_scenario_file_goes_in_and_comes_out(opened: Any, browser: Any, name: str, tmp_path: Path) -> None:
    opened.locator("#file").set_input_files(SCENARIOS / f"{name}.toml")
    opened.wait_for_function(f"document.getElementById('file-name').textContent === '{name}.toml'")
    _settled(opened)
    assert not opened.locator("#error").is_visible()
    opened.wait_for_function("location.hash.includes('scenario=')")
    with opened.expect_download() as download:
        opened.locator("#take-out").click()
    out = tmp_path / "scenario.toml"
    download.value.save_as(out)
    from millpond.plan.scenario import load

    assert load(out).to_json() == load(SCENARIOS / f"{name}.toml").to_json()
    page = browser.new_page(reduced_motion="reduce")
    page.goto(opened.url)
    page.wait_for_selector(READY)
    assert page.locator("#verdict-a").inner_text() == opened.locator("#verdict-a").inner_text()
    page.close()


def test_a_file_is_dropped_on_the_page(opened: Any) -> None:
    text = (SCENARIOS / "first.toml").read_text("utf-8")
    data = opened.evaluate_handle(
        "text => { const data = new DataTransfer(); data.items.add(new File([text], 'mine.toml')); return data; }", text
    )
    opened.dispatch_event("main", "drop", {"dataTransfer": data})
    opened.wait_for_function("document.getElementById('file-name').textContent === 'mine.toml'")
    _settled(opened)
    _set(opened, "devices", "50")
    assert "of 50 devices" in opened.locator("#now").inner_text()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[path.uplink]\nrat = 3\n", "bad.toml:2: unknown key `rat`: did you mean `rate`?"),
        ('path = "nbiot-upc"\n', "bad.toml:1: missing key `clients`"),
        ("\x00\x01\x02", "bad.toml:1: "),
    ],
)
def test_a_bad_file_is_refused_in_place_and_nothing_is_lost(opened: Any, text: str, told: str, tmp_path: Path) -> None:
    before = opened.locator("#verdict-a").inner_text()
    bad = tmp_path / "bad.toml"
    bad.write_text(text, "utf-8")
    opened.locator("#file").set_input_files(bad)
    opened.locator("#error").wait_for()
    line = opened.locator("#error-text").inner_text()
    assert line.startswith(told), line
    assert "\n" not in line
    assert opened.locator("#verdict-a").inner_text() == before
    assert opened.locator("#file-name").inner_text() == ""
    opened.locator("#close-error").click()
    assert not opened.locator("#error").is_visible()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("device=3", "address: unknown key `device`"),
        ("devices=many", "address: devices: `many` is no number"),
        ("controller=cocoa", "address: controller: unknown `cocoa`"),
        ("beside=buffer", "address: buffer: `` is no number"),
        ("link=downlnk", "address: link: unknown `downlnk` (known: uplink, downlink)"),
        ("scenario=%%%", "address: scenario: it is damaged"),
        (f"scenario={inflating_to(1 << 26)}", "address: scenario: inflates to more than 1000000 bytes"),
    ],
)
def test_a_bad_address_is_told_above_the_collapse(browser: Any, place: str, words: str, told: str) -> None:
    page = browser.new_page(reduced_motion="reduce")
    page.goto(f"{place}#{words}")
    page.wait_for_selector(READY)
    assert page.locator("#error-text").inner_text().startswith(told)
    assert page.locator("#word-a").inner_text() == "Collapse"
    page.close()


def test_a_run_too_large_for_a_page_says_where_it_can_be_run(opened: Any, tmp_path: Path) -> None:
    text = (SCENARIOS / "first.toml").read_text("utf-8").replace("count = 50", "count = 2000000")
    large = tmp_path / "large.toml"
    large.write_text(text, "utf-8")
    opened.locator("#file").set_input_files(large)
    opened.locator("#error").wait_for()
    assert "millpond run" in opened.locator("#error-text").inner_text()


def test_it_works_without_a_network_once_loaded(browser: Any, place: str) -> None:
    context = browser.new_context(reduced_motion="reduce")
    page = context.new_page()
    page.goto(place)
    page.wait_for_selector(READY)
    page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    context.set_offline(True)
    page.reload()
    page.wait_for_selector(READY)
    assert page.locator("#word-a").inner_text() == "Collapse"
    context.close()


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_nothing_sticks_out_of_the_window(browser: Any, place: str, width: int, height: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": height}, reduced_motion="reduce")
    page.goto(f"{place}#beside=controller:fasor-token")
    page.wait_for_selector(READY)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


def test_a_page_from_a_folder_says_what_it_needs(browser: Any, site: str) -> None:
    page = browser.new_page()
    page.goto((Path(site) / "index.html").as_uri())
    page.locator("p.unloaded").wait_for()
    assert "millpond explore" in page.locator("p.unloaded").inner_text()
    assert not page.locator("#stages").is_visible()
    page.close()


def test_a_page_that_lost_a_part_on_its_way_says_so(browser: Any, place: str) -> None:
    context = browser.new_context(service_workers="block")
    page = context.new_page()
    page.route("**/js/stage.js", lambda route: route.abort())
    page.goto(place)
    page.locator("p.unloaded").wait_for()
    context.close()
