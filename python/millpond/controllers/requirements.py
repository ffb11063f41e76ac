"""What a congestion controller for CoAP has to satisfy, and whether a given one does: judged by driving it.

The requirements are those of RFC 8961 (section 4), RFC 8085 (section 3.1) and RFC 7252 (sections 4.7 and 4.8), and two
that a paper and a draft on CoAP add. Each verdict comes from calls to the controller itself and carries in one line
what was measured. What an endpoint keeps, whatever its controller does, is said to be the endpoint's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from millpond.controllers import probes
from millpond.controllers.peer import Make

Verdict: TypeAlias = Literal["met", "partly", "not met", "endpoint", "not applicable"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

MARKS: dict[Verdict, str] = {
    "met": "✓",
    "partly": "◐",
    "not met": "✗",
    "endpoint": "E",
    "not applicable": "\N{EN DASH}",
}
"""A character for each verdict, for tables that show many."""
KEY = "✓ met   ◐ partly   ✗ not met   E kept by the endpoint   \N{EN DASH} not applicable"
"""What the characters mean."""


@dataclass(frozen=True)
class Requirement:
    """One requirement, in our words."""

    id: str
    title: str
    #: What calls to a controller tell of it: the verdict, and what was measured.
    probe: Callable[[Make], tuple[Verdict, str]]
    text: str
    source: str


@dataclass(frozen=True)
class Judgement:
    """Whether a controller meets a requirement, and what was measured."""

    requirement: Requirement
    verdict: Verdict
    evidence: str

    @property
    def mark(self) -> str:
        """The verdict as one character."""
        return MARKS[self.verdict]


REQUIREMENTS = (
    Requirement("C1", "first wait of at least 1 s", probes.initial_wait,
        "As long as nothing is known of the path, the first wait is at least one second.",
        "RFC 8961 §4 (1), RFC 8085 §3.1.1"),
    Requirement("C2", "several samples and their variance", probes.samples_and_variance,
        "The timeout rests on more than the last sample, and on how much samples vary.",
        "RFC 8961 §4 (2a), RFC 8085 §3.1.1"),
    Requirement("C3", "every clean exchange is a sample", probes.every_exchange,
        "The round-trip time is sampled once per round trip, or with every exchange if they are rarer.",
        "RFC 8961 §4 (2b)"),
    Requirement("C4", "no ambiguous samples", probes.ambiguous_samples,
        "An answer that does not say which of several copies it answers moves no estimate (Karn's rule).",
        "RFC 8961 §4 (2d), RFC 8085 §3.1.1"),
    Requirement("C5", "an expiry lowers the rate", probes.congestion_signal,
        "A wait that runs out counts as congestion: from then on copies leave more rarely.",
        "RFC 8961 §4 (3), RFC 8085 §3.1.1"),
    Requirement("C6", "exponential backoff", probes.backoff,
        "Every wait that runs out makes the next one longer, by a factor, up to a cap if there is one.",
        "RFC 8961 §4 (4)"),
    Requirement("C7", "backoff kept until a clean answer", probes.kept_backoff,
        "The backed-off wait goes only when a message that was sent once has been answered.",
        "RFC 8961 §4 (4), Karn and Partridge 1987"),
    Requirement("C8", "no cap below 60 s", probes.caps,
        "If waits have a highest value, it is 60 s or more.", "RFC 8961 §4 (4)"),
    Requirement("C9", "an estimate per destination", probes.own_estimate,
        "What is learnt of one destination says nothing of another.", "RFC 8085 §3.1.1"),
    Requirement("C10", "non-confirmable messages at most one per timeout", probes.plain_messages,
        "Unacknowledged messages leave at most once per round trip; without any feedback at most once in 3 s.",
        "RFC 8085 §3.1.3, RFC 7252 §4.7"),
    Requirement("C11", "both directions are controlled", probes.both_directions,
        "Responses are subject to congestion control as requests are.", "RFC 8085 §3.1.4, RFC 7252 §4.7"),
    Requirement("C12", "first waits are spread", probes.spread,
        "First waits are drawn at random from a range, so that devices that begin together do not stay together.",
        "RFC 7252 §4.8.1"),
    Requirement("C13", "the standard's limits stand", probes.standard_limits,
        "ACK_TIMEOUT is not lowered and NSTART not raised without such a mechanism; silent peers are probed slowly.",
        "RFC 7252 §4.7 and §4.8.1"),
    Requirement("C14", "the first sample and many retransmissions count", probes.first_and_many,
        "The first sample replaces the default in full; an answer after three or more retransmissions has an effect.",
        "Is CoAP Congestion Safe? (ANRW 2018), §4.1"),
    Requirement("C15", "what is stale decays", probes.ageing,
        "After a long silence what was learnt gives way to the default.", "draft-ietf-core-cocoa-03 §4"),
)  # fmt: skip
"""All of them, in their order."""


def judge(make: Make) -> tuple[Judgement, ...]:
    """The verdict on every requirement for the controllers that `make` gives, each for an unknown peer.

    The same controller gets the same verdicts with the same evidence, on any machine.
    """
    return tuple(Judgement(requirement, *requirement.probe(make)) for requirement in REQUIREMENTS)
