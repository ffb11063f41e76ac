"""Errors of a call speak of its arguments; the program, which makes the same calls, of its flags."""

from __future__ import annotations

from typing import Any

import pytest

import millpond
from millpond.errors import MillpondError, UsageError, telling_of_flags, told_to_programs


@pytest.mark.parametrize(
    ("flags", "arguments"),
    [
        ("--factor traffic: unknown value 'mixd'", "factors[\"traffic\"]: unknown value 'mixd'"),
        ("--set clients[0].count: -1", 'changes["clients[0].count"]: -1'),
        ("choose its values by --factor queue=...", 'choose its values by factors["queue"]=...'),
        ("3 of 4 runs are kept: --resume goes on", "3 of 4 runs are kept: resume=True goes on"),
        ("--live-runs goes with --live alone", "live_runs goes with live=True alone"),
        ("by --replications and --factor", "by replications and factors"),
        ("mine--quick.toml: no such file - or folder", "mine--quick.toml: no such file - or folder"),
    ],
)
def test_flags_are_arguments_where_nobody_wrote_flags(flags: str, arguments: str) -> None:
    @told_to_programs
    def call() -> None:
        raise MillpondError(flags)

    with pytest.raises(MillpondError) as in_a_notebook:
        call()
    with telling_of_flags(), pytest.raises(MillpondError) as in_a_terminal:
        call()
    assert str(in_a_notebook.value) == arguments
    assert str(in_a_terminal.value) == flags


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"factors": {"buffer_byte": [2500]}}, "factors: unknown factor 'buffer_byte': did you mean 'buffer_bytes'"),
        ({"shard": (3, 2)}, "shard: 3/2 makes no sense here"),
        ({"jobs": -1}, "jobs: -1 makes no sense here"),
    ],
)
def test_a_reproduction_is_refused_by_the_name_of_the_argument(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError) as refused:
        millpond.reproduce("anrw18", quick=True, report=False, **arguments)
    assert str(refused.value).startswith(told)
