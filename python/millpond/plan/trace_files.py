"""Files of traces: what a link's `trace` names is looked for beside the file that describes the link."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from millpond.given_files import read_text


def named(links: Mapping[str, Any]) -> tuple[str, ...]:
    """The files that these links name and nobody has read."""
    traces = (_unread(link) for link in links.values())
    return tuple(trace["file"] for trace in traces if trace is not None)


def with_rows(links: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The same links with what their files say. Raises `UsageError` for a file that cannot be read."""
    here = dict(links)
    for name, link in links.items():
        if (trace := _unread(link)) is not None:
            here[name] = {**link, "trace": {**trace, "rows": read_text(folder / trace["file"])}}
    return here


def _unread(link: Any) -> dict[str, Any] | None:
    trace = link.get("trace") if isinstance(link, Mapping) else None
    if isinstance(trace, str):
        trace = {"file": trace}
    if isinstance(trace, Mapping) and isinstance(trace.get("file"), str) and "rows" not in trace:
        return dict(trace)
    return None
