"""The implementations that talk to each other: how each is installed, served and asked."""

import contextlib
import itertools
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent
TOOLS = ROOT / ".tools" / "interop"
PORTS_OF_A_WORKER = 1_000
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 20
# Every second one: libcoap's server takes the next port, too, for DTLS, and may be slow to.
_PORTS = itertools.cycle(range(10_000 + WORKER * PORTS_OF_A_WORKER, 10_000 + (WORKER + 1) * PORTS_OF_A_WORKER, 2))


How: TypeAlias = Literal["get", "non", "open"]
"""Requests one after the other, the same non-confirmable, or all of them at once."""


class Missing(Exception):
    """A peer is not installed here, or cannot do what is asked of it; says how it could be, or why not."""


@dataclass(frozen=True)
class Answer:
    """What a client was told."""

    code: str
    payload: bytes


def free_port() -> int:
    """A UDP port of the loopback that nobody holds, below those that the system gives to others meanwhile.

    Each worker of pytest has its own: two that ask before either's server binds would get the same, and some share it.
    """
    while True:
        port = next(_PORTS)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class Peer:
    """Another implementation. The programs in `peers` have the same verbs: `serve PORT`, `METHOD URI [PAYLOAD]`."""

    name = ""
    methods: tuple[str, ...] = ("get", "put", "post", "delete")

    def command(self) -> list[str]:
        """The program and what stands before its verb."""
        raise NotImplementedError

    @contextlib.contextmanager
    def serving(self) -> Iterator[int]:
        """Its server on a port of the loopback, while the block runs."""
        port = free_port()
        with subprocess.Popen([*self.command(), "serve", str(port)], stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                assert server.stdout.readline().strip() == "ready", f"the server of {self.name} does not start"
                yield port
            finally:
                server.kill()

    @contextlib.contextmanager
    def serving_group(self, within: list[str], group: str, interface: str, address: str) -> Iterator[None]:
        """Its server as one of a group, where a command in front of it puts it."""
        arguments = [*within, *self.command(), "serve", "5683", group, interface, address]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                assert server.stdout.readline().strip() == "ready", f"the server of {self.name} does not start"
                yield
            finally:
                server.kill()

    def asking_once(self, uri: str) -> list[str]:
        """The command that sends one confirmable GET."""
        return [*self.command(), "get", uri]

    def asking_often(self, count: int, how: How = "get") -> Callable[[str], list[str]]:
        """The command of a process that sends so many. Raises `Missing` where its client does not do so."""
        return lambda uri: [*self.command(), f"{how}*{count}", uri]

    def observing(self, uri: str) -> list[str]:
        """The command that ends after some notifications."""
        return [*self.command(), "observe", uri]

    def serving_at(self, address: str) -> list[str]:
        """The command of its server on CoAP's port of an address."""
        return [*self.command(), "serve", "5683", address]

    def discover(self, within: list[str], uri: str) -> str:
        """What its client prints of the answers of a group."""
        arguments = [*within, *self.command(), "discover", uri]
        done = subprocess.run(arguments, capture_output=True, check=False, text=True)
        assert done.returncode == 0, f"{self.name}: {done.stderr}"
        return done.stdout

    def ask(self, method: str, uri: str, payload: bytes | None = None, within: Sequence[str] = ()) -> Answer:
        """One request of its client, where a command in front of it puts it."""
        arguments = [*within, *self.command(), method, uri] + (["-"] if payload is not None else [])
        done = subprocess.run(arguments, input=payload, capture_output=True, check=False)
        assert done.returncode == 0, f"{self.name}: {done.stderr.decode(errors='replace')}"
        code, _, body = done.stdout.partition(b"\n")
        return Answer(code.decode(), body)

    def observe(self, uri: str) -> list[str]:
        """Three notifications that its client gets."""
        done = subprocess.run(self.observing(uri), capture_output=True, check=False, text=True)
        assert done.returncode == 0, f"{self.name}: {done.stderr}"
        return done.stdout.split()


class Aiocoap(Peer):
    """aiocoap, in Python."""

    name = "aiocoap"
    methods = ("get", "put", "post", "delete", "fetch", "patch", "ipatch")

    def command(self) -> list[str]:
        python = TOOLS / "venv" / "bin" / "python"
        if not python.exists():
            raise Missing("aiocoap is not installed (make interop)")
        return [str(python), str(HERE / "peers" / "aiocoap_peer.py")]


class CalmAiocoap(Aiocoap):
    """aiocoap under calm, by the port."""

    name = "aiocoap-calm"

    def command(self) -> list[str]:
        python, *rest = super().command()
        return ["env", f"PYTHONPATH={ROOT / 'python'}", "CONTEXT=millpond.aiocoap.CalmContext", python, *rest]


class NodeCoap(Peer):
    """node-coap, in JavaScript."""

    name = "node-coap"

    def command(self) -> list[str]:
        if shutil.which("node") is None or not (TOOLS / "node" / "node_modules" / "coap").exists():
            raise Missing("node-coap is not installed (make interop, with Node.js)")
        return ["node", str(TOOLS / "node" / "peer.js")]

    def ask(self, method: str, uri: str, payload: bytes | None = None, within: Sequence[str] = ()) -> Answer:
        for _ in range(2):
            # An upload in which an acknowledgement comes twice it ends with an error of its own, or before its end.
            try:
                if (answer := super().ask(method, uri, payload, within)).code != "2.31":
                    return answer
            except AssertionError as error:
                if "Too many block re-transfers" not in str(error):
                    raise
        return super().ask(method, uri, payload, within)


class GoCoap(Peer):
    """go-coap, in Go."""

    name = "go-coap"

    def command(self) -> list[str]:
        program = TOOLS / "go" / "peer"
        if not program.exists():
            raise Missing("go-coap is not installed (make interop, with Go)")
        return [str(program)]


class Californium(Peer):
    """Californium, in Java, as a client."""

    name = "Californium"

    def command(self) -> list[str]:
        folder = TOOLS / "californium"
        if shutil.which("java") is None or not (folder / "Peer.class").exists():
            raise Missing("Californium is not installed (make interop, with a JDK and Maven)")
        # A process asks a few times only: its compiler for long runs would cost more than it saves.
        return ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{folder}:{folder}/lib/*", "Peer"]


class Libcoap(Peer):
    """libcoap, in C: the programs that come with it, which have resources of their own."""

    name = "libcoap"

    @staticmethod
    def program(side: str) -> str:
        """Its client or server, whichever of its builds is installed."""
        for build in ("-notls", "-openssl", "-gnutls", ""):
            if found := shutil.which(f"coap-{side}{build}"):
                return found
        raise Missing("libcoap's programs are not installed (Debian: libcoap3-bin)")

    def command(self) -> list[str]:
        return [self.program("client")]

    @contextlib.contextmanager
    def serving(self) -> Iterator[int]:
        port = free_port()
        with subprocess.Popen(
            [self.program("server"), "-A", "127.0.0.1", "-p", str(port), "-d", "10"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as server:
            try:
                wait_for_pong(port)
                yield port
            finally:
                server.kill()

    @contextlib.contextmanager
    def serving_group(self, within: list[str], group: str, interface: str, address: str) -> Iterator[None]:
        arguments = [*within, self.program("server"), "-A", "0.0.0.0", "-g", group, "-G", interface]
        with subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
            try:
                # It says nothing when it is ready; the system has groups as numbers of this machine's order.
                joined = f"{int.from_bytes(socket.inet_aton(group), sys.byteorder):08X}"
                for _ in range(600):
                    if joined in Path(f"/proc/{server.pid}/net/igmp").read_text():
                        break
                    time.sleep(0.1)
                yield
            finally:
                server.kill()

    def asking_once(self, uri: str) -> list[str]:
        return [self.program("client"), "-B", "90", "-m", "get", uri]

    def asking_often(self, count: int, how: How = "get") -> Callable[[str], list[str]]:
        if how == "open":
            raise Missing("libcoap's client asks for one thing at a time")
        # A second after each answer. It ends where none comes to what is not confirmable.
        flags = ["-N", "-B", "8"] if how == "non" else ["-B", "90"]
        return lambda uri: [self.program("client"), *flags, "-m", "get", "-G", str(count), uri]

    def observing(self, uri: str) -> list[str]:
        return [self.program("client"), "-s", "8", uri]

    def serving_at(self, address: str) -> list[str]:
        return [self.program("server"), "-A", address]

    def discover(self, within: list[str], uri: str) -> str:
        arguments = [*within, self.program("client"), "-N", "-B", "3", uri]
        done = subprocess.run(arguments, capture_output=True, check=False, text=True)
        assert done.returncode == 0, f"libcoap: {done.stderr}"
        return done.stdout

    def ask(self, method: str, uri: str, payload: bytes | None = None, within: Sequence[str] = ()) -> Answer:
        with tempfile.TemporaryDirectory() as directory:
            body = Path(directory) / "body"
            arguments = [*within, self.program("client"), "-B", "60", "-m", method, "-o", str(body)]
            if payload is not None:
                # Of what it reads from its standard input it sends 20,000 bytes.
                sent = Path(directory) / "sent"
                sent.write_bytes(payload)
                arguments += ["-f", str(sent)]
            for _ in range(3):
                done = subprocess.run([*arguments, uri], capture_output=True, check=False)
                said = (done.stdout + done.stderr).decode(errors="replace")
                assert done.returncode == 0, f"libcoap: {said}"
                # Its client prints an error's code, and nothing for a success.
                code = said[:4] if said[:2] in ("4.", "5.") else "2.xx"
                # 4.3.1 takes no body whose first block comes in a separate response, which a slow server makes of it.
                if method != "get" or code != "2.xx" or body.exists():
                    break
            return Answer(code, body.read_bytes() if body.exists() else b"")


def _listens(running: subprocess.Popen[str], scheme: str) -> bool:
    """Whether a gateway says that it listens so, which it does last, before it ends."""
    assert running.stdout is not None
    while not (line := running.stdout.readline()).startswith(f"listening on {scheme}://"):
        if not line and running.wait() is not None:
            return False
    return True


def installed(peer: Peer) -> Peer:
    """The peer; the test that asks is skipped where it is not installed."""
    try:
        peer.command()
    except Missing as missing:
        pytest.skip(str(missing))
    return peer


def client_on_libcoap(into: Path) -> Path:
    """The client of the port to libcoap, compiled. Raises `Missing` without libcoap's headers."""
    program, port = into / "client-on-libcoap", ROOT / "ports" / "libcoap"
    found = subprocess.run(["pkg-config", "--cflags", "--libs", "libcoap-3-notls"], capture_output=True, check=False)
    if found.returncode != 0 or shutil.which("cc") is None:
        raise Missing("no headers of libcoap 3 or no C compiler (Debian: libcoap3-dev)")
    sources = [str(file) for file in (port / "client.c", port / "calm_libcoap.c", ROOT / "c" / "calm.c")]
    strict = ["-std=c99", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Wconversion", "-Werror"]
    flags = shlex.split(found.stdout.decode())
    subprocess.run(["cc", *strict, *sources, "-o", str(program), *flags], check=True)
    return program.resolve()


def wait_for_pong(port: int) -> None:
    """Pings a server (RFC 7252 §4.3) until it answers."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.settimeout(0.1)
        probe.connect(("127.0.0.1", port))
        for number in range(600):
            try:
                probe.send(bytes([0x40, 0, number >> 8, number & 255]))
                probe.recv(64)
            except TimeoutError:
                continue
            except ConnectionRefusedError:
                # It does not listen yet; the system says so at once.
                time.sleep(0.1)
                continue
            return
    raise AssertionError(f"no server answers on port {port}")


class Ours:
    """The program under test."""

    def __init__(self) -> None:
        self.program = os.environ.get("MILLPOND", str(ROOT / "target" / "release" / "millpond"))
        if not Path(self.program).exists():
            raise Missing(f"{self.program} does not exist (make interop)")

    @contextlib.contextmanager
    def serving(self, directory: Path) -> Iterator[int]:
        """Our server with its test resources and this directory."""
        port = free_port()
        arguments = [self.program, "serve", str(directory), "--bind", "127.0.0.1", "--port", str(port), "--write"]
        with subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=sys.stderr) as server:
            try:
                wait_for_pong(port)
                yield port
            finally:
                server.kill()

    @contextlib.contextmanager
    def gateway(
        self, folder: Path, lines: str, *flags: str, http: int | None = None, coap: int | None = None
    ) -> Iterator[int]:
        """Our gateway with these lines and flags, on these ports of the loopback; gives that of CoAP."""
        web = "" if http is None else f'http = ["127.0.0.1:{http}"]\n'
        file, errors = folder / "gateway.toml", folder / "gateway.errors"
        command = [self.program, "gateway", *flags, str(file)]
        while True:
            port = free_port() if coap is None else coap
            file.write_text(f'[listen]\ncoap = ["127.0.0.1:{port}"]\n{web}{lines}', encoding="utf-8")
            with (
                errors.open("w", encoding="utf-8") as told,
                subprocess.Popen(command, stdout=subprocess.PIPE, stderr=told, text=True) as running,
            ):
                try:
                    if _listens(running, "coap" if http is None else "http"):
                        wait_for_pong(port)
                        yield port
                        return
                finally:
                    running.send_signal(signal.SIGINT)
                    sys.stderr.write(errors.read_text(encoding="utf-8"))
            # Somebody was faster at the port that was free.
            taken = f"127.0.0.1:{port}: the port is in use"
            assert coap is None, "its port is given"
            assert taken in errors.read_text(encoding="utf-8")

    def run(self, *arguments: str, payload: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
        """Runs a verb of the program."""
        return subprocess.run([self.program, *arguments], input=payload, capture_output=True, check=False)

    def ask(self, method: str, uri: str, *flags: str, payload: bytes | None = None) -> Answer:
        """One request of our client."""
        arguments = [method, "--json", *flags, uri] + (["-"] if payload is not None else [])
        done = self.run(*arguments, payload=payload)
        # 4 and 5: an answer of these classes.
        assert done.returncode in (0, 4, 5), done.stderr.decode(errors="replace")
        said = json.loads(done.stdout)
        body = bytes.fromhex(said["payload"]) if said["encoding"] == "hex" else said["payload"].encode()
        return Answer(said["code"], body)

    def observe(self, uri: str, *flags: str) -> list[str]:
        """Three representations that our client gets."""
        done = self.run("observe", "--count", "3", *flags, uri)
        assert done.returncode == 0, done.stderr.decode(errors="replace")
        return done.stdout.decode().split()


PEERS: tuple[Peer, ...] = (Libcoap(), Aiocoap(), CalmAiocoap(), NodeCoap(), GoCoap())
"""Those that every test of client and server is about."""
