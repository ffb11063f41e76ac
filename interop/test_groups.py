"""Groups on a link that the tests make: two hosts, each a network namespace, with a wire between them."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator

from links import ADDRESSES, WIRE, Host
from sides import Ours, Peer

GROUP = "224.0.1.187"


@contextlib.contextmanager
def serving(ours: Ours, host: Host, *flags: str) -> Iterator[None]:
    """Our server as one of the groups of all CoAP nodes, with its own resources."""
    arguments = [*host.within, ours.program, "serve", "--multicast", "--interface", WIRE, "--quiet", *flags]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            while "in the group" not in (line := server.stdout.readline()):
                assert line, "our server does not start"
            yield
        finally:
            server.kill()


def discover(ours: Ours, host: Host, *arguments: str) -> list[dict[str, object]]:
    """The answers that our client gets."""
    done = subprocess.run(
        [*host.within, ours.program, "discover", "--json", *arguments], capture_output=True, check=False, text=True
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_our_client_is_answered(peer: Peer, ours: Ours, hosts: tuple[Host, Host]) -> None:
    here, there = hosts
    path = "/.well-known/core" if peer.name in ("libcoap", "aiocoap") else "/test"
    with peer.serving_group(there.within, GROUP, WIRE, there.address):
        answers = discover(ours, here, f"coap://{GROUP}{path}")
    assert [answer["peer"] for answer in answers] == [f"{there.address}:5683"]
    if path == "/test":
        assert answers[0]["payload"] == "get"
    else:
        links = answers[0]["links"]
        assert isinstance(links, list)
        assert {"libcoap": "/time", "aiocoap": "/test"}[peer.name] in [link["href"] for link in links]


def test_our_server_answers(peer: Peer, ours: Ours, hosts: tuple[Host, Host]) -> None:
    here, there = hosts
    with serving(ours, there, "--leisure", "500ms"):
        answers = peer.discover(here.within, f"coap://{GROUP}:5683/hello")
    assert "Hello from Millpond." in answers


def test_every_server_answers_once(ours: Ours, hosts: tuple[Host, Host]) -> None:
    here, there = hosts
    with serving(ours, here, "--leisure", "500ms"), serving(ours, there, "--leisure", "500ms", "--workers", "3"):
        answers = discover(ours, here, "--for", "7s")
    assert sorted(str(answer["peer"]) for answer in answers) == [f"{address}:5683" for address in ADDRESSES]


def test_a_link_of_ipv6_is_asked(ours: Ours, hosts: tuple[Host, Host]) -> None:
    here, there = hosts
    with serving(ours, there, "--leisure", "100ms"):
        for arguments in ([f"ff02::fd%{WIRE}"], ["--interface", WIRE, "ff05::fd"]):
            answers = discover(ours, here, "--for", "7s", *arguments)
            assert [str(answer["peer"])[:5] for answer in answers] == ["[fe80"]


def test_what_does_not_fit_a_message_is_fetched_by_unicast(ours: Ours, hosts: tuple[Host, Host]) -> None:
    here, there = hosts
    with serving(ours, there, "--leisure", "100ms"):
        answers = discover(ours, here, "--for", "7s", f"coap://{GROUP}/large?size=3k")
    assert [len(str(answer["payload"])) for answer in answers] == [3_000]


def test_a_filter_that_nothing_fits_is_met_with_silence(ours: Ours, hosts: tuple[Host, Host]) -> None:
    here, there = hosts
    with serving(ours, there, "--leisure", "100ms"):
        assert discover(ours, here, "--for", "7s", f"coap://{GROUP}?href=/hello")
        arguments = ["discover", "--for", "1s", f"coap://{GROUP}?href=/nothing"]
        done = subprocess.run([*here.within, ours.program, *arguments], capture_output=True, check=False, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert "nobody answered" in done.stderr


# NON GET /hello is answered, from the server's own address; all before it is not: CON GET /hello, a ping, NON GET of
# nothing, NON POST /echo, rubbish.
DATAGRAMS = r"""
import socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
    link.settimeout(3)
    for datagram in (b"\x41\x01\0\1a\xb5hello", b"\x40\0\0\2", b"\x51\x01\0\3c\xb3not", b"\x51\2\0\4d\xb4echo",
                     b"\x40\x01\0\5\xff", b"\x51\x01\0\6f\xb5hello"):
        link.sendto(datagram, ("224.0.1.187", 5683))
    try:
        while True:
            datagram, (sender, port) = link.recvfrom(2000)
            print(sender, port, datagram[0] >> 4 & 3, datagram[4:5].decode())
            link.settimeout(1)
    except TimeoutError:
        pass
"""


def test_our_server_says_only_what_a_group_is_for(ours: Ours, hosts: tuple[Host, Host]) -> None:
    here, there = hosts
    with serving(ours, there, "--leisure", "200ms"):
        done = subprocess.run(
            [*here.within, sys.executable, "-c", DATAGRAMS], capture_output=True, check=True, text=True
        )
    # 1 is NON.
    assert done.stdout.split("\n") == [f"{there.address} 5683 1 f", ""]


def test_a_request_of_another_verb_points_to_discover(ours: Ours) -> None:
    done = ours.run("get", f"coap://{GROUP}/")
    assert done.returncode == 1
    assert b"224.0.1.187 is a group, which discover asks" in done.stderr
