"""What results directories hold together, in the terminal."""

from __future__ import annotations

from rich.markup import escape
from rich.table import Table

from millpond.results.shards import Overview
from millpond.show.tables import titled


def table(found: Overview) -> Table:
    """One row a directory."""
    shown = titled(f"{found.first['title']} ({found.first['plan_hash'][:19]})")
    for name in ("folder", "shard", "runs", "state"):
        shown.add_column(name, justify="right" if name == "runs" else "left", overflow="fold")
    for folder in found.folders:
        number, of = folder.shard
        shown.add_row(
            escape(str(folder.place)),
            f"{number} of {of}" if of > 1 else "whole",
            f"{folder.manifest['runs_done']} of {folder.manifest['runs']}",
            "complete" if folder.fault is None else str(folder.manifest["state"]),
        )
    return shown


def summary(found: Overview) -> str:
    """How much is there, in one line."""
    rows = ", ".join(f"{name} {count:,}" for name, count in found.rows.items() if name in ("runs", "flows"))
    whole = "they fit together" if not found.faults else "they are no whole yet"
    return f"{found.runs_done} of {found.runs} runs; rows: {rows or 'none'}; {whole}"
