"""Millpond: CoAP congestion control, measured in the very code that ships.

From a notebook::

    import millpond

    study = millpond.reproduce("anrw18", quick=True)
    study.tables                     # what the program prints
    study.comparison.claims          # every published sentence: holds, fails or unjudged
    study.to_pandas("flows")         # one row a client

    outcome = millpond.run("my-cell.toml", replications=5)
    outcome.summary                  # completion times and retransmissions of each client group
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.api import Reproduction, Run, reproduce, run
from millpond.controller import BuiltIn, Controller, Cx, Exchange, Sample, View, Wait, Wishes
from millpond.errors import MillpondError, UsageError
from millpond.judge.compare import Comparison, Figure, Setting, Verdict
from millpond.results.directory import Results

if TYPE_CHECKING:
    __version__: str

__all__ = [
    "BuiltIn",
    "Comparison",
    "Controller",
    "Cx",
    "Exchange",
    "Figure",
    "MillpondError",
    "Reproduction",
    "Results",
    "Run",
    "Sample",
    "Setting",
    "UsageError",
    "Verdict",
    "View",
    "Wait",
    "Wishes",
    "__version__",
    "reproduce",
    "run",
]


def __getattr__(name: str) -> object:
    if name == "__version__":
        from millpond.run.engine import native

        return native().version()
    raise AttributeError(f"module 'millpond' has no attribute {name!r}")
