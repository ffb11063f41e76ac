"""Tables as HTML, which is how a notebook shows them."""

from __future__ import annotations

import html
import math
from typing import Any

import pyarrow as pa

#: Rows that are shown of a table.
MOST_ROWS = 60


def html_table(rows: pa.Table, caption: str) -> str:
    """A table as HTML; units stand below the names of columns."""
    units = [(field.metadata or {}).get(b"unit", b"").decode() for field in rows.schema]
    heads = [
        html.escape(name) + (f"<br>{html.escape(unit)}" if unit else "")
        for name, unit in zip(rows.column_names, units, strict=True)
    ]
    lines = [[_cell(value) for value in row.values()] for row in rows.slice(0, MOST_ROWS).to_pylist()]
    more = f", the first {len(lines)} of {rows.num_rows} rows" if rows.num_rows > len(lines) else ""
    return "".join(
        [
            "<table>",
            f"<caption>{html.escape(caption + more)}</caption>",
            "<thead><tr>",
            *(f"<th>{head}</th>" for head in heads),
            "</tr></thead><tbody>",
            *(f"<tr>{''.join(f'<td>{cell}</td>' for cell in line)}</tr>" for line in lines),
            "</tbody></table>",
        ]
    )


# ----------------------------------------------------------------------------------------------- helpers


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.4g}"
    return html.escape(str(value))
