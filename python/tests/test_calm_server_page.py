"""The calm server's page, and which controller to use: their table over devices and losses is what the sweep gives."""

from __future__ import annotations

import re
from pathlib import Path

import millpond
from millpond.measure.population import Population

ROOT = Path(__file__).parents[2]
HEAD = "| devices | lost each way | Default CoAP | CoCoA | FASOR with token |"
ALGORITHMS = ("rfc7252", "cocoa-03", "fasor-token")


def rows(page: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert text.count(HEAD) == 1
    return text[text.index(HEAD) :].split("\n\n")[0].splitlines()[2:]


def test_the_table_is_what_the_sweep_gives(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "calm-server.md").read_text(encoding="utf-8")
    command = re.search(r"`millpond sweep (\S+)`\), median completion", page)
    assert command is not None
    swept = millpond.sweep(ROOT / command[1], out=tmp_path / "out", report=False).measures

    def median(algorithm: str, server: str, devices: int, loss: float) -> str:
        who = Population.of(algorithm, server=server, devices=devices, loss=loss, path="fixed")
        return f"{swept.usual('fct', who):.1f}"

    def cell(algorithm: str, devices: int, loss: float) -> str:
        return " / ".join(median(algorithm, server, devices, loss) for server in ("stored", "calm"))

    assert rows("calm-server.md") == [
        f"| {devices} | {f'{loss:.0%}'.replace('%', ' %') if loss else 0} | "
        + " | ".join(cell(algorithm, devices, loss) for algorithm in ALGORITHMS)
        + " |"
        for devices in (50, 200, 400)
        for loss in (0, 0.05)
    ]


def test_the_other_page_quotes_it() -> None:
    quoted = rows("which-controller.md")
    assert len(quoted) == 4
    assert set(quoted) <= set(rows("calm-server.md"))
