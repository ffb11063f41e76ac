"""A path, a scenario and a fleet that repeat a capture, each figure with its grade in a comment."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from millpond.diagnose import traffic
from millpond.diagnose.analysis import Diagnosis, Given
from millpond.diagnose.traffic import Traffic
from millpond.errors import MillpondError, UsageError
from millpond.results.store import write_text
from millpond.show import labels

PATH, SCENARIO, FLEET = "path.toml", "scenario.toml", "fleet.toml"
#: All that a folder may hold already.
FILES = (PATH, SCENARIO, FLEET)
LINKS = ("uplink", "downlink")

#: A rate or buffer of which only a lower bound is known was never what limited anything. It is written so many times as
#: large, so that it does not begin to.
ROOM = 4.0
#: Where nothing at all is visible: faster than anything narrow, and no loss.
FAST_BPS, DEEP_B = 1e6, 1e6
#: The first wait of RFC 7252 and its spread, where no timer is visible.
ACK_TIMEOUT_S, RANDOM_FACTOR, BACKOFF, MAX_RETRANSMIT = 2.0, 1.5, 2.0, 4
#: A queue can make a second gap as short as the first; no timer of a scenario has a lower factor.
LEAST_BACKOFF = 1.001
#: A round trip where none is visible.
BASE_RTT_S = 0.2
#: When devices are back whose queue hides it: 3GPP TR 37.868 §6.1.1, model 2.
SYNCHRONISED = '{ kind = "beta", over = "10 s", alpha = 3, beta = 4 }'
#: Of longer loops a fleet's devices do so much after an event.
MOST_READINGS = 100
#: Headers of IP and UDP.
IPV4, IPV6 = 28, 48
#: Header of CoAP and marker of the payload.
_COAP, _MARKER = 4, 1
#: The option Content-Format of an answer, as a scenario has it.
_FORMAT = 1
_LONGEST_SEGMENT = 12


@dataclass(frozen=True)
class Written:
    """The three files as text, by their names."""

    texts: dict[str, str]
    traffic: Traffic


def of(found: Diagnosis, source: str) -> Written:
    """What repeats a capture.

    Args:
        found: Its diagnosis.
        source: What the capture is called.

    Raises:
        MillpondError: one line, if there is too little in it.
    """
    if found.requests.num_rows < 2:
        raise MillpondError(
            f"{source}: {labels.counted(found.requests.num_rows, 'request', 'requests')}: too few to repeat anything"
        )
    told = traffic.of(found)
    # text of a file name goes into comments and strings of TOML
    source = "".join(letter for letter in source if letter.isprintable() and letter not in '"\\')
    texts = {
        PATH: _path(found, told, source),
        SCENARIO: _scenario(found, told, source),
        FLEET: _fleet(found, told, source),
    }
    return Written(texts, told)


def check(folder: Path) -> None:
    """Raises `UsageError` if a folder holds something else, or `MillpondError` if nothing can be written there."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--write: {folder} is a file: name a folder")
    if folder.is_dir() and {file.name for file in folder.iterdir()} - set(FILES):
        raise UsageError(f"--write: {folder} holds something else: name another folder")
    there = next(above for above in (folder, *folder.absolute().parents) if above.exists())
    if not os.access(there, os.W_OK | os.X_OK):
        raise MillpondError(f"{folder}: cannot be written ({there} is not for writing): choose another --write")


def write(written: Written, folder: Path) -> list[Path]:
    """Write the files, each whole or not at all. Gives them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in written.texts.items():
        write_text(folder / name, text)
    return [folder / name for name in written.texts]


# ----------------------------------------------------------------------------------------------- helpers


def _path(found: Diagnosis, told: Traffic, source: str) -> str:
    lines = [f'title = "The path of {source}"', f'source = "estimated from {source} by millpond diagnose"', ""]
    lines += [f'header = "{_header(found)} B"', ""]
    rates = {link: _rate(found.figure(f"path.{link}.rate_bps")) for link in LINKS}
    sizes = {"uplink": told.request_bytes, "downlink": told.answer_bytes}
    base = traffic.round_trip(found)
    service = sum(8 * sizes[link] / rates[link] for link in LINKS)
    delay = max((BASE_RTT_S if base.value is None else base.value) - service, 0.0) / 2
    for link in LINKS:
        rate, buffer, loss = (found.figure(f"path.{link}.{key}") for key in ("rate_bps", "buffer_bytes", "loss"))
        lost = min(loss.value or 0.0, 1.0)
        lines += [
            f"[{link}]",
            _line("rate", f'"{round(rates[link])} bit/s"', _why(rate, "bit/s", f"{ROOM:g} times the bound")),
            _line("delay", f'"{round(1e6 * delay)} us"', f"half of what is no transmission; {_why(base, 's')}"),
            _line("queue", f'"{round(_buffer(buffer))} B"', _why(buffer, "B", f"{ROOM:g} times the bound")),
            _line("loss", f'{{ kind = "bernoulli", rate = {lost:.5g} }}' if lost else '"none"', _why(loss, "")),
            'loss_of = "each-client"',
            "",
        ]  # fmt: skip
    return "\n".join(lines)


def _scenario(found: Diagnosis, told: Traffic, source: str) -> str:
    length, payload = _asked(told, _header(found))
    wait, factor, backoff, most = (
        found.figure(f"timers.{key}") for key in ("ack_timeout_s", "random_factor", "backoff", "max_retransmit")
    )
    settings = [
        f'ack-timeout = "{round(1e3 * _or(wait, ACK_TIMEOUT_S))} ms"',
        f"random-factor = {_or(factor, RANDOM_FACTOR):.4g}",
        f"backoff-factor = {max(LEAST_BACKOFF, _or(backoff, BACKOFF)):.4g}",
    ]
    lines = [
        f'title = "As {source}"',
        f'path = "{PATH}"',
        "",
        "[[clients]]",
        _line("count", str(told.devices), "counted"),
        f'controller = {{ preset = "rfc7252", {", ".join(settings)} }}',
        f"# ack-timeout: {_why(wait, 's')}; random-factor: {_why(factor, '')}; backoff-factor: {_why(backoff, '')}",
        # no exchange of the capture had more: runs with the bound repeat it as well as with the default, and stray less
        _line("max_retransmit", str(round(_or(most, MAX_RETRANSMIT))), _why(most, "", "the bound")),
        _line("token_length", str(told.token), "as seen"),
        *([_line("nstart", str(told.nstart), "open at once")] if told.nstart > 1 and told.token >= 2 else []),
        _line("uri_path", f'"{"r" * length}"', "as long as the options of requests, on average"),
        _line("request_payload", f'"{payload} B"', "on average"),
        *_asking(told),
        "",
        "[server]",
        _line("payload", f'"{max(0, told.answer_bytes - _header(found) - _around_answer(told))} B"', "on average"),
        "",
        "[run]",
        _ends(told),
        "",
    ]  # fmt: skip
    return "\n".join(lines)


def _asking(told: Traffic) -> list[str]:
    """What each does, as keys of clients."""
    if told.kind in ("closed", "think"):
        # endless loops end with the capture
        lines = [_line("exchanges", str(told.requests or 65_000), "of each" if told.requests else "until the end")]
        if told.kind == "closed":
            lines.append('workload = "continuous"')
        else:
            mean = f'{{ kind = "exponential", mean = "{round(1e3 * told.think_s)} ms" }}'
            lines.append(f'workload = {{ kind = "continuous", think = {mean} }}  # {told.words}')
        if told.start_s:
            lines.append(_line("start_spread", f'"{round(1e3 * told.start_s)} ms"', "first requests"))
        return lines
    period = "" if told.period_s is None else f'kind = "periodic", period = "{round(1e3 * told.period_s)} ms"'
    if told.kind == "periodic":
        return [f"workload = {{ {period} }}  # {told.words}"]
    if told.kind == "aligned":
        jitter = (
            f', jitter = "{round(1e3 * min(told.jitter_s, told.period_s or 0))} ms"' if told.jitter_s >= 1e-3 else ""
        )
        return [f'workload = {{ {period}, aligned = true, phase = "0 s"{jitter} }}  # {told.words}']
    event = f'{{ kind = "after-event", arrival = {_arrival(told)}, requests = {told.requests or 1} }}'
    return [f"workload = [{', '.join([event, *([f'{{ {period} }}'] if period else [])])}]  # {told.words}"]


def _arrival(told: Traffic) -> str:
    """When devices are awake: a beta distribution with the moments of what was seen."""
    if told.arrivals_s is None:
        return SYNCHRONISED
    over = float(told.arrivals_s.max()) * (1 + 2 / max(2, len(told.arrivals_s)))
    if over < 0.1:
        return '"at-once"'
    parts = told.arrivals_s / over
    mean, variance = float(np.mean(parts)), float(np.var(parts))
    both = mean * (1 - mean) / variance - 1 if variance else 0.0
    alpha, beta = mean * both, (1 - mean) * both
    if min(alpha, beta) < 0.5:
        return f'"{round(1e3 * over)} ms"'
    shape = f"alpha = {max(1, round(alpha))}, beta = {max(1, round(beta))}"
    return f'{{ kind = "beta", over = "{round(1e3 * over)} ms", {shape} }}'


def _ends(told: Traffic) -> str:
    if told.kind in ("closed", "think") and told.requests is not None:
        return _line("until", f'"{round(20 * told.span_s) + 600} s"', "each is done long before")
    return _line("for", f'"{max(1, round(told.span_s))} s"', "as long as the capture")


def _fleet(found: Diagnosis, told: Traffic, source: str) -> str:
    """The same devices in the same cell after a power cut: what `millpond fleet` asks about."""
    wait, most = found.figure("timers.ack_timeout_s"), found.figure("timers.max_retransmit")
    limit = round(_most(most))
    event = "hourly" if told.kind == "aligned" else "power-cut"
    # beside its event a fleet reports at times of its own; devices that ask without end have no such rhythm
    rhythm = told.period_s if told.kind in ("periodic", "event") else None
    every = f"{round(1e3 * rhythm)} ms" if rhythm is not None else "never"
    # what loads a cell is that devices ask for so much one after the other, without a pause
    readings = told.requests if told.kind in ("event", "closed") else None
    lines = [
        f'title = "The devices of {source} after {"a power cut" if event == "power-cut" else "an hour that all know"}"',
        _line("devices", str(told.devices), "counted"),
        "",
        "[cell]",
        f'profile = "{PATH}"',
        "",
        "[[group]]",
        f'controller = {{ preset = "rfc7252", ack-timeout = "{round(1e3 * _or(wait, ACK_TIMEOUT_S))} ms" }}'
        f"  # {_why(wait, 's')}",
        _line("max_retransmit", str(limit), _why(most, "", "the bound" if limit == most.value else "the default")),
        "",
        "[everyday]",
        _line("every", f'"{every}"', told.words),
        _line("report", f'"{told.payload} B"', "on average"),
        "",
        "[event]",
        _line("kind", f'"{event}"', "a capture cannot say what comes next: choose"),
        "",
        "[waking]",
        'registration = "0 B"',
        "observations = 0",
        _line("readings", str(min(readings or 1, MOST_READINGS)), "requests of each"),
        _line("answer", f'"{told.answer_payload} B"', "on average"),
        "",
    ]
    return "\n".join(lines)


def _line(key: str, value: str, why: str) -> str:
    return f"{key} = {value}  # {why}"


def _why(given: Given, unit: str, bounded: str = "") -> str:
    """A grade in words: what was found, and why it is believed so far."""
    because = " ".join(given.because.split())
    if given.value is None:
        return f"not visible{', because ' if because else ''}{because}: assumed"
    value = f"{given.value:.4g} {unit}".rstrip()
    words = {"exact": "exact", "at-least": f"at least {value}", "at-most": f"at most {value}"}.get(
        given.grade, "estimate"
    )
    written = f", written as {bounded}" if bounded and given.grade == "at-least" else ""
    return f"{words}{written}{': ' if because else ''}{because}"


def _or(given: Given, otherwise: float) -> float:
    return otherwise if given.value is None else given.value


def _most(given: Given) -> float:
    # what a capture did not need is no limit of what comes next
    return max(_or(given, MAX_RETRANSMIT), MAX_RETRANSMIT if given.grade == "at-least" else 0)


def _rate(given: Given) -> float:
    return max(_roomy(given, FAST_BPS), 1.0)


def _buffer(given: Given) -> float:
    # no packet that was seen is longer
    return max(_roomy(given, DEEP_B), 1500.0 if given.grade != "exact" else 1.0)


def _roomy(given: Given, otherwise: float) -> float:
    room: Callable[[float], float] = (
        (lambda value: ROOM * value) if given.grade == "at-least" else (lambda value: value)
    )
    return otherwise if given.value is None else room(given.value)


def _header(found: Diagnosis) -> int:
    peers = found.requests.column("peer")
    return IPV6 if len(peers) and str(peers[0]).startswith("[") else IPV4


def _asked(told: Traffic, header: int) -> tuple[int, int]:
    """The length of the path and the payload of a request that is as long as those that were seen."""
    left = told.request_bytes - header - _COAP - told.token
    options = left - (told.payload + _MARKER if told.payload else 0)
    length = min(max(options - 1, 1), _LONGEST_SEGMENT)
    payload = left - (length + 1) - _MARKER
    return length, payload if payload > 0 else 0


def _around_answer(told: Traffic) -> int:
    return _COAP + told.token + _FORMAT + _MARKER
