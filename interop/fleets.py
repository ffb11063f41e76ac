"""Real fleets behind a real-time path: devices on libcoap and aiocoap, and devices that are calm themselves.

The former are unchanged, before our server, calm and not; the latter are the client in C (`c/client.c`) and
that of the port to libcoap, with calm beside the timer of RFC 7252, and aiocoap with our port, before a server that
answers every copy; and unchanged devices on libcoap through our gateway, on the server's side of the path or on
their own.

    python interop/fleets.py run RESULTS_DIR            # all of them, each some minutes; needs what `emulate` needs
    python interop/fleets.py table RESULTS_DIR
    python interop/fleets.py picture RESULTS_DIR FILE

Every device is a process in a network namespace of its own, and the path is the emulator's. Devices and server go
before ordinary programs (nice -10) where that is permitted. The table has the machine's load beside, and how busy the
downlink was from the first request to the last answer: devices that get too little of the processors leave it idle.
A run that was too late by the emulator's rule is told as not valid. The emulator counts which retransmissions were
spurious: the answer to an earlier transmission reached the device. What is there already is not run again, but with
`--again` what is not valid. `MILLPOND` names the program, `AIOCOAP_PYTHON` a Python with aiocoap, if they are not where
`make interop` puts them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from sides import HERE, ROOT, TOOLS, Libcoap, Missing, client_on_libcoap

PAYLOAD = 55
"""Bytes of the resource, unless others are asked for; the answer is then 94 B of IP, as in the study `anrw18`."""
PORT = 40_000
"""libcoap's client is a process a request. A device keeps its port, or no server could know it again."""
PATHS = {
    "14100 B": 'path = "nbiot-anrw18"\n',
    "endless": '[path]\nprofile = "nbiot-anrw18"\nuplink.queue = "1410 kB"\ndownlink.queue = "1410 kB"\n',
}
PEERS = ("libcoap", "aiocoap")
GATEWAYS = ("server-side", "device-side", "kept")
"""Where our gateway is: at the server, or with the devices, where it keeps no answers, or keeps them. Each device asks
for a resource of its own, or, where answers are kept, all for one."""
AT_A_TIME = 30
"""Requests that fill the path: its round trip of 0.66 s with 25 ms of its downlink for each answer."""
SERVERS = {"all": "", "calm": "--calm"}
# Devices that change, before a server that does not: the clients in C by their options, and the port to aiocoap.
ADOPTERS = {"c-rfc7252": "-r", "c-calm": "", "libcoap-rfc7252": "-r", "libcoap-calm": "", "aiocoap-calm": ""}
NICE = -10
"""What devices, server and the emulator's ordinary threads run at, if that is permitted."""


@dataclass(frozen=True)
class Fleet:
    """One run: whose devices, behind which buffer, before which server."""

    peer: str
    buffer: str
    server: str

    @property
    def name(self) -> str:
        """Its directory."""
        return f"{self.peer}-{self.buffer.replace(' ', '')}-{self.server}"


@dataclass(frozen=True)
class Told:
    """What a run came to."""

    fleet: Fleet
    seconds: list[float]
    requests: int
    failed: int
    down: int
    busy: float
    """Share of the time from the first request to the last answer in which the downlink was busy."""
    retransmissions: int
    """That the devices sent."""
    spurious: int
    """Of them."""
    behind: int
    """Retransmissions that devices told of towards a gateway, by whichever way."""
    load: float
    """The machine's, in the five minutes before the run's end."""
    is_valid: bool
    lateness: str

    @property
    def unneeded(self) -> int:
        """Answers on the downlink beyond one for each request that was answered."""
        return self.down - (self.requests - self.failed)


def device(fleet: Fleet, count: int, devices: int, out: Path) -> list[str]:
    """What every device runs. Raises `Missing` without its implementation."""
    uri = "coap://10.77.0.2/r"
    if fleet.peer in ADOPTERS and fleet.peer != "aiocoap-calm":
        flags = ADOPTERS[fleet.peer]
        if fleet.peer.startswith("libcoap"):
            ask = f"{client_on_libcoap(out.parent)} {flags} {count} 10.77.0.2 5683 r"
        else:
            ask = f"{client_in_c(out.parent)} -q {flags} -n {count} 10.77.0.2 5683 r"
        return ["sh", "-c", f"{_together(out, devices)} told=$({ask}); "
                "failed=$(echo $told | sed 's/.*answered, \\([0-9]*\\) failed.*/\\1/'); "
                f"echo $start $(date +%s%N) $failed > {out}/device/$MILLPOND_DEVICE"]  # fmt: skip
    if fleet.peer.startswith("aiocoap"):
        python = Path(os.environ.get("AIOCOAP_PYTHON", TOOLS / "venv" / "bin" / "python"))
        if not python.exists():
            raise Missing("aiocoap is not installed (make interop)")
        context = f"PYTHONPATH={ROOT}/python CONTEXT=millpond.aiocoap.CalmContext "
        script = f"{shlex.quote(str(python))} {shlex.quote(str(HERE / 'peers' / 'aiocoap_device.py'))}"
        program = (context if fleet.peer in ADOPTERS else "") + script
        return ["sh", "-c", f'{program} {out}/ready {devices} {uri} {count} "{out}/device/$MILLPOND_DEVICE"']
    if fleet.server in GATEWAYS:
        return ["sh", "-c", behind_gateway(fleet, count, devices, out)]
    ask = f"{Libcoap.program('client')} -p {PORT} -B 600 {uri} 2>/dev/null"
    return [
        "sh",
        "-c",
        f"{_together(out, devices)} failed=0; "
        f'for i in $(seq {count}); do [ -n "$({ask})" ] || failed=$((failed + 1)); done; '
        f"echo $start $(date +%s%N) $failed > {out}/device/$MILLPOND_DEVICE",
    ]


def behind_gateway(fleet: Fleet, count: int, devices: int, out: Path) -> str:
    """What a device runs where a gateway is. Those on its side of the path are one host with it, each a port."""
    is_far = fleet.server == "server-side"
    own = "" if fleet.server == "kept" else "$MILLPOND_DEVICE"
    host = "10.77.0.2" if is_far else "127.0.0.1"
    # It tells on standard error what it sends again.
    ask = f"{Libcoap.program('client')} -v 7 -p $(({PORT} + MILLPOND_DEVICE)) -B 600 coap://{host}/up/r{own}"
    ask += f" 2>>{out}/told/$MILLPOND_DEVICE"
    device = (
        f"{_together(out, devices)} failed=0; "
        f'for i in $(seq {count}); do [ -n "$({ask})" ] || failed=$((failed + 1)); done; '
        f"echo $start $(date +%s%N) $failed > {out}/device/$MILLPOND_DEVICE"
    )
    if is_far:
        return device
    each = f'for MILLPOND_DEVICE in $(seq {devices}); do ( {device} ) & all="$all $!"; done; wait $all'
    return f"{gateway(fleet, '10.77.0.2', '127.0.0.1', out)} & gateway=$!; {each}; kill $gateway"


def gateway(fleet: Fleet, server: str, at: str, out: Path) -> str:
    """The command of a gateway that listens at one address and asks at another."""
    file = out / "gateway.toml"
    size = "16 MiB" if fleet.server == "kept" else "0 B"
    file.write_text(
        f'[listen]\ncoap = ["{at}"]\n[cache]\nsize = "{size}"\n'
        f'[[path]]\nname = "cell"\ndevices = ["{server}/32"]\nnstart = {AT_A_TIME}\n'
        f'[[rule]]\npath = "/up/{{*rest}}"\nto = "coap://{server}:5700/{{*rest}}"\n',
        encoding="utf-8",
    )
    return f"{PROGRAM} gateway --quiet {file} >/dev/null"


def _together(out: Path, devices: int) -> str:
    """What a device in a shell does first: it waits for all others, and notes the time."""
    ready = f"{out}/ready"
    wait = f"while [ $(ls {ready} | wc -l) -lt {devices} ]; do sleep 0.2; done"
    return f"touch {ready}/$MILLPOND_DEVICE; {wait}; start=$(date +%s%N);"


def client_in_c(into: Path) -> Path:
    """The client on `calm.c`, compiled."""
    program = into / "client"
    sources = [str(ROOT / "c" / file) for file in ("calm.c", "client.c")]
    subprocess.run(["cc", "-O2", *sources, "-o", str(program)], check=True)
    return program.resolve()


PROGRAM = os.environ.get("MILLPOND", str(ROOT / "target" / "debug" / "millpond"))


def run(fleet: Fleet, devices: int, count: int, payload: int, seed: int, into: Path) -> None:
    """Runs it into its directory. Raises `Missing` without the devices' implementation."""
    out = (into / fleet.name).resolve()
    into.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(out, ignore_errors=True)
    for part in ("ready", "device", "files", "told"):
        (out / part).mkdir(parents=True)
    command = device(fleet, count, devices, out)
    for resource in ["r", *(f"r{number}" for number in range(1, devices + 1))]:
        (out / "files" / resource).write_bytes(b"." * payload)
    (out / "path.toml").write_text(PATHS[fleet.buffer], encoding="utf-8")
    # Trusted, so that long answers go in one message, as from servers that do not know RFC 9175.
    flags = f"--quiet --only-files --trust 10.77.0.0/16 --bind 10.77.0.2 {SERVERS.get(fleet.server, '')}"
    server, hosts = f"{PROGRAM} serve {flags} {out}/files", devices
    if fleet.server in GATEWAYS:
        server = f"{PROGRAM} serve {flags} --port 5700 {out}/files"
    if fleet.server == "server-side":
        both = f"{server} & exec {gateway(fleet, '10.77.0.2', '10.77.0.2', out)}"
        server = f"sh -c {shlex.quote(both)}"
    elif fleet.server in GATEWAYS:
        hosts = 1
    emulate = [PROGRAM, "emulate", f"{out}/path.toml", "--json", "--seed", str(seed), "--devices", str(hosts)]
    done = subprocess.run([*emulate, "--server", server, "--", *command], capture_output=True, check=False)
    (out / "stderr").write_bytes(done.stderr)
    (out / "requests").write_text(str(devices * count), encoding="utf-8")
    if not done.stdout:
        raise SystemExit(f"{fleet.name}: {done.stderr.decode(errors='replace').strip().splitlines()[-1]}")
    machine = {"load": os.getloadavg()[1], "nice": os.nice(0)}
    (out / "machine.json").write_text(json.dumps(machine), encoding="utf-8")
    (out / "report.json").write_bytes(done.stdout)


def told(fleet: Fleet, into: Path) -> Told | None:
    """What it came to, if it was run."""
    out = into / fleet.name
    if not (out / "report.json").exists():
        return None
    report = json.loads((out / "report.json").read_text(encoding="utf-8"))
    devices = [[int(word) for word in file.read_text().split()] for file in sorted((out / "device").iterdir())]
    late, again = report["lateness"], report["retransmissions"]
    lasted = max(end for _, end, _ in devices) - min(start for start, _, _ in devices)
    return Told(
        fleet=fleet,
        seconds=[(end - start) / 1e9 for start, end, _ in devices],
        requests=int((out / "requests").read_text()),
        failed=sum(failed for _, _, failed in devices),
        down=report["links"][1]["offered_packets"],
        busy=report["links"][1]["busy_us"] * 1e3 / lasted,
        retransmissions=again["sent"],
        spurious=again["spurious"],
        behind=sum(file.read_text(errors="replace").count("etransmission #") for file in (out / "told").glob("*")),
        load=json.loads((out / "machine.json").read_text(encoding="utf-8"))["load"],
        is_valid=bool(late["valid"]),
        lateness=f"99 % {late['p99_us'] / 1e3:.2f} ms, all {late['max_us'] / 1e3:.1f} ms",
    )


def fleets() -> list[Fleet]:
    """Every run, in the order of tables."""
    unchanged = [Fleet(peer, buffer, server) for peer in PEERS for buffer in PATHS for server in SERVERS]
    unchanged += [Fleet("libcoap", buffer, server) for buffer in PATHS for server in GATEWAYS]
    return unchanged + [Fleet(peer, buffer, "all") for peer in ADOPTERS for buffer in PATHS]


def table(into: Path) -> str:
    """What the runs came to, as Markdown."""
    head = ["devices on", "buffer", "copies are answered", "median", "90 %", "slowest", "requests failed"]
    head += [
        "retransmissions",
        "of them spurious",
        "to a gateway",
        "answers nobody needed",
        "downlink busy",
        "load",
        "lateness",
    ]
    rows = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for one in filter(None, (told(fleet, into) for fleet in fleets())):
        seconds = sorted(one.seconds)
        ninth = seconds[min(len(seconds) - 1, int(0.9 * len(seconds)))]
        cells = [
            one.fleet.peer,
            one.fleet.buffer,
            {"all": "all", "calm": "calmly"}.get(one.fleet.server, f"gateway, {one.fleet.server}"),
            f"{statistics.median(seconds):.0f} s",
            f"{ninth:.0f} s",
            f"{seconds[-1]:.0f} s",
            str(one.failed),
            str(one.retransmissions),
            str(one.spurious),
            str(one.behind),
            str(one.unneeded),
            f"{one.busy:.1%}".replace("%", " %"),
            f"{one.load:.0f}",
            one.lateness + ("" if one.is_valid else ", **not valid**"),
        ]
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)


def picture(into: Path, file: Path) -> None:
    """Shares of devices that are done over time, one panel for each implementation and buffer that was run."""
    from matplotlib.figure import Figure

    from millpond.results.store import write_text
    from millpond.show.drawing import svg
    from millpond.show.report import style

    runs = [one for one in (told(fleet, into) for fleet in fleets()) if one is not None]
    panels = list(dict.fromkeys((one.fleet.peer, one.fleet.buffer) for one in runs))
    with style.applied():
        figure = Figure(figsize=(3.4 * len(panels), 2.8), layout="constrained")
        for axes, panel in zip(figure.subplots(1, len(panels), sharey=True, squeeze=False)[0], panels, strict=True):
            for one in runs:
                if (one.fleet.peer, one.fleet.buffer) != panel:
                    continue
                seconds = sorted(one.seconds)
                look = style.PRESETS["rfc7252" if one.fleet.server == "all" else "cocoa-03"]
                share = [100 * (number + 1) / len(seconds) for number in range(len(seconds))]
                name = "every copy answered" if one.fleet.server == "all" else "calm server"
                axes.step(seconds, share, where="post", color=look.colour, linestyle=look.dash, label=name)
            axes.set_title(f"{panel[0]}, buffer {panel[1]}")
            axes.set_xlabel("time since the start (s)")
            axes.set_xlim(left=0)
            axes.set_ylim(0, 100)
        figure.axes[0].set_ylabel("devices that are done (%)")
        handles, names = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside upper center", ncols=2)
        write_text(file, svg(figure))


def main() -> int:
    """Runs, tells or draws; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=["run", "table", "picture"])
    parser.add_argument("results", type=Path)
    parser.add_argument("file", type=Path, nargs="?", default=Path("fleets.svg"))
    parser.add_argument("--devices", type=int, default=100)
    parser.add_argument("--requests", type=int, default=50)
    parser.add_argument("--payload", type=int, default=PAYLOAD, help="bytes of the resource")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--again", action="store_true", help="run what is there and not valid once more")
    parser.add_argument("--only", help="a part of the names of runs, such as libcoap-endless")
    asked = parser.parse_args()
    if asked.what == "picture":
        picture(asked.results, asked.file)
        return 0
    if asked.what == "run":
        with contextlib.suppress(PermissionError):
            os.nice(NICE)
        for fleet in fleets():
            before = told(fleet, asked.results)
            is_done = before is not None and (before.is_valid or not asked.again)
            if (asked.only and asked.only not in fleet.name) or is_done:
                continue
            print(f"{fleet.name} …", file=sys.stderr, flush=True)
            try:
                run(fleet, asked.devices, asked.requests, asked.payload, asked.seed, asked.results)
            except Missing as missing:
                print(f"{fleet.name}: left out: {missing}", file=sys.stderr)
    print(table(asked.results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
