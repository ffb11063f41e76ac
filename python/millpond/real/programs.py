"""The kinds of real programs that take the place of simulated ones: their command lines, and what they came to."""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from millpond.errors import MillpondError
from millpond.given_files import read_json
from millpond.plan.toml_file import Declared
from millpond.real.kernel_tcp import CLIENT
from millpond.results.directory import Cell

#: Where the server is, behind the path.
SERVER = "10.77.0.2"
#: This very program, or the stand-alone one that the variable of this name names.
MILLPOND = (os.environ["MILLPOND"],) if "MILLPOND" in os.environ else (sys.executable, "-m", "millpond")


@dataclass(frozen=True)
class Lines:
    """How the programs of one run are started: the server by a line for the shell, the devices by a command each."""

    server: str
    command: Sequence[str]
    devices: int = 1
    #: The longest packet; None for the path's own.
    mtu: int | None = None


@dataclass(frozen=True)
class Outcome:
    """What the clients of one run came to."""

    #: From a client's first packet, or as its program measures it, to its end; of those that finished.
    fct_us: tuple[int, ...]
    unfinished: int = 0
    #: Copies of requests that were sent, and exchanges that they were for; None where that cannot be told.
    copies: int | None = None
    exchanges: int | None = None
    #: Exchanges that were answered.
    answered: int | None = None


class Programs(Protocol):
    """A kind of programs."""

    def missing(self) -> str:
        """What is not installed, with the fix; empty if nothing is lacking."""

    def lines(self, cell: Cell, folder: Path, server: str, /) -> Lines:
        """The commands of one run, which may keep files in a folder of their own; `server` is its address."""

    def outcome(self, cell: Cell, folder: Path, report: Mapping[str, Any], /) -> Outcome:
        """What came of it, from the emulator's report and the files that programs left.

        Raises:
            MillpondError: one line, if they left nothing to read.
        """


class Clients(Declared):
    """Our own client and server over real sockets: `millpond load` and `millpond serve`."""

    exchanges: int
    #: The file that is asked for. Length and options make the answer as long as the study's.
    file_bytes: int
    max_retransmit: int = 4

    def missing(self) -> str:
        """Nothing: it is this program."""
        return ""

    def lines(self, cell: Cell, folder: Path, server: str, /) -> Lines:
        """One process of all clients, each with a socket and a controller of its own."""
        files = folder / "www"
        files.mkdir()
        (files / "hello").write_text("x" * self.file_bytes, encoding="utf-8")
        serve = [*MILLPOND, "serve", "--quiet", "--only-files", "--bind", server, str(files)]
        load = [
            *MILLPOND, "load", "--json", "--clients", str(clients_of(cell)), "--count-each", str(self.exchanges),
            "--controller", _preset(cell), "--max-retransmit", str(self.max_retransmit), f"coap://{server}/hello",
        ]  # fmt: skip
        command = f"exec {shlex.join(load)} > {shlex.quote(str(folder / 'load.json'))}"
        return Lines(f"exec {shlex.join(serve)}", ("/bin/sh", "-c", command))

    def outcome(self, cell: Cell, folder: Path, report: Mapping[str, Any], /) -> Outcome:
        """Completion times as the links saw them, copies as the clients counted them."""
        load = _left_by(folder / "load.json")["loads"][0]
        wanted = clients_of(cell) * self.exchanges
        failed = wanted - int(load["answers"])
        times = sorted(flow["fct_us"] for flow in report["flows"] if flow["fct_us"] is not None)
        # who gave up on a request is among the slowest, and is not distinguished by its packets
        done = times[: max(0, len(times) - failed)] if failed else times
        return Outcome(
            tuple(done), clients_of(cell) - len(done), int(load["transmissions"]), wanted, int(load["answers"])
        )


class Tcp(Declared):
    """The kernel's own TCP: one connection, on which a client asks once and is sent so many bytes."""

    #: Congestion control by the algorithm of the plan, as the kernel calls it.
    congestion: dict[str, str]
    bytes: int
    mtu: int
    #: Initial window in segments; 0 leaves the kernel's own.
    initial_window: int = 0
    #: Settings below /proc/sys/net/ipv4, on both sides.
    sysctl: dict[str, str] = msgspec.field(default_factory=dict)
    #: The connection stands so many seconds before it is asked.
    open_ahead_s: float = 0.0

    def missing(self) -> str:
        """A congestion control that this kernel lacks, by its name."""
        file = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
        there = file.read_text(encoding="ascii").split() if file.is_file() else []
        lacking = [name for name in self.congestion.values() if name not in there]
        mend = "; ".join(f"modprobe tcp_{name}" for name in lacking)
        return f"this kernel has no TCP congestion control {', '.join(lacking)} ({mend})" if lacking else ""

    def lines(self, cell: Cell, folder: Path, server: str, /) -> Lines:
        """Server and client of `millpond.real.kernel_tcp`."""
        own = [sys.executable, "-m", "millpond.real.kernel_tcp"]
        told = [f"--set={name}={value}" for name, value in self.sysctl.items()]
        sent = ["--congestion", self.congestion[str(cell.columns["algorithm"])], "--bytes", str(self.bytes)]
        sent += ["--window", str(self.initial_window)] if self.initial_window else []
        serve = [*own, "serve", *told, *sent, "--at", server, "--left", str(folder)]
        fetch = [
            *own, "fetch", *told, "--bytes", str(self.bytes), "--ahead", str(self.open_ahead_s), "--at", server,
            "--left", str(folder),
        ]  # fmt: skip
        return Lines(f"exec {shlex.join(serve)}", fetch, clients_of(cell), self.mtu)

    def outcome(self, cell: Cell, folder: Path, _report: Mapping[str, Any], /) -> Outcome:
        """The times that the clients measured; one that left nothing did not finish."""
        files = sorted(folder.glob(CLIENT.format("*")))
        times = tuple(int(_left_by(file)["fct_us"]) for file in files)
        return Outcome(times, clients_of(cell) - len(times))


def clients_of(cell: Cell) -> int:
    """How many clients a cell has."""
    return sum(group.count for group in cell.groups)


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
        """What is not installed, with the fix."""
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


def _preset(cell: Cell) -> str:
    controller = cell.scenario["clients"][0]["controller"]
    return str(controller["preset"] if isinstance(controller, Mapping) else controller)


def _left_by(file: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = read_json(file)
    except (OSError, ValueError):
        raise MillpondError(f"{file.name}: the client left no figures") from None
    return found


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
