"""Limits and times that pages name, read from the lines of the code that set them."""

from __future__ import annotations

import re
from pathlib import Path

CRATES = Path(__file__).resolve().parents[2] / "crates"

_ENDPOINT = "coap/src/endpoint/config.rs"
_BODIES = "coap/src/transfer/config.rs"
_BURSTS = "coap/src/block/robust/mod.rs"
_ANSWERED = "coap/src/transfer/unvalidated.rs"
_SERVER = "live/src/server/builder.rs"
_KNOWN = "live/src/server/reachability.rs"
_STREAMS = "live/src/server/dispatcher/streams.rs"
_SERVED = "live/src/server/metrics.rs"
_PORTS = "live/src/socket/socket_factory.rs"
_TCP = "live/src/tcp/serving.rs"

#: Under which name pages refer to each, the file that sets it, and what it is called there.
LIMITS = {
    "nstart": (_ENDPOINT, "nstart"),
    "max-retransmit": (_ENDPOINT, "max_retransmit"),
    "probing-rate": (_ENDPOINT, "probing_rate"),
    "peers": (_ENDPOINT, "peers"),
    "duplicates": (_ENDPOINT, "duplicate_bytes"),
    "datagram": (_ENDPOINT, "received"),
    "endpoint": (_BODIES, "bytes"),
    "observers": (_BODIES, "observers"),
    "observers.peer": (_BODIES, "observers_per_peer"),
    "bodies.peer": (_BODIES, "bodies_per_peer"),
    "bursts": (_BODIES, "bursts"),
    "kept": (_BODIES, "cached"),
    "bodies": ("coap/src/transfer/stack.rs", "MOST_BODIES"),
    "group-responses": ("coap/src/endpoint/tables/delayed_responses.rs", "MOST"),
    "leisure": ("coap/src/endpoint/groups.rs", "DEFAULT_LEISURE"),
    "requests": ("live/src/tcp/client.rs", "MOST_REQUESTS"),
    "give-up": ("live/src/client/request.rs", "give_up_after"),
    "body.program": ("cli/src/request.rs", "LONGEST_BODY"),
    "load": ("cli/src/load/mod.rs", "USUAL_DURATION"),
    "relay.clients": ("emulate/src/relay.rs", "MOST_CLIENTS"),
    "burst.set": (_BURSTS, "set"),
    "burst.pause": (_BURSTS, "pause"),
    "burst.patience": (_BURSTS, "patience"),
    "burst.repeats": (_BURSTS, "repeats"),
    "burst.lifetime": (_BURSTS, "lifetime"),
    "unvalidated.bytes": (_ANSWERED, "ALWAYS"),
    "validated.for": (_KNOWN, "PROVED_FOR"),
    "validated": (_KNOWN, "MOST_PROVED"),
    "handlers": (_SERVER, "most_running"),
    "handlers.peer": (_SERVER, "most_running_per_peer"),
    "handling": (_SERVER, "handling_time"),
    "ack-delay": (_SERVER, "ack_delay"),
    "body": (_SERVER, "longest_body"),
    "connections": (_SERVER, "most_connections"),
    "series": (_SERVER, "METRICS_PEERS"),
    "responses": ("live/src/server/starting.rs", "MOST_HELD"),
    "streams": (_STREAMS, "MOST_OVER"),
    "streams.bytes": (_STREAMS, "MOST_BYTES_OVER"),
    "fetches": (_SERVED, "MOST"),
    "fetches.for": (_SERVED, "PATIENCE"),
    "sessions": ("live/src/dtls/limits.rs", "established"),
    "handshakes": ("live/src/dtls/limits.rs", "handshaking"),
    "handshakes.for": ("live/src/tcp/handshakes.rs", "PATIENCE"),
    "settings.for": ("live/src/tcp/asking.rs", "SETTINGS_WAIT"),
    "unasked.for": (_TCP, "IDLE_UNASKED"),
    "silent.for": (_TCP, "IDLE"),
    "sockets": ("live/src/client/builder.rs", "most_sockets"),
    "ids.reserve": (_PORTS, "RESERVE"),
    "port.idle": (_PORTS, "IDLE"),
}

_VALUE = r"([\d_]+(?: << \d+)?|(?:Duration|Span)::from_(?:secs|millis)\([\d_]+\))[,;\s]"
#: On a line of its own; within one.
_SET = (r"^ *(?:pub(?:\(\w+\))? )?(?:const )?{name}: (?:\w+ = )?", r"\b{name}: ")
#: Settings that nobody gets who does not ask for them.
_SMALL = re.compile(r"^( *)pub const SMALL: Self = Self \{\n.*?^\1\};$", re.DOTALL | re.MULTILINE)
_TIME = re.compile(r"\w+::from_(secs|millis)\(([\d_]+)\)")


def limits() -> dict[str, tuple[str, ...]]:
    """The spellings of each limit."""
    return {f"limit.{name}": _spelt(name, _written(*place)) for name, place in LIMITS.items()}


def _written(file: str, name: str) -> str:
    """What the code sets it to. Raises `ValueError` if it sets it nowhere, or to several values."""
    text = (CRATES / file).read_text(encoding="utf-8").partition("#[cfg(test)]")[0]
    text = _SMALL.sub("", text)
    for line in _SET:
        values = set(re.findall(line.format(name=name) + _VALUE, text, re.MULTILINE))
        if len(values) == 1:
            return str(values.pop())
    raise ValueError(f"crates/{file}: {name}: no value, or several")


def _spelt(name: str, written: str) -> tuple[str, ...]:
    if (time := _TIME.fullmatch(written)) is not None:
        unit, number = time[1], int(time[2])
        return _times(number) if unit == "secs" else (f"{number} ms",)
    digits, _, shift = written.partition(" << ")
    value = int(digits) << int(shift or 0)
    if name.endswith(".for"):
        return _times(value)
    return (f"{value >> 20} MiB",) if value >= 1 << 20 else (f"{value:,}",)


def _times(seconds: int) -> tuple[str, ...]:
    told = [f"{seconds} s"]
    if seconds == 60:
        told.append("a minute")
    elif seconds % 3600 == 0:
        told.append(f"{seconds // 3600} h")
    elif seconds % 60 == 0:
        told.append(f"{seconds // 60} minutes")
    return tuple(told)
