"""What is written from a diagnosis repeats the capture, and says of each figure how far it can be believed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from right_diagnosis import of_drawn, of_run

from manual import drawn
from millpond.diagnose import repeat, traffic, written
from millpond.errors import MillpondError, UsageError
from millpond.fleet import description
from millpond.plan import path_files
from millpond.plan import scenario as scenarios
from millpond.run import capture

#: Of each kind one of the set that the estimators were developed with, and what its traffic is found to be.
KINDS = {0: "closed", 1: "think", 2: "periodic", 9: "aligned", 4: "event", 5: "event"}


@pytest.mark.parametrize(("number", "kind"), KINDS.items())
def test_what_is_written_from_a_right_diagnosis_repeats_the_capture(number: int, kind: str, tmp_path: Path) -> None:
    found, _ = of_drawn(number)
    made = written.of(found, "drawn.pcapng")
    assert made.traffic.kind == kind
    written.write(made, tmp_path)
    again = scenarios.load(tmp_path / written.SCENARIO)
    full = scenarios.in_full(again)
    assert full["clients"][0]["count"] == drawn.scenario("development", number)["clients"][0]["count"]
    runs = [of_run(capture.of_run(again, seed), full, "server")[0] for seed in range(1, 6)]
    off = {one.name: one.off for one in repeat.beside(found, runs) if not one.is_near}
    assert off == {}


def test_requests_and_answers_are_as_long_as_those_that_were_seen(tmp_path: Path) -> None:
    found, _ = of_drawn(0)
    written.write(written.of(found, "drawn.pcapng"), tmp_path)
    again = scenarios.load(tmp_path / written.SCENARIO)
    run, _ = of_run(capture.of_run(again, 1), scenarios.in_full(again), "server")
    for name in ("bytes", "answer_bytes"):
        assert set(run.column(name)) == set(found.column(name))


def test_every_figure_stands_with_its_grade_and_reason(tmp_path: Path) -> None:
    found, true = of_drawn(0)
    rate = true.figures["path.downlink.rate_bps"]
    found = found.with_figure(
        "path.downlink.rate_bps", {"value": rate, "grade": "at-least", "because": "the busiest second"}
    )
    found = found.with_figure(
        "path.uplink.buffer_bytes", {"value": None, "grade": "unknown", "because": "it never was full"}
    )
    found = found.with_figure("timers.ack_timeout_s", {"value": 2.1, "grade": "estimate", "because": "many\ngaps"})
    written.write(written.of(found, 'a "name"\n.pcap'), tmp_path)
    path = (tmp_path / written.PATH).read_text(encoding="utf-8")
    scenario = (tmp_path / written.SCENARIO).read_text(encoding="utf-8")
    assert f"at least {rate:.4g} bit/s, written as 4 times the bound: the busiest second" in path
    assert "not visible, because it never was full: assumed" in path
    assert "exact: the truth" in path
    assert "ack-timeout: estimate: many gaps" in scenario
    assert path_files.read(tmp_path / written.PATH)["downlink"]["rate"] == f"{round(4 * rate)} bit/s"
    scenarios.load(tmp_path / written.SCENARIO)
    fleet = description.read(tmp_path / written.FLEET, {})
    assert fleet.keys.devices == true.devices
    assert fleet.path == path_files.read(tmp_path / written.PATH)


def test_nothing_known_still_gives_files_that_run(tmp_path: Path) -> None:
    found, _ = of_drawn(0)
    unknown = {"value": None, "grade": "unknown", "because": ""}
    links = {link: dict.fromkeys(("rate_bps", "buffer_bytes", "loss"), unknown) for link in ("uplink", "downlink")}
    found = found.with_figure("path", {**links, "base_rtt_s": unknown})
    found = found.with_figure(
        "timers", dict.fromkeys(("ack_timeout_s", "random_factor", "backoff", "max_retransmit"), unknown)
    )
    written.write(written.of(found, "drawn.pcapng"), tmp_path)
    capture.of_run(scenarios.load(tmp_path / written.SCENARIO), 1)
    description.read(tmp_path / written.FLEET, {})


def test_a_backoff_that_a_queue_hides_still_gives_a_scenario(tmp_path: Path) -> None:
    found, _ = of_drawn(0)
    hidden = found.with_figure("timers.backoff", {"value": 0.9843, "grade": "estimate", "because": "the second gap"})
    written.write(written.of(hidden, "drawn"), tmp_path)
    assert "backoff-factor = 1.001" in (tmp_path / written.SCENARIO).read_text()
    scenarios.load(tmp_path / written.SCENARIO)


@pytest.mark.parametrize(
    ("grade", "told", "in_scenario", "in_fleet"),
    [
        ("at-least", 2, "2  # at least 2, written as the bound: seen", "4  # at least 2, written as the default: seen"),
        ("at-least", 6, "6  # at least 6, written as the bound: seen", "6  # at least 6, written as the bound: seen"),
        ("estimate", 2, "2  # estimate: seen", "2  # estimate: seen"),
    ],
)
def test_a_bound_of_retransmissions_repeats_a_capture_and_limits_no_fleet(
    grade: str, told: int, in_scenario: str, in_fleet: str, tmp_path: Path
) -> None:
    found, _ = of_drawn(0)
    most = {"value": float(told), "grade": grade, "because": "seen"}
    written.write(written.of(found.with_figure("timers.max_retransmit", most), "drawn"), tmp_path)
    for file, line in ((written.SCENARIO, in_scenario), (written.FLEET, in_fleet)):
        assert f"max_retransmit = {line}\n" in (tmp_path / file).read_text(encoding="utf-8")


def test_devices_of_a_fleet_ask_for_as_much_as_those_of_its_capture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, _ = of_drawn(0)
    told = traffic.of(found)
    assert told.requests == drawn.scenario("development", 0)["clients"][0]["exchanges"]
    for requests, readings in ((told.requests, told.requests), (1000, 100), (None, 1)):
        monkeypatch.setattr(traffic, "of", lambda _, requests=requests: replace(told, requests=requests))
        written.write(written.of(found, "drawn"), tmp_path)
        assert description.read(tmp_path / written.FLEET, {}).keys.waking.readings == readings


def test_a_folder_that_holds_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match=r"holds something else: name another folder"):
        written.check(tmp_path)
    with pytest.raises(UsageError, match=r"is a file: name a folder"):
        written.check(tmp_path / "thesis.tex")


def test_one_request_is_too_few_to_repeat() -> None:
    found, _ = of_drawn(0)
    with pytest.raises(MillpondError, match="1 request: too few to repeat anything"):
        written.of(replace(found, exchanges=found.exchanges.slice(0, 1)), "short.pcap")


def test_devices_have_as_many_requests_open_as_the_diagnosis_says() -> None:
    found, _ = of_drawn(0)
    assert traffic.of(found).nstart == 1
    several = {"value": 3.0, "grade": "at-least", "because": ""}
    assert traffic.of(found.with_figure("nstart", several)).nstart == 3
