"""What the manual says of defaults, presets and thresholds, held against the code.

    `calm`<!--is default.controller-->             the words before a comment are what the code has under that name
    more than two thirds<!--is collapse--> of      of some there are several spellings

`python -m manual.facts` lists the names with what they stand for, and what pages say otherwise.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from manual.limits import limits
from millpond import _engine
from millpond.arena import drawn
from millpond.judge.compare import OUTCOMES
from millpond.measure import links
from millpond.plan.toml_file import read_tree

ROOT = Path(__file__).resolve().parents[2]
#: What happened is told as it was then.
PAGES = [*sorted({*ROOT.glob("*.md")} - {ROOT / "CHANGELOG.md"}), *sorted((ROOT / "docs").rglob("*.md"))]

#: The spellings of each fact.
Facts = Mapping[str, tuple[str, ...]]

_MARK = re.compile(r"<!--is ([\w.-]+)-->")
#: A mark between words and the next mark of the same words.
_MARKS = re.compile(r"(?:<!--is [\w.-]+-->)+$")
_CODE_BLOCK = re.compile(r"^```.*?^```|^ {4,}(?![ *-]).*?$", re.DOTALL | re.MULTILINE)
#: Where a sentence ends, a point of a list or a row of a table begins.
_SENTENCE = re.compile(r"(?<=[.:;])\s+|\n\s*\n|\n(?=\s*[*|-] ?)")
_SPAN = re.compile(r"`[^`]*`")
_NO_WORDS = re.compile(r"`[^`]*`|\]\([^)]*\)")
_DEFAULT = re.compile(r"\b[Dd]efaults?\b(?!-fb| CoAP)")
_COUNT = ("no", "one", "two", "three", "four", "five", "six", "seven")


def facts() -> Facts:
    """What the code has now."""
    example = (ROOT / "crates/ffi/examples/adopt.c").read_text(encoding="utf-8")
    calls = set(re.findall(r"\b(millpond_\w+)\(&\w+(?:->|\.)peer", example))
    return {
        **{f"default.{name}": (f"`{value}`", f'`{name} = "{value}"`', value) for name, value in _engine.defaults()},
        **_naming(),
        **_waits(),
        "collapse": (links.COLLAPSE_IN_WORDS,),
        "collapse.others": (_listed([f"{share:g}" for share in links.OTHER_THRESHOLDS], "and"),),
        "verdicts": (_listed([f"*{verdict}*" for verdict in OUTCOMES.values()], "or"),),
        "arena.split": (f"`{drawn.SPLITS[0]}`",),
        "c.calls": (f"{_COUNT[len(calls)]} calls",),
        **_versions(),
        **limits(),
    }


def wrong(text: str, known: Facts) -> list[str]:
    """What a page says otherwise than the code; and marks of names that there are not."""
    found = []
    for mark in _MARK.finditer(_SPAN.sub(_without_marks, text)):
        place = f"line {text.count(chr(10), 0, mark.start()) + 1}"
        before = " ".join(_MARKS.sub("", text[: mark.start()]).split())
        spellings = known.get(mark[1])
        if spellings is None:
            found.append(f"{place}: {mark[0]}: there is no such fact; there are {', '.join(known)}")
        elif not any(re.search(rf"(?<![\w.-]){re.escape(told)}\**$", before) for told in spellings):
            found.append(f"{place}: …{before[-50:]}: it is {spellings[0]} ({mark[1]})")
    return found


def unmarked(text: str, presets: Iterable[str]) -> list[str]:
    """Sentences that speak of a default and name a preset, without a mark that holds them to the code."""
    names = set(presets)
    return [
        " ".join(sentence.split())
        for sentence in _SENTENCE.split(_CODE_BLOCK.sub("", text))
        if _DEFAULT.search(_NO_WORDS.sub("", sentence)) and "<!--is default." not in sentence
        and any(name in names for span in _SPAN.findall(sentence) for name in re.findall(r"[\w-]+", span))
    ]  # fmt: skip


def main() -> int:
    """List names and what pages say otherwise. Gives the exit code."""
    known = facts()
    for name, spellings in known.items():
        print(f"{name}: {' | '.join(spellings)}")
    found = [f"{page.name}: {fault}" for page in PAGES for fault in wrong(page.read_text(encoding="utf-8"), known)]
    print("\n".join(found), file=sys.stderr)
    return 1 if found else 0


# ----------------------------------------------------------------------------------------------- helpers


def _naming() -> dict[str, tuple[str, ...]]:
    """Which presets ask that retransmissions can be told apart: all, and by what they ask for."""
    kinds = {name: _engine.Controller(name).wishes().naming for name, *_ in _engine.presets()}
    listed = {"naming": sorted(name for name, kind in kinds.items() if kind != "none")}
    for kind in sorted({*kinds.values()} - {"none"}):
        listed[f"naming.{kind}"] = sorted(name for name, asked in kinds.items() if asked == kind)
    return {fact: (", ".join(f"`{name}`" for name in names),) for fact, names in listed.items()}


def _waits() -> dict[str, tuple[str, ...]]:
    """Where the first wait is drawn from while nothing is known of the path, and where waits stop growing."""
    told: dict[str, tuple[str, ...]] = {}
    for name in ("rfc7252", "calm"):
        low, high = (
            f"{_engine.Controller(name).on_start(_engine.Exchange(), 40, _engine.Cx(0, chance)).us / 1e6:.3g}"
            for chance in (0, 0xFFFF_FFFF)
        )
        told[f"{name}.first-wait"] = (f"{low} s to {high} s", f"{low} to {high} s")
    settings = {setting: value for setting, value, _ in _engine.Controller("calm").settings}
    return told | {f"calm.{name}": (settings[name],) for name in ("max-wait", "patience")}


def _versions() -> dict[str, tuple[str, ...]]:
    """The oldest Rust and Python that will do, and the name under which programs look for the C library."""
    package = read_tree(ROOT / "Cargo.toml")["workspace"]["package"]
    crates = {file.parent.name: read_tree(file)["package"] for file in sorted(ROOT.glob("crates/*/Cargo.toml"))}
    own = {name: crate["rust-version"] for name, crate in crates.items() if isinstance(crate["rust-version"], str)}
    others = [f"`{name}`" for name, crate in crates.items() if name not in own and crate.get("publish") is True]
    soname = f"`libmillpond.so.{package['version'].rpartition('.')[0]}`"
    python = read_tree(ROOT / "pyproject.toml")["project"]["requires-python"]
    return {
        "rust": (max(own.values(), key=lambda version: [*map(int, version.split("."))]),),
        "rust.least": (package["rust-version"],),
        "rust.least.crates": (_listed(others, "and"),),
        "python.least": (python.removeprefix(">="),),
        "c.soname": (soname,),
    }


def _without_marks(span: re.Match[str]) -> str:
    """A code span that speaks of marks has none."""
    return span[0].replace("<!--", "    ")


def _listed(words: list[str], last: str) -> str:
    return f"{', '.join(words[:-1])} {last} {words[-1]}" if len(words) > 1 else "".join(words)


if __name__ == "__main__":
    sys.exit(main())
