"""OSCORE (RFC 8613) with aiocoap, Californium and libcoap: client and server of each, and the bytes of aiocoap."""

import contextlib
import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from relay import CLIENT_TO_SERVER, Relay
from sides import HERE, TOOLS, Aiocoap, Answer, Libcoap, Missing, Ours, free_port, wait_for_pong

CASES = 2_000

LARGE = bytes(65 + i % 26 for i in range(20_000))


@dataclass(frozen=True)
class Theirs:
    """Another implementation: its program with the verbs `serve PORT CONTEXT` and `METHOD URI CONTEXT`."""

    program: list[str]
    context: Callable[[Path], Path]
    """What it is given for a context that is a file of ours."""

    @contextlib.contextmanager
    def serving(self, context: Path) -> Iterator[int]:
        """Ends as by a power cut."""
        port = free_port()
        arguments = [*self.program, "serve", str(port), str(self.context(context))]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                assert server.stdout.readline().strip() == "ready"
                yield port
            finally:
                server.kill()

    def ask(self, method: str, uri: str, context: Path) -> Answer:
        """One request of its client."""
        arguments = [*self.program, method, uri, str(self.context(context))]
        done = subprocess.run(arguments, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode(errors="replace")
        code, _, body = done.stdout.partition(b"\n")
        return Answer(code.decode(), body)


@pytest.fixture(scope="session")
def python() -> str:
    """The one that has aiocoap."""
    try:
        return Aiocoap().command()[0]
    except Missing as missing:
        pytest.skip(str(missing))


@pytest.fixture
def aiocoap(python: str) -> Theirs:
    """Client and server of aiocoap."""
    return Theirs([python, str(HERE / "peers" / "aiocoap_protected.py")], Contexts.aiocoaps)


@pytest.fixture
def californium() -> Theirs:
    """Client and server of Californium."""
    folder = TOOLS / "californium"
    if shutil.which("java") is None or not (folder / "Protected.class").exists():
        pytest.skip("Californium with OSCORE is not installed (make interop, with a JDK and Maven)")
    program = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{folder}:{folder}/lib/*", "Protected"]
    return Theirs(program, lambda file: file)


@pytest.fixture(params=["aiocoap", "californium"])
def theirs(request: pytest.FixtureRequest) -> Theirs:
    """One of them; the test is skipped where it is not installed."""
    found: Theirs = request.getfixturevalue(request.param)
    return found


class Contexts:
    """A new pair, as files of ours."""

    def __init__(self, ours: Ours, directory: Path, *flags: str) -> None:
        self.client, self.server = directory / "client.oscore", directory / "server.oscore"
        done = ours.run("oscore", "new", *flags, str(self.client), str(self.server))
        assert done.returncode == 0, done.stderr

    @staticmethod
    def aiocoaps(file: Path) -> Path:
        """As a directory, in aiocoap's form."""
        if (directory := file.with_suffix(".aiocoap")).exists():
            return directory
        lines = [line.split(" = ") for line in file.read_text().splitlines() if not line.startswith("#")]
        given = {key: value.strip('"') for key, value in lines}
        directory.mkdir()
        names = {"secret": "secret", "salt": "salt", "sender_id": "sender-id", "recipient_id": "recipient-id"}
        settings = {f"{theirs}_hex": given[ours] for ours, theirs in names.items()}
        (directory / "settings.json").write_text(json.dumps(settings))
        return directory

    @staticmethod
    def libcoaps(file: Path) -> str:
        """In libcoap's form, with the file that keeps its sequence numbers."""
        lines = [line.split(" = ") for line in file.read_text().splitlines() if not line.startswith("#")]
        given = {key: value.strip('"') for key, value in lines}
        names = {
            "secret": "master_secret",
            "salt": "master_salt",
            "sender_id": "sender_id",
            "recipient_id": "recipient_id",
        }
        settings = file.with_suffix(".conf")
        of_ours = [f'{theirs},hex,"{given[ours]}"' for ours, theirs in names.items()]
        settings.write_text("\n".join([*of_ours, "aead_alg,integer,10", "hkdf_alg,integer,-10", ""]))
        return f"{settings},{file.with_suffix('.seq')}"


@pytest.fixture(scope="session")
def libcoap() -> Path:
    """Where libcoap's programs lie, if they can be had with OSCORE."""
    built = subprocess.run([str(HERE / "libcoap-from-source")], capture_output=True, check=False, text=True)
    if built.returncode:
        pytest.skip(built.stderr.strip())
    programs = Path(built.stdout.strip())
    said = subprocess.run([str(programs / "coap-client"), "-h"], capture_output=True, check=False, text=True)
    if "(Have OSCORE)" not in said.stdout + said.stderr:
        pytest.skip("left out: libcoap with OSCORE (wants OpenSSL's headers)")
    return programs


@pytest.fixture
def contexts(ours: Ours, tmp_path: Path) -> Contexts:
    """Never used before."""
    return Contexts(ours, tmp_path)


@contextlib.contextmanager
def our_server(ours: Ours, context: Path, directory: Path) -> Iterator[int]:
    """Ends as by a power cut."""
    port = free_port()
    flags = ["--bind", "127.0.0.1", "--port", str(port), "--oscore", str(context), "--write", "--quiet"]
    arguments = [ours.program, "serve", str(directory), *flags]
    with subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=sys.stderr) as server:
        try:
            wait_for_pong(port)
            yield port
        finally:
            server.kill()


def test_random_contexts_and_messages_are_protected_as_aiocoap_does(ours: Ours, python: str) -> None:
    program = Path(ours.program).parent / "examples" / "oscore"
    arguments = [python, str(HERE / "peers" / "aiocoap_oscore.py"), str(program), str(CASES), "8613"]
    done = subprocess.run(arguments, capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{CASES} cases are equal\n"


def test_our_client_asks_under_a_context_also_after_the_server_has_restarted(
    ours: Ours, theirs: Theirs, contexts: Contexts
) -> None:
    flags = ("--oscore", str(contexts.client))
    with theirs.serving(contexts.server) as port:
        where = f"coap://127.0.0.1:{port}/store"
        assert ours.ask("get", where, *flags).payload == b"protected"
        assert ours.ask("put", where, *flags, payload=LARGE).code == "2.04"
        assert ours.ask("get", where, *flags).payload == LARGE
    with theirs.serving(contexts.server) as port:
        assert ours.ask("get", f"coap://127.0.0.1:{port}/store", *flags).payload == b"protected"


def test_our_server_answers_under_a_context_also_after_it_has_lost_its_window(
    ours: Ours, theirs: Theirs, contexts: Contexts, tmp_path: Path
) -> None:
    (files := tmp_path / "files").mkdir()
    with our_server(ours, contexts.server, files) as port:
        where = f"coap://127.0.0.1:{port}"
        assert theirs.ask("get", f"{where}/hello", contexts.client).payload == b"Hello from Millpond.\n"
        assert theirs.ask("put", f"{where}/kept", contexts.client).code == "2.01"
        assert (files / "kept").read_bytes() == LARGE
    with our_server(ours, contexts.server, files) as port:
        where = f"coap://127.0.0.1:{port}"
        assert theirs.ask("get", f"{where}/kept", contexts.client).payload == LARGE


def is_counting(lines: list[str]) -> bool:
    """Whether a count never went back, and went on."""
    counts = [int(line) for line in lines]
    return len(counts) == 4 and counts == sorted(counts) and counts[0] < counts[-1]


def test_our_client_observes_under_a_context(ours: Ours, theirs: Theirs, contexts: Contexts) -> None:
    with theirs.serving(contexts.server) as port:
        where = f"coap://127.0.0.1:{port}/count"
        observed = ours.run("observe", "--oscore", str(contexts.client), "--count", "4", where)
        assert is_counting(observed.stdout.decode().split()), observed


def test_our_server_is_observed_under_a_context(ours: Ours, theirs: Theirs, contexts: Contexts, tmp_path: Path) -> None:
    with our_server(ours, contexts.server, tmp_path) as port:
        observed = theirs.ask("observe", f"coap://127.0.0.1:{port}/count", contexts.client)
        assert observed.code == "2.05"
        assert is_counting(observed.payload.decode().split()), observed


def answer_to_a_copy(relay: Relay, port: int) -> tuple[str, bytes]:
    """Code and bytes of what the server answers to the first request that passed, in a message of another sender."""
    request = next(passed.datagram for passed in relay.passed if passed.way == CLIENT_TO_SERVER)
    other_id = bytes([request[2] ^ 0x55])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as attacker:
        attacker.connect(("127.0.0.1", port))
        attacker.send(request[:2] + other_id + request[3:])
        # An empty acknowledgement may come before.
        while (answer := attacker.recv(2_000))[1] == 0:
            pass
    return f"{answer[1] >> 5}.{answer[1] & 31:02}", answer


def test_our_server_refuses_a_copy_of_their_request(
    ours: Ours, theirs: Theirs, contexts: Contexts, tmp_path: Path
) -> None:
    with our_server(ours, contexts.server, tmp_path) as port, Relay(port) as relay:
        assert theirs.ask("get", f"coap://127.0.0.1:{relay.port}/hello", contexts.client).code == "2.05"
        code, answer = answer_to_a_copy(relay, port)
        assert code == "4.01"
        assert answer.endswith(b"Replay detected")


def test_their_server_refuses_a_copy_of_our_request(ours: Ours, theirs: Theirs, contexts: Contexts) -> None:
    with theirs.serving(contexts.server) as port, Relay(port) as relay:
        where = f"coap://127.0.0.1:{relay.port}/store"
        assert ours.ask("get", where, "--oscore", str(contexts.client)).code == "2.05"
        assert answer_to_a_copy(relay, port)[0] == "4.01"


@pytest.fixture
def anew(ours: Ours, tmp_path: Path) -> Contexts:
    """Whose keys both sides derive anew (RFC 8613 Appendix B.2), which aiocoap and libcoap do not."""
    return Contexts(ours, tmp_path, "--derive-anew")


def test_our_client_and_their_server_derive_keys_anew(ours: Ours, californium: Theirs, anew: Contexts) -> None:
    flags = ("--oscore", str(anew.client))
    for _ in range(2):
        with californium.serving(anew.server) as port:
            where = f"coap://127.0.0.1:{port}/store"
            assert ours.ask("get", where, *flags).payload == b"protected"
            assert ours.ask("put", where, *flags, payload=LARGE).code == "2.04"
            assert ours.ask("get", where, *flags).payload == LARGE


def test_their_client_and_our_server_derive_keys_anew(
    ours: Ours, californium: Theirs, anew: Contexts, tmp_path: Path
) -> None:
    (files := tmp_path / "files").mkdir()
    for code in ("2.01", "2.04"):
        with our_server(ours, anew.server, files) as port, Relay(port) as relay:
            where = f"coap://127.0.0.1:{relay.port}"
            assert californium.ask("put", f"{where}/kept", anew.client).code == code
            assert (files / "kept").read_bytes() == LARGE
            assert californium.ask("get", f"{where}/kept", anew.client).payload == LARGE
            # What began the first derivation begins another one at most.
            assert answer_to_a_copy(relay, port)[0] == "2.04"
            observed = californium.ask("observe", f"{where}/count", anew.client)
            assert is_counting(observed.payload.decode().split()), observed


def by_libcoap(libcoap: Path, context: Path, uri: str, *more: str) -> bytes:
    """What libcoap's client prints."""
    arguments = [str(libcoap / "coap-client"), "-B", "10", "-E", Contexts.libcoaps(context), *more, uri]
    done = subprocess.run(arguments, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout


def test_libcoaps_client_asks_our_server_under_a_context(
    ours: Ours, libcoap: Path, contexts: Contexts, tmp_path: Path
) -> None:
    (files := tmp_path / "files").mkdir()
    (body := tmp_path / "body").write_bytes(LARGE)
    for _ in range(2):
        with our_server(ours, contexts.server, files) as port:
            where = f"coap://127.0.0.1:{port}"
            by_libcoap(libcoap, contexts.client, f"{where}/kept", "-m", "put", "-f", str(body))
            assert (files / "kept").read_bytes() == LARGE
            assert by_libcoap(libcoap, contexts.client, f"{where}/kept").rstrip(b"\n") == LARGE
            counts = [int(line) for line in by_libcoap(libcoap, contexts.client, f"{where}/count", "-s", "8").split()]
            assert len(counts) > 4
            assert counts == sorted(counts)


def test_our_client_asks_libcoaps_server_under_a_context(ours: Ours, libcoap: Path, contexts: Contexts) -> None:
    port, flags = free_port(), ("--oscore", str(contexts.client))
    where = f"coap://127.0.0.1:{port}"
    arguments = [str(libcoap / "coap-server"), "-A", "127.0.0.1", "-p", str(port), "-d", "10"]
    for _ in range(2):
        server = [*arguments, "-E", Contexts.libcoaps(contexts.server)]
        with subprocess.Popen(server, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
            try:
                wait_for_pong(port)
                assert ours.ask("put", f"{where}/kept", *flags, payload=LARGE).code in {"2.01", "2.04"}
                assert ours.ask("get", f"{where}/kept", *flags).payload == LARGE
                observed = ours.run("observe", *flags, "--count", "3", f"{where}/time")
                # Times follow each other without a line's end.
                assert observed.stdout.count(b":") == 6, observed
            finally:
                running.kill()


@contextlib.contextmanager
def proxy(program: list[str], port: int) -> Iterator[None]:
    """One that knows no OSCORE."""
    with subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        try:
            wait_for_pong(port)
            yield
        finally:
            running.kill()


def bodies_go_both_ways(ours: Ours, where: str, files: Path, *flags: str) -> None:
    """Ours asks ours, with something in between."""
    assert ours.ask("get", f"{where}/hello", *flags).payload == b"Hello from Millpond.\n"
    assert ours.ask("put", f"{where}/kept", *flags, payload=LARGE).code == "2.01"
    assert (files / "kept").read_bytes() == LARGE
    assert ours.ask("get", f"{where}/kept", *flags).payload == LARGE


@pytest.mark.parametrize("size", ["512", "1024"])
def test_bodies_go_both_ways_through_aiocoaps_proxy(
    ours: Ours, python: str, contexts: Contexts, tmp_path: Path, size: str
) -> None:
    """It cuts what is longer than 1024 bytes."""
    (files := tmp_path / "files").mkdir()
    port = free_port()
    bind = ["--bind", f"127.0.0.1:{port}"]
    with our_server(ours, contexts.server, files) as server:
        rules = ["--reverse", "--unconditional", f"127.0.0.1:{server}"]
        with proxy([python, "-m", "aiocoap.cli.proxy", *bind, *rules], port):
            flags = ("--oscore", str(contexts.client), "--block-size", size)
            bodies_go_both_ways(ours, f"coap://127.0.0.1:{port}", files, *flags)


@pytest.mark.parametrize("size", ["512", "1024"])
def test_bodies_and_observations_go_through_libcoaps_proxy(
    ours: Ours, contexts: Contexts, tmp_path: Path, size: str
) -> None:
    """A forward proxy, which is told by whom what is asked for."""
    try:
        program = [Libcoap.program("server"), "-A", "127.0.0.1", "-P", ",proxy"]
    except Missing as missing:
        pytest.skip(str(missing))
    (files := tmp_path / "files").mkdir()
    port = free_port()
    with our_server(ours, contexts.server, files) as server, proxy([*program, "-p", str(port)], port):
        asked = {"Proxy-Scheme": "coap", "Uri-Host": "127.0.0.1", "Uri-Port": str(server)}
        options = [flag for name, value in asked.items() for flag in ("-O", f"{name}={value}")]
        flags = ("--oscore", str(contexts.client), "--block-size", size, *options)
        where = f"coap://127.0.0.1:{port}"
        bodies_go_both_ways(ours, where, files, *flags)
        observed = ours.run("observe", *flags, "--count", "4", f"{where}/count")
        assert is_counting(observed.stdout.decode().split()), observed


def all_to(port: int) -> str:
    """The rule of a gateway before a server on this port."""
    return f'[[rule]]\npath = "/{{*rest}}"\nto = "coap://127.0.0.1:{port}/{{*rest}}"\n'


def test_our_gateway_asks_their_server_under_a_context(ours: Ours, theirs: Theirs, tmp_path: Path) -> None:
    """For clients that have none."""
    contexts = Contexts(ours, tmp_path)
    flags = ("--oscore", str(contexts.client))
    with contextlib.ExitStack() as running:
        port = running.enter_context(theirs.serving(contexts.server))
        with contexts.client.open("a") as file:
            file.write(f'server = "127.0.0.1:{port}"\n')
        gateway = running.enter_context(ours.gateway(tmp_path, all_to(port), *flags))
        where = f"coap://127.0.0.1:{gateway}"
        assert ours.ask("get", f"{where}/store").payload == b"protected"
        assert ours.ask("put", f"{where}/store", payload=LARGE).code == "2.04"
        assert ours.ask("get", f"{where}/store").payload == LARGE
        observed = ours.run("observe", "--count", "4", f"{where}/count")
        assert is_counting(observed.stdout.decode().split()), observed


def test_their_client_asks_our_gateway_under_a_context(ours: Ours, theirs: Theirs, tmp_path: Path) -> None:
    """What a server has that knows nothing of it, and who has no context is refused."""
    (files := tmp_path / "files").mkdir()
    contexts = Contexts(ours, tmp_path, "--client-id", "07")
    flags = ("--oscore", str(contexts.server))
    with ours.serving(files) as port, ours.gateway(tmp_path, all_to(port) + 'who = ["oscore:07"]\n', *flags) as gateway:
        where = f"coap://127.0.0.1:{gateway}"
        assert theirs.ask("get", f"{where}/hello", contexts.client).payload == b"Hello from Millpond.\n"
        assert theirs.ask("put", f"{where}/kept", contexts.client).code == "2.01"
        assert (files / "kept").read_bytes() == LARGE
        observed = theirs.ask("observe", f"{where}/count", contexts.client)
        assert is_counting(observed.payload.decode().split()), observed
        assert ours.ask("get", f"{where}/hello").code == "4.01"
