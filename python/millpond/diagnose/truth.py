"""What is true of a run: of every retransmission, of its path and of its devices, from its two-ended capture.

A retransmission is *spurious* if the answer to an earlier transmission of its exchange reaches the device, and *needed*
otherwise.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from millpond.diagnose.ends import Address, End, Seen, packets
from millpond.plan.values import in_units

Label = Literal["spurious", "needed"]
#: Of the links, in the order of `Truth.links`.
LINKS = ("uplink", "downlink")

#: A device may use a message ID again for something else after this (EXCHANGE_LIFETIME, RFC 7252 §4.8.2).
_LIFETIME_US = 247_000_000


@dataclass
class Exchange:
    """A request of a device with all its transmissions: when each was sent, arrived, and was answered, in µs."""

    device: Address
    message_id: int
    token: bytes
    sent: list[int] = field(default_factory=list)
    arrived: list[int | None] = field(default_factory=list)
    answered: list[int | None] = field(default_factory=list)

    @property
    def useful(self) -> int | None:
        """The number of the first transmission whose answer reaches the device; None if none does."""
        return next((number for number, at in enumerate(self.answered) if at is not None), None)

    def label(self, number: int) -> Label:
        """Of a retransmission."""
        return "spurious" if self.useful is not None and number > self.useful else "needed"

    def at(self, end: End) -> list[tuple[int, int]]:
        """Number and time of the transmissions that an end sees."""
        times = self.sent if end == "devices" else self.arrived
        return [(number, at) for number, at in enumerate(times) if at is not None]


@dataclass
class Link:
    """What a direction carried and lost, in packets and bytes; what its queue dropped is in none of them."""

    packets: int = 0
    size: int = 0
    lost_packets: int = 0
    lost_size: int = 0
    #: The size of the smallest packet.
    smallest: int = 0
    #: Bytes of the packets that completed an exchange.
    useful: int = 0

    @property
    def loss(self) -> float:
        """Share of the packets that the radio lost."""
        return self.lost_packets / self.packets if self.packets else 0.0

    @property
    def goodput_ratio(self) -> float:
        """Of the bytes that arrived those that completed an exchange."""
        return self.useful / (self.size - self.lost_size) if self.size > self.lost_size else 1.0


@dataclass(frozen=True)
class Truth:
    """What is true of a run."""

    scenario: Mapping[str, Any]
    exchanges: tuple[Exchange, ...]
    links: tuple[Link, Link]

    @cached_property
    def devices(self) -> int:
        """That sent anything."""
        return len({exchange.device for exchange in self.exchanges})

    def labels(self, end: End) -> dict[Seen, Label]:
        """The label of each retransmission that an end sees as one: behind another of its exchange."""
        return {
            (peer(exchange.device), exchange.message_id, at): exchange.label(number)
            for exchange in self.exchanges
            for number, at in exchange.at(end)[1:]
        }

    def transmissions(self, end: End) -> int:
        """That an end sees."""
        return sum(len(exchange.at(end)) for exchange in self.exchanges)

    @property
    def goodput_ratio(self) -> float:
        """Of the downlink, which is what a diagnosis tells."""
        return self.links[1].goodput_ratio

    @cached_property
    def bottleneck_ratio(self) -> float:
        """The goodput ratio of the bottleneck, the direction that is busier."""
        rates = [_rate(self.scenario, name) for name in LINKS]
        busy = [link.size / rate for link, rate in zip(self.links, rates, strict=True)]
        return self.links[busy.index(max(busy))].goodput_ratio

    @property
    def _idle_round_trip_s(self) -> float:
        """Of the smallest packets of each direction."""
        path = self.scenario["path"]
        return sum(
            in_units(path[name]["delay"]) + 8 * link.smallest / _rate(self.scenario, name)
            for name, link in zip(LINKS, self.links, strict=True)
        )

    @cached_property
    def spurious_share(self) -> float:
        """Spurious retransmissions of all transmissions."""
        sent = [(exchange, number) for exchange in self.exchanges for number in range(len(exchange.sent))]
        return sum(number > 0 and e.label(number) == "spurious" for e, number in sent) / len(sent) if sent else 0.0

    @cached_property
    def figures(self) -> dict[str, float]:
        """The figures of path and devices by their places, in s, bit/s, bytes and shares."""
        path, groups = self.scenario["path"], self.scenario["clients"]
        found = {"path.base_rtt_s": self._idle_round_trip_s}
        for name, link in zip(LINKS, self.links, strict=True):
            found[f"path.{name}.rate_bps"] = _rate(self.scenario, name)
            if path[name]["queue"].endswith("B"):
                found[f"path.{name}.buffer_bytes"] = in_units(path[name]["queue"])
            found[f"path.{name}.loss"] = link.loss
        timers = [_timers(group) for group in groups]
        if all(timer == timers[0] for timer in timers):
            found |= timers[0]
        if len(groups) == 1 and len(rhythms := _periods(groups[0]["workload"])) == 1:
            found["period_s"] = rhythms[0]
        if len(groups) == 1:
            found["nstart"] = float(groups[0].get("nstart", 1))
        return found


def of(capture: bytes, scenario: Mapping[str, Any]) -> Truth:
    """The truth of a run.

    Args:
        capture: Its capture at both ends.
        scenario: In full, as the engine writes it.
    """
    open_now: dict[tuple[Address, int], Exchange] = {}
    by_token: dict[tuple[Address, bytes], Exchange] = {}
    found: list[Exchange] = []
    links = (Link(), Link())
    # a link keeps the order of an exchange's packets: transmissions on their way up, and answers on their way down
    going_up: defaultdict[int, deque[int]] = defaultdict(deque)
    at_server: defaultdict[int, list[int]] = defaultdict(list)
    # exchanges that the server acknowledged or answered, and those that it answered
    is_acknowledged, is_answered = set[int](), set[int]()
    # the exchanges, and transmissions of them, that messages with IDs of the server's belong to
    by_itself: dict[tuple[Address, int], tuple[Exchange, int]] = {}
    going_down: defaultdict[int, deque[int]] = defaultdict(deque)
    # of a transmission, its response and its empty acknowledgement
    sizes: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0, 0])
    devices: set[Address] = set()
    for packet in packets(capture):
        if packet.is_request:
            devices.add(packet.source)
        goes_up = packet.source in devices
        link = links[0 if goes_up else 1]
        leaves = packet.end == ("devices" if goes_up else "server")
        if leaves and packet.lost != "lost: queue full":
            link.packets += 1
            link.size += packet.size
            link.smallest = min(link.smallest or packet.size, packet.size)
            link.lost_packets += bool(packet.lost)
            link.lost_size += packet.size if packet.lost else 0
        if goes_up and not packet.is_request:
            # it acknowledges what the server sent by itself
            continue
        device = packet.source if goes_up else packet.target
        key = (device, packet.message_id)
        # a response that is no acknowledgement has a message ID of the server's
        by_id = packet.is_request or packet.acknowledges
        if by_id:
            exchange = open_now.get(key)
        elif leaves:
            exchange = by_token.get((device, packet.token))
        else:
            exchange = by_itself[key][0] if key in by_itself else None
        if packet.is_request and leaves:
            if (
                exchange is None
                or not _is_of(exchange.token, packet.token)
                or packet.at_us - exchange.sent[0] > _LIFETIME_US
            ):
                exchange = open_now[key] = Exchange(device, packet.message_id, packet.token)
                found.append(exchange)
            number = len(exchange.sent)
            exchange.sent.append(packet.at_us)
            exchange.arrived.append(None)
            exchange.answered.append(None)
            sizes[id(exchange), number][0] = packet.size
            if not packet.lost:
                going_up[id(exchange)].append(number)
        elif exchange is None or not (packet.is_request or packet.is_response or packet.acknowledges):
            continue
        elif packet.is_request:
            number = going_up[id(exchange)].popleft()
            exchange.arrived[number] = packet.at_us
            if not at_server[id(exchange)]:
                by_token[device, exchange.token] = exchange
            at_server[id(exchange)].append(number)
        elif leaves:
            # the first answer is to what arrived first, however long it took, and a later one to the duplicate that
            # arrived last; a duplicate is perhaps not answered at all
            again = id(exchange) in (is_acknowledged if by_id else is_answered)
            number = at_server[id(exchange)][-1 if again else 0]
            if not by_id:
                before, its = by_itself.get(key, (None, 0))
                number = its if before is exchange else number
                by_itself[key] = exchange, number
            is_acknowledged.add(id(exchange))
            if packet.is_response:
                is_answered.add(id(exchange))
            if not packet.lost:
                sizes[id(exchange), number][1 if packet.is_response else 2] = packet.size
                going_down[id(exchange)].append(number)
        elif going_down[id(exchange)]:
            number = going_down[id(exchange)].popleft()
            if exchange.answered[number] is None:
                exchange.answered[number] = packet.at_us
    for exchange in found:
        if (first := exchange.useful) is not None:
            request, response, acknowledgement = sizes[id(exchange), first]
            links[0].useful += request
            links[1].useful += response + acknowledgement
    return Truth(scenario, tuple(found), links)


def peer(address: Address) -> str:
    """A device as the diagnosis names it."""
    host, port = address
    return f"{'.'.join(map(str, host))}:{port}"


# ----------------------------------------------------------------------------------------------- helpers


def _is_of(known: bytes, token: bytes) -> bool:
    """Whether a token is an exchange's, or its with another byte behind it, by which some devices name their copies."""
    stem = token[:-1]
    return known == token or (len(stem) > 0 and stem in (known, known[:-1]))


def _rate(scenario: Mapping[str, Any], link: str) -> float:
    return in_units(scenario["path"][link]["rate"])


def _timers(group: Mapping[str, Any]) -> dict[str, float]:
    controller = group.get("controller", {})
    if not isinstance(controller, Mapping) or controller.get("preset") != "rfc7252":
        return {}
    return {
        # settings that are as RFC 7252 §4.8 has them are not written out
        "timers.ack_timeout_s": in_units(controller.get("ack-timeout", "2 s")),
        "timers.random_factor": float(controller.get("random-factor", 1.5)),
        "timers.backoff": float(controller.get("backoff-factor", 2)),
        "timers.max_retransmit": float(group["max_retransmit"]),
    }


def _periods(workload: Any) -> list[float]:
    tables = workload if isinstance(workload, list) else [workload]
    periods = [table["period"] for table in tables if isinstance(table, dict) and table["kind"] == "periodic"]
    return [in_units(period) for period in periods if isinstance(period, str)]
