"""aiocoap under one of Millpond's controllers, calm unless another is named: `CalmContext` in place of `Context`.

Wants the extra `aiocoap`, and nothing of the laboratory.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import aiocoap
from aiocoap import error
from aiocoap.messagemanager import MessageManager
from aiocoap.numbers.types import ACK, CON, RST
from aiocoap.tokenmanager import TokenManager

from millpond.controller import BuiltIn, Cx, Exchange
from millpond.controller import Sample as RttSample

MOST_PEERS = 10_000  # then the oldest without an exchange is forgotten


@dataclass
class Flight:
    """One confirmable message under way, and when its copies left."""

    message: aiocoap.Message
    exchange: Exchange = field(default_factory=Exchange)
    sent_us: list[int] = field(default_factory=list)


class CalmMessageManager(MessageManager):
    """Asks a controller when messages leave and how long to wait; names copies by a byte at the end of the token."""

    def __init__(self, token_manager: TokenManager, controller: str, settings: Mapping[str, object]) -> None:
        super().__init__(token_manager)
        self._make: Callable[[], BuiltIn] = lambda: BuiltIn(controller, settings)
        self._peers: dict[Any, BuiltIn] = {}
        self._flights: dict[tuple[Any, int], Flight] = {}

    def _peer(self, remote: Any) -> tuple[BuiltIn, Cx]:
        if remote not in self._peers:
            if len(self._peers) >= MOST_PEERS:
                self._peers.pop(next((known for known in self._peers if known not in self._backlogs), None), None)
            self._peers[remote] = self._make()
        waiting = min(len(self._backlogs.get(remote, ())), 65535)
        return self._peers[remote], Cx(int(self.loop.time() * 1e6), random.getrandbits(32), 1, waiting)

    def _send_initially(self, message: aiocoap.Message, messageerror_monitor: Any = None) -> None:
        """Send, or hold a confirmable message back. One held back is an exchange already: others queue behind it."""
        at_us: str | int = "now"
        if message.mtype is CON:
            peer, cx = self._peer(message.remote)
            at_us = peer.admit("confirmable", len(message.payload), cx)
        if isinstance(at_us, int):
            self._backlogs.setdefault(message.remote, [])
            leave = self.loop.call_at(at_us / 1e6, self._send_initially, message, messageerror_monitor)
            self._active_exchanges[message.remote, message.mid] = (messageerror_monitor, leave)
        else:
            super()._send_initially(message, messageerror_monitor)

    def _add_exchange(self, message: aiocoap.Message, messageerror_monitor: Any) -> None:
        self._backlogs.setdefault(message.remote, [])
        flight = self._flights[message.remote, message.mid] = Flight(message)
        peer, cx = self._peer(message.remote)
        self._arm(flight, cx, peer.on_start(flight.exchange, len(message.payload), cx).us, messageerror_monitor)

    def _arm(self, flight: Flight, cx: Cx, wait_us: int, monitor: Any) -> None:
        flight.sent_us.append(cx.now_us)
        timer = self._schedule_retransmit(flight.message, wait_us / 1e6, len(flight.sent_us) - 1)
        self._active_exchanges[flight.message.remote, flight.message.mid] = (monitor, timer)

    def _retransmit(self, message: aiocoap.Message, _timeout: float, retransmission_counter: int) -> None:
        key = (message.remote, message.mid)
        monitor, _ = self._active_exchanges.pop(key)
        flight, (peer, cx) = self._flights[key], self._peer(message.remote)
        if retransmission_counter < message.transport_tuning.MAX_RETRANSMIT:
            self._arm(flight, cx, peer.on_timeout(flight.exchange, cx).us, monitor)
            self._send_via_transport(message)
        else:
            peer.on_end(self._flights.pop(key).exchange, "gave-up", cx)
            del self._backlogs[message.remote]
            self.token_manager.dispatch_error(error.ConRetransmitsExceeded("no acknowledgement"), message.remote)

    def _send_via_transport(self, message: aiocoap.Message) -> None:
        """Name a request by the number of its copy while it is encoded, which the transports do at once."""
        token, flight = message.token, self._flights.get((message.remote, message.mid))
        if message.code.is_request() and len(token) < 8:
            message.token = token + bytes([len(flight.sent_us) - 1 if flight else 0])
        super()._send_via_transport(message)
        message.token = token

    def dispatch_message(self, message: aiocoap.Message) -> None:
        """Take the name off a response, tell the controller what it ends, and go on as aiocoap does."""
        named, key = None, (message.remote, message.mid)
        if message.code.is_response() and (message.token, message.remote) not in self.token_manager.outgoing_requests:
            message.token, named = message.token[:-1], message.token[-1:]
        acknowledges = message.mtype in (ACK, RST)
        if not acknowledges and message.code.is_response():  # a response before its acknowledgement, or instead of it
            asked = ((message.remote, flight.message.mid) for flight in self._flights.values()
                     if flight.message.code.is_request() and flight.message.token == message.token)  # fmt: skip
            key = next((key for key in asked if key in self._flights), key)
        if (acknowledges or named) and (flight := self._flights.pop(key, None)) is not None:
            self._learn(flight, message, named)
            if not acknowledges:
                self._active_exchanges.pop(key)[1].cancel()
                self._continue_backlog(message.remote)
        super().dispatch_message(message)

    def _learn(self, flight: Flight, message: aiocoap.Message, named: bytes | None) -> None:
        (peer, cx), sent = self._peer(message.remote), flight.sent_us
        if message.mtype is RST:
            return peer.on_end(flight.exchange, "reset", cx)
        kind = "separate" if message.mtype is not ACK else "piggybacked" if message.code.is_response() else "empty-ack"
        copy = named[0] if named and named[0] < len(sent) else None
        since_named = None if copy is None else cx.now_us - sent[copy]
        sample = RttSample(kind, cx.now_us - sent[0], cx.now_us - sent[-1], len(sent) - 1, copy, since_named)
        return peer.on_reply(flight.exchange, sample, cx)

    def dispatch_error(self, error: Exception, remote: Any) -> None:
        """Forget the exchanges with a remote that cannot be reached."""
        for key in [key for key in self._flights if key[0] == remote]:
            peer, cx = self._peer(remote)
            peer.on_end(self._flights.pop(key).exchange, "cancelled", cx)
        super().dispatch_error(error, remote)


class CalmContext(aiocoap.Context):
    """A context whose UDP transports have a controller: any of Millpond's, by its name and settings, set before."""

    controller = "calm"
    # A server may take its time before it acknowledges (RFC 7252 section 5.2.2): no wait below 200 ms.
    settings: Mapping[str, object] = MappingProxyType({"least-wait": "200 ms"})

    async def _append_tokenmanaged_messagemanaged_transport(self, message_interface_constructor: Any) -> None:
        tokens = TokenManager(self)
        messages = CalmMessageManager(tokens, self.controller, dict(self.settings))
        messages.message_interface = await message_interface_constructor(messages)
        tokens.token_interface = messages
        self.request_interfaces.append(tokens)
