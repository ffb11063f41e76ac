"""The call lists, family by family."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from oracle.cases import bbr, calm, coap_plus, cocoa, default, fasor, tcp, tfrc
from oracle.script import Case

FAMILIES: dict[str, Callable[[], Iterator[Case]]] = {
    "rfc7252": default.cases,
    "cocoa": cocoa.cases,
    "fasor": fasor.cases,
    "linux-rto": tcp.linux,
    "peak-hopper": tcp.peak_hopper,
    "basic-rto": tcp.basic,
    "coap-plus-rate": coap_plus.cases,
    "bbr-con": bbr.cases,
    "tfrc-non": tfrc.cases,
    "calm": calm.cases,
}
"""What fills `vectors/<family>.json`."""
