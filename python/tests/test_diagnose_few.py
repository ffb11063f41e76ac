"""What the diagnosis says from the server's side of a few devices that ask a few times, by seed."""

from __future__ import annotations

from collections import Counter

import pytest
from told_beside_truth import path, told

SEEDS = 60
#: Delay of each direction, share lost in each, devices, and how many retransmissions may be told wrong: a share of all,
#: and a number in one capture. The longer round trip is longer than a first timer: most retransmissions are spurious.
CASES = [
    ("100 ms", 0.1, 4, 0.0, 0),
    ("100 ms", 0.1, 20, 0.0, 0),
    ("1700 ms", 0.0, 4, 0.0, 0),
    ("1700 ms", 0.1, 4, 0.03, 3),
    ("1700 ms", 0.1, 20, 0.03, 10),
]


@pytest.mark.parametrize(("delay", "loss", "devices", "of_all", "of_one"), CASES)
def test_few_requests_are_told_as_what_they_were(
    delay: str, loss: float, devices: int, of_all: float, of_one: int
) -> None:
    each = [told_of(delay, loss, devices, seed) for seed in range(SEEDS)]
    retransmissions = sum(one.total() for one in each)
    assert retransmissions > 100
    assert sum(one["wrong"] for one in each) <= of_all * retransmissions
    assert max(one["wrong"] for one in each) <= of_one
    assert sum(one["unknown"] for one in each) <= 0.03 * retransmissions


def test_nothing_is_told_of_fewer_requests_than_can_be_compared() -> None:
    assert all(told_of("1700 ms", 0.1, 1, seed)["wrong"] == 0 for seed in range(SEEDS))


def told_of(delay: str, loss: float, devices: int, seed: int) -> Counter[str]:
    """How many retransmissions are told right, wrong, and not at all."""
    asking = {"count": devices, "exchanges": 8, "controller": "rfc7252", "start_spread": "100 ms"}
    tree = {"path": path("60 kbit/s", delay, "100 kB", loss), "clients": [asking], "run": {"until": "3 h"}}
    return told(tree, seed, "server")[1]
