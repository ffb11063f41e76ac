"""The code blocks of the guide "write your own controller"."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "write-your-own-controller.md"

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(language: str) -> list[str]:
    """The blocks of this language, in their order."""
    return [block for kind, block in _BLOCK.findall(GUIDE.read_text(encoding="utf-8")) if kind == language]


def files() -> dict[str, str]:
    """The files that the guide has its reader write: the blocks that begin with a comment of the name."""
    found = {}
    for language in ("python", "toml"):
        for block in blocks(language):
            name = re.match(r"# (\S+\.\w+)\n", block)
            if name is not None:
                found[name[1]] = block
    return found


def commands() -> list[list[str]]:
    """The commands `millpond ...` that the guide has its reader type, word by word."""
    typed = "".join(blocks("sh")).replace("\\\n", " ").splitlines()
    return [line.split("#")[0].split() for line in typed if line.split()[:1] == ["millpond"]]
