"""The words for what becomes of a fleet, and every threshold behind them.

A run has the first of these words, from the worst on, whose condition it meets; a fleet has that of its runs together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from millpond.measure.links import COLLAPSE, COLLAPSE_IN_WORDS

Verdict = Literal["safe", "strained", "congested", "collapse", "lost"]
#: From the best to the worst.
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

#: A fleet is safe if so large a share of its runs is.
SURE = 0.95
#: A fleet is lost if more than this share of its devices never reports.
GIVEN_UP = 0.5
#: A link mostly carries what is needed if at least this share of its bytes completes an exchange: below it there is
#: more than one spurious transmission of every message.
MOSTLY = 0.5
#: A goal that leaves less than so many times the least time in which the cell can carry it is barely above it.
BARELY = 1.5

WORDS: dict[Verdict, str] = {
    "safe": "Safe",
    "strained": "Strained",
    "congested": "Congested",
    "collapse": "Congestion collapse",
    "lost": "Most devices give up",
}
MEANS: dict[Verdict, str] = {
    "safe": "the goal is met",
    "strained": f"the goal is missed; at least {100 * (1 - GIVEN_UP):g} % of the devices report, and at least "
    f"{100 * MOSTLY:g} % of what the link carries completes an exchange",
    "congested": f"the goal is missed, and less than {100 * MOSTLY:g} % of what the link carries completes an exchange",
    "collapse": f"more than {COLLAPSE_IN_WORDS} of what the link carries complete no exchange",
    "lost": f"more than {100 * GIVEN_UP:g} % of the devices never report",
}


def of_run(met: bool, never: float, useful: float) -> Verdict:
    """The word for one run.

    Args:
        met: Whether it met the goal.
        never: The share of devices that never report.
        useful: Of the bytes of the bottleneck those that complete an exchange; NaN if it carried none.
    """
    if never > GIVEN_UP:
        return "lost"
    if useful < 1 - COLLAPSE:
        return "collapse"
    if met:
        return "safe"
    return "congested" if useful < MOSTLY else "strained"


def of_fleet(runs: Sequence[Verdict]) -> Verdict:
    """The word for all runs together.

    Safe if at least 95 % of the runs are; otherwise the worst word such that at least half of the runs have it or a
    worse one, and no better than strained.
    """
    if runs.count("safe") >= SURE * len(runs):
        return "safe"
    worst_first = sorted(runs, key=VERDICTS.index, reverse=True)
    middle = worst_first[(len(runs) - 1) // 2]
    return "strained" if middle == "safe" else middle
