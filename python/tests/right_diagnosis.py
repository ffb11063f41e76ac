"""A diagnosis that is right in everything: made of the truth of a run instead of by the engine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from manual import drawn
from millpond.diagnose import score, truth
from millpond.diagnose.analysis import Diagnosis
from millpond.diagnose.ends import Address, End, packets
from millpond.diagnose.truth import Truth
from millpond.plan import scenario as scenarios
from millpond.plan.values import in_units
from millpond.run import capture

SEED = 1


def of_drawn(number: int, end: End = "server") -> tuple[Diagnosis, Truth]:
    """The diagnosis of a drawn scenario, and the truth of its run."""
    return of_scenario(drawn.scenario("development", number), end)


def of_scenario(tree: Mapping[str, Any], end: End = "server", seed: int = SEED) -> tuple[Diagnosis, Truth]:
    """The same of any scenario."""
    built = scenarios.build(tree, "tree")
    return of_run(capture.of_run(built, seed), scenarios.in_full(built), end)


def of_run(content: bytes, scenario: Mapping[str, Any], end: End) -> tuple[Diagnosis, Truth]:
    """The same of a capture."""
    true = truth.of(content, scenario)
    asked: dict[tuple[Address, int], int] = {}
    answered: dict[tuple[Address, int], int] = {}
    times: defaultdict[tuple[Address, int], list[int]] = defaultdict(list)
    for packet in packets(content):
        if packet.is_request:
            asked[packet.source, packet.message_id] = packet.size
        else:
            answered[packet.target, packet.message_id] = packet.size
            if packet.end == end:
                times[packet.target, packet.message_id].append(packet.at_us)
    rows: list[dict[str, Any]] = []
    for exchange in true.exchanges:
        key = (exchange.device, exchange.message_id)
        answers = [at for at in times[key] if exchange.sent[0] <= at < exchange.sent[0] + 247_000_000]
        for number, (sent, at) in enumerate(exchange.at(end)):
            answer = answers[number] if number < len(answers) else None
            rows.append(
                {
                    "peer": truth.peer(exchange.device),
                    "server": "10.255.255.254:5683",
                    "message_id": exchange.message_id,
                    "token": exchange.token.hex(),
                    "transmission": number + 1,
                    "t_us": at,
                    "verdict": "first" if number == 0 else exchange.label(sent),
                    "confidence": 1.0,
                    "bytes": asked[key],
                    "payload": int(in_units(scenario["clients"][0]["request_payload"])),
                    "answered_us": answer,
                    "answer_bytes": answered.get(key),
                    "answer_payload": int(in_units(scenario["server"]["payload"])),
                }
            )
    rows.sort(key=lambda row: row["t_us"])
    return Diagnosis(_figures(true, rows, end), pa.Table.from_pylist(rows), "It is right.\n"), true


def _figures(true: Truth, rows: list[dict[str, Any]], end: End) -> dict[str, Any]:
    figures = true.figures

    def given(place: str) -> dict[str, Any]:
        value = figures.get(place)
        return {"value": value, "grade": "unknown" if value is None else "exact", "because": "the truth"}

    again = [row["verdict"] for row in rows]
    links = ("uplink", "downlink")
    keys = ("rate_bps", "buffer_bytes", "loss")
    timers = ("ack_timeout_s", "random_factor", "backoff", "max_retransmit")
    return {
        "verdict": score.verdict(true),
        "side": end,
        "devices": true.devices,
        "transmissions": len(rows),
        "retransmissions": {word: again.count(word) for word in ("spurious", "needed", "unknown")},
        "goodput_ratio": true.goodput_ratio,
        "path": {
            **{link: {key: given(f"path.{link}.{key}") for key in keys} for link in links},
            "base_rtt_s": given("path.base_rtt_s"),
        },
        "timers": {key: given(f"timers.{key}") for key in timers},
        "nstart": given("nstart"),
        "period_s": given("period_s"),
        "doubts": [],
    }
