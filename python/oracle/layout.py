"""The files: a case on a line, a call on a line, always the same keys in the same order."""

from __future__ import annotations

import json
from collections.abc import Iterable

from oracle.script import Case

FORMAT = 1
SOURCE = "python -m oracle"


def render(family: str, cases: Iterable[Case]) -> str:
    """The text of a file."""
    head = f'{{"format": {FORMAT}, "family": "{family}", "source": "{SOURCE}", "cases": ['
    return head + "\n" + ",\n".join(map(_case, cases)) + "\n]}\n"


def _case(case: Case) -> str:
    header = {"name": case.name, "preset": case.preset, "settings": case.settings}
    return json.dumps(header)[:-1] + ', "calls": [\n' + ",\n".join(case.calls) + "\n]}"
