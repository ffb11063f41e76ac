"""Scenarios that are drawn, to develop the diagnosis with and to judge it by: two sets that share no scenario.

Each is a function of its set and its number. Rates, round trips, buffers, losses and numbers of clients cover what
narrow cells have; the workload is one of `KINDS`.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np

Set = Literal["development", "judged"]
Kind = Literal["closed", "think", "periodic", "aligned", "power-cut", "power-cut-several"]

KINDS: tuple[Kind, ...] = get_args(Kind)
SETS: tuple[Set, ...] = get_args(Set)

#: bit/s, s, bytes, clients; all drawn uniformly over their logarithm.
RATE, ROUND_TRIP, BUFFER, CLIENTS = (10e3, 300e3), (0.1, 4.0), (2e3, 1.4e6), (20, 400)
#: Probability of a radio loss, for each packet of a direction.
LOSSES = (0.0, 0.0, 0.0, 0.01, 0.02, 0.05, 0.1)
PAYLOADS, ANSWERS = (0, 20, 40, 60, 100), (10, 60, 120)
#: Seconds, and retransmissions; the defaults of RFC 7252 are what most devices have.
ACK_TIMEOUTS, MAX_RETRANSMITS = (2, 2, 2, 2, 3, 5), (4, 4, 4, 3)
#: Requests of all clients together, about: so that a scenario takes a second or so.
REQUESTS = 6000
#: A run of a power cut ends after so long.
AFTER_A_CUT_S = 1200
#: Everyday reports beside a power cut.
EVERYDAY_S = 600
#: Headers of IPv4, UDP and CoAP with token, path and marker, about.
AROUND = 40


def kind(number: int) -> Kind:
    """The workload of a scenario."""
    return KINDS[number % len(KINDS)]


def scenario(chosen: Set, number: int) -> dict[str, Any]:
    """A scenario of a set, as a tree of keys.

    Args:
        chosen: The set.
        number: Which of its scenarios, from 0 on.
    """
    chance = np.random.default_rng([SETS.index(chosen), number])

    def between(low: float, high: float) -> float:
        return float(np.exp(chance.uniform(np.log(low), np.log(high))))

    def one_of(values: tuple[Any, ...]) -> Any:
        return values[int(chance.integers(len(values)))]

    rates, buffers = [between(*RATE) for _ in range(2)], [between(*BUFFER) for _ in range(2)]
    losses, round_trip, share = [one_of(LOSSES) for _ in range(2)], between(*ROUND_TRIP), chance.uniform(0.3, 0.7)
    delays = (round_trip * share, round_trip * (1 - share))
    payload, answer = one_of(PAYLOADS), one_of(ANSWERS)
    clients, loaded = round(between(*CLIENTS)), between(0.05, 1.3)
    # the time for which a request and its answer keep the busier direction busy
    busy = max(8 * (size + AROUND) / rate for size, rate in zip((payload, answer), rates, strict=True))
    told = kind(number)
    return {
        "title": f"{chosen} {number}: {told}",
        "path": {
            link: {
                "rate": f"{round(rates[at])} bit/s",
                "delay": f"{round(1e3 * delays[at])} ms",
                "queue": f"{round(buffers[at])} B",
                "loss": {"kind": "bernoulli", "rate": losses[at]} if losses[at] else "none",
                "loss_of": "each-client",
            }
            for at, link in enumerate(("uplink", "downlink"))
        },
        "clients": [
            {
                "count": clients,
                "controller": {"preset": "rfc7252", "ack-timeout": f"{one_of(ACK_TIMEOUTS)} s"},
                "max_retransmit": one_of(MAX_RETRANSMITS),
                "token_length": 2,
                "request_payload": f"{payload} B",
                **_asking(told, clients, clients * busy / loaded, one_of((5, 10, 20, 50)), chance),
            }
        ],
        "server": {"payload": f"{answer} B"},
        "run": {"for": f"{AFTER_A_CUT_S} s"} if told.startswith("power-cut") else _until(told, clients * busy / loaded),
    }


# ----------------------------------------------------------------------------------------------- helpers


def _asking(told: Kind, clients: int, round_s: float, exchanges: int, chance: np.random.Generator) -> dict[str, Any]:
    """What clients do, where one request of each loads the path as drawn if it is made in `round_s`."""
    few = min(exchanges, max(3, REQUESTS // clients))
    if told == "closed":
        return {"exchanges": few, "workload": "continuous", "start_spread": f"{chance.integers(2) * 20} s"}
    if told == "think":
        think = {"kind": "exponential", "mean": f"{max(1, round(round_s))} s"}
        return {
            "exchanges": few,
            "workload": {"kind": "continuous", "think": think},
            "start_spread": f"{max(1, round(round_s))} s",
        }
    if told == "periodic":
        return {"workload": {"kind": "periodic", "period": f"{_period_s(round_s)} s"}}
    if told == "aligned":
        period = _period_s(round_s)
        return {
            "workload": {
                "kind": "periodic",
                "period": f"{period} s",
                "aligned": True,
                "jitter": f"{int(chance.integers(1, 6))} s",
                "phase": "3 s",
            }
        }
    several = {"requests": 3} if told == "power-cut-several" else {}
    back = {"kind": "beta", "over": "10 s", "alpha": 3, "beta": 4}
    return {
        "workload": [
            {"kind": "after-event", "arrival": back, **several},
            {"kind": "periodic", "period": f"{EVERYDAY_S} s"},
        ]
    }


def _period_s(round_s: float) -> int:
    return min(max(10, round(round_s)), 300)


def _until(told: Kind, round_s: float) -> dict[str, str]:
    # a loop ends by itself; reports go on for a dozen periods
    return {"until": "3 h"} if told in ("closed", "think") else {"for": f"{12 * _period_s(round_s)} s"}
