"""CoAP in 72 lines: GETs timed by any of Millpond's controllers. `python client.py calm HOST PORT PATH COUNT`."""

import itertools
import secrets
import socket
import sys
import time

from millpond import BuiltIn, Cx, Exchange, RttSample

MAX_RETRANSMIT = 4
MIDS = itertools.count(secrets.randbelow(65536))  # none comes again soon (RFC 7252 section 4.4)
LEAST_WAIT = {"least-wait": "200 ms"}  # as calm has: a server may take its time (RFC 7252 section 5.2.2)


def cx() -> Cx:
    """What a call may know."""
    return Cx(time.monotonic_ns() // 1000, secrets.randbits(32))


def payload(message: bytes) -> bytes:
    """What follows the options (RFC 7252 section 3.1), in any of which the marker's byte may stand."""
    at = 4 + (message[0] & 15)
    while message[at : at + 1] not in (b"", b"\xff"):
        more, length = (max(nibble - 12, 0) for nibble in divmod(message[at], 16)), message[at] & 15
        at += 1 + next(more)
        if extended := next(more):
            length = int.from_bytes(message[at : at + extended], "big") + (13, 269)[extended - 1] + extended
        at += length
    return message[at + 1 :]


def ask(peer: BuiltIn, link: socket.socket, path: str) -> str:
    """One confirmable GET: its answer, or why there is none. It sees only acknowledgements."""
    while isinstance(at_us := peer.admit("confirmable", 40, now := cx()), int):
        time.sleep((at_us - now.now_us) / 1e6)
    mid, token = (next(MIDS) % 65536).to_bytes(2, "big"), secrets.token_bytes(3)
    exchange, sent = Exchange(), []
    segments = b"".join(bytes([(0xB0 if n == 0 else 0) | len(s)]) + s.encode() for n, s in enumerate(path.split("/")))
    while len(sent) <= MAX_RETRANSMIT:
        # Copies have one message ID, and a token that ends with their number.
        link.send(b"\x44\x01" + mid + token + bytes([len(sent)]) + segments)
        sent.append((now := cx()).now_us)
        wait = peer.on_timeout(exchange, now) if sent[1:] else peer.on_start(exchange, 40, now)
        print(f"copy {len(sent)} waits {wait.us / 1000:.0f} ms ({wait.reason})")
        deadline = time.monotonic() + wait.us / 1e6
        while (left := deadline - time.monotonic()) > 0:
            link.settimeout(left)
            try:
                came = link.recv(1500)
            except (TimeoutError, ConnectionError):
                continue
            if len(came) < 4 or came[0] >> 4 & 3 < 2 or came[2:4] != mid:
                continue  # neither an acknowledgement of this request nor a Reset of it
            if came[0] >> 4 & 3 == 3:
                return peer.on_end(exchange, "reset", cx()) or "rejected"
            since = [cx().now_us - at for at in sent]
            names = len(came) > 7 and came[4:7] == token and came[7] < len(sent)
            named = (came[7], since[came[7]]) if names else (None, None)
            kind = "piggybacked" if came[1] else "empty-ack"
            peer.on_reply(exchange, RttSample(kind, since[0], since[-1], len(sent) - 1, *named), cx())
            return f"{came[1] >> 5}.{came[1] & 31:02} " + payload(came).decode(errors="replace")
    return peer.on_end(exchange, "gave-up", cx()) or "gave up"


if __name__ == "__main__":
    preset, host, port, path, count = sys.argv[1:]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        link.connect((host, int(port)))
        peer = BuiltIn(preset, LEAST_WAIT)
        for _ in range(int(count)):
            print(ask(peer, link, path).strip())
