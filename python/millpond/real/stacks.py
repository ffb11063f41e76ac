"""Other implementations as real programs, each with its own client, server and congestion control."""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from millpond.errors import MillpondError
from millpond.plan.toml_file import Declared
from millpond.real.programs import Lines, Outcome, clients_of
from millpond.results.directory import Cell

#: Where `interop/install --measured` puts aiocoap and Californium, or what the variable of this name says.
PEERS = Path(os.environ.get("MILLPOND_PEERS", ".tools/interop"))
#: The sources of the programs that drive them.
_OURS = Path(__file__).parent / "peers"
_LEFT = "stack.json"


class Stack(Declared):
    """One implementation as clients and server of a run."""

    name: Literal["libcoap", "aiocoap", "Californium"]
    exchanges: int
    #: Bytes of payload in an answer.
    payload: int
    #: Californium's controller, as its configuration calls it.
    mode: str = "NULL"
    #: Copies after the first, which only Californium is told.
    max_retransmit: int = 4
    #: What is asked for.
    resource: str = "hello"

    def missing(self) -> str:
        """What is not installed, with the mend."""
        if self.name == "libcoap":
            return "" if _libcoap("client") and _libcoap("server") else "libcoap is missing (Debian: libcoap3-bin)"
        if self.name == "aiocoap":
            return "" if _python() else "aiocoap is missing (pip install aiocoap, or interop/install)"
        if shutil.which("java") is None or not _jars():
            return "Californium is missing (a JDK and Maven, then interop/install --measured)"
        return ""

    def lines(self, cell: Cell, folder: Path, server: str, /) -> Lines:
        """Its own programs, or a small one of ours that drives the library."""
        uri, clients, left = f"coap://{server}/{self.resource}", str(clients_of(cell)), str(folder / _LEFT)
        asked = [uri, clients, str(self.exchanges), left]
        serve = ["serve", server, str(self.payload), self.resource]
        if self.name == "aiocoap":
            own = [_python(), str(_OURS / "aiocoap_peer.py")]
            return Lines(f"exec {shlex.join([*own, *serve])}", [*own, "ask", *asked])
        if self.name == "Californium":
            own = ["java", "-cp", str(_jars()[0].parent / "*"), str(_OURS / "Californium.java")]
            return Lines(
                f"exec {shlex.join([*own, *serve])}", [*own, "ask", *asked, self.mode, str(self.max_retransmit)]
            )
        # A process for each exchange; the server is given the resource first, over its own loopback.
        client, daemon = shlex.quote(_libcoap("client")), shlex.quote(_libcoap("server"))
        put = f"{client} -m put -t 0 -e {'x' * self.payload} {uri} >&2"
        line = f"{daemon} -A {server} -d 8 >/dev/null 2>&1 & sleep 0.5; {put}; wait"
        loop = f"i=0; while [ $i -lt {self.exchanges} ]; do {client} -m get -B 1000 {uri} >/dev/null; i=$((i+1)); done"
        return Lines(line, ["/bin/sh", "-c", f"sleep 3; {loop}"], clients_of(cell))

    def outcome(self, cell: Cell, folder: Path, report: Mapping[str, Any], /) -> Outcome:
        """As the links saw it: from a client's first request to the last packet that was handed to it."""
        flows = [flow for flow in report["flows"] if flow["transport"] == "udp"]
        clients, wanted = clients_of(cell), clients_of(cell) * self.exchanges
        copies = sum(flow["sent_packets"] for flow in flows)
        if self.name == "libcoap":
            # a device asks from another port each time
            answered = sum(flow["received_packets"] > 0 for flow in flows)
            who = [flow["client"].rpartition(":")[0] for flow in flows]
        else:
            file = folder / _LEFT
            if not file.is_file():
                raise MillpondError(f"{self.name} left no figures")
            answered = int(json.loads(file.read_text(encoding="ascii"))["answered"])
            who = [flow["client"] for flow in flows]
        spans: dict[str, tuple[int, int]] = {}
        for name, flow in zip(who, flows, strict=True):
            begin, end = flow["first_send_us"], flow["first_send_us"] + (flow["fct_us"] or 0)
            before = spans.get(name, (begin, end))
            spans[name] = min(begin, before[0]), max(end, before[1])
        times = tuple(sorted(end - begin for begin, end in spans.values()))
        return Outcome(times, max(0, clients - len(times)), copies, wanted, answered)


# ----------------------------------------------------------------------------------------------- helpers


def _libcoap(end: str) -> str:
    return shutil.which(f"coap-{end}-notls") or shutil.which(f"coap-{end}") or ""


def _python() -> str:
    """A Python that has aiocoap."""
    if importlib.util.find_spec("aiocoap") is not None:
        return sys.executable
    other = (PEERS / "venv" / "bin" / "python").absolute()
    return str(other) if other.is_file() else ""


def _jars() -> list[Path]:
    return sorted((PEERS / "californium" / "lib").absolute().glob("californium-core-*.jar"))
