"""Words and numbers as the report writes them: names of controllers and buffers, units, rounding."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from millpond.engine import presets
from millpond.measure.metrics import METRICS

CONTROLLERS = {
    **{preset.name: preset.label for preset in presets()},
    "tcp-new-reno": "TCP New Reno",
    "tcp-cubic": "TCP CUBIC",
    "tcp-linux-cubic": "TCP CUBIC of Linux",
    "tcp-bbr": "TCP BBR",
    "coap-over-tcp": "CoAP over TCP",
    "q-block2": "Q-Block2",
    "q-block2-paced": "Q-Block2, paced",
}
"""Presets in the order in which they are drawn, then the other ways to transfer, and what they are called."""
_STATISTICS = {"range_low": "lowest", "range_high": "highest", "min": "minimum", "max": "maximum"}
_DISTRIBUTIONS = {"exchanges_by_retransmissions": "exchanges by number of retransmissions"}


def preset(algorithm: str) -> str:
    """The preset that an algorithm is called like; one of the reader's own, `file.py:Class`, keeps its name."""
    return algorithm if ":" in algorithm else re.split(r"[ ,]", algorithm.replace("_", "-"), maxsplit=1)[0]


def controller(name: str, told: str = "") -> str:
    """What a controller is called, in the program and the report alike.

    `told` is what the plan calls it. Without such a word a preset has its usual name and the one that it is asked for
    by, `Default CoAP (rfc7252)`, with the settings that distinguish it; other names stay as they are.
    """
    if told and told != name:
        return told
    base = re.split(r"[ ,]", name, maxsplit=1)[0]
    return f"{CONTROLLERS[base]} ({name})" if base in CONTROLLERS else name


def algorithm(manifest: Mapping[str, Any], name: str) -> str:
    """What an algorithm of these results is called."""
    return controller(name, str(manifest.get("labels", {}).get(name, "")))


def link(scenario: Mapping[str, Any], name: str) -> str:
    """What a link is called: by its name, and the radio of a mesh by its node, `node 4,3`."""
    return f"node {name}" if scenario.get("mesh") else name


def busiest(scenario: Mapping[str, Any], name: str) -> str:
    """The busiest link inside a sentence: `busiest link, downlink`, `busiest radio, that of node 4,3`."""
    return f"busiest radio, that of {link(scenario, name)}" if scenario.get("mesh") else f"busiest link, {name}"


def metric(name: str) -> str:
    """What is measured, in the words of the registry."""
    return METRICS[name].title if name in METRICS else _DISTRIBUTIONS.get(name, name.replace("_", " "))


def listed(words: Sequence[str]) -> str:
    """Words in a sentence: `a, b and c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def with_unit(title: str, unit: str) -> str:
    """What stands along an axis: `completion time (s)`."""
    return f"{title} ({unit})" if unit not in ("", "1") else title


def statistic(name: str, condition: str = "") -> str:
    """A statistic in words, with the further condition that published figures may carry."""
    percentile = f"{name[1:]}th percentile" if name[:1] == "p" and name[1:].isdigit() else _STATISTICS.get(name, name)
    told = condition.replace(">=", " \N{GREATER-THAN OR EQUAL TO} ")
    return f"{percentile} {told}".strip()


def clients(count: float) -> str:
    """A number of clients with its noun."""
    return "1 client" if count == 1 else f"{count:,.0f} clients".replace(",", "\N{NARROW NO-BREAK SPACE}")


def counted(count: int, one: str, several: str) -> str:
    """A number and what there are so many of: the first words of one, the others of any other number."""
    return f"{count} {one if count == 1 else several}"


def runs(count: int) -> str:
    """A number of runs with its noun."""
    return counted(count, "run", "runs")


def size(value: float | None) -> str:
    """So many bytes, in B below ten thousand, else in kB or MB."""
    if value is None or math.isnan(value):
        return "\N{EN DASH}"
    for unit, factor in (("MB", 1e6), ("kB", 1e3)):
        if value >= 10 * factor or (unit == "MB" and value >= factor):
            return f"{number(value / factor, 3)}\N{NARROW NO-BREAK SPACE}{unit}"
    return f"{count(value)}\N{NARROW NO-BREAK SPACE}B"


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
