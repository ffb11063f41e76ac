"""What protects the messages of a fleet, and what it costs: flights after a power cut, and bytes on every message."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Security = Literal["none", "dtls-psk", "dtls-resumed", "dtls-cid", "oscore"]


@dataclass(frozen=True)
class Cost:
    """What a security layer sends. Bytes are above UDP."""

    title: str
    #: Added to each message.
    request: int
    response: int
    #: Pairs of flights after a restart: a device's, and the server's that answers it.
    flights: tuple[tuple[int, int], ...] = ()
    #: A device's last flight, unanswered: it leaves with the first request, in one datagram (RFC 6347 §4.1.1).
    last: int = 0
    #: No node on the way can tell a retransmission: each is a record of its own.
    hides_copies: bool = True


#: ChangeCipherSpec and Finished.
_FINISHED = 67
#: What a longer session identifier adds (RFC 5246 §7.4.1.2).
_SESSION = 32
#: The flights of DTLS 1.2 with a pre-shared key, as `millpond` sends them with an identity of two bytes
#: (crates/cli/tests/loopback/protected.rs): ClientHello and HelloVerifyRequest; ClientHello with cookie, ServerHello
#: and ServerHelloDone; ClientKeyExchange, ChangeCipherSpec and Finished, and the server's.
_HELLO, _HELLO_DONE = 114, 25
_FULL = ((_HELLO, 60), (146, 83 + _HELLO_DONE), (29 + _FINISHED, _FINISHED))
#: Header, explicit nonce and tag of AES-CCM-8 (RFC 6347 §4.1, RFC 6655 §3).
_RECORD = 29
#: A connection ID.
_IDENTIFIER = 6

COSTS: dict[Security, Cost] = {
    "none": Cost("no security", 0, 0, hides_copies=False),
    "dtls-psk": Cost("DTLS 1.2 with a pre-shared key", _RECORD, _RECORD, _FULL),
    # RFC 5246 §7.3, without an exchange of a cookie, which RFC 6347 §4.2.1 leaves to the server: the same hellos with
    # an identifier, and the server's Finished before the device's
    "dtls-resumed": Cost(
        "a resumed session of DTLS 1.2", _RECORD, _RECORD, ((_HELLO + _SESSION, 83 + _SESSION + _FINISHED),), _FINISHED
    ),
    # of a session that the device keeps over the cut: six bytes of the server's identifier, as Californium's servers
    # choose, and the record's own type behind what is sealed (RFC 9146 §4); the server's records need none
    "dtls-cid": Cost("a session of DTLS 1.2 kept by its connection ID", _RECORD + _IDENTIFIER + 1, _RECORD),
    # an ID of the device of two bytes, a Partial IV of one (docs/appendix/oscore.md)
    "oscore": Cost("OSCORE", 15, 11, hides_copies=False),
}
