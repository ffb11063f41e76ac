"""Millpond: CoAP congestion control, measured in the very code that ships.

From a notebook:

    import millpond

    study = millpond.reproduce("anrw18", quick=True)
    study.tables                     # what the program prints
    study.comparison.claims          # every published sentence: holds, fails or unjudged
    study.to_pandas("flows")         # one row a client

    outcome = millpond.run("my-cell.toml", replications=5)
    outcome.summary                  # completion times and retransmissions of each client group

    swept = millpond.sweep("my-plan.toml", out="results/mine")
    swept.frame("fct", by=["queue", "algorithm"]).estimates()  # means with intervals
    swept.plot("fct", x="queue")     # the same as a figure for a paper
    millpond.compare(swept, "rfc7252", "cocoa-03").to_pandas()

    millpond.open_results("results/mine")  # the same again

Nothing is written unless `out` names a directory.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millpond.api import Reproduction, Run, compare, open_results, reproduce, run, sweep
    from millpond.arena.contest import hold as arena
    from millpond.controller import BuiltIn, Controller, Cx, Exchange, View, Wait, Wishes
    from millpond.controller import Sample as RttSample
    from millpond.diagnose import capture as diagnose
    from millpond.errors import MillpondError, UsageError
    from millpond.evaluation import evaluate
    from millpond.fleet import ask as fleet
    from millpond.judge.compare import Comparison, Setting, Verdict
    from millpond.judge.compare import Figure as PublishedFigure
    from millpond.judge.side_by_side import SideBySide
    from millpond.listings import controllers, metrics
    from millpond.results.directory import Results

    __version__: str

#: Where each name comes from. It is looked for there when first asked for: a program that needs none of the tables
#: and figures does not wait for the libraries behind them.
_HOMES = {
    "millpond.api": ("Reproduction", "Run", "compare", "open_results", "reproduce", "run", "sweep"),
    "millpond.controller": ("BuiltIn", "Controller", "Cx", "Exchange", "View", "Wait", "Wishes"),
    "millpond.errors": ("MillpondError", "UsageError"),
    "millpond.evaluation": ("evaluate",),
    "millpond.judge.compare": ("Comparison", "Setting", "Verdict"),
    "millpond.judge.side_by_side": ("SideBySide",),
    "millpond.listings": ("controllers", "metrics"),
    "millpond.results.directory": ("Results",),
}
#: Names of this package alone, and what they are where they come from. `Figure` and `Sample`, which plotters and
#: statisticians have for something else, are found under their earlier names too.
_CALLED = {
    "arena": ("millpond.arena.contest", "hold"),
    "diagnose": ("millpond.diagnose", "capture"),
    "fleet": ("millpond.fleet", "ask"),
    "Figure": ("millpond.judge.compare", "Figure"),
    "PublishedFigure": ("millpond.judge.compare", "Figure"),
    "RttSample": ("millpond.controller", "Sample"),
    "Sample": ("millpond.controller", "Sample"),
}
_FROM = {**{name: (home, name) for home, names in _HOMES.items() for name in names}, **_CALLED}
#: Calls that are called as a folder of the package is.
_LIKE_FOLDERS = ("arena", "controllers", "diagnose", "fleet", "run")

__all__ = [
    "BuiltIn",
    "Comparison",
    "Controller",
    "Cx",
    "Exchange",
    "MillpondError",
    "PublishedFigure",
    "Reproduction",
    "Results",
    "RttSample",
    "Run",
    "Setting",
    "SideBySide",
    "UsageError",
    "Verdict",
    "View",
    "Wait",
    "Wishes",
    "__version__",
    "arena",
    "compare",
    "controllers",
    "diagnose",
    "evaluate",
    "fleet",
    "metrics",
    "open_results",
    "reproduce",
    "run",
    "sweep",
]


def __getattr__(name: str) -> object:
    if name == "__version__":
        from millpond import _engine

        return _engine.version()
    if name in _FROM:
        home, attribute = _FROM[name]
        try:
            return getattr(importlib.import_module(home), attribute)
        except ModuleNotFoundError as missing:
            from millpond.errors import without_laboratory

            raise without_laboratory(missing) or missing from None
    raise AttributeError(f"module 'millpond' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    """This package: its `run` is the call, not the folder of that name, whichever is imported first."""

    def __getattribute__(self, name: str) -> object:
        return __getattr__(name) if name in _LIKE_FOLDERS else super().__getattribute__(name)


sys.modules[__name__].__class__ = _Package
