"""Runs of real programs over emulated paths: started, limited in time, kept one by one, and resumed."""

from __future__ import annotations

import json
import math
import platform
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from millpond.errors import MillpondError
from millpond.real import kept
from millpond.real.description import Description, Setting
from millpond.real.kept import LiveRun
from millpond.real.programs import MILLPOND, SERVER, Clients, Lines, Outcome

#: A run that takes so many times its simulated slowest client, and so many seconds more, is ended.
PATIENCE, AND_MORE = 4.0, 60.0
#: A run that was late is made again so often.
AGAIN = 2
#: What the emulator says where it cannot make namespaces, and clients over UDP can be relayed instead.
_UNPRIVILEGED = ("namespaces cannot be made", "/dev/net/tun", "emulate needs Linux")

#: Says a line to those who wait.
Say = Callable[[str], None]


@dataclass(frozen=True)
class Planned:
    """One run that is to be made, and how long it may take in seconds."""

    setting: Setting
    number: int
    limit: float
    #: How often it was late before.
    late: int = 0

    @property
    def name(self) -> str:
        """The name of its file, without ending, if it is valid."""
        return f"{self.setting.name}-{self.number}"


def carry_out(
    described: Description,
    directory: Path,
    slowest: Callable[[Setting], float],
    *,
    resume: bool = False,
    relayed: bool = False,
    lateness: str | None = None,
    say: Say = print,
) -> None:
    """Make every run that is not there yet; each is kept in `directory` when it is done.

    Args:
        described: What is run.
        directory: The results directory.
        slowest: How long a setting's slowest simulated client took, in s; NaN where nobody knows.
        resume: Keep the runs that are there and valid.
        relayed: Over `millpond relay` and not in namespaces of their own, as is done where those cannot be made.
        lateness: Another bound than the emulator's own for 99 % of the packets, such as `4ms`; five times that for all.
        say: Told of every run.

    Raises:
        MillpondError: one line, if programs cannot be run; the runs made before are kept.
    """
    folder = directory / kept.FOLDER
    folder.mkdir(exist_ok=True)
    there = {run.name for run in kept.read(directory) if run.valid} if resume else set()
    if not resume:
        for file in folder.glob("*.json"):
            file.unlink()
    planned: list[Planned] = []
    for setting in described.settings:
        if lacking := setting.programs.missing():
            kept.skip(directory, setting, lacking)
            say(f"live: skipped: {lacking}")
            continue
        longest = slowest(setting)
        limit = (600.0 if math.isnan(longest) else PATIENCE * longest) + AND_MORE
        planned += [Planned(setting, number, limit) for number in range(setting.runs)]
    todo = [one for one in planned if one.name not in there]
    if len(todo) < len(planned):
        say(f"live: {len(planned) - len(todo)} runs are there already, {len(todo)} to go")
    # the longest first, so that nothing long is left at the end
    todo.sort(key=lambda one: -one.limit)
    _Runs(directory, relayed, ["--lateness", lateness] if lateness else [], say, len(todo)).make(
        todo, described.at_once
    )


class _Runs:
    """Runs under way."""

    def __init__(self, directory: Path, relayed: bool, bound: Sequence[str], say: Say, of: int) -> None:
        self.directory = directory
        self.relayed = relayed
        self.bound = bound
        self.say = say
        self.of = of
        self.done = 0
        self.stopped = threading.Event()

    def make(self, todo: Sequence[Planned], at_once: int) -> None:
        pending: dict[Future[LiveRun | None], Planned] = {}
        queue = list(todo)
        with ThreadPoolExecutor(at_once) as pool:
            try:
                while queue or pending:
                    while queue and len(pending) < at_once:
                        first = queue.pop(0)
                        pending[pool.submit(self._one, first)] = first
                    for future in wait(pending, return_when=FIRST_COMPLETED).done:
                        planned, run = pending.pop(future), future.result()
                        self._keep(run)
                        if run is not None and not run.valid and planned.late < AGAIN:
                            queue.append(replace(planned, late=planned.late + 1))
            finally:
                # whatever ended it, nothing goes on behind our back
                self.stopped.set()

    def _keep(self, run: LiveRun | None) -> None:
        if run is None:
            return
        kept.write(self.directory, run)
        self.done += run.valid
        took = f"{max(run.fct_us, default=0) * 1e-6:.1f} s" + (f", {run.unfinished} unfinished" * bool(run.unfinished))
        late = "" if run.valid else f": not valid and not counted, {run.why}"
        self.say(f"live: {self.done} of {self.of} valid; {run.name}: {took}{late}")

    def _one(self, planned: Planned) -> LiveRun | None:
        setting = planned.setting
        with tempfile.TemporaryDirectory(prefix="millpond-") as name:
            folder = Path(name)
            file = folder / "path.toml"
            file.write_text(f"path = {_toml(setting.cell.scenario['path'])}\n", encoding="utf-8")
            # other random numbers in each run of a setting, the same in the same run of another
            seed = planned.number + 1
            report, over = self._report(planned, folder, file, seed)
            if report is None:
                return None
            cut = bool(report.get("cut"))
            try:
                outcome = setting.programs.outcome(setting.cell, folder, report)
            except MillpondError as error:
                if not cut:
                    raise MillpondError(f"live: {planned.name}: {error}: {report['said']}") from None
                outcome = Outcome((), sum(group.count for group in setting.cell.groups))
        return _run(planned, seed, report, outcome, over)

    def _report(self, planned: Planned, folder: Path, file: Path, seed: int) -> tuple[dict[str, Any] | None, str]:
        if not self.relayed:
            lines = planned.setting.programs.lines(planned.setting.cell, folder, SERVER)
            said, told, cut = self._wait(_emulated(lines, file, seed, self.bound), planned.limit)
            if said:
                return {**json.loads(said), "cut": cut, "said": _last(told)}, "emulate"
            why = _last(told) or "the emulator said nothing"
            if self.stopped.is_set():
                return None, ""
            if not any(word in told for word in _UNPRIVILEGED) or not isinstance(planned.setting.programs, Clients):
                raise MillpondError(f"live: {why}")
            self.relayed = True
            self.say(f"live: {why}; datagrams are relayed instead")
        return self._relayed(planned, folder, file, seed), "relay"

    def _relayed(self, planned: Planned, folder: Path, file: Path, seed: int) -> dict[str, Any] | None:
        """The same over a relay: client and server are processes beside it."""
        server, listen = _free_port(), _free_port()
        again = folder / "relayed"
        again.mkdir()
        lines = planned.setting.programs.lines(planned.setting.cell, again, server)
        command = [part.replace(f"coap://{server}/", f"coap://{listen}/") for part in lines.command]
        own = [*MILLPOND, "relay", str(file), "--json", "--seed", str(seed), *self.bound]
        relay = [*own, "--listen", listen, "--to", server]
        with _started(["/bin/sh", "-c", lines.server]) as serving, _started(relay) as relaying:
            _heard(server)
            _heard(listen)
            try:
                _, told, cut = self._wait(command, planned.limit)
            finally:
                serving.terminate()
                relaying.terminate()
            said, why = relaying.communicate()
        for found in again.iterdir():
            if found.is_file():
                found.rename(folder / found.name)
        if self.stopped.is_set():
            return None
        if not said:
            raise MillpondError(f"live: {_last(why) or _last(told) or 'the relay said nothing'}")
        return {**json.loads(said), "cut": cut, "said": _last(told)}

    def _wait(self, command: Sequence[str], limit: float) -> tuple[str, str, bool]:
        """What a command says, and whether it was ended before its time."""
        process = _started(command)
        waited = 0.0
        while True:
            try:
                said, told = process.communicate(timeout=1.0)
                return said, told, waited >= limit
            except subprocess.TimeoutExpired:
                waited += 1.0
                if self.stopped.is_set() or waited == limit or waited - 1.0 < limit <= waited:
                    with suppress(ProcessLookupError):
                        process.send_signal(signal.SIGTERM)


# ----------------------------------------------------------------------------------------------- helpers


def _emulated(lines: Lines, file: Path, seed: int, bound: Sequence[str]) -> list[str]:
    mtu = ["--mtu", str(lines.mtu)] if lines.mtu else []
    many = ["--devices", str(lines.devices)] if lines.devices > 1 else []
    own = [*MILLPOND, "emulate", str(file), "--json", "--seed", str(seed), *bound, *mtu, *many]
    return [*own, "--server", lines.server, "--", *lines.command]


def _run(planned: Planned, seed: int, report: Mapping[str, Any], outcome: Outcome, over: str) -> LiveRun:
    late = report["lateness"]
    usual, worst, allowed, most = (late[name] / 1e3 for name in ("p99_us", "max_us", "bound_p99_us", "bound_max_us"))
    why = ""
    if not late["valid"]:
        why = f"late: 99 % of its packets by up to {usual:.2f} ms, one by {worst:.2f} ms (allowed {allowed}, {most} ms)"
    setting = planned.setting
    return LiveRun(
        # late ones are told of by themselves
        name=planned.name if late["valid"] else f"{planned.name}-late-{planned.late + 1}",
        cell=setting.cell.id,
        columns=dict(setting.cell.columns),
        label=setting.label,
        variants=list(setting.variants),
        number=planned.number,
        seed=seed,
        over=over,
        valid=bool(late["valid"]),
        why=why,
        fct_us=list(outcome.fct_us),
        unfinished=outcome.unfinished,
        limit_s=planned.limit if report.get("cut") else None,
        copies=outcome.copies,
        exchanges=outcome.exchanges,
        answered=outcome.answered,
        lateness=late,
        links=report["links"],
        left_out=report["left_out"],
        hindrances=report["hindrances"],
        stated=list(setting.stated),
        system=f"{platform.system()} {platform.release()}",
    )


def _last(told: str) -> str:
    """What programs said last on standard error."""
    lines = told.strip().splitlines()
    return lines[-1].removeprefix("millpond: ") if lines else ""


def _started(command: Sequence[str]) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True)


def _heard(address: str) -> None:
    """Waits until a program listens at a UDP port of this machine, or for a second: then the caller is told."""
    port = f":{int(address.rpartition(':')[2]):04X} "
    table = Path("/proc/net/udp")
    for _ in range(100):
        # elsewhere than on Linux there is no such table, and the second is waited for
        if table.is_file() and port in table.read_text(encoding="ascii"):
            return
        time.sleep(0.01)


def _free_port() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        host, port = free.getsockname()
    return f"{host}:{port}"


def _toml(value: Any) -> str:
    """A value as TOML on one line."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(str(key))} = {_toml(entry)}" for key, entry in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
