"""What the devices of a capture do by themselves: loops, pauses, reports in a rhythm, an event that wakes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from millpond.diagnose.analysis import Diagnosis, Given

Floats = npt.NDArray[np.float64]
Kind = Literal["closed", "think", "periodic", "aligned", "event"]

#: Of RFC 7252 §4.8.
_ACK_TIMEOUT_S = 2.0
#: Of an exponential distribution the median distance from its median is so much of its mean.
_MEDIAN_DISTANCE = 0.4812
#: Pauses that are shorter than this share of the time between two requests cannot be distinguished from none.
_SHORT = 0.15
#: Requests beside which a time between two requests is looked at.
_NEIGHBOURS = 12
#: Requests are queued if so many come within so many times of what the uplink needs for one.
_SATURATED, _BACK_TO_BACK = 0.8, 1.3
#: A device that begins so many times later than nine of ten had its first request lost.
_LATE = 1.5
#: An event is seen where its requests come so many times as often as all others.
_BURST = 4.0
#: A device that is silent for longer after an answer, or after its last transmission, has done what an event asks for.
_QUIET_S, _GIVING_UP_S = 60.0, 120.0
#: Of the phases of reports that are aligned the mean points this far in one direction (1: all are alike).
_ALIGNED = 0.5
#: Of the devices so many did the same number of exchanges where that number ends their loop.
_SAME = 0.6


@dataclass(frozen=True)
class Traffic:
    """What devices do."""

    kind: Kind
    devices: int
    #: Bytes of a whole request and answer, of the payloads, and of a token.
    request_bytes: int
    answer_bytes: int
    payload: int
    answer_payload: int
    token: int
    #: Exchanges that a device has open at once.
    nstart: int
    #: How long the capture is.
    span_s: float
    #: Of a device in its loop, or for one event; None: until the capture ends.
    requests: int | None = None
    #: Over how long devices begin their loops.
    start_s: float = 0.0
    #: Mean pause of a loop.
    think_s: float = 0.0
    #: Of reports, and over how long those come that are aligned.
    period_s: float | None = None
    jitter_s: float = 0.0
    #: When devices are awake after an event, since the first one; None: a queue hides it.
    arrivals_s: Floats | None = None

    @property
    def words(self) -> str:
        """What they do, in a few words."""
        return {
            "closed": "each asks again as soon as it is answered",
            "think": f"each asks again about {self.think_s:.3g} s after it is answered",
            "periodic": f"each reports every {self.period_s or 0:.4g} s at a time of its own",
            "aligned": f"all report together every {self.period_s or 0:.4g} s",
            "event": f"all wake {'at once' if self.arrivals_s is None else f'within {self.arrivals_s.max():.3g} s'}",
        }[self.kind]


def of(found: Diagnosis) -> Traffic:
    """What the devices of a capture do."""
    requests = found.requests.to_pydict()
    first = np.array(requests["first_us"], dtype=np.float64) / 1e6
    begin, end = float(first.min()), float(np.array(requests["last_us"]).max()) / 1e6
    of_device: dict[str, list[int]] = {}
    for row, peer in enumerate(requests["peer"]):
        of_device.setdefault(peer, []).append(row)
    begins = np.array([first[rows[0]] for rows in of_device.values()]) - begin
    counts = [len(rows) for rows in of_device.values()]
    period = found.figure("period_s").value
    plain = Traffic(
        kind="closed",
        devices=len(of_device),
        request_bytes=_mean(requests["bytes"]),
        answer_bytes=_mean(requests["answer_bytes"]),
        payload=_mean(requests["payload"]),
        answer_payload=_mean(requests["answer_payload"]),
        token=Counter(len(token) // 2 for token in requests["token"]).most_common(1)[0][0],
        nstart=round(found.figure("nstart").value or 1),
        span_s=end - begin,
    )
    since = first - begin
    queued = _is_queued(found, begins, plain.request_bytes)
    rows_of_event = [_at_once(requests, rows) for rows in of_device.values()]
    each, often = Counter(map(len, rows_of_event)).most_common(1)[0]
    rest = np.delete(since, [row for rows in rows_of_event for row in rows])
    goes_on = len(rest) >= len(of_device) / 2
    together = period is not None and _direction(rest if goes_on else since, period) > _ALIGNED
    if goes_on and often >= _SAME * len(counts) and _is_burst(since, begins, end - begin) and not together:
        rhythm = period or len(of_device) * (end - begin) / len(rest)
        woken = None if queued else begins[begins <= _LATE * np.quantile(begins, 0.9)]
        return replace(plain, kind="event", requests=each, period_s=rhythm, arrivals_s=woken)
    if together and period is not None:
        return replace(plain, kind="aligned", period_s=period, jitter_s=0.0 if queued else _jitter(since, period))
    if period is not None:
        return replace(plain, kind="periodic", period_s=period)
    lost, timer = (found.figure(place).value for place in ("path.uplink.loss", "timers.ack_timeout_s"))
    late = (lost or 0.0) * 1.25 * (timer or 0.0)
    think = _pauses(requests, late, round_trip(found).value is not None)
    mode, often = Counter(counts).most_common(1)[0]
    ends = often >= _SAME * len(counts) or sum(count in (mode - 1, mode) for count in counts) >= 0.9 * len(counts)
    return replace(
        plain,
        kind="think" if think else "closed",
        requests=max(counts) if ends else None,
        start_s=0.0 if queued else float(np.quantile(begins, 0.9)) / 0.9,
        think_s=think,
    )


def round_trip(found: Diagnosis) -> Given:
    """The round trip, unless its bound is longer than timers that seldom ran out: then something else took so long."""
    base, wait = found.figure("path.base_rtt_s"), found.figure("timers.ack_timeout_s")
    answered_first = sum(copies == 1 for copies in found.requests.column("transmissions").to_pylist())
    seldom = 2 * answered_first > found.requests.num_rows
    if base.grade == "at-most" and seldom and (base.value or 0.0) > (wait.value or _ACK_TIMEOUT_S):
        return Given(None, "unknown", "the shortest pause is longer than timers that seldom ran out")
    return base


# ----------------------------------------------------------------------------------------------- helpers


def _mean(values: Sequence[int | None]) -> int:
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known)) if known else 0


def _is_burst(since: Floats, begins: Floats, span: float) -> bool:
    """Whether nearly all devices begin together, and requests come far more often then than later."""
    length = 1.5 * float(np.quantile(begins, 0.9)) + 10.0
    inside = float(np.mean(since <= length))
    return length < 0.3 * span and inside < 1.0 and (inside / length) / ((1 - inside) / (span - length)) > _BURST


def _at_once(requests: dict[str, list[Any]], rows: list[int]) -> list[int]:
    """The exchanges of a device that follow on one another, from its first on."""
    for number, row in enumerate(rows, 1):
        following, accepted = requests["next_us"][row], requests["accepted_us"][row]
        quiet = _QUIET_S if accepted is not None else _GIVING_UP_S
        if following is None or following - max(accepted or 0, requests["last_us"][row]) > 1e6 * quiet:
            return rows[:number]
    return rows


def _direction(since: Floats, period: float) -> float:
    return float(abs(np.exp(2j * np.pi * since / period).mean())) if len(since) else 0.0


def _jitter(since: Floats, period: float) -> float:
    """Over how long reports come that are aligned."""
    turned = np.exp(2j * np.pi * since / period)
    away = np.angle(turned / turned.mean()) * period / (2 * np.pi)
    low, high = np.quantile(away, [0.02, 0.98])
    return float(high - low)


def _pauses(requests: dict[str, list[Any]], late_s: float, with_round_trip: bool) -> float:
    """The mean pause of a device between an answer and its next request; 0: none.

    Args:
        requests: The exchanges.
        late_s: How much later requests are seen on average because first transmissions are lost.
        with_round_trip: Whether they have a round trip that is known and comes on top of the pause.
    """
    pairs = sorted(
        (accepted, (following - accepted) / 1e6)
        for accepted, following in zip(requests["accepted_us"], requests["next_us"], strict=True)
        if accepted is not None and following is not None and following > accepted
    )
    if len(pairs) < 2 * _NEIGHBOURS:
        return 0.0
    times = np.array([time for _, time in pairs])
    beside = np.lib.stride_tricks.sliding_window_view(times, 2 * _NEIGHBOURS + 1)
    away = np.abs(times[_NEIGHBOURS : len(times) - _NEIGHBOURS] - np.median(beside, axis=1))
    if np.median(away) / _MEDIAN_DISTANCE <= _SHORT * np.median(times):
        return 0.0
    # of pauses of every length the shortest tells the round trip
    shortest = float(np.quantile(times, 0.02)) if with_round_trip else 0.0
    return max(0.0, float(times.mean()) - shortest - late_s)


def _is_queued(found: Diagnosis, begins: Floats, size: int) -> bool:
    """Whether the first requests of devices come as fast as the uplink carries them: when they were made is hidden."""
    rate = found.figure("path.uplink.rate_bps")
    if found.figures["side"] == "devices" or rate.value is None or len(begins) < _NEIGHBOURS:
        return False
    gaps = np.diff(np.sort(begins)[: max(_NEIGHBOURS, int(0.8 * len(begins)))])
    return float(np.mean(gaps <= _BACK_TO_BACK * 8 * size / rate.value)) > _SATURATED
