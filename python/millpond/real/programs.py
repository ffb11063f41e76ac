"""The kinds of real programs that take the place of simulated ones: their command lines, and what they came to."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

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
        """What is not installed, with the mend; empty if nothing is lacking."""

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
