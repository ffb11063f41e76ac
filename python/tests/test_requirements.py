"""The judge: every verdict on every built-in controller, and a verdict that falls when a controller gets one vice."""
# ruff: noqa: ARG002 - a controller has the arguments its calls have

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import guide
import pytest

import millpond
from millpond.controllers.catalogue import Choice, names
from millpond.controllers.own import watched
from millpond.controllers.peer import HIGHEST, LOWEST, SECOND, Make, Peer
from millpond.controllers.requirements import MARKS, REQUIREMENTS, Judgement, judge

ROOT = Path(__file__).parents[2]
IDS = [requirement.id for requirement in REQUIREMENTS]

MATRIX = """
                C1 C2 C3 C4 C5 C6 C7 C8 C9 C10 C11 C12 C13 C14 C15
rfc7252         ✓  –  –  ✓  ✓  ✓  ✗  ✓  E  ✗   E   ✓   E   ✗   –
default-fb1     ✓  –  –  ✓  ✓  ✓  ✓  ✓  E  ✗   E   ✓   E   ◐   ✗
default-fb2     ✓  –  –  ✓  ✓  ✓  ✓  ✓  E  ✗   E   ✓   E   ◐   ✗
cocoa-00        ✓  ✓  ✓  ✗  ✓  ✓  ◐  ✗  E  ✓   E   ✓   E   ◐   ◐
cocoa-plus      ✓  ✓  ✓  ✗  ✓  ✓  ✗  ✓  E  ✓   E   ✓   E   ✗   ✓
cocoa-03        ✓  ✓  ✓  ✗  ✓  ✓  ✗  ✗  E  ✓   E   ✓   E   ✗   ✓
cocoa-s         ✓  ✓  ✓  ✓  ✓  ✓  ✗  ✗  E  ✓   E   ✓   E   ✗   ✓
cocoa-weak-all  ✓  ✓  ✓  ✗  ✓  ✓  ✗  ◐  E  ✓   E   ✓   E   ◐   ✓
cocoa-echo      ✓  ✓  ✓  ✓  ✓  ✓  ✗  ◐  E  ✓   E   ✓   E   ◐   ✓
cocoa-number    ✓  ✓  ✓  ✓  ✓  ✓  ✗  ◐  E  ✓   E   ✓   E   ◐   ✓
cocoa-flag      ✓  ✓  ✓  ✗  ✓  ✓  ✗  ◐  E  ✓   E   ✓   E   ◐   ✓
cocoa-fb1       ✓  ✓  ✓  ✗  ✓  ✓  ✓  ✗  E  ✓   E   ✓   E   ◐   ◐
cocoa-fb2       ✓  ✓  ✓  ✗  ✓  ✓  ✓  ✗  E  ✓   E   ✓   E   ◐   ◐
fasor           ✓  ✓  ✓  ✓  ◐  ✗  ◐  ✓  E  ✓   E   ✓   E   ✓   ✗
fasor-token     ✓  ✓  ✓  ✓  ◐  ✗  ◐  ✓  E  ✓   E   ✓   E   ✓   ✗
fasor-count     ✓  ✓  ✓  ✓  ◐  ✗  ◐  ✓  E  ✓   E   ✓   E   ✓   ✗
linux-rto       ✓  ✓  ✓  ✓  ✓  ✓  ◐  ◐  E  ◐   E   ✗   E   ✓   ✗
peak-hopper     ✓  ✓  ✓  ✓  ✓  ✓  ◐  ◐  E  ◐   E   ✗   E   ✓   ✗
basic-rto       ✓  ✗  ✓  ✗  ✓  ✓  ✗  ✓  E  ◐   E   ✗   E   ◐   ✗
coap-plus-rate  ✓  –  ✓  ✓  ✓  ✓  ✗  ✓  E  ✗   E   ✓   E   ✗   –
coap-plus-rate-responsive ✓ – ✓ ✓ ✓ ✓ ✗ ✓ E ✗ E ✓ E ✗ –
bbr-con         ✓  ✓  ✓  ✓  ✓  ✓  ✗  ✓  E  ✗   E   ✓   E   ◐   ✗
tfrc-non        ✓  –  –  ✓  ✓  ✓  ✗  ✓  E  ◐   E   ✓   E   ✗   –
calm            ✓  ✓  ✓  ✓  ✓  ✓  ✓  ✓  E  ✓   E   ◐   E   ◐   ✓
calm-unlimited  ✓  ✓  ✓  ✓  ✓  ✓  ✓  ✓  E  ✓   E   ◐   E   ◐   ✓
"""  # noqa: RUF001

# What the sources lead a reader to expect of these six, before anything is driven: their texts say so, or what they say
# is compared with the requirement by hand.
READ = """
                C1 C2 C4 C6 C7 C8
rfc7252         ✓  –  ✓  ✓  ✗  ✓
default-fb1     ✓  –  ✓  ✓  ✓  ✓
default-fb2     ✓  –  ✓  ✓  ✓  ✓
cocoa-00        ✓  ✓  ✗  ✓  ✗  ✗
cocoa-plus      ✓  ✓  ✗  ✓  ✗  ✗
cocoa-03        ✓  ✓  ✗  ✓  ✗  ✗
cocoa-s         ✓  ✓  ✓  ✓  ✗  ✗
cocoa-weak-all  ✓  ✓  ✗  ✓  ✗  ◐
cocoa-echo      ✓  ✓  ✓  ✓  ✗  ◐
cocoa-fb1       ✓  ✓  ✗  ✓  ✓  ✗
cocoa-fb2       ✓  ✓  ✗  ✓  ✓  ✗
fasor           ✓  ✓  ✓  ✗  ✓  ✓
fasor-token     ✓  ✓  ✓  ✗  ✓  ✓
fasor-count     ✓  ✓  ✓  ✗  ✓  ✓
linux-rto       ✓  ✓  ✓  ✓  ✓  ✓
peak-hopper     ✓  ◐  ✓  ✓  ✓  ✓
basic-rto       ✓  ✗  ✗  ✓  ✗  ✓
"""  # noqa: RUF001

# Rust tests that the endpoint keeps what no controller can.
OF_THE_ENDPOINT = {
    "C5": ["one_at_a_time_in_the_order_of_asking"],
    "C9": ["every_peer_has_a_controller_of_its_own"],
    "C10": ["probing_rate_makes_what_follows_a_long_message_wait", "probing_rate_is_shared_by_all_that_is_under_way"],
    "C11": [
        "a_notification_held_back_leaves_an_idle_peer",
        "a_confirmable_response_waits_too_and_a_non_confirmable_one_does_not",
    ],
    "C13": ["as_many_as_nstart_says", "probing_rate_is_shared_by_all_that_is_under_way"],
}


def cells(table: str) -> dict[tuple[str, str], str]:
    header, *lines = table.strip().splitlines()
    return {
        (name, requirement): mark
        for name, *marks in map(str.split, lines)
        for requirement, mark in zip(header.split(), marks, strict=True)
    }


@pytest.fixture(scope="module")
def judged() -> dict[str, dict[str, Judgement]]:
    return {name: by_id(judge(Choice(name).maker())) for name in names()}


def by_id(judgements: tuple[Judgement, ...]) -> dict[str, Judgement]:
    return {judgement.requirement.id: judgement for judgement in judgements}


# ----------------------------------------------------------------------------------------------- built-in controllers


def test_every_verdict_on_every_controller(judged: dict[str, dict[str, Judgement]]) -> None:
    found = {(name, key): one.mark for name, verdicts in judged.items() for key, one in verdicts.items()}
    wanted = cells(MATRIX)
    assert found == wanted


def test_what_differs_from_the_sources_is_explained(judged: dict[str, dict[str, Judgement]]) -> None:
    page = (ROOT / "docs" / "controllers.md").read_text(encoding="utf-8")
    told = page[page.index("## Where a verdict may surprise") : page.index("## All of them")]
    explained = set()
    for line in re.findall(r"^\* \*\*(.*?)\*\*", told, re.MULTILINE):
        requirement, *of = re.findall(r"\bC\d+|`[\w-]+`", line)
        explained |= {(name.strip("`"), requirement) for name in of}
    differing = {place for place, mark in cells(READ).items() if judged[place[0]][place[1]].mark != mark}
    assert differing == explained


def test_every_verdict_carries_what_was_measured(judged: dict[str, dict[str, Judgement]]) -> None:
    for name, verdicts in judged.items():
        for key, one in verdicts.items():
            assert one.evidence, (name, key)
            assert "\n" not in one.evidence
            measured = re.search(r"\d", one.evidence)
            assert measured or one.verdict in ("endpoint", "not applicable"), (name, key, one.evidence)


@pytest.mark.parametrize(
    ("name", "key", "told"),
    [
        # RFC 7252 §4.2, §4.8
        ("rfc7252", "C1", "between 2.00 s and 3.00 s"),
        ("rfc7252", "C6", "2.00, 4.00, 8.00, 16.00, 32.00, 64.00 s"),
        # draft-ietf-core-cocoa-03 §4.2 and §4.3: one or two retransmissions; 3, 2 and 1.5; 32 s
        ("cocoa-03", "C4", "answers after 1 and 2 retransmissions move estimates"),
        ("cocoa-03", "C6", "2.00, 4.00, 6.00, 9.00, 13.50, 20.25 s"),
        ("cocoa-03", "C8", "backed-off waits stop at 32.00 s"),
        # the same §5: one in a timeout, and every eighth confirmable
        ("cocoa-03", "C10", "every 8th is made confirmable"),
        # CoCoA+ (Ad Hoc Networks 33, 2015): weak samples after one retransmission only, no cap
        ("cocoa-plus", "C4", "answers after 1 retransmission move estimates"),
        ("cocoa-plus", "C8", "backed-off waits have no cap"),
        # "Is CoAP Congestion Safe?" (ANRW 2018) §4.2: the wait in force; halved by each clean answer
        ("default-fb1", "C7", "was 8.00 s, the one in force 8.00 s; from 2.00 s over 8.00 s to 2.00 s"),
        ("default-fb2", "C7", "was 8.00 s, the one in force 8.00 s; from 2.00 s over 8.00 s to 4.00 s"),
        # draft-ietf-core-fasor-02 §4: drawn from [RTO + SRTT/4, RTO + SRTT] with a third of 2 s for SRTT
        ("fasor", "C1", "between 2.17 s and 2.67 s"),
        ("fasor", "C14", "first samples of 0.65 s and 1.30 s give 1.14 s and 2.27 s"),
        # Californium 1.0.7: the backed-off timer goes up to 60 s and is read through 32 s
        ("linux-rto", "C7", "was 32.00 s, the one in force 60.00 s"),
    ],
)
def test_what_was_measured_is_what_the_source_says(
    judged: dict[str, dict[str, Judgement]], name: str, key: str, told: str
) -> None:
    assert told in judged[name][key].evidence


def test_the_same_controller_gets_the_same_verdicts(judged: dict[str, dict[str, Judgement]]) -> None:
    for name in ("cocoa-fb2", "fasor-token"):
        assert by_id(judge(Choice(name).maker())) == judged[name]


def test_settings_change_verdicts() -> None:
    capped = Choice("cocoa-03", {"max-wait": "60 s", "max-estimate": "60 s", "weak-retransmissions": 0})
    verdicts = by_id(judge(capped.maker()))
    assert (verdicts["C8"].verdict, verdicts["C4"].verdict) == ("met", "met")


def test_the_endpoint_keeps_what_is_said_to_be_its_own(judged: dict[str, dict[str, Judgement]]) -> None:
    tests = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "crates/coap/tests").rglob("*.rs"))
    said = {key for verdicts in judged.values() for key, one in verdicts.items() if "endpoint" in one.evidence}
    assert said == set(OF_THE_ENDPOINT)
    for names_of_tests in OF_THE_ENDPOINT.values():
        for name in names_of_tests:
            assert f"#[test]\nfn {name}()" in tests, name


# ----------------------------------------------------------------------------------------------- one vice at a time

_code: dict[str, Any] = {"__name__": "careful"}
exec(guide.files()["careful.py"], _code)
Careful: Any = _code["Careful"]


class Hasty(Careful):  # type: ignore[misc]
    """Begins with half a second."""

    @property
    def rto_us(self) -> Any:
        return SECOND // 2 if self.srtt_us is None else super().rto_us


class Forgetful(Careful):  # type: ignore[misc]
    """Thrice the last round trip."""

    def on_reply(self, exchange: Any, sample: Any, cx: Any) -> None:
        self.srtt_us = None
        super().on_reply(exchange, sample, cx)


class Largest(Careful):  # type: ignore[misc]
    """Thrice half the longest round trip that there ever was: a shorter sample moves nothing."""

    def on_reply(self, exchange: Any, sample: Any, cx: Any) -> None:
        longest: Any = self.srtt_us or 0
        super().on_reply(exchange, sample, cx)
        self.srtt_us: Any = max(longest, self.srtt_us or 0)

    @property
    def rto_us(self) -> Any:
        return 2 * SECOND if self.srtt_us is None else 3 * self.srtt_us // 2


class Mean(Careful):  # type: ignore[misc]
    """Thrice the mean round trip, however much they vary."""

    @property
    def rto_us(self) -> Any:
        return 2 * SECOND if self.srtt_us is None else 3 * self.srtt_us


class EverySecond(Careful):  # type: ignore[misc]
    """Learns from every second answer."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = 0

    def on_reply(self, exchange: Any, sample: Any, cx: Any) -> None:
        self.answers += 1
        if self.answers % 2:
            super().on_reply(exchange, sample, cx)


class Unlearned(Careful):  # type: ignore[misc]
    """Learns nothing at all."""

    def on_reply(self, exchange: Any, sample: Any, cx: Any) -> None:
        pass


class Guessing(Careful):  # type: ignore[misc]
    """Takes the last copy's time for the round trip, and shows no numbers."""

    def on_reply(self, exchange: Any, sample: Any, cx: Any) -> None:
        guess = millpond.RttSample(sample.kind, sample.since_last_us, sample.since_last_us, 0)
        super().on_reply(exchange, guess, cx)

    def view(self) -> millpond.View:
        return millpond.View()


class Steadfast(Careful):  # type: ignore[misc]
    """Never backs off."""

    def on_timeout(self, exchange: Any, cx: Any) -> Any:
        return exchange.current_us


class Adding(Careful):  # type: ignore[misc]
    """Backs off by two seconds."""

    def on_timeout(self, exchange: Any, cx: Any) -> Any:
        return exchange.current_us + 2 * SECOND


class Hurrying(Careful):  # type: ignore[misc]
    """Halves the wait at the third expiry."""

    def on_timeout(self, exchange: Any, cx: Any) -> Any:
        if exchange.retransmissions == 2:
            return exchange.current_us // 2
        return super().on_timeout(exchange, cx)


class Relieved(Careful):  # type: ignore[misc]
    """Any answer ends the backoff."""

    def on_reply(self, exchange: Any, sample: Any, cx: Any) -> None:
        super().on_reply(exchange, sample, cx)
        self.kept_us = None


class HalfRelieved(Careful):  # type: ignore[misc]
    """Any answer halves the backoff."""

    def on_reply(self, exchange: Any, sample: Any, cx: Any) -> None:
        super().on_reply(exchange, sample, cx)
        if sample.retransmissions:
            self.kept_us = exchange.current_us // 2


class Capped(Careful):  # type: ignore[misc]
    """Never waits longer than 30 s."""

    def on_timeout(self, exchange: Any, cx: Any) -> Any:
        return min(30 * SECOND, super().on_timeout(exchange, cx))


class CappedAtFirst(Careful):  # type: ignore[misc]
    """First waits stop at 20 s."""

    @property
    def rto_us(self) -> Any:
        return min(20 * SECOND, super().rto_us)


class Gossiping(Careful):  # type: ignore[misc]
    """All peers share one estimate."""

    shared: Any = (None, None)

    def on_start(self, exchange: Any, length: int, cx: Any) -> Any:
        self.srtt_us, self.rttvar_us = Gossiping.shared
        return super().on_start(exchange, length, cx)

    def on_reply(self, exchange: Any, sample: Any, cx: Any) -> None:
        super().on_reply(exchange, sample, cx)
        Gossiping.shared = self.srtt_us, self.rttvar_us


class Chatty(Careful):  # type: ignore[misc]
    """Lets every plain message pass."""

    def admit(self, kind: str, length: int, cx: Any) -> Any:
        return "now"


class Silent(Careful):  # type: ignore[misc]
    """Wishes no feedback."""

    def wishes(self) -> millpond.Wishes:
        return millpond.Wishes()


class Marching(Careful):  # type: ignore[misc]
    """Draws nothing."""

    def on_start(self, exchange: Any, length: int, cx: Any) -> Any:
        level = millpond.Cx(cx.now_us)
        return super().on_start(exchange, length, level)


class Hurried(Careful):  # type: ignore[misc]
    """Begins with a second and a half."""

    @property
    def rto_us(self) -> Any:
        return 1.5 * SECOND if self.srtt_us is None else super().rto_us


class Doubting(Careful):  # type: ignore[misc]
    """Mixes the first sample with the default, and lets many retransmissions pass unheard."""

    def __init__(self) -> None:
        super().__init__()
        self.srtt_us, self.rttvar_us = SECOND, SECOND // 4

    def on_reply(self, exchange: Any, sample: Any, cx: Any) -> None:
        if sample.retransmissions < 3:
            super().on_reply(exchange, sample, cx)


class Faithful(Careful):  # type: ignore[misc]
    """Never forgets."""

    def __init__(self) -> None:
        super().__init__(forget_s=1e9)


VICES: list[tuple[type, str, str]] = [
    (Hasty, "C1", "not met"),
    (Forgetful, "C2", "not met"),
    (Mean, "C2", "partly"),
    (Largest, "C2", "partly"),
    (Unlearned, "C2", "not applicable"),
    (EverySecond, "C3", "partly"),
    (Unlearned, "C3", "not applicable"),
    (Guessing, "C4", "not met"),
    (Steadfast, "C5", "not met"),
    (Steadfast, "C6", "not met"),
    (Adding, "C6", "partly"),
    (Hurrying, "C6", "not met"),
    (Relieved, "C7", "not met"),
    (HalfRelieved, "C7", "partly"),
    (Capped, "C8", "not met"),
    (CappedAtFirst, "C8", "partly"),
    (Gossiping, "C9", "not met"),
    (Chatty, "C10", "not met"),
    (Silent, "C10", "partly"),
    (Marching, "C12", "not met"),
    (Hurried, "C13", "partly"),
    (Hasty, "C13", "partly"),
    (Doubting, "C14", "not met"),
    (Faithful, "C15", "not met"),
    (Unlearned, "C15", "not applicable"),
]


def making(controller: type) -> Make:
    return watched(controller)


def test_the_guides_controller_has_no_vice() -> None:
    verdicts = {one.requirement.id: one.verdict for one in judge(making(Careful))}
    assert verdicts == {key: "endpoint" if key in ("C9", "C11", "C13") else "met" for key in IDS}


@pytest.mark.parametrize(("controller", "key", "verdict"), VICES, ids=lambda value: getattr(value, "__name__", value))
def test_one_vice_costs_one_verdict(controller: type, key: str, verdict: str) -> None:
    probe = next(requirement.probe for requirement in REQUIREMENTS if requirement.id == key)
    found, evidence = probe(making(controller))
    assert found == verdict, evidence


def test_every_verdict_that_can_fall_is_made_to_fall() -> None:
    fallen = {key for _, key, _ in VICES}
    assert fallen == set(IDS) - {"C11"}
    assert {verdict for *_, verdict in VICES} | {"met", "endpoint"} == set(MARKS)


# ----------------------------------------------------------------------------------------------- the driver


def test_a_peer_follows_its_path() -> None:
    peer = Peer(Choice("rfc7252").maker())
    course = peer.ask(5 * SECOND)
    # copies at 0, 2 and 6 s would leave, but the first is answered after 5 s
    assert (course.retransmissions, course.elapsed_us, course.in_force_us) == (1, 5 * SECOND, 4 * SECOND)
    course = peer.ask(SECOND, lost=2)
    assert (course.retransmissions, course.elapsed_us) == (2, 7 * SECOND)
    assert [wait.us for wait in peer.fail(3).waits] == [2 * SECOND, 4 * SECOND, 8 * SECOND]


def test_looking_changes_nothing() -> None:
    peer = Peer(Choice("cocoa-fb2").maker())
    peer.ask(SECOND, lost=1)
    before = peer.first_us(), peer.controller.view(), peer.now_us
    peer.series()
    peer.fork().steady(5, SECOND)
    peer.plain_gap_us()
    assert (peer.first_us(), peer.controller.view(), peer.now_us) == before


@pytest.mark.parametrize(
    ("name", "of_the_first", "of_a_further"),
    [
        ("cocoa-03", None, None),
        ("fasor-token", 0, 1),
        ("fasor-count", 0, 1),
        ("cocoa-echo", 0, 1),
        ("cocoa-flag", 0, "further"),
    ],
)
def test_answers_name_copies_as_the_controller_wishes(
    name: str, of_the_first: int | None, of_a_further: int | str | None
) -> None:
    heard: list[millpond.RttSample] = []

    class Listening(Careful):  # type: ignore[misc]
        def wishes(self) -> millpond.Wishes:
            return Choice(name).maker()().wishes()

        def on_reply(self, exchange: Any, sample: Any, cx: Any) -> None:
            heard.append(sample)

    peer = Peer(making(Listening))
    peer.ask(7 * SECOND)
    peer.ask(5 * SECOND, lost=1)
    peer.ask(5 * SECOND, lost=1, named=False)
    assert [sample.named for sample in heard] == [of_the_first, of_a_further, None]


def test_every_draw_of_chance_is_within_the_ends() -> None:
    peer = Peer(Choice("cocoa-03").maker())
    ends = peer.first_us(LOWEST), peer.first_us(HIGHEST)
    assert ends == (2 * SECOND, 3 * SECOND)
    assert all(ends[0] <= peer.first_us(word << 24) <= ends[1] for word in range(256))
