"""A two-ended capture of a run taken apart: what became of every packet.

The files are those that the engine writes, in pcapng: raw IPv4 on two interfaces, `clients` and `server`, and a comment
on packets that were lost.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

#: Where a capture was taken. Behind the number of an interface stands its end.
End = Literal["devices", "server"]
ENDS: tuple[End, ...] = ("devices", "server")
Address: TypeAlias = tuple[bytes, int]
#: A transmission as an end sees it: device, message ID, when it passes that end in µs.
Seen: TypeAlias = tuple[str, int, int]

_PACKET = 6
_COMMENT = 1
_HEAD, _PACKET_HEAD, _OPTION = struct.Struct("<II"), struct.Struct("<IIIII"), struct.Struct("<HH")
_IP_AND_UDP = 28
_UDP = 17
_ACKNOWLEDGEMENT, _RESET = 2, 3


@dataclass(frozen=True, slots=True)
class Packet:
    """A CoAP message over UDP at one of the ends."""

    at_us: int
    end: End
    source: Address
    target: Address
    #: Bytes of the IP packet.
    size: int
    #: Whether its message ID is that of the message that it acknowledges, or resets.
    acknowledges: bool
    code: int
    message_id: int
    token: bytes
    #: Why it was lost behind this end; empty if it was not.
    lost: str

    @property
    def is_request(self) -> bool:
        """Whether it asks for something."""
        return 1 <= self.code < 32

    @property
    def is_response(self) -> bool:
        """Whether it answers."""
        return self.code >= 64


def packets(capture: bytes) -> Iterator[Packet]:
    """Every CoAP message of a capture, in its order."""
    for body, block in _packets(capture):
        interface, high, low, length, _ = _PACKET_HEAD.unpack_from(block)
        data = block[20 : 20 + length]
        if data[9] != _UDP:
            continue
        source, target = struct.unpack_from(">HH", data, 20)
        coap = data[_IP_AND_UDP:]
        first, code, message_id = struct.unpack_from(">BBH", coap)
        yield Packet(
            at_us=high << 32 | low,
            end=ENDS[interface],
            source=(data[12:16], source),
            target=(data[16:20], target),
            size=length,
            acknowledges=first >> 4 & 3 in (_ACKNOWLEDGEMENT, _RESET),
            code=code,
            message_id=message_id,
            token=coap[4 : 4 + (first & 15)],
            lost=_comment(body),
        )


# ----------------------------------------------------------------------------------------------- helpers


def _blocks(capture: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(capture):
        kind, length = _HEAD.unpack_from(capture, at)
        yield kind, capture[at + 8 : at + length - 4]
        at += length


def _packets(capture: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The options and the whole of each block that holds a packet."""
    for kind, block in _blocks(capture):
        if kind == _PACKET:
            yield block[20 + (_PACKET_HEAD.unpack_from(block)[3] + 3) // 4 * 4 :], block


def _comment(options: bytes) -> str:
    if len(options) < _OPTION.size:
        return ""
    kind, length = _OPTION.unpack_from(options)
    return options[4 : 4 + length].decode("utf-8") if kind == _COMMENT else ""
