"""Words and numbers as the report writes them: names of controllers and buffers, units, rounding."""

from __future__ import annotations

import math

INFINITE_BUFFER = 1_410_000
"""The buffer that the papers call infinite, in bytes."""

CONTROLLERS = {
    "rfc7252": "Default CoAP",
    "default-fb1": "Default + Full Backoff 1",
    "default-fb2": "Default + Full Backoff 2",
    "cocoa-03": "CoCoA",
    "cocoa-fb1": "CoCoA + Full Backoff 1",
    "cocoa-fb2": "CoCoA + Full Backoff 2",
    "cocoa-s": "CoCoA-S",
    "cocoa-weak-all": "modified CoCoA",
    "cocoa-echo": "CoCoA, echoed times",
    "cocoa-number": "CoCoA, echoed numbers",
    "cocoa-flag": "CoCoA, echoed flag",
    "cocoa-00": "CoCoA draft 0",
    "cocoa-plus": "CoCoA+",
    "fasor": "FASOR",
    "fasor-token": "FASOR + token",
    "fasor-count": "FASOR + count",
    "linux-rto": "Linux RTO",
    "peak-hopper": "Peak-Hopper",
    "basic-rto": "Basic RTO",
    "tcp-new-reno": "TCP New Reno",
    "tcp-bbr": "TCP BBR",
    "coap-over-tcp": "CoAP over TCP",
    "q-block2": "Q-Block2",
    "q-block2-paced": "Q-Block2, paced",
}
"""Presets in the order in which they are drawn, then the other ways to transfer, and what they are called."""
_STUDY_NAMES = {
    "default": "rfc7252",
    "cocoa": "cocoa-03",
    "tcp_newreno": "tcp-new-reno",
    "cocoa_mod": "cocoa-weak-all",
    "cocoa_accurate_rtt": "cocoa-echo",
}
_WORKLOADS = {
    "continuous": "continuous (all exchanges in a row)",
    "random": "random (in batches, controller state reset after each)",
}
_STATISTICS = {"range_low": "lowest", "range_high": "highest", "min": "minimum", "max": "maximum"}
_METRICS = {
    "fct": "flow completion time",
    "makespan": "time until the last client finished",
    "exchanges_by_retransmissions": "exchanges by number of retransmissions",
    "unnecessary_retx_per_client": "unnecessary retransmissions per client",
    "unnecessary_retx_per_exchange": "unnecessary retransmissions per exchange",
    "link_capacity_wasted_on_unnecessary_retx": "bottleneck capacity wasted on unnecessary copies",
    "rtt": "round-trip time",
    "retx_per_exchange": "retransmissions per exchange",
}


def preset(algorithm: str) -> str:
    """The preset behind a paper's column name (`default` is `rfc7252`, `cocoa_fb1` is `cocoa-fb1`).

    Controllers of the reader's own, `file.py:Class`, keep their names.
    """
    return algorithm if ":" in algorithm else _STUDY_NAMES.get(algorithm, algorithm.replace("_", "-"))


def controller(name: str) -> str:
    """The name of a controller as a reader knows it; names without a fixed one stay as they are.

    A number tells groups of one controller apart: `rfc7252 #2` is `Default CoAP #2`.
    """
    base, mark, rest = name.partition(" #")
    return CONTROLLERS.get(base, base) + mark + rest


def workload(name: str) -> str:
    """A workload with what it means."""
    return _WORKLOADS.get(name, name)


def metric(name: str) -> str:
    """What is measured, in words."""
    return _METRICS.get(name, name.replace("_", " "))


def statistic(name: str, condition: str = "") -> str:
    """A statistic in words, with the further condition that published figures may carry."""
    percentile = f"{name[1:]}th percentile" if name[:1] == "p" and name[1:].isdigit() else _STATISTICS.get(name, name)
    told = condition.replace(">=", " \N{GREATER-THAN OR EQUAL TO} ")
    return f"{percentile} {told}".strip()


def buffer(size: float) -> str:
    """A buffer size with its unit; the papers' infinite one says so."""
    return (
        "infinite (1.41 MB)" if size == INFINITE_BUFFER else f"{size:,.0f} B".replace(",", "\N{NARROW NO-BREAK SPACE}")
    )


def buffer_phrase(size: float) -> str:
    """The same inside a sentence."""
    return "an infinite buffer (1.41 MB)" if size == INFINITE_BUFFER else f"a buffer of {buffer(size)}"


def clients(count: float) -> str:
    """A number of clients with its noun."""
    return "1 client" if count == 1 else f"{count:,.0f} clients".replace(",", "\N{NARROW NO-BREAK SPACE}")


def count(value: float) -> str:
    """A whole number with thin spaces between thousands."""
    return f"{value:,.0f}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def number(value: float | None, digits: int = 4) -> str:
    """A figure with that many significant digits, never in scientific notation for everyday sizes."""
    if value is None or math.isnan(value):
        return "\N{EN DASH}"
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if size >= digits - 1:
        return count(value)
    if size < -4:
        return f"{value:.{digits - 1}e}"
    return f"{value:.{max(0, digits - 1 - size)}f}"


def plain(value: float | None) -> str:
    """A figure as short as it is: `60`, `12.5`."""
    return "\N{EN DASH}" if value is None or math.isnan(value) else f"{value:.4g}"


def percent(share: float | None, signed: bool = False) -> str:
    """A fraction as percent with one decimal; a difference with its sign, and with two decimals below one percent."""
    if share is None or math.isnan(share):
        return "\N{EN DASH}"
    if signed:
        text = f"{100 * share:+.2f}" if abs(share) < 0.00995 else f"{100 * share:+.1f}"
        text = "0.00" if float(text) == 0 else text.replace("-", "\N{MINUS SIGN}")
    else:
        text = f"{100 * share:.1f}"
    return f"{text}\N{NARROW NO-BREAK SPACE}%"


def as_printed(value: float | None, digits: int = 5) -> str:
    """A published figure, or ours beside it: whole numbers in full, others with that many digits."""
    if value is None or math.isnan(value):
        return "\N{EN DASH}"
    if float(value).is_integer() or abs(value) >= 10**digits:
        return count(value)
    text = number(value, digits)
    return text if abs(value) >= 1 else text.rstrip("0")
