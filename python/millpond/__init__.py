"""Millpond: CoAP congestion control, measured in the very code that ships.

From a notebook::

    import millpond

    study = millpond.reproduce("anrw18", quick=True)
    study.tables                     # what the program prints
    study.comparison.claims          # every published sentence: holds, fails or unjudged
    study.to_pandas("flows")         # one row a client

    outcome = millpond.run("my-cell.toml", replications=5)
    outcome.summary                  # completion times and retransmissions of each client group

    swept = millpond.sweep("my-plan.toml")
    swept.table("runs")              # one row a run, with the value of every factor
    millpond.compare(swept, "rfc7252", "cocoa-03").lines
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millpond import fleet
    from millpond.api import Reproduction, Run, compare, reproduce, run, sweep
    from millpond.controller import BuiltIn, Controller, Cx, Exchange, Sample, View, Wait, Wishes
    from millpond.errors import MillpondError, UsageError
    from millpond.evaluation import evaluate
    from millpond.judge.compare import Comparison, Figure, Setting, Verdict
    from millpond.judge.side_by_side import SideBySide
    from millpond.results.directory import Results

    __version__: str

#: Where each name comes from. It is looked for there when first asked for: a program that needs none of the tables
#: and figures does not wait for the libraries behind them.
_HOMES = {
    "millpond.api": ("Reproduction", "Run", "compare", "reproduce", "run", "sweep"),
    "millpond.controller": ("BuiltIn", "Controller", "Cx", "Exchange", "Sample", "View", "Wait", "Wishes"),
    "millpond.errors": ("MillpondError", "UsageError"),
    "millpond.evaluation": ("evaluate",),
    "millpond.judge.compare": ("Comparison", "Figure", "Setting", "Verdict"),
    "millpond.judge.side_by_side": ("SideBySide",),
    "millpond.results.directory": ("Results",),
}

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
    "SideBySide",
    "UsageError",
    "Verdict",
    "View",
    "Wait",
    "Wishes",
    "__version__",
    "compare",
    "evaluate",
    "fleet",
    "reproduce",
    "run",
    "sweep",
]


def __getattr__(name: str) -> object:
    if name == "__version__":
        from millpond import _engine

        return _engine.version()
    if name == "fleet":
        return importlib.import_module("millpond.fleet")
    for home, names in _HOMES.items():
        if name in names:
            try:
                return getattr(importlib.import_module(home), name)
            except ModuleNotFoundError as missing:
                from millpond.errors import without_laboratory

                raise without_laboratory(missing) or missing from None
    raise AttributeError(f"module 'millpond' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    """This package: its `run` is the call, not the folder of that name, whichever is imported first."""

    def __getattribute__(self, name: str) -> object:
        return __getattr__(name) if name == "run" else super().__getattribute__(name)


sys.modules[__name__].__class__ = _Package
