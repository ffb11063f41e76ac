"""A capture of protected messages says of congestion what one in the clear says: all that counts for it is outside."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from millpond.plan import scenario as scenarios
from millpond.run import capture

CELL: dict[str, Any] = {
    "path": {"profile": "nbiot-anrw18", "uplink": {"queue": "1410 kB"}, "downlink": {"queue": "1410 kB"}},
    "clients": [
        {
            "count": 200,
            "controller": {"preset": "rfc7252", "max-wait": "60 s"},
            "exchanges": 20,
            "max_retransmit": 20,
            "start_spread": "10 s",
            "token_length": 2,
        }
    ],
}


def diagnosed(file: Path, protection: object) -> dict[str, Any]:
    told = {**CELL, "clients": [{**CELL["clients"][0], "protection": protection}]}
    capture.write(file, scenarios.build(told, "cell"), 1)
    words = [sys.executable, "-m", "millpond", "diagnose", "--side", "server", "--json", str(file)]
    found: dict[str, Any] = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    return found


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    folder = tmp_path_factory.mktemp("captured")
    added = {"request": "14 B", "response": "11 B"}
    return diagnosed(folder / "longer.pcapng", added), diagnosed(folder / "protected.pcapng", "oscore")


def test_the_diagnosis_of_protected_messages_is_that_of_as_many_bytes(
    both: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    longer, protected = both
    # what is protected, and what only makes a message longer, differ in where their bytes stand
    sizes = [found["sizes"].pop("request_payload_bytes") for found in (longer, protected)]
    assert sizes[0] < sizes[1]
    assert protected == longer
    assert protected["verdict"] == "collapse"
