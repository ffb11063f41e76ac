"""The list of commands from the program's own help: `python -m manual.commands > docs/appendix/commands.md`."""

from __future__ import annotations

import os
import subprocess
import sys

from millpond import cli

_HEAD = """\
# Commands

Every verb with all its flags, as `millpond VERB --help` prints them; what they do together is in [Command
line](../command-line.md). Written by `python -m manual.commands`.
"""


def page() -> str:
    """The page, in Markdown: the verbs in the groups of the program's help."""
    parts = [_HEAD]
    for title, verbs in cli.program.groups.items():
        parts.append(f"## {title}\n")
        parts += [f"### {verb}\n\n```text\n{_help(verb)}\n```\n" for verb in verbs if verb in cli.program.commands]
    return "\n".join(parts)


# ----------------------------------------------------------------------------------------------- helpers


def _help(verb: str) -> str:
    width = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
    asked = [sys.executable, "-m", "millpond", verb, "--help"]
    told = subprocess.run(asked, env=width, capture_output=True, text=True, encoding="utf-8", check=True).stdout
    return "\n".join(line.rstrip() for line in told.strip().splitlines())


if __name__ == "__main__":
    print(page(), end="")
