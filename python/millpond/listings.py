"""What there is to choose from, as tables: controllers and metrics."""

from __future__ import annotations

import pyarrow as pa

from millpond.engine import presets
from millpond.measure.metrics import METRICS


def controllers() -> pa.Table:
    """The built-in controllers, a row each: names, what it does, source, bytes kept for each peer, settings."""
    rows = [
        {
            "name": one.name, "label": one.label, "family": one.family, "summary": one.summary,
            "source": one.source, "state_bytes": one.state_bytes,
            "settings": [f"{name} = {value}" for name, value, _ in one.settings],
        }
        for one in presets()
    ]  # fmt: skip
    return pa.Table.from_pylist(rows)


def metrics() -> pa.Table:
    """The metrics, a row each: name, title, unit, what a value belongs to, usual statistic, what it is."""
    rows = [
        {
            "name": one.name, "title": one.title, "unit": one.unit, "of": one.per, "usual": one.usual,
            "summary": one.summary,
        }
        for one in METRICS.values()
    ]  # fmt: skip
    return pa.Table.from_pylist(rows)
