"""Published settings of a test bed beside those of our scenario: what was built, checked against what was described."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from millpond.judge.compare import Setting
from millpond.judge.published import Published, Row
from millpond.measure.measures import Measures
from millpond.plan.values import UNITS, in_base

#: What a unit of the figures stands for.
_SCALE = {**UNITS, "µs": 1e-6, "bytes": 1.0, "kbps": 1e3}
Found = Callable[[Measures], Sequence[float]]


def match(published: Published, measures: Measures) -> list[Setting]:
    """Every row about the test bed that our scenarios say something about; in the order of the file."""
    settings = []
    for row in published.rows:
        if row["category"] in ("setup", "algorithm") and not row.is_claim and row["metric"] in _SETTINGS:
            found = _one(row, measures)
            if found is not None:
                settings.append(found)
    return settings


def _one(row: Row, measures: Measures) -> Setting | None:
    value = row.value
    if value is None:
        return None
    look, note = _SETTINGS[row["metric"]]
    ours = sorted(set(look(measures)))
    if not ours:
        return None
    wanted = value * _SCALE.get(row["unit"], 1.0)
    chosen = {"range_low": ours[:1], "range_high": ours[-1:]}.get(row["statistic"], ours)
    same = any(abs(number - wanted) <= 1e-9 * max(1.0, abs(wanted)) for number in chosen)
    return Setting(
        id=row.id,
        metric=row["metric"],
        scenario=row.scenario(),
        published=f"{value:g} {row['unit']}".strip(),
        ours=", ".join(f"{number / _SCALE.get(row['unit'], 1.0):g}" for number in chosen) + f" {row['unit']}".rstrip(),
        same=same,
        note="" if same else note,
    )


# ----------------------------------------------------------------------------------------------- where they stand


def _trees(measures: Measures) -> list[dict[str, Any]]:
    return [dict(cell.scenario) for cell in measures.cells]


def _path(*keys: str) -> Found:
    return lambda measures: [n for tree in _trees(measures) for n in _at(tree["path"], keys)]


def _clients(*keys: str) -> Found:
    return lambda measures: [n for tree in _trees(measures) for group in tree["clients"] for n in _at(group, keys)]


def _columns(name: str) -> Found:
    return lambda measures: [float(cell.columns[name]) for cell in measures.cells if name in cell.columns]


def _both(*looks: Found) -> Found:
    return lambda measures: [number for look in looks for number in look(measures)]


def _at(spot: Any, keys: Sequence[str]) -> list[float]:
    """What stands at a place of the engine's canonical scenario, in base units; nothing if that is no quantity."""
    for key in keys:
        spot = spot.get(key) if isinstance(spot, dict) else None
    found = in_base(spot)
    return [] if found is None else [found]


_JITTER = "the jittered path variant has it; the fixed one has its mean"

_SETTINGS: dict[str, tuple[Found, str]] = {
    "link_rate_down": (_path("downlink", "rate"), ""),
    "link_rate_up": (_path("uplink", "rate"), ""),
    "link_delay_down": (_path("downlink", "delay"), "with the mean of the extra delay"),
    "link_delay_up": (_path("uplink", "delay"), "with the mean of the extra delay"),
    "extra_delay": (_both(_path("downlink", "jitter", "from"), _path("downlink", "jitter", "to")), _JITTER),
    "buffer_size": (_columns("buffer_bytes"), "not among the cells that were run"),
    "concurrent_clients": (_columns("clients"), "not among the cells that were run"),
    "response_payload": (_columns("payload"), ""),
    "exchanges_per_client": (_clients("exchanges"), ""),
    "batch_size": (_both(_clients("batch", "from"), _clients("batch", "to")), ""),
    "max_retransmit": (_clients("max_retransmit"), "RFC 7252's default; the test bed has ours"),
    "max_rto": (_both(_clients("controller", "max-wait"), _clients("transport", "rto_max")), ""),
    "block_size": (_clients("transfer", "size"), ""),
    "tcp_segment_payload": (_clients("transport", "mss"), ""),
    "initial_window": (_clients("transport", "initial_window"), ""),
    "syn_retries": (_clients("transport", "syn_retries"), ""),
    "replications": (lambda measures: [float(measures.results.replications)], "fewer were asked for"),
}
