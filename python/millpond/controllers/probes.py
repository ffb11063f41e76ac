"""One probe for each requirement: calls to a controller, and what they tell.

A probe knows no algorithm. It compares what the controller answers after pasts that differ in one point.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from millpond.controllers.peer import (
    CAP_FLOOR,
    HIGHEST,
    LENGTH,
    LOWEST,
    MIDDLE,
    RTT,
    SECOND,
    STEADY,
    UNKNOWN,
    Course,
    Make,
    Peer,
    backed_off,
    climbed,
    measured,
    seasoned,
    seconds,
    states,
)

if TYPE_CHECKING:
    from millpond.controllers.requirements import Verdict

    Found: TypeAlias = tuple[Verdict, str]

DEFAULT_TIMEOUT = 2 * SECOND
"""ACK_TIMEOUT (RFC 7252 §4.8)."""
NO_FEEDBACK_GAP = 3 * SECOND
"""Between messages without any feedback (RFC 8085 §3.1.3)."""
HOUR = 3600 * SECOND
UNCAPPED = HOUR
"""A wait that grows past this has no cap worth the name."""
REACH = 9
"""So many of the last samples are changed, one by one."""
DOUBLING = 4
"""MAX_RETRANSMIT of RFC 7252: within one exchange of the standard's a wait that grows by a factor has doubled."""
SPREAD = 1.1
"""The least ratio that counts as spread. RFC 7252 §4.8.1 asks for a factor clearly above 1 and names no number."""
STILL = 1.01
"""A wait is longer than another if it is so by one per cent: less is rounding and the tail of an average."""

_ESTIMATES = {
    "srtt_us": "smoothed round-trip time",
    "rttvar_us": "round-trip time variation",
    "weak_srtt_us": "smoothed round-trip time of the weak estimator",
    "weak_rttvar_us": "round-trip time variation of the weak estimator",
}
_KEPT_REASONS = ("carried", "slow")


def initial_wait(make: Make) -> Found:
    """C1: the shortest first wait to an unknown peer, over the ends of chance and several exchanges open."""
    waits = [Peer(make).first(chance, n).us for chance in (LOWEST, MIDDLE, HIGHEST) for n in (1, 2, 4)]
    alone = [Peer(make).first_us(chance) for chance in (LOWEST, HIGHEST)]
    told = f"the first wait to an unknown peer {_range(alone)}"
    if min(waits) < min(alone):
        told += f", with several exchanges open at {seconds(min(waits))}"
    return ("met" if min(waits) >= SECOND else "not met"), told


def samples_and_variance(make: Make) -> Found:
    """C2: in a steady state, make one sample of the past shorter or longer, and let samples swing."""
    steady = SECOND

    def past(changed: int | None, other: int = steady) -> int:
        peer = Peer(make).steady(STEADY, steady)
        for back in reversed(range(REACH)):
            peer.ask(other if back == changed else steady)
        return peer.first_us()

    plain = past(None)
    # a controller that keeps a maximum hears nothing of a shorter one
    others = (7 * SECOND // 10, 13 * SECOND // 10)
    counting = [back for back in range(REACH) if any(past(back, other) != plain for other in others)]
    if not counting:
        return "not applicable", f"no sample changes a first wait: it stays at {seconds(plain)}"
    swinging = Peer(make)
    for _ in range(STEADY // 2):
        swinging.ask(8 * SECOND // 10)
        swinging.ask(steady)
    swung = swinging.first_us()
    varies = swung > plain * STILL
    reach = f"a sample {counting[-1]} answers back still counts" if counting[-1] else "only the last sample counts"
    told = (
        f"{reach}; samples that swing between 0.80 and 1.00 s give {seconds(swung)}, steady ones of 1.00 s "
        f"{seconds(plain)}"
    )
    if counting[-1] and varies:
        return "met", told
    return ("partly" if counting[-1] or varies else "not met"), told


def every_exchange(make: Make) -> Found:
    """C3: whether a shorter or a longer answer in the place of each would have made a difference."""
    ignored = []
    for past in range(10):
        peer = Peer(make).steady(past, SECOND)
        known = []
        for rtt in (SECOND, 7 * SECOND // 10, (SECOND + peer.first_us()) // 2):
            twin = peer.fork()
            twin.ask(rtt)
            known.append(_knows(twin))
        if known[0] == known[1] == known[2]:
            ignored.append(past + 1)
    if len(ignored) == 10:
        return "not applicable", "no answer leaves a trace: there is no estimate"
    if not ignored:
        return "met", "each of the first 10 clean answers makes a difference"
    return "partly", f"of the first 10 clean answers those with the numbers {_listed(ignored)} make no difference"


def ambiguous_samples(make: Make) -> Found:
    """C4: answers after retransmissions that name no copy: do the estimates move, and with the time they took?

    With a controller that wishes for one bit ("a retransmission"), also answers that fit several copies.
    """
    naming = Peer(make).controller.wishes().naming
    kinds = {"answers": False}
    if naming == "flag":
        kinds["answers that tell a retransmission from the first transmission and no more,"] = True
    for kind, named in kinds.items():
        moved = {
            lost: told
            for lost in (6, 4, 3, 2, 1)
            for past in (10, 0)
            if lost > 1 or not named
            if (told := _moved_by(Peer(make).steady(past, RTT), lost, named))
        }
        if moved:
            least = min(moved)
            plural = "s" if max(moved) > 1 else ""
            counts = f"{_listed(sorted(moved))} retransmission{plural}"
            return "not met", f"{kind} after {counts} move estimates; after {least}: {moved[least]}"
    told = "answers after 1 to 6 retransmissions move no estimate"
    if naming == "none":
        return "met", told
    if _moved_by(measured(make), 1, named=True):
        told += ", unless they name the last copy"
        early = measured(make)
        before = _knows(early)
        early.ask(sum(early.pair_us()) // 2)
        if _knows(early) != before:
            told += " or an earlier one (its age is the most that the round trip can have taken)"
    return "met", told


def congestion_signal(make: Make) -> Found:
    """C5: the wait after an expiry beside the wait that ran out, in each state."""
    shrinking = []
    told = ""
    for state, peer in states(make):
        first, second = peer.pair_us()
        told = told or f"the first expiry takes the wait from {seconds(first)} to {seconds(second)}"
        if second < first:
            shrinking.append(f"{state} from {seconds(first)} to {seconds(second)}")
        elif second == first and first < CAP_FLOOR and state == UNKNOWN:
            return "not met", f"an expiry leaves the wait at {seconds(first)}"
    if shrinking:
        return "partly", f"{told}, but {shrinking[0]}; one exchange at a time is the endpoint's"
    return "met", f"{told}, and no shorter one in any state; one exchange at a time is the endpoint's"


def backoff(make: Make) -> Found:
    """C6: every wait of an unanswered exchange beside the one before, in each state."""
    unknown = [wait.us for wait in Peer(make).series()]
    top = max(unknown)
    if top <= unknown[0]:
        return "not met", f"the wait never grows: {seconds(unknown[0])} after every copy"
    slowest: tuple[float, str] | None = None
    for state, peer in states(make):
        waits = [wait.us for wait in peer.series()]
        for copy, (before, after) in enumerate(pairwise(waits)):
            if after < before or (after == before < min(top, UNCAPPED)):
                change = "falls" if after < before else "stays"
                return "not met", (
                    f"{state} the wait {change} from {seconds(before)} to {seconds(after)} at expiry {copy + 1}"
                )
        for before, after in zip(waits, waits[DOUBLING:], strict=False):
            grown = after / before
            if after < min(top, waits[-1], UNCAPPED) and (slowest is None or grown < slowest[0]):
                slowest = grown, f"{state} from {seconds(before)} to {seconds(after)} in {DOUBLING} expiries"
    shown = unknown[:6]
    told = f"to an unknown peer {', '.join(f'{us / SECOND:.2f}' for us in shown)} s"
    told += " and on" if shown[-1] < top else " at most"
    if slowest is not None and slowest[0] < 2:
        return "partly", f"{told}; the slowest growth: {slowest[1]}"
    return "met", f"{told}; every wait is longer than the one before, in every state"


def kept_backoff(make: Make) -> Found:
    """C7: the first wait after an answer with retransmissions beside the wait that was in force."""
    worst: tuple[float, str] | None = None
    kept, returned, tried = 0, 0, 0
    example = ""
    for peer in (measured(make), Peer(make), seasoned(make)):
        for lost in (1, 2, 3, 4, 6):
            twin = peer.fork()
            course = twin.ask(RTT // 10, lost=lost, named=False)
            if not course.answered:
                continue
            in_force = course.in_force_us
            first, second = twin.pair_us()
            tried += 1
            kept += first * STILL >= in_force
            returned += max(first, second) * STILL >= in_force
            told = f"{_after(course)} the next first wait was {seconds(first)}, the one in force {seconds(in_force)}"
            if lost == 2:
                example = example or told
            if worst is None or first / in_force < worst[0]:
                worst = first / in_force, told
    if worst is None:
        return "not applicable", "no exchange has a second copy"
    if kept == tried:
        return "met", f"{example}; {_afterwards(make)}"
    if returned == tried:
        return "partly", f"{worst[1]}; it is back after the next exchange's first expiry at the latest"
    return "not met", worst[1]


def caps(make: Make) -> Found:
    """C8: where the waits of unanswered exchanges stop, and where first waits do, however slow the path."""
    highest = max(wait.us for peer in (Peer(make), measured(make)) for wait in peer.series())
    uncapped = f"have no cap: they grow past {UNCAPPED // SECOND} s"
    told = f"backed-off waits {uncapped if highest > UNCAPPED else f'stop at {seconds(highest)}'}"
    first = climbed(make).first_us()
    # a first wait that no sample moves has no cap of its own
    moves = first > Peer(make).first_us()
    if moves:
        told += f", first waits {'stop at' if first < CAP_FLOOR else 'reach'} {seconds(first)}"
    if highest < CAP_FLOOR:
        return "not met", told
    return ("partly" if moves and first < CAP_FLOOR else "met"), told


def own_estimate(make: Make) -> Found:
    """C9: whether two controllers of it share anything."""
    alone = _knows(Peer(make))
    left, right = Peer(make), Peer(make)
    left.steady(5, RTT)
    left.ask(RTT, lost=3)
    left.fail()
    if _knows(right) != alone or _knows(Peer(make)) != alone:
        return "not met", "what one controller learns changes another one of it"
    return "endpoint", "two controllers of it share nothing; that every destination has one is the endpoint's"


def plain_messages(make: Make) -> Found:
    """C10: how long an unacknowledged message waits behind another."""
    unknown, known = Peer(make), measured(make)
    gaps = unknown.plain_gap_us(), known.plain_gap_us()
    every = unknown.controller.wishes().confirmable_every
    told = f"a non-confirmable message of {LENGTH} bytes waits {seconds(gaps[0])} behind another to an unknown peer"
    told += f", {seconds(gaps[1])} after answers of {seconds(RTT)}"
    told += f"; every {every}th is made confirmable" if every else "; none is made confirmable"
    if max(gaps) == 0:
        return "not met", (
            "non-confirmable messages leave 0 s behind each other; "
            "of requests alone the endpoint lets one at a time be under way"
        )
    if gaps[1] < RTT:
        return "not met", told
    return ("met" if every or gaps[0] >= NO_FEEDBACK_GAP else "partly"), told


def both_directions(_: Make) -> Found:
    """C11: nothing of it can be seen at the controller."""
    return "endpoint", (
        "a separate confirmable response opens an exchange and a plain one is asked for like a request: the endpoint's"
    )


def spread(make: Make) -> Found:
    """C12: first waits after the same past, with chance low and high throughout."""
    waits: dict[str, list[int]] = {}
    for chance in (LOWEST, MIDDLE, HIGHEST):
        retransmitted = Peer(make, chance)
        retransmitted.ask(RTT // 10, lost=2, named=False)
        pasts = {
            UNKNOWN: Peer(make, chance),
            f"after answers of {seconds(RTT)}": Peer(make, chance).steady(10, RTT),
            "after an answer with retransmissions": retransmitted,
        }
        for past, peer in pasts.items():
            waits.setdefault(past, []).append(peer.first_us())
    ratios = {past: max(found) / min(found) for past, found in waits.items()}
    apart = [ratio >= SPREAD for ratio in ratios.values()]
    told = "the longest first wait over the shortest: "
    told += ", ".join(f"{ratio:.2f} {past}" for past, ratio in ratios.items())
    if all(apart):
        return "met", told
    return ("partly" if any(apart) else "not met"), told


def standard_limits(make: Make) -> Found:
    """C13: whether ACK_TIMEOUT is lowered for unknown peers."""
    first = Peer(make).first_us()
    endpoint = "NSTART and PROBING_RATE are the endpoint's"
    if first >= DEFAULT_TIMEOUT:
        return "endpoint", f"an unknown peer is waited for {seconds(first)} at least; {endpoint}"
    told = f"an unknown peer is waited for {seconds(first)}, less than ACK_TIMEOUT; {endpoint}"
    safe = backoff(make)[0] == "met" and ambiguous_samples(make)[0] == "met"
    return ("partly" if safe else "not met"), told


def first_and_many(make: Make) -> Found:
    """C14: double the first sample; let an answer take three and more retransmissions."""
    unit = Peer(make).first_us() * 3 // 10
    once, twice = (Peer(make).steady(1, rtt).first_us() for rtt in (unit, 2 * unit))
    full = abs(twice - 2 * once) <= twice // 100
    if once == twice:
        told = f"the first sample changes no first wait ({seconds(once)})"
    else:
        told = f"first samples of {seconds(unit)} and {seconds(2 * unit)} give {seconds(once)} and {seconds(twice)}"
    deaf: list[str] = []
    heard = ""
    for retransmissions in (3, 4, 6):
        peer = measured(make)
        waits = [wait.us for wait in peer.series(retransmissions + 1)]
        idle = peer.fork()
        course = peer.ask(sum(waits[:-1]) + waits[-1] // 10)
        idle.rest(course.elapsed_us)
        before, after = idle.pair_us(), peer.pair_us()
        at = next((n for n in (0, 1) if after[n] > before[n] * STILL), None)
        if at is None:
            deaf.append(
                f"an answer after {retransmissions} retransmissions leaves the next first wait at {seconds(after[0])}"
            )
        elif not heard:
            heard = (
                f"an answer after {retransmissions} retransmissions takes the next {('first', 'second')[at]} wait from "
                f"{seconds(before[at])} to {seconds(after[at])}"
            )
    told = f"{told}; {deaf[0] if deaf else heard}"
    if full and not deaf:
        return "met", told
    return ("partly" if full or not deaf else "not met"), told


def ageing(make: Make) -> Found:
    """C15: first waits before and after an hour of silence."""
    default = Peer(make).first_us()
    pasts = {"long": climbed(make), "short": Peer(make).steady(20, SECOND // 20), "kept": backed_off(make)}
    stale, fresh = [], []
    for kind, peer in pasts.items():
        before = peer.first()
        if abs(before.us - default) <= default // 100 or (kind == "kept" and before.reason not in _KEPT_REASONS):
            continue
        peer.rest(HOUR)
        after = peer.first_us()
        told = f"{'a backed-off one of ' if kind == 'kept' else ''}{seconds(before.us)}"
        if abs(after - default) < abs(before.us - default) * 99 // 100:
            fresh.append(f"{told} to {seconds(after)}")
        else:
            stale.append(told)
    if not stale and not fresh:
        return "not applicable", f"every first wait is the default's: {seconds(default)}"
    told = "an hour of silence takes first waits from " + _listed(fresh) if fresh else ""
    if stale:
        told += "; " if fresh else "an hour of silence "
        told += f"leaves {_listed(stale)} as {'it is' if len(stale) == 1 else 'they are'}"
    if not stale:
        return "met", told
    return ("partly" if fresh else "not met"), told


# ----------------------------------------------------------------------------------------------- helpers


def _range(lengths: list[int]) -> str:
    low, high = min(lengths), max(lengths)
    return f"is {seconds(low)}" if low == high else f"lies between {seconds(low)} and {seconds(high)}"


def _listed(words: list[int] | list[str]) -> str:
    told = [str(word) for word in words]
    return told[0] if len(told) == 1 else f"{', '.join(told[:-1])} and {told[-1]}"


def _after(course: Course) -> str:
    n = course.retransmissions
    return f"after an answer with {n} retransmission{'' if n == 1 else 's'}"


def _afterwards(make: Make) -> str:
    """What a clean answer leaves of a kept backoff."""
    peer = measured(make)
    usual = peer.first_us()
    peer.ask(RTT // 10, lost=2, named=False)
    kept = peer.first_us()
    peer.ask(RTT)
    return f"from {seconds(usual)} over {seconds(kept)} to {seconds(peer.first_us())} after a clean answer"


def _knows(peer: Peer) -> tuple[object, ...]:
    """All that can be seen of a controller: its numbers and the waits of its next exchange."""
    view = peer.controller.view()
    return (*(getattr(view, name) for name in _ESTIMATES), view.rto_us, *(wait.us for wait in peer.series(4)))


def _moved_by(peer: Peer, lost: int, named: bool) -> str:
    """What an answer after so many retransmissions moves; empty if it moves no estimate.

    A number of the view that changes is an estimate that moves; one that is forgotten moves nowhere. So is a timeout or
    a first wait, if two pasts that differ only in how long the answer took give two of them; a wait that is kept from
    the backoff is none.
    """
    room = peer.series(lost + 1)[-1].us
    twins = [peer.fork(), peer.fork()]
    before = peer.controller.view()
    short, long = (twin.ask(rtt, lost, named) for twin, rtt in zip(twins, (room // 10, room * 8 // 10), strict=True))
    if not (short.answered and long.answered):
        return ""
    after = twins[0].controller.view()
    # what the time alone does to them is the same
    twins[0].rest(long.elapsed_us - short.elapsed_us)
    for name, words in _ESTIMATES.items():
        was, now = getattr(before, name), getattr(after, name)
        if now is not None and was != now:
            return f"the {words} goes {'' if was is None else f'from {seconds(was)} '}to {seconds(now)}"
    least, most = (twin.controller.view().rto_us for twin in twins)
    if least is not None and most is not None and least != most:
        return f"the timeout becomes {_either(least, most)}"
    for _ in range(2):
        firsts = [twin.first() for twin in twins]
        if firsts[0].us != firsts[1].us and not any(wait.reason in _KEPT_REASONS for wait in firsts):
            return f"the next first wait is {_either(firsts[0].us, firsts[1].us)}"
        for twin in twins:
            twin.ask(RTT)
    return ""


def _either(least: int, most: int) -> str:
    return f"{seconds(least)} or {seconds(most)}, as the answer took shorter or longer"
