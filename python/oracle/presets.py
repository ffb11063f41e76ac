"""The presets by name, and their settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any, TypeVar

from oracle import bbr, calm, coap_plus, cocoa, default, fasor, tcp, tfrc
from oracle.calls import SECOND, Algorithm

Value = Mapping[str, int | str]
"""A setting's value as it stands in the files: one of `us`, `thousandths`, `count` and `word`."""

Settings = Mapping[str, Value]

R = TypeVar("R")

HALF = Fraction(1, 2)
ANY = 255
MINUTE = 60 * SECOND

COCOA_03 = cocoa.Rules()
# E1: what ran on Californium 1.x and 2.x.
CALIFORNIUM = replace(COCOA_03, gains="swapped", vbf="by-estimate", max_wait=MINUTE)
COCOA_00 = replace(
    COCOA_03,
    weak_k=4,
    weak_share=HALF,
    weak_retransmissions=ANY,
    vbf_low=Fraction(2),
    vbf_high=Fraction(2),
    blind="doubling",
    ageing="cocoa-00",
)
COCOA_PLUS = replace(
    COCOA_03,
    max_wait=None,
    max_estimate=None,
    weak_retransmissions=1,
    vbf="per-exchange",
    vbf_high=Fraction(13, 10),
    blind="doubling",
    ageing="cocoa+",
)
KNOWS_COPIES = replace(CALIFORNIUM, weak_retransmissions=0)

COCOA: dict[str, cocoa.Rules] = {
    "cocoa-00": COCOA_00,
    "cocoa-plus": COCOA_PLUS,
    "cocoa-03": COCOA_03,
    "cocoa-s": replace(COCOA_03, weak_retransmissions=0),
    "cocoa-weak-all": replace(CALIFORNIUM, weak_retransmissions=20),
    "cocoa-echo": replace(KNOWS_COPIES, learns_from="echo"),
    "cocoa-number": replace(KNOWS_COPIES, learns_from="number"),
    "cocoa-flag": replace(KNOWS_COPIES, learns_from="flag"),
    "cocoa-fb1": replace(COCOA_03, carry="full-backoff-1"),
    "cocoa-fb2": replace(COCOA_03, carry="full-backoff-2"),
}
DEFAULT: dict[str, default.Rules] = {
    "rfc7252": default.Rules(),
    "default-fb1": default.Rules(max_wait=MINUTE, carry="full-backoff-1"),
    "default-fb2": default.Rules(max_wait=MINUTE, carry="full-backoff-2"),
}
FASOR: dict[str, fasor.Rules] = {
    "fasor": fasor.Rules(),
    "fasor-token": fasor.Rules(naming="token"),
    "fasor-count": fasor.Rules(naming="count"),
}
COAP_PLUS: dict[str, coap_plus.Rules] = {
    "coap-plus-rate": coap_plus.Rules(),
    "coap-plus-rate-responsive": coap_plus.Rules(loss_signal="first-timeout"),
}
BASIC_FRAME = tcp.FrameRules(max_estimate=MINUTE, blind="plain", carry="none")

FAMILIES: dict[str, tuple[str, ...]] = {
    "rfc7252": tuple(DEFAULT),
    "cocoa": tuple(COCOA),
    "fasor": tuple(FASOR),
    "linux-rto": ("linux-rto",),
    "peak-hopper": ("peak-hopper",),
    "basic-rto": ("basic-rto",),
    "coap-plus-rate": tuple(COAP_PLUS),
    "bbr-con": ("bbr-con",),
    "tfrc-non": ("tfrc-non",),
    "calm": ("calm", "calm-unlimited"),
}
"""Which presets share an algorithm. Every family has a file of its own."""


def build(preset: str, settings: Settings | None = None) -> Algorithm[Any]:
    """The algorithm of this name for a peer about which nothing is known."""
    left = dict(settings or {})
    algorithm = _build(preset, left)
    if left:
        raise ValueError(f"{preset} has no setting {', '.join(left)}")
    return algorithm


def _build(preset: str, left: dict[str, Value]) -> Algorithm[Any]:
    if preset in DEFAULT:
        return default.Default(_changed(DEFAULT[preset], left))
    if preset in COCOA:
        return cocoa.Cocoa(_changed(COCOA[preset], left))
    if preset in FASOR:
        return fasor.Fasor(_changed(FASOR[preset], left))
    if preset in COAP_PLUS:
        return coap_plus.CoapPlus(_changed(COAP_PLUS[preset], left))
    match preset:
        case "calm":
            return calm.Calm(_changed(calm.Rules(), left))
        case "calm-unlimited":
            return calm.Calm(_changed(calm.UNLIMITED, left))
        case "linux-rto":
            return tcp.Linux(_changed(tcp.FrameRules(), left), _changed(tcp.LinuxRules(), left))
        case "peak-hopper":
            return tcp.PeakHopper(_changed(tcp.FrameRules(), left), _changed(tcp.PeakHopperRules(), left))
        case "bbr-con":
            return bbr.Bbr(_changed(bbr.Rules(), left))
        case "tfrc-non":
            return tfrc.Tfrc(_changed(tfrc.Rules(), left))
        case "basic-rto":
            return tcp.Basic(_changed(BASIC_FRAME, left), _changed(tcp.BasicRules(), left))
    raise ValueError(f"no preset {preset}")


def _changed(rules: R, left: dict[str, Value]) -> R:
    """The rules with every setting that they have; what they took is no longer left."""
    changes: dict[str, object] = {}
    for field in fields(rules):  # type: ignore[arg-type]
        name = field.name.replace("_", "-")
        if name in left:
            changes[field.name] = _meant(name, left.pop(name))
    return replace(rules, **changes)  # type: ignore[type-var]


def _meant(name: str, value: Value) -> object:
    """A value as the rules want it. A limit may be none; elsewhere `none` is a word like others."""
    ((kind, content),) = value.items()
    match kind, content:
        case "us" | "count", int():
            return content
        case "thousandths", int():
            return Fraction(content, 1_000)
        case "word", "none" if name.startswith("max-"):
            return None
        case "word", str() if content.replace("/", "").isdigit():
            return Fraction(content)
        case "word", str():
            return content
    raise ValueError(f"{kind}: {content!r} is no value of a setting")


def micros(seconds: str | int) -> int:
    """Microseconds from seconds as printed."""
    micros = Fraction(seconds) * SECOND
    if micros.denominator != 1:
        raise ValueError(f"{seconds} s is no whole number of microseconds")
    return int(micros)


def secs(seconds: str | int) -> Value:
    """A length of time, given in seconds."""
    return {"us": micros(seconds)}


def ratio(factor: str) -> Value:
    """A ratio."""
    return {"thousandths": int(Fraction(factor) * 1_000)}


def count(number: int) -> Value:
    """A whole number."""
    return {"count": number}


def word(text: str) -> Value:
    """A word."""
    return {"word": text}
