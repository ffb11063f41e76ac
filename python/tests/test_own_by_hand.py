"""Controllers driven by hand through the binding: one's own by the same calls as built-in ones."""

# ruff: noqa: ARG002 - controllers take what they are given

from __future__ import annotations

import gc
import math
import weakref

import pytest

from millpond import _engine
from millpond._engine import Controller, Cx, Exchange, Feedback, Sample, View, Wait, Wishes
from millpond.controller import Controller as Base
from millpond.engine import presets

SECOND = 1_000_000
PRESETS = [preset.name for preset in presets()]


def answer(retransmissions: int = 0) -> Sample:
    return Sample("piggybacked", 700_000, 700_000 if retransmissions == 0 else 100_000, retransmissions)


class Noting(Base):
    """Notes all calls."""

    def __init__(self) -> None:
        self.calls: list[object] = []

    def on_start(self, exchange: Exchange, length: int, cx: Cx) -> float:
        exchange.memory = [length]
        self.calls.append(("start", length, cx.now_us, cx.open))
        return 2e6

    def on_timeout(self, exchange: Exchange, cx: Cx) -> Wait:
        assert isinstance(exchange.memory, list)
        exchange.memory.append(exchange.retransmissions)
        return Wait(2 * exchange.current_us, "slow")

    def on_reply(self, exchange: Exchange, sample: Sample, cx: Cx) -> None:
        self.calls.append(("reply", exchange.memory, sample.grade))

    def on_end(self, exchange: Exchange, why: str, cx: Cx) -> None:
        self.calls.append(("end", exchange.memory, why))

    def on_plain_send(self, length: int, cx: Cx) -> None:
        self.calls.append(("plain", length))

    def on_feedback(self, feedback: Feedback, cx: Cx) -> None:
        self.calls.append((feedback.message, feedback.fate, feedback.since_us, feedback.number))

    def admit(self, kind: str, length: int, cx: Cx) -> int:
        return cx.now_us + length + 1

    def view(self) -> View:
        return View(rto_us=len(self.calls))

    def wishes(self) -> Wishes:
        return Wishes("count", 3)


def test_answers_to_plain_requests_set_a_rate() -> None:
    controller = Controller("tfrc-non")
    assert controller.wishes() == Wishes(governs_requests=True)
    assert repr(controller.wishes()) == "Wishes('none', 0, governs_requests=True)"
    assert repr(Controller("calm").wishes()) == "Wishes('token', 8, last_wait_us=32000000, ecn=True)"
    assert Wishes("token", 8, last_wait_us=32 * SECOND, ecn=True) == Controller("calm").wishes()
    controller.on_plain_send(40, Cx(0, waiting=1))
    assert controller.admit("plain", 40, Cx(1)) == SECOND
    told = Feedback("request", "answered", SECOND // 5, 40, 4, 0)
    assert repr(told) == "Feedback('request', 'answered', 200000, 40, 4, 0)"
    assert (told.length, told.reply_length) == (40, 4)
    controller.on_feedback(told, Cx(SECOND // 5))
    # four messages in a round-trip time of 200 ms
    assert controller.view() == View(rto_us=2 * SECOND, srtt_us=SECOND // 5)
    controller.on_plain_send(40, Cx(SECOND // 5))
    assert controller.admit("plain", 40, Cx(SECOND // 5)) == SECOND // 5 + 50_000


def exchanged(controller: Controller, now_us: int, rtt_us: int) -> None:
    """One exchange without a retransmission."""
    exchange = Exchange()
    controller.on_start(exchange, 40, Cx(now_us))
    controller.on_reply(exchange, Sample("piggybacked", rtt_us, rtt_us, 0), Cx(now_us + rtt_us))


def test_a_base_round_trip_is_handed_on_to_the_next_life() -> None:
    controller = Controller("calm")
    assert controller.base_rtt_us() is None
    exchanged(controller, SECOND, 240_000)
    assert controller.base_rtt_us() == 240_000
    before = controller.view()
    controller.recall(1_000)
    assert (controller.base_rtt_us(), controller.view()) == (240_000, before)

    def after_ten_seconds(remembered_us: float) -> object:
        """When a request may leave, after a first answer that took ten seconds."""
        again = Controller("calm")
        again.recall(remembered_us)
        assert again.base_rtt_us() is None
        exchanged(again, SECOND, 10 * SECOND)
        return again.admit("confirmable", 40, Cx(11 * SECOND))

    # with the lowest word of chance the pause is half of one round trip
    assert [after_ten_seconds(us) for us in (240_000, 1, 0.9)] == [16 * SECOND] * 3
    assert [after_ten_seconds(us) for us in (0, 10 * SECOND, 2**32 - 1)] == ["now"] * 3


@pytest.mark.parametrize("preset", [preset for preset in PRESETS if not preset.startswith("calm")])
def test_the_others_keep_no_base_round_trip(preset: str) -> None:
    controller, twin = Controller(preset), Controller(preset)
    controller.recall(240_000)
    exchanged(controller, SECOND, 10 * SECOND)
    exchanged(twin, SECOND, 10 * SECOND)
    assert (controller.base_rtt_us(), controller.view()) == (None, twin.view())


@pytest.mark.parametrize(
    ("returned", "told"), [("0.2 s", "not a number"), (-1, "below zero"), (math.nan, "not a finite number")]
)
def test_a_base_round_trip_of_ones_own_is_a_time_or_none(returned: object, told: str) -> None:
    assert Controller.own(Noting, "Noting").base_rtt_us() is None
    odd = Controller.own(type("Odd", (Noting,), {"base_rtt_us": lambda _: returned}), "Odd")
    with pytest.raises(ValueError, match=f"Odd: base_rtt_us returned .*{told}.*: return None if nothing was measured"):
        odd.base_rtt_us()


def test_ones_own_is_told_what_an_earlier_life_measured() -> None:
    class Remembering(Noting):
        remembered_us: int | None = None

        def base_rtt_us(self) -> int | None:
            return self.remembered_us

        def recall(self, base_rtt_us: int) -> None:
            self.remembered_us = base_rtt_us

    controller = Controller.own(Remembering, "Remembering")
    assert controller.base_rtt_us() is None
    controller.recall(240_000.4)
    assert controller.base_rtt_us() == 240_000


def noting() -> tuple[Controller, list[Noting]]:
    """A controller under watch, and the objects that were made; the first is the one for trial."""
    made: list[Noting] = []

    def make() -> Noting:
        made.append(Noting())
        return made[-1]

    return Controller.own(make, "Noting"), made


def test_ones_own_is_driven_by_the_same_calls() -> None:
    controller, made = noting()
    one, other = Exchange(), Exchange()
    assert controller.on_start(one, 40, Cx(1)) == Wait(2 * SECOND)
    assert controller.on_start(other, 50, Cx(2, open=2)) == Wait(2 * SECOND)
    assert controller.on_timeout(one, Cx(3)) == Wait(4 * SECOND, "slow")
    assert controller.on_timeout(one, Cx(4)) == Wait(8 * SECOND, "slow")
    controller.on_reply(other, answer(), Cx(5))
    controller.on_end(one, "reset", Cx(6))
    controller.on_plain_send(7, Cx(7))
    controller.on_feedback(Feedback("request", "lost", 5, number=3), Cx(7))
    assert controller.admit("plain", 9, Cx(7)) == 17
    assert (controller.wishes(), controller.view()) == (Wishes("count", 3), View(rto_us=6))
    assert (controller.shortest_wait_us(), controller.longest_wait_us(3, 0)) == (1_000, 600 * SECOND)
    trial, mine = made
    assert trial.calls == []
    assert mine.calls == [
        ("start", 40, 1, 1),
        ("start", 50, 2, 2),
        ("reply", [50], "exact"),
        ("end", [40, 0, 1], "reset"),
        ("plain", 7),
        ("request", "lost", 5, 3),
    ]


def test_ones_own_says_only_its_name() -> None:
    controller, _ = noting()
    assert (controller.name, controller.source, controller.summary) == ("Noting", "", "")
    assert (controller.id, controller.state_bytes) == (None, None)
    assert controller.settings == []
    assert controller.readings == []


def test_a_copy_of_ones_own_knows_the_same_and_goes_its_own_way() -> None:
    controller, made = noting()
    controller.on_plain_send(7, Cx(7))
    twin = controller.copy()
    twin.on_plain_send(8, Cx(8))
    assert (controller.view(), twin.view()) == (View(rto_us=1), View(rto_us=2))
    assert len(made) == 2


def test_ones_own_keeps_the_contract_too() -> None:
    controller, _ = noting()
    with pytest.raises(ValueError, match=r"on_timeout: .* never started"):
        controller.on_timeout(Exchange(), Cx(0))


def test_the_failure_of_ones_own_is_raised_with_its_cause() -> None:
    class Failing(Noting):
        def on_plain_send(self, length: int, cx: Cx) -> None:
            raise ZeroDivisionError("nothing to divide by\nat all")

    controller = Controller.own(Failing, "Failing")
    with pytest.raises(
        ValueError, match="Failing: on_plain_send raised ZeroDivisionError: nothing to divide by"
    ) as told:
        controller.on_plain_send(7, Cx(7))
    assert "\n" not in str(told.value)
    assert isinstance(told.value.__cause__, ZeroDivisionError)
    assert told.value.__cause__.__traceback__ is not None
    with pytest.raises(ValueError, match="Failing: on_plain_send raised"):
        controller.view()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"shortest_wait_us": lambda _: 0}, "shortest_wait_us returned 0: a wait is never zero"),
        ({"shortest_wait_us": lambda _: None}, "shortest_wait_us returned None, not a number"),
        ({"longest_wait_us": lambda *_: 5}, "longest_wait_us returned 5 for copy 0, less than shortest_wait_us"),
        ({"longest_wait_us": lambda *_: math.nan}, "longest_wait_us returned nan"),
        ({"wishes": lambda _: "token"}, "wishes returned 'token', not Wishes"),
        ({"__init__": lambda _: 1 / 0}, "its making raised ZeroDivisionError"),
    ],
)
def test_what_never_changes_is_checked_at_once(changes: dict[str, object], told: str) -> None:
    with pytest.raises(ValueError, match=f"Odd: {told}"):
        Controller.own(type("Odd", (Noting,), changes), "Odd")


def test_what_is_no_controller_is_refused() -> None:
    with pytest.raises(ValueError, match="Odd: makes a dict, which is no controller: write `class dict"):
        Controller.own(dict, "Odd")


def test_an_exchange_that_remembers_itself_is_freed() -> None:
    class Big:
        pass

    exchange, big = Exchange(), Big()
    exchange.memory = [exchange, big]
    gone = weakref.ref(big)
    del exchange, big
    gc.collect()
    assert gone() is None


def test_the_base_class_wants_the_three_calls() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Base()  # type: ignore[abstract]


def test_rows_of_presets_have_a_fixed_order() -> None:
    row = _engine.presets()[0]
    assert row[:3] == ("rfc7252", "RFC 7252, sections 4.2 and 4.8", 1)
