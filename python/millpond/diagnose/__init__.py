"""From a capture of your own network to the cause, the cell and what would help.

From a notebook:

    import millpond

    found = millpond.diagnose("server.pcap")
    found.verdict                             # "collapse"
    found.figure("path.uplink.rate_bps")      # value, grade, because
    found.exchanges.to_pandas()               # a row a transmission, with its verdict
    found.devices.to_pandas()                 # a row a device
    found.report("server.html")
    found.write("cell")                       # path.toml, scenario.toml, fleet.toml that repeat it
    millpond.fleet("cell/fleet.toml")         # what would help there
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millpond.diagnose.analysis import Diagnosis


def capture(
    file: Path | str | Sequence[Path | str], *, side: str | None = None, ports: Sequence[int] = ()
) -> Diagnosis:
    """What `millpond diagnose` finds.

    Args:
        file: A capture, pcap or pcapng; several are read one after the other as parts of one.
        side: Where it was taken: `server`, `devices` or `both`; left out: it is found.
        ports: Of servers, besides 5683.

    Raises:
        MillpondError: one line that says what is wrong and how to fix it.
    """
    from millpond.diagnose import analysis

    files = [file] if isinstance(file, Path | str) else file
    return analysis.of_files([Path(name) for name in files], side, ports)
