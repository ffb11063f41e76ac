"""What relays passed on and kept back, relay by relay, from the table `relays`."""

from __future__ import annotations

import numpy as np

from millpond.results import rows
from millpond.results.directory import Cell, Results

#: What stands above the columns of a table with a row for each relay.
HEADS = ("relay", "before", "passed on", "copies kept back")
_COLUMNS = ("passed_packets", "withheld_packets")


def of_each(results: Results, cell: Cell) -> dict[tuple[str, ...], list[float]]:
    """Packets of each relay of a cell, by its name and link: the mean of its runs. None without one."""
    table = rows.of(results, "relays")
    names, links = table.of(cell, "relay"), table.of(cell, "link")
    found: dict[tuple[str, ...], list[float]] = {}
    for name, link in dict.fromkeys(zip(names.tolist(), links.tolist(), strict=True)):
        found[str(name), str(link)] = [
            float(table.of(cell, column)[names == name].astype(np.float64).mean()) for column in _COLUMNS
        ]
    return found
