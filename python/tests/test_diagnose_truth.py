"""Drawn scenarios, what is true of their runs, and how a diagnosis is scored against that."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from right_diagnosis import of_drawn, of_scenario

from manual import accuracy, drawn
from millpond import api
from millpond.diagnose import analysis, score, truth
from millpond.diagnose.analysis import Diagnosis, Grade
from millpond.diagnose.ends import ENDS, End
from millpond.diagnose.score import Accuracy, Figure
from millpond.plan import scenario as scenarios
from millpond.run import capture

#: A path whose round trip, 3.2 s, is longer than any first timer, 2 to 3 s.
SLOW: dict[str, Any] = {
    "path": {
        link: {"rate": "100 kbit/s", "delay": "1600 ms", "queue": "10 kB"} for link in ("uplink", "downlink")
    },
    "clients": [{"count": 3, "controller": "rfc7252", "exchanges": 4, "token_length": 2}],
    "server": {"payload": "60 B"},
}  # fmt: skip


def test_sets_of_drawn_scenarios_share_none_and_are_always_the_same() -> None:
    trees = [drawn.scenario(chosen, number) for chosen in drawn.SETS for number in range(60)]
    paths = [str(tree["path"]) for tree in trees]
    assert len(set(paths)) == len(paths)
    assert trees[:60] == [drawn.scenario("development", number) for number in range(60)]
    assert {drawn.kind(number) for number in range(6)} == set(drawn.KINDS)


@pytest.mark.parametrize("number", range(24))
def test_a_drawn_scenario_can_be_run_and_lies_within_its_ranges(number: int) -> None:
    full = scenarios.in_full(scenarios.build(drawn.scenario("judged", number), "drawn"))
    assert drawn.CLIENTS[0] <= full["clients"][0]["count"] <= drawn.CLIENTS[1]
    for link in ("uplink", "downlink"):
        rate, unit = full["path"][link]["rate"].split()
        assert drawn.RATE[0] <= float(rate) * {"bit/s": 1, "kbit/s": 1e3}[unit] <= drawn.RATE[1]


@pytest.mark.parametrize("number", [0, 1, 4, 9])
def test_the_truth_of_a_capture_is_that_of_the_runs_own_tables(number: int) -> None:
    _, true = of_drawn(number)
    flows = api.run(drawn.scenario("development", number), trace=("none",)).results.table("flows")
    assert sum(len(exchange.sent) - 1 for exchange in true.exchanges) == pc.sum(flows["retransmissions"]).as_py()
    spurious = sum(
        exchange.label(at) == "spurious" for exchange in true.exchanges for at in range(1, len(exchange.sent))
    )
    assert spurious == pc.sum(flows["unnecessary"]).as_py()


@pytest.mark.parametrize(
    ("asking", "server"), [({"confirmable": False}, {}), ({}, {"duplicates": "calm"})], ids=["non", "calm server"]
)
def test_responses_with_message_ids_of_the_server_answer_their_requests(
    asking: dict[str, Any], server: dict[str, Any]
) -> None:
    link = {"rate": "30 kbit/s", "delay": "1700 ms", "queue": "200 kB", "loss": "none"}
    clients = {"count": 10, "exchanges": 20, "controller": "rfc7252", "token_length": 2, **asking}
    tree = {"path": {"uplink": link, "downlink": link}, "clients": [clients], "server": server, "run": {"until": "1 h"}}
    scenario = scenarios.build(tree, "separate")
    content = capture.of_run(scenario, 1)
    true = truth.of(content, scenarios.in_full(scenario))
    assert len(true.exchanges) == 200
    assert all(one.useful == 0 for one in true.exchanges)
    found = analysis.of_capture(content, "server")
    assert found.requests.num_rows == 200
    assert not [doubt for doubt in found.figures["doubts"] if "answers" in doubt]


def two_ended(packets: Sequence[tuple[float, End, bool, bytes]]) -> bytes:
    """A capture of one device: when, at which end, whether it is from the device, and the message."""
    device, server = (bytes((10, 0, 0, 1)), 40_000), (bytes((10, 0, 0, 2)), 5683)

    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)

    # the numbers of the block of a section, of an interface, and of a packet; 101 is raw IP
    blocks = [block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    blocks += [block(1, struct.pack("<HHI", 101, 0, 0))] * 2
    for seconds, end, is_from_device, message in packets:
        (source, sport), (target, tport) = (device, server) if is_from_device else (server, device)
        length = 28 + len(message)
        head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, length, 0, 0, 64, 17, 0, source, target)
        data = head + struct.pack(">HHHH", sport, tport, length - 20, 0) + message
        at = round(seconds * 1e6)
        number = struct.pack("<IIIII", ENDS.index(end), at >> 32, at & 0xFFFFFFFF, length, length)
        blocks.append(block(6, number + data))
    return b"".join(blocks)


def test_an_acknowledgement_of_a_separate_response_ends_the_retransmissions() -> None:
    # a confirmable GET and its acknowledgement, a confirmable answer with a message ID of the server's and its own
    request, acknowledged = b"\x41\x01\x00\x07t", b"\x60\x00\x00\x07"
    answer, taken = b"\x41\x45\x80\x00t\xffbody", b"\x60\x00\x80\x00"
    # (from the device, message, when it leaves) on a path of 1.7 s each way
    sent = [
        (True, request, 0.0),
        (False, acknowledged, 1.7),
        (True, request, 2.5),
        (False, acknowledged, 4.2),
        (False, answer, 4.5),
        (True, taken, 6.2),
    ]
    ends: dict[bool, tuple[End, End]] = {True: ("devices", "server"), False: ("server", "devices")}
    passed = [(at + 1.7, ends[up][1], up, message) for up, message, at in sent]
    passed += [(at, ends[up][0], up, message) for up, message, at in sent]
    true = truth.of(two_ended(sorted(passed, key=lambda packet: packet[0])), {})
    assert [exchange.answered for exchange in true.exchanges] == [[3_400_000, 5_900_000]]
    assert true.labels("devices") == {("10.0.0.1:40000", 7, 2_500_000): "spurious"}
    assert [link.packets for link in true.links] == [3, 3]
    # one acknowledgement of two, and the answer
    assert true.goodput_ratio == pytest.approx((32 + 38) / (2 * 32 + 38))


def test_behind_a_slow_path_every_retransmission_is_spurious() -> None:
    _, true = of_scenario(SLOW)
    assert set(true.labels("server").values()) == {"spurious"}
    # each request is sent twice; the run ends while the second transmission of the last one of each device is under way
    assert len(true.labels("server")) == 9
    # so that of 21 answers 12 were of use
    assert true.goodput_ratio == pytest.approx(12 / 21)
    # 2 * 1600 ms, and 28 + 4 + 2 + 6 and 28 + 4 + 2 + 1 + 1 + 60 bytes at 100 kbit/s
    assert true.figures["path.base_rtt_s"] == pytest.approx(3.2 + 8 * (40 + 96) / 100e3)


@pytest.mark.parametrize("end", ENDS)
def test_a_right_diagnosis_has_a_perfect_score(end: End) -> None:
    found, true = of_drawn(0, end)
    scored = score.score(found, true, end, "0")
    accuracy = Accuracy([scored])
    assert [accuracy.share(what, word) for what in ("precision", "recall") for word in ("spurious", "needed")] == [
        1
    ] * 4
    assert (accuracy.cannot_tell, accuracy.verdicts, scored.violations) == (0, (1, 0), [])
    assert score.Score.from_json(scored.to_json()) == scored


def test_what_is_told_wrong_or_not_at_all_counts() -> None:
    found, true = of_drawn(0)
    words = found.column("verdict").tolist()
    first = words.index("spurious")
    words[first] = "needed"
    blind = next(at for at, word in enumerate(words) if word == "needed" and at != first)
    words[blind] = "unknown"
    column = found.exchanges.schema.get_field_index("verdict")
    scored = score.score(
        replace(found, exchanges=found.exchanges.set_column(column, "verdict", pa.array(words))), true, "server", "0"
    )
    are = scored.labels.true
    assert scored.labels.right == {"spurious": are["spurious"] - 1, "needed": are["needed"] - 1}
    assert scored.labels.told == {"spurious": are["spurious"] - 1, "needed": are["needed"]}
    assert scored.labels.unknown == 1


@pytest.mark.parametrize(
    ("place", "value", "grade", "truth", "is_violated"),
    [
        ("path.uplink.rate_bps", 103, "exact", 100, False),
        ("path.uplink.rate_bps", 104, "exact", 100, True),
        ("path.uplink.rate_bps", 150, "estimate", 100, False),
        ("path.uplink.rate_bps", 101, "at-least", 100, True),
        ("path.uplink.rate_bps", 60, "at-least", 100, False),
        ("path.base_rtt_s", 0.9, "at-most", 1.0, True),
        ("path.base_rtt_s", 1.1, "at-most", 1.0, False),
        ("path.uplink.loss", 0.009, "exact", 0.0, False),
        ("path.uplink.loss", 0.011, "exact", 0.0, True),
        ("path.uplink.loss", None, "unknown", 0.1, False),
    ],
)
def test_a_figure_is_held_to_its_grade(
    place: str, value: float | None, grade: Grade, truth: float, is_violated: bool
) -> None:
    assert Figure(value, grade, truth).is_violated(place) is is_violated


def test_frames_have_a_row_for_each_transmission_request_and_device() -> None:
    found, true = of_scenario(SLOW)
    assert isinstance(found, Diagnosis)
    assert found.exchanges.num_rows == 21
    assert found.requests.column("transmissions").to_pylist() == [2] * 9 + [1] * 3
    assert found.requests.column("spurious").to_pylist() == [1] * 9 + [0] * 3
    # the answer to the first transmission was taken, and leaves the server when that arrives
    assert found.requests.column("accepted_us").to_pylist() == found.requests.column("first_us").to_pylist()
    assert found.devices.column("requests").to_pylist() == [4] * 3
    assert found.devices.column("answered").to_pylist() == [4] * 3
    assert len(true.exchanges) == 12
    assert "path.uplink.rate_bps" in found._repr_html_()


def test_scores_are_kept_and_made_into_a_page(tmp_path: Path) -> None:
    scores = accuracy.all_scored("development", 2, tmp_path, jobs=1, seeds=1)
    assert [(one.name, one.kind, one.end) for one in scores] == [
        (f"development {number}", kind, end) for number, kind in enumerate(("closed", "think")) for end in ENDS
    ]
    (first, second) = sorted(tmp_path.iterdir())
    first.write_text(second.read_text(encoding="utf-8"), encoding="utf-8")
    # what lies there is not made again
    again = accuracy.all_scored("development", 2, tmp_path, jobs=1, seeds=1)
    assert again == [*scores[2:], *scores[2:]]
    page = accuracy.page(accuracy.document(scores, "this command"))
    assert page.startswith("# Accuracy of the diagnosis\n\n2 drawn scenarios")
    assert "## Captured at the server" in page
    assert "| closed | 1 |" in page
    assert "| uplink rate |" in page
    assert [bool(one.repeated) for one in scores] == [False, True, False, True]
    assert "| all | 2 | " in page.partition("all within a tenth")[2]
