"""What stands twice in a list that is handed over is refused, as it is in a plan."""

from __future__ import annotations

from typing import Any

import pytest

from millpond import api, cli
from millpond.errors import UsageError

SCENARIO: dict[str, Any] = {
    "path": "nbiot-anrw18",
    "clients": [{"count": 2, "controller": "rfc7252", "exchanges": 1}],
}
PLAN: dict[str, Any] = {
    "name": "twice",
    "scenario": SCENARIO,
    "replications": 1,
    "matrix": {"algorithm": ["rfc7252", "cocoa-03"], "clients[0].count": [1, 2], "path.uplink.queue": ["2 kB", "4 kB"]},
}


@pytest.mark.parametrize(
    ("chosen", "told"),
    [
        (
            {"factors": {"clients[0].count": [1, 2, 1]}},
            'factors["clients[0].count"]: 1 stands there twice: leave one out',
        ),
        ({"factors": {"clients[0].count": [3, 3.0]}}, 'factors["clients[0].count"]: 3.0 stands there twice'),
        ({"factors": {"path.uplink.queue": ["2 kB", "2 kB"]}}, 'factors["path.uplink.queue"]: 2 kB stands there twice'),
        ({"controllers": ["cocoa-03", "cocoa-03"]}, "controllers: cocoa-03 stands there twice: leave one out"),
        ({"controllers": ["fasor", "fasor"]}, "controllers: fasor stands there twice"),
    ],
)
def test_a_value_that_stands_twice_is_refused(chosen: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError) as refused:
        api.sweep(PLAN, out=None, report=False, **chosen)
    assert str(refused.value).startswith(told)


def test_two_names_of_one_algorithm_are_one() -> None:
    with pytest.raises(UsageError, match="controllers: rfc7252 is default, which stands there already: leave one out"):
        api.reproduce("anrw18", controllers=["default", "rfc7252"], quick=True)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--factor", "clients=1,1"], "--factor clients: 1 stands there twice: leave one out"),
        (["--factor", "clients=1", "--factor", "clients=1"], "--factor clients: 1 stands there twice"),
        (["--clients", "1,1"], "--factor clients: 1 stands there twice"),
        (["--clients", "1", "--factor", "clients=2"], "--clients: short for --factor clients, which is there too"),
        (["--buffers", "2500", "--factor", "buffer_bytes=2500"], "--buffers: short for --factor buffer_bytes"),
    ],
)
def test_flags_say_it_in_one_line(capsys: pytest.CaptureFixture[str], words: list[str], told: str) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["reproduce", "anrw18", "--quick", "--no-report", *words])
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith(f"millpond: {told}")
