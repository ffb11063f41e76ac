"""Controllers driven from Python: what they answer, and how bad calls are refused."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from millpond._engine import Controller, Cx, Exchange, Feedback, Sample, View, Wait, Wishes
from millpond.engine import Preset, presets

SECOND = 1_000_000
PRESETS = [preset.name for preset in presets()]


def answer(retransmissions: int = 0) -> Sample:
    return Sample("piggybacked", 700_000, 700_000 if retransmissions == 0 else 100_000, retransmissions)


# ----------------------------------------------------------------------------------------------- what they are


@pytest.mark.parametrize("preset", presets(), ids=lambda preset: preset.name)
def test_a_preset_says_what_it_is(preset: Preset) -> None:
    controller = Controller(preset.name)
    assert preset[:7] == (
        controller.name,
        controller.source,
        controller.id,
        controller.summary,
        controller.readings,
        controller.state_bytes,
        controller.settings,
    )
    assert all(preset)
    assert controller.state_bytes is not None
    assert 8 <= controller.state_bytes <= 96


def test_numbers_and_names_are_unlike_any_other() -> None:
    found = presets()
    assert len({preset.id for preset in found}) == len({preset.name for preset in found}) == len(found)


@pytest.mark.parametrize("preset", PRESETS)
def test_the_values_in_force_are_legal_settings(preset: str) -> None:
    """What is listed can be written into a scenario as it stands, and then changes nothing."""
    listed = Controller(preset).settings
    numbers = {name: float(value) for name, value, legal in listed if legal.startswith("a ratio")}
    counts = {name: int(value) for name, value, legal in listed if legal.startswith("a whole number")}
    again = Controller(preset, {**{name: value for name, value, _ in listed}, **numbers, **counts})
    assert again.settings == listed


def test_a_setting_is_in_force() -> None:
    controller = Controller("rfc7252", {"ack-timeout": "3 s", "max-wait": "4 s", "random-factor": 1})
    listed = {name: value for name, value, _ in controller.settings}
    assert (listed["ack-timeout"], listed["max-wait"], listed["random-factor"]) == ("3 s", "4 s", "1")
    exchange = Exchange()
    assert controller.on_start(exchange, 40, Cx(0, chance=2**32 - 1)).us == 3 * SECOND
    assert controller.on_timeout(exchange, Cx(3 * SECOND)).us == 4 * SECOND


@pytest.mark.parametrize("preset", PRESETS)
def test_no_wait_is_shorter_than_the_least(preset: str) -> None:
    """After fast answers every wait of every copy, in the exchange's record too."""
    settings = {"least-wait": "5 s"}
    controller, exchange, now_us = Controller(preset, settings), Exchange(), 0
    for _ in range(8):
        controller.on_start(exchange, 40, Cx(now_us))
        now_us += 1_000
        controller.on_reply(exchange, Sample("piggybacked", 1_000, 1_000, 0), Cx(now_us))
        exchange = Exchange()
    wait = controller.on_start(exchange, 40, Cx(now_us))
    for _ in range(4):
        assert wait.us >= 5 * SECOND
        assert exchange.current_us == wait.us
        now_us += wait.us
        wait = controller.on_timeout(exchange, Cx(now_us))
    assert wait.us >= controller.shortest_wait_us() >= 5 * SECOND
    assert ("least-wait", "5 s", "a length of time from 0 s to 600 s") in controller.settings
    without = Controller(preset, {"least-wait": "0 s"}).shortest_wait_us()
    assert Controller(preset).shortest_wait_us() == (200_000 if preset == "calm" else without)


@pytest.mark.parametrize(
    ("preset", "settings", "told"),
    [
        ("cocoa-3", {}, r"unknown controller `cocoa-3`: did you mean `cocoa-03`\?"),
        ("mine.py:Mine", {}, "`mine.py:Mine` is not built in"),
        ("rfc7252", {"max_wait": "60 s"}, r"unknown setting `max_wait`: did you mean `max-wait`\?"),
        ("rfc7252", {"max-wait": "0 s"}, "out of range: max-wait takes a length of time from 0.001 s"),
        ("rfc7252", {"max-wait": 60}, "`60` does not fit: max-wait takes a length of time"),
        ("rfc7252", {"max-wait": "60"}, "max-wait: no unit in `60`"),
        ("rfc7252", {"random-factor": 0.5}, "out of range: random-factor"),
        ("rfc7252", {"random-factor": 2**80}, "random-factor: .* is out of range"),
        ("rfc7252", {"random-factor": True}, "`true` does not fit: random-factor"),
        ("calm", {"least-wait": "601 s"}, "out of range: least-wait takes a length of time from 0 s to 600 s"),
        ("calm", {"least-wait": 0.2}, "`0.2` does not fit: least-wait takes a length of time"),
        ("calm", {"least-wait": "200"}, "least-wait: no unit in `200`"),
        ("cocoa-03", {"gains": "swaped"}, "unknown word: gains takes one of rfc6298, swapped"),
        ("cocoa-03", {"vbf-short": "5 s", "vbf-long": "1 s"}, "vbf-short must not be above vbf-long"),
    ],
)
def test_bad_settings_are_refused_in_one_line(preset: str, settings: dict[str, object], told: str) -> None:
    with pytest.raises(ValueError, match=told) as refused:
        Controller(preset, settings)
    assert "\n" not in str(refused.value)


def test_a_setting_of_no_legal_type_is_refused() -> None:
    with pytest.raises(TypeError, match="gains: \\['swapped'\\] is neither a number nor a text"):
        Controller("cocoa-03", {"gains": ["swapped"]})


# ----------------------------------------------------------------------------------------------- what they answer


def test_one_exchange_from_first_copy_to_answer() -> None:
    controller, exchange = Controller("rfc7252"), Exchange()
    assert controller.admit("confirmable", 40, Cx(5)) == "now"
    assert controller.on_start(exchange, 40, Cx(5)) == Wait(2 * SECOND, "initial")
    assert controller.on_timeout(exchange, Cx(5 + 2 * SECOND)) == Wait(4 * SECOND, "backed-off")
    assert (exchange.started_us, exchange.current_us, exchange.first_wait_us) == (5, 4 * SECOND, 2 * SECOND)
    assert exchange.retransmissions == 1
    controller.on_reply(exchange, answer(1), Cx(3 * SECOND))
    assert controller.view() == View(rto_us=2 * SECOND)


def test_chance_spreads_the_first_wait_as_between_does() -> None:
    for chance in (0, 1, 2**31, 2**32 - 1):
        cx = Cx(0, chance=chance)
        wait = Controller("rfc7252").on_start(Exchange(), 40, cx)
        assert wait.us == cx.between(2 * SECOND, 3 * SECOND)
    assert (Cx(0).between(7, 9), Cx(0, chance=2**32 - 1).between(7, 9)) == (7, 9)


def test_what_is_learnt_is_seen() -> None:
    controller, exchange = Controller("cocoa-03"), Exchange()
    controller.on_start(exchange, 40, Cx(0))
    controller.on_reply(exchange, answer(), Cx(700_000))
    assert controller.view().srtt_us == 700_000
    assert controller.view().weak_srtt_us is None


def test_plain_messages_are_held_back() -> None:
    controller = Controller("cocoa-03")
    controller.on_plain_send(100, Cx(10 * SECOND, open=0))
    told = controller.admit("plain", 100, Cx(10 * SECOND, open=0))
    assert isinstance(told, int)
    assert told > 10 * SECOND
    assert controller.admit("confirmable", 100, Cx(10 * SECOND)) == "now"


def test_several_exchanges_are_open_at_once() -> None:
    controller, exchanges = Controller("rfc7252"), [Exchange(), Exchange()]
    for number, exchange in enumerate(exchanges):
        controller.on_start(exchange, 40, Cx(number, open=number + 1))
    controller.on_end(exchanges[0], "cancelled", Cx(2, open=2))
    controller.on_reply(exchanges[1], answer(), Cx(SECOND))


def test_a_copy_goes_its_own_way() -> None:
    controller, exchange = Controller("cocoa-03"), Exchange()
    controller.on_start(exchange, 40, Cx(0))
    twin = controller.copy()
    controller.on_reply(exchange, answer(), Cx(700_000))
    assert (controller.view().srtt_us, twin.view().srtt_us) == (700_000, None)
    twin.on_end(exchange, "gave-up", Cx(SECOND))


@pytest.mark.parametrize("preset", PRESETS)
def test_bounds_hold_and_wishes_are_told(preset: str) -> None:
    controller = Controller(preset)
    assert 0 < controller.shortest_wait_us() < controller.longest_wait_us(0, 0)
    assert controller.wishes().naming in ("none", "token", "count", "flag", "timestamp")
    longest = controller.longest_wait_us(0, 0)
    assert controller.on_start(Exchange(), 40, Cx(0, chance=2**32 - 1)).us <= longest


# ----------------------------------------------------------------------------------------------- a broken contract


def started() -> tuple[Controller, Exchange]:
    controller, exchange = Controller("cocoa-03"), Exchange()
    controller.on_start(exchange, 40, Cx(SECOND))
    return controller, exchange


def started_again() -> None:
    controller, exchange = started()
    controller.on_start(exchange, 40, Cx(SECOND))


def before_it_began() -> None:
    controller, exchange = started()
    controller.on_timeout(exchange, Cx(SECOND - 1))


def ended_twice() -> None:
    controller, exchange = started()
    controller.on_reply(exchange, answer(), Cx(2 * SECOND))
    controller.on_end(exchange, "reset", Cx(2 * SECOND))


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: Controller("cocoa-03").on_timeout(Exchange(), Cx(0)), "on_timeout: .* never started: call on_start"),
        (lambda: Controller("cocoa-03").on_reply(Exchange(), answer(), Cx(0)), "on_reply: .* never started"),
        (lambda: Controller("cocoa-03").on_start(Exchange(), 40, Cx(0, open=0)), "on_start: .* none open: cx.open"),
        (started_again, "on_start: .* Exchange\\(\\) of its own"),
        (before_it_began, "on_timeout: time went back"),
        (ended_twice, "on_end: an exchange ended twice: call on_reply or on_end once"),
    ],
)
def test_a_broken_contract_raises(call: Callable[[], object], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        call()


def test_a_refused_call_changes_nothing() -> None:
    controller, exchange = started()
    twin = controller.copy()
    with pytest.raises(ValueError, match="time went back"):
        controller.on_reply(exchange, answer(), Cx(0))
    assert controller.view() == twin.view()
    controller.on_reply(exchange, answer(), Cx(2 * SECOND))
    assert controller.view() != twin.view()


# ----------------------------------------------------------------------------------------------- values


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Cx(-1), "now_us: -1 is out of range: 0 to 18446744073709551615"),
        (lambda: Cx(2**64), "now_us: 18446744073709551616 is out of range"),
        (lambda: Cx(0, chance=2**32), "chance: 4294967296 is out of range: 0 to 4294967295"),
        (lambda: Cx(0, open=70_000), "open: 70000 is out of range: 0 to 65535"),
        (lambda: Cx(0).between(3, 2), "low_us: 3 is more than high_us: 2"),
        (lambda: Cx(0).between(math.nan, 2), "low_us: nan is not a finite number"),
        (lambda: Wait(-1), "us: -1 is below zero"),
        (lambda: Wait(math.nan), "us: nan is not a finite number"),
        (lambda: Wait(math.inf), "us: inf is not a finite number"),
        (lambda: Wait(2**32), "us: 4294967296 is longer than can be told"),
        (lambda: Wait(10**400), "is longer than can be told"),
        (lambda: Wait(-(10**400)), "is below zero"),
        (lambda: Wait("2 s"), "us: '2 s' is not a number of microseconds"),  # type: ignore[arg-type]
        (lambda: Wait(True), "us: True is not a number of microseconds"),
        (lambda: Wait(5, "slwo"), r"unknown reason `slwo`: did you mean `slow`\?"),
        (lambda: Wait(5, then="give-up"), "unknown then `give-up`"),
        (lambda: View(srtt_us=-1), "srtt_us: -1 is below zero"),
        (lambda: Feedback("request", "answred", 5), r"unknown fate `answred`: did you mean `answered`\?"),
        (lambda: Feedback("request", "lost", -1), "since_us: -1 is out of range: 0 to 4294967295"),
        (lambda: Wishes("tokens"), r"unknown naming `tokens`: did you mean `token`\?"),
        (lambda: Wishes(confirmable_every=256), "confirmable_every: 256 is out of range: 0 to 255"),
        (lambda: Sample("seperate", 1, 1, 0), r"unknown kind `seperate`: did you mean `separate`\?"),
        (lambda: Sample("piggybacked", 1, 2, 1), "since_last_us: the last copy cannot be older than the first"),
        (lambda: Sample("piggybacked", 2, 1, 256), "retransmissions: 256 is out of range: 0 to 255"),
        (lambda: Sample("piggybacked", 2, 1, 1, 2, 1), "named: copy 2 was never sent: 0 to 1"),
        (lambda: Sample("piggybacked", 2, 1, 1, 1), "since_named_us: say how long ago copy 1 left"),
        (lambda: Sample("piggybacked", 2, 1, 1, "last"), "named: 'last' is neither the number of a copy nor 'further'"),
        (lambda: Sample("piggybacked", 2, 2, 0, "further"), "named: 'further' makes no sense"),
        (lambda: Sample("piggybacked", 2, 1, 1, None, 1), "since_named_us: the reply names no copy"),
        (lambda: Controller("rfc7252").admit("plian", 4, Cx(0)), r"unknown kind `plian`: did you mean `plain`\?"),
        (lambda: Controller("rfc7252").on_start(Exchange(), 65_536, Cx(0)), "length: 65536 is out of range"),
        (lambda: Controller("rfc7252").on_end(Exchange(), "gone", Cx(0)), "unknown why `gone`"),
        (lambda: Controller("calm").recall(-1), "base_rtt_us: -1 is below zero"),
        (lambda: Controller("calm").recall(2**32), "base_rtt_us: 4294967296 is longer than can be told"),
        (lambda: Controller("rfc7252").longest_wait_us(256, 0), "copy: 256 is out of range: 0 to 255"),
    ],
)
def test_bad_values_are_refused_in_one_line(make: Callable[[], object], told: str) -> None:
    with pytest.raises(ValueError, match=told) as refused:
        make()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("value", [1.5, "1", None, True])
def test_what_is_no_whole_number_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match=r"now_us: .* is not a whole number"):
        Cx(value)  # type: ignore[arg-type]


def test_lengths_are_rounded_to_the_nearest_microsecond() -> None:
    assert [Wait(us).us for us in (1.4, 1.5, 2.0, 4_294_967_295)] == [1, 2, 2, 4_294_967_295]


@pytest.mark.parametrize(
    ("sample", "grade", "exact_us", "named", "since_named_us"),
    [
        (Sample("piggybacked", 9, 9, 0), "exact", 9, None, None),
        (Sample("empty-ack", 9, 2, 1), "ambiguous", None, None, None),
        (Sample("piggybacked", 9, 2, 1, 1, 2), "exact", 2, 1, 2),
        (Sample("piggybacked", 9, 2, 1, "further"), "exact", 2, 1, 2),
        (Sample("piggybacked", 9, 2, 2, "further"), "ambiguous", None, "further", None),
        (Sample("piggybacked", 9, 2, 2, 1, 5), "echoed", None, 1, 5),
        (Sample("separate", 9, 9, 0), "none", None, None, None),
    ],
)
def test_samples_have_grades(
    sample: Sample, grade: str, exact_us: int | None, named: int | str | None, since_named_us: int | None
) -> None:
    assert (sample.grade, sample.exact_us) == (grade, exact_us)
    assert (sample.named, sample.since_named_us) == (named, since_named_us)


def test_values_are_equal_by_their_content() -> None:
    assert Wait(5, "slow") == Wait(5.0, "slow") != Wait(5)
    assert len({Wait(5), Wait(5), Wishes("token"), Wishes("token", 0)}) == 2
    assert View(rto_us=5) != View()


def test_values_show_themselves() -> None:
    shown = [repr(value) for value in (Cx(1), Wait(2), View(rto_us=3), Wishes("token", 4), Exchange(), answer())]
    assert shown == [
        "Cx(1, chance=0, open=1, waiting=0)",
        "Wait(2, 'initial', 'retransmit')",
        "View(rto_us=3)",
        "Wishes('token', 4)",
        "<Exchange started at 0 us, wait 0 us, 0 retransmissions>",
        "<Sample piggybacked, exact: 700000 us after the first copy, 700000 us after the last, 0 retransmissions>",
    ]
    assert repr(Controller("rfc7252")) == "<Controller rfc7252>"
