"""What the command line changes of a scenario."""

from __future__ import annotations

import pytest

from millpond.errors import UsageError
from millpond.plan import overrides


def test_values_are_toml_or_else_texts() -> None:
    told = overrides.places(["a.b=20 kB", "c=5", 'd="5"', 'e={ kind = "bernoulli", rate = 0.1 }', "f=x=y"])
    assert told == {"a.b": "20 kB", "c": 5, "d": "5", "e": {"kind": "bernoulli", "rate": 0.1}, "f": "x=y"}


@pytest.mark.parametrize(
    ("text", "controller"),
    [
        ("rfc7252", "rfc7252"),
        ("rfc7252?ack-timeout=3 s", {"preset": "rfc7252", "ack-timeout": "3 s"}),
        ("mine.py:Mine?gain=4&cap=60 s", {"own": "mine.py:Mine", "gain": 4, "cap": "60 s"}),
        ('{ own = "mine.py:Mine", gain = 4 }', {"own": "mine.py:Mine", "gain": 4}),
    ],
)
def test_controllers_have_settings(text: str, controller: object) -> None:
    assert overrides.controller(text) == controller
    assert overrides.controller(overrides.written(overrides.controller(text))) == controller


def test_commas_part_only_outside_of_braces_and_quotes() -> None:
    text = '{preset="rfc7252", ack-timeout="20 s, or so"},cocoa-03, mine.py:Mine?a=[1,2]'
    assert overrides.listed(text, "--controller") == [
        '{preset="rfc7252", ack-timeout="20 s, or so"}',
        "cocoa-03",
        "mine.py:Mine?a=[1,2]",
    ]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["queue"], "--set: 'queue' is no PLACE=VALUE"),
        (["queue="], "--set: 'queue=' is no PLACE=VALUE"),
        (["a=1", "a=2"], "--set: a is set twice"),
        (["a={ x = "], "--set a: { x =: cannot be read as TOML"),
    ],
)
def test_what_cannot_be_read_is_blamed_on_the_flag(words: list[str], told: str) -> None:
    with pytest.raises(UsageError) as caught:
        overrides.places(words)
    assert str(caught.value).startswith(told)


@pytest.mark.parametrize("text", ["rfc7252,", "{preset = 'a'", "a,,b"])
def test_lists_that_are_cut_short_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--controllers: "):
        overrides.listed(text, "--controllers")


def test_a_table_names_a_controller() -> None:
    with pytest.raises(UsageError, match=r"--controller: .*names no controller"):
        overrides.controller("{ gain = 4 }")
