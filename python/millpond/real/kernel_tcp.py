"""One download over the kernel's own TCP, measured: `python -m millpond.real.kernel_tcp serve|fetch`.

Both ends run in network namespaces of their own, so that what is set is set there alone.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import struct
import sys
import time
from collections.abc import Sequence
from pathlib import Path

PORT = 5683
#: As long as the study's request in its frame (RFC 8323).
REQUEST = b"\x60\x01\xb5hello"
#: The files that they leave: the server a line a connection, each device one of its own.
SERVER, CLIENT = "server.jsonl", "client-{}.json"
#: Large enough that neither end's buffer ever holds a transfer back.
BUFFER = 4 << 20

_TCP_CONGESTION = 13
_TCP_INFO = 11


def main(arguments: Sequence[str]) -> None:
    """Run one end."""
    parser = argparse.ArgumentParser(prog="kernel_tcp")
    parser.add_argument("end", choices=("serve", "fetch"))
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", dest="settings")
    parser.add_argument("--congestion", default="")
    parser.add_argument("--bytes", type=int, required=True)
    parser.add_argument("--window", type=int, default=0)
    parser.add_argument("--ahead", type=float, default=0.0)
    parser.add_argument("--at", required=True)
    parser.add_argument("--left", type=Path, required=True, metavar="FOLDER")
    told = parser.parse_args(arguments)
    for entry in told.settings:
        name, _, value = entry.partition("=")
        Path("/proc/sys/net/ipv4", name).write_text(value, encoding="ascii")
    if told.end == "serve":
        serve(told.at, told.congestion, told.bytes, told.window, told.left / SERVER)
    else:
        fetch(told.at, told.bytes, told.ahead, told.left / CLIENT.format(os.environ.get("MILLPOND_DEVICE", "1")))


def serve(at: str, congestion: str, length: int, window: int, left: Path) -> None:
    """Answer every connection with so many bytes; after each, leave what the kernel tells of it."""
    if window:
        initial_window(window)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
        listening.setsockopt(socket.IPPROTO_TCP, _TCP_CONGESTION, congestion.encode())
        listening.bind((at, PORT))
        listening.listen(64)
        while True:
            connection, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                _answer(connection, length, left)
                os._exit(0)
            connection.close()


def fetch(at: str, length: int, ahead: float, left: Path) -> None:
    """Ask once and take what comes, from the request to the last byte."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.connect((at, PORT))
        time.sleep(ahead)
        begun = time.monotonic_ns()
        connection.sendall(REQUEST)
        missing = length
        while missing > 0:
            missing -= len(connection.recv(65_536)) or sys.exit("the server closed the connection")
        took = time.monotonic_ns() - begun
    left.write_text(json.dumps({"fct_us": took // 1000}), encoding="ascii")


def initial_window(segments: int) -> None:
    """Sets the initial congestion window of the only network's route, as `ip route change … initcwnd` does."""
    index = next(number for number, name in socket.if_nameindex() if name != "lo")
    metrics = _attribute(11, struct.pack("I", segments))  # RTAX_INITCWND
    body = struct.pack("BBBBBBBBI", socket.AF_INET, 16, 0, 0, 254, 4, 253, 1, 0)  # main table, static, link, unicast
    body += (
        _attribute(1, socket.inet_aton("10.77.0.0")) + _attribute(4, struct.pack("I", index)) + _attribute(8, metrics)
    )
    flags = 0x1 | 0x4 | 0x100 | 0x400  # request, acknowledge, replace, create
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as kernel:
        kernel.send(struct.pack("IHHII", 16 + len(body), 24, flags, 1, 0) + body)
        answer = kernel.recv(4096)
        (error,) = struct.unpack_from("i", answer, 16)
        if error:
            sys.exit(f"the route's initial window: {os.strerror(-error)}")


def _attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("HH", 4 + len(value), kind) + value + b"\0" * (-len(value) % 4)


def _answer(connection: socket.socket, length: int, left: Path) -> None:
    asked = b""
    while len(asked) < len(REQUEST):
        asked += connection.recv(64) or sys.exit(0)
    connection.sendall(b"x" * length)
    connection.shutdown(socket.SHUT_WR)
    while connection.recv(64):
        pass
    # tcpi_total_retrans: RFC 4898's SegsRetrans of this connection
    info = connection.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, 104)
    (again,) = struct.unpack_from("I", info, 100)
    used = connection.getsockopt(socket.IPPROTO_TCP, _TCP_CONGESTION, 16).split(b"\0")[0].decode()
    with left.open("a", encoding="ascii") as file:
        file.write(json.dumps({"congestion": used, "sent_again": again}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
