"""Cells drawn from wide ranges, so that no candidate can be made for a few paths that are known beforehand.

A cell is a pure function of split, family and number. The splits `training` and `held-out` have no cell in common.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle
from random import Random
from typing import Any

#: What is looked at while a controller is made, and what it is judged by afterwards, once.
SPLITS = ("training", "held-out")

#: A queue that no cell here fills.
ENDLESS = "1410000 B"
Tree = dict[str, Any]


@dataclass(frozen=True)
class Drawn:
    """One cell: a scenario whose first group of clients is the candidate's."""

    name: str
    family: str
    scenario: Tree
    #: Clients of the first group, which say how many runs are worth while.
    clients: int


def cells(split: str, count: int, families: Sequence[str] = ()) -> list[Drawn]:
    """So many cells of a split, of these families in turn, or of the `USUAL`: every second one is `one-cell`."""
    turns = cycle(families or USUAL)
    seen: dict[str, int] = {}
    found = []
    for _ in range(count):
        family = next(turns)
        number = seen[family] = seen.get(family, 0) + 1
        draws = Draws(f"millpond arena {split} {family} {number}")
        found.append(FAMILIES[family](f"{family}-{number}", draws))
    return found


class Draws(Random):
    """Draws numbers; the same for the same words in every version of Python."""

    def log(self, low: float, high: float) -> float:
        """Between the two, every doubling as likely as any other."""
        return float(low * (high / low) ** self.random())

    def one_of(self, *choices: Any) -> Any:
        """One of these."""
        return choices[int(self.random() * len(choices))]

    def chance(self, share: float) -> bool:
        """True so often."""
        return self.random() < share


# ----------------------------------------------------------------------------------------------- families


def one_cell(name: str, draws: Draws, family: str = "one-cell", most: float = 1000.99) -> Drawn:
    """Clients of one kind behind one queue each way, with losses, jitter, and either kind of server."""
    clients = int(draws.log(1, most))
    down = draws.log(2e3, 2e6)
    up = down * draws.one_of(0.25, 0.5, 1.0, 1.0, 2.0)
    round_trip, there = draws.log(20, 5000), 0.3 + 0.4 * draws.random()
    queue = draws.one_of(
        f"{int(draws.log(2, 20.99))} packets",
        f"{int(draws.log(1000, 30000))} B",
        f"{int(draws.log(2, 5.99))} packets",
        ENDLESS,
    )
    losses = [_loss(draws), _loss(draws)]
    jitter = None if draws.chance(0.6) else (int(draws.log(10, 1000)), draws.one_of("free", "free", "preserved"))
    request = draws.one_of(0, 0, 0, int(10 + 190 * draws.random()))
    directions = zip(("uplink", "downlink"), (up, down), (there, 1 - there), losses, strict=True)
    return Drawn(
        name,
        family,
        {
            "path": {
                name: _link(rate, round_trip * share, queue, loss, jitter) for name, rate, share, loss in directions
            },
            "clients": [
                {
                    "count": clients,
                    "controller": "rfc7252",
                    "workload": draws.one_of("continuous", "fresh-batches"),
                    "exchanges": int(10 + 40 * draws.random()),
                    "start_spread": draws.one_of("0 s", "1 s", "10 s", "60 s"),
                    "max_retransmit": draws.one_of(4, 4, 20),
                    "token_length": 2,
                    **({"request_payload": f"{request} B"} if request else {}),
                }
            ],
            "server": {
                "payload": f"{int(10 + 190 * draws.random())} B",
                "duplicates": draws.one_of("stored", "afresh"),
                "host_time": draws.one_of("0 ms", "0 ms", f"{int(draws.log(1, 999))} ms"),
            },
            "run": {"until": "24 h"},
        },
        clients,
    )


def neighbours(name: str, draws: Draws) -> Drawn:
    """The same, and half of the clients are the standard's."""
    drawn = one_cell(name, draws, "neighbours", 500.99)
    mine = drawn.scenario["clients"][0]
    mine["count"] = max(1, mine["count"] // 2)
    drawn.scenario["clients"].append({**mine, "controller": "rfc7252"})
    return Drawn(name, "neighbours", drawn.scenario, mine["count"])


def changing(name: str, draws: Draws) -> Drawn:
    """The same, and the path's rate changes, or it stands still for ten seconds to a minute, in the middle."""
    drawn = one_cell(name, draws, "changing", 200.99)
    at = f"{int(draws.log(5, 100))} s"
    if draws.chance(0.5):
        down = float(drawn.scenario["path"]["downlink"]["rate"].split()[0])
        rate = max(1000, int(down * draws.log(0.1, 10)))
        event = {"kind": "rate", "at": at, "link": "downlink", "rate": f"{rate} bit/s"}
    else:
        event = {"kind": "outage", "at": at, "for": f"{int(draws.log(10, 60.99))} s"}
    drawn.scenario["timeline"] = [event]
    return drawn


def thinking(name: str, draws: Draws) -> Drawn:
    """The same, and clients pause between requests, so that their peers are heard rarely."""
    drawn = one_cell(name, draws, "thinking", 500.99)
    think = f"{int(draws.log(500, 60_000))} ms"
    drawn.scenario["clients"][0] |= {"workload": {"kind": "continuous", "think": think}, "exchanges": 20}
    return drawn


def blocks(name: str, draws: Draws) -> Drawn:
    """A few clients fetch one body each, block by block."""
    drawn = one_cell(name, draws, "blocks", 20.99)
    mine = drawn.scenario["clients"][0]
    mine.pop("request_payload", None)
    mine |= {"exchanges": 1, "workload": "continuous", "max_retransmit": 20}
    mine["transfer"] = {"kind": "blocks", "size": draws.one_of("64 B", "256 B", "512 B")}
    drawn.scenario["server"]["payload"] = f"{int(draws.log(2000, 40_000))} B"
    for way in drawn.scenario["path"].values():
        if way["queue"].endswith(" B"):
            way["queue"] = f"{max(3000, int(way['queue'].split()[0]))} B"
    return drawn


def bursts(name: str, draws: Draws) -> Drawn:
    """The same, and others fetch theirs in bursts of blocks that nobody acknowledges (RFC 9177)."""
    drawn = blocks(name, draws)
    mine = drawn.scenario["clients"][0]
    drawn.scenario["clients"].append(
        {
            **mine,
            "controller": "rfc7252",
            "count": int(draws.log(1, 10.99)),
            "transfer": {**mine["transfer"], "kind": "bursts", "paced": draws.chance(0.5)},
        }
    )
    return Drawn(name, "bursts", drawn.scenario, drawn.clients)


def windows(name: str, draws: Draws) -> Drawn:
    """As one cell, and each client has several exchanges open at once, however soon they are answered."""
    drawn = one_cell(name, draws, "windows", 200.99)
    mine = drawn.scenario["clients"][0]
    mine |= {"nstart": draws.one_of(2, 3, 4, 8), "workload": {"kind": "backlog", "requests": mine.pop("exchanges")}}
    return drawn


def mesh(name: str, draws: Draws) -> Drawn:
    """A grid of radios that hand packets on to each other and get in each other's way."""
    size = draws.one_of(4, 5, 6)
    worst = 0.6 + 0.4 * draws.random()
    corner = f"{size - 1},{size - 1}"
    scenario: Tree = {
        "mesh": {
            "topology": {"kind": "grid", "columns": size, "rows": size},
            "border_router": "1,1",
            "sinks": {"primary": {"nodes": [corner]}},
            "delivery": [round(worst, 3), 1.0],
        },
        "clients": [
            {
                "controller": "rfc7252",
                "workload": {"kind": "continuous", "think": f"{int(draws.log(1, 5000))} ms"},
                "exchanges": int(10 + 20 * draws.random()),
                "request_payload": f"{int(10 + 30 * draws.random())} B",
                "token_length": 2,
            }
        ],
        "server": {"payload": f"{int(40 * draws.random())} B", "duplicates": draws.one_of("stored", "afresh")},
        "run": {"until": "24 h"},
    }
    return Drawn(name, "mesh", scenario, size * size - 2)


FAMILIES: dict[str, Callable[[str, Draws], Drawn]] = {
    "one-cell": one_cell,
    "neighbours": neighbours,
    "changing": changing,
    "thinking": thinking,
    "blocks": blocks,
    "mesh": mesh,
    "windows": windows,
    "bursts": bursts,
}
#: What is drawn in turn unless families are named. The others came later, and cells keep their numbers.
USUAL = tuple(
    family for other in ("neighbours", "changing", "thinking", "blocks", "mesh") for family in ("one-cell", other)
)


# ----------------------------------------------------------------------------------------------- helpers


def _link(rate: float, delay: float, queue: str, loss: Tree | None, jitter: tuple[int, str] | None) -> Tree:
    made: Tree = {"rate": f"{int(rate)} bit/s", "delay": f"{int(delay)} ms", "queue": queue}
    if loss is not None:
        made["loss"] = loss
    if jitter is not None:
        made["jitter"] = {"from": "0 ms", "to": f"{jitter[0]} ms", "order": jitter[1]}
    return made


def _loss(draws: Draws) -> Tree | None:
    kind = draws.random()
    if kind < 0.4:
        return None
    if kind < 0.7:
        return {"kind": "bernoulli", "rate": round(0.2 * draws.random(), 3)}
    good = draws.log(100, 5000)
    return {
        "kind": "markov",
        "good_loss": round(0.03 * draws.random(), 3),
        "bad_loss": round(0.3 + 0.5 * draws.random(), 2),
        "good_dwell": f"{good:.0f} ms",
        "bad_dwell": f"{max(10.0, good * (0.05 + 0.25 * draws.random())):.0f} ms",
    }
