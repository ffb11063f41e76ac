"""Pages that name a default, a preset or a threshold name what the code has; traces of the default show its waits."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from manual import facts
from millpond import _engine

KNOWN = facts.facts()
PRESETS = [name for name, *_ in _engine.presets()]
DEFAULTS = dict(_engine.defaults())

#: A trace of what one command of the program sent, up to the next command or the end of the block.
TRACE = re.compile(
    r"^ {4}(?:\$ )?(millpond (?:get|put|load) .*)\n((?:(?!^ {4}\$ ).*\n)*?)(?=^(?: {4}\$ |\S)|\Z)", re.MULTILINE
)
SENT = re.compile(r"([\d.]+) s  -> CON GET id (\d+) token (\w+), .*?; timer ([\d.]+) s \(([\w-]+)\)")
TAUGHT = re.compile(
    r"round trip ([\d.]+ m?s), \w+(?: \(([\d.]+ m?s) since the last of (\d+) copies\))?; RTO ([\d.]+ m?s)"
)


@pytest.mark.parametrize("page", facts.PAGES, ids=lambda page: page.stem)
def test_a_page_says_what_the_code_has(page: Path) -> None:
    assert facts.wrong(page.read_text(encoding="utf-8"), KNOWN) == []


@pytest.mark.parametrize("page", facts.PAGES, ids=lambda page: page.stem)
def test_a_sentence_on_a_default_that_names_a_preset_is_held_to_the_code(page: Path) -> None:
    assert facts.unmarked(page.read_text(encoding="utf-8"), PRESETS) == []


@pytest.mark.parametrize("name", KNOWN)
def test_every_fact_stands_in_some_page(name: str) -> None:
    assert any(f"<!--is {name}-->" in page.read_text(encoding="utf-8") for page in facts.PAGES)


#: A flag or a setting of the library with its default in brackets.
BRACKETED = re.compile(r"`(--[\w-]+|[a-z]+(?:_[a-z]+)+)`\s+\((\d[^()]*)\)")
COMMANDS = (facts.ROOT / "docs" / "appendix" / "commands.md").read_text(encoding="utf-8")
#: Defaults that help has in words.
HELPED = {
    "--duration": "limit.load",
    "--max-size": "limit.body.program",
    "--max-datagram": "limit.datagram",
    "--clients": "limit.relay.clients",
}


def helped(flag: str) -> set[str]:
    """The defaults of a flag, as the help of each verb that has it tells them."""
    entries = re.findall(rf"^ +(?:-\w, )?{flag} .*\n(?: {{20,}}.*\n)*", COMMANDS, re.MULTILINE)
    told = re.findall(r"\[(?:default: )?([^\]]*)\]", " ".join(" ".join(entries).split()))
    return {_bare(one) for one in told}


def _bare(told: str) -> str:
    return re.sub(r"<!--.*?-->|[\s,]", "", told)


@pytest.mark.parametrize("page", [page for page in facts.PAGES if page.parent.name in (facts.ROOT.name, "docs")])
def test_a_default_in_brackets_is_held_to_the_code_or_to_the_help(page: Path) -> None:
    told = BRACKETED.findall(page.read_text(encoding="utf-8"))
    assert [
        f"`{name}` ({default})"
        for name, default in told
        if "<!--is " not in default and not name.startswith("millpond_") and _bare(default) not in helped(name)
    ] == []


@pytest.mark.parametrize(("flag", "fact"), HELPED.items())
def test_a_default_that_help_has_in_words_is_that_of_the_code(flag: str, fact: str) -> None:
    told = KNOWN[fact][0].removesuffix("B")
    assert any(one.startswith(_bare(told)) for one in helped(flag)), helped(flag)


def test_another_default_is_a_fault_in_every_page_that_names_it() -> None:
    changed = {**KNOWN, "default.controller": ("`fasor-token`",), "collapse": ("half",)}
    told = {
        page.stem
        for page in facts.PAGES
        if any("(default.controller)" in fault for fault in facts.wrong(page.read_text(encoding="utf-8"), changed))
    }
    assert {"which-controller", "echo", "live", "naming-copies", "command-line", "why-retransmit"} <= told
    glossary = next(page for page in facts.PAGES if page.stem == "glossary").read_text(encoding="utf-8")
    assert any("it is half (collapse)" in fault for fault in facts.wrong(glossary, changed))


def test_marks_of_what_there_is_not_are_told() -> None:
    assert "there is no such fact" in facts.wrong("a `calm`<!--is default.contorller--> one", KNOWN)[0]


def test_the_end_of_a_longer_word_is_not_the_word() -> None:
    known = {"lines": ("30 lines",)}
    assert facts.wrong("130 lines<!--is lines--> and 30\nlines<!--is lines-->", known) == [
        "line 1: …130 lines: it is 30 lines (lines)"
    ]


def default() -> _engine.Controller:
    settings = {name: value for name, value in DEFAULTS.items() if name != "controller"}
    return _engine.Controller(DEFAULTS["controller"], settings)


def waits(copies: int, draws: int = 2000) -> list[list[tuple[float, str]]]:
    """How many times the wait before the default may wait after each copy, the first in seconds, and why."""
    chance = random.Random(1)
    found: list[list[tuple[float, str]]] = [[] for _ in range(copies)]
    for _ in range(draws):
        controller, exchange, now, before = default(), _engine.Exchange(), 0, 1e6
        for copy in range(copies):
            cx = _engine.Cx(now, chance.getrandbits(32))
            wait = controller.on_timeout(exchange, cx) if copy else controller.on_start(exchange, 40, cx)
            found[copy].append((wait.us / before, wait.reason))
            now, before = now + wait.us, wait.us
    return found


def traces(text: str) -> list[tuple[str, str]]:
    """The commands of a page that trace what they send, each with what it printed."""
    return [(command, lines) for command, lines in TRACE.findall(text) if "--trace" in command and SENT.search(lines)]


OF_THE_DEFAULT = [
    pytest.param(lines, id=f"{page.stem}: {command}")
    for page in facts.PAGES
    for command, lines in traces(page.read_text(encoding="utf-8"))
    if "--controller" not in command
]


@pytest.mark.parametrize("lines", OF_THE_DEFAULT)
def test_a_trace_of_the_default_shows_its_waits(lines: str) -> None:
    sent = SENT.findall(lines)
    first = [line for line in sent if line[1] == sent[0][1]]
    before = 1.0
    for (_, _, _, timer, reason), legal in zip(first, waits(len(first)), strict=True):
        assert reason in {why for _, why in legal}
        grows = [growth for growth, _ in legal]
        assert min(grows) - 0.01 <= float(timer) / before <= max(grows) + 0.01
        before = float(timer)
    named = default().wishes().naming == "token"
    tokens = {len(token) - len(first[0][2]) for _, _, token, *_ in first[1:]}
    assert tokens <= ({2} if named else {0})


@pytest.mark.parametrize("lines", [param for param in OF_THE_DEFAULT if "round trip" in str(param.values[0])])
def test_a_trace_of_the_default_shows_what_it_learns(lines: str) -> None:
    controller, exchange = default(), _engine.Exchange()
    learnt = 0
    for line in lines.splitlines():
        at = re.match(r" +([\d.]+) s ", line)
        now = round(float(at[1]) * 1e6) if at else 0
        if found := SENT.search(line):
            cx = _engine.Cx(now)
            if ", copy " in line:
                controller.on_timeout(exchange, cx)
            else:
                exchange = _engine.Exchange()
                controller.on_start(exchange, 40, cx)
        elif found := TAUGHT.search(line):
            since_first, of_copies, further, rto = found.groups()
            sample = _engine.Sample(
                "piggybacked",
                micros(since_first),
                micros(of_copies or since_first),
                int(further or 1) - 1,
                *((0, micros(since_first)) if of_copies else ()),
            )
            controller.on_reply(exchange, sample, _engine.Cx(now))
            assert controller.view().rto_us == pytest.approx(micros(rto), rel=0.01), line
            learnt += 1
    assert learnt


def micros(text: str) -> float:
    value, unit = text.split()
    return float(value) * {"s": 1e6, "ms": 1e3}[unit]


def test_the_pages_with_traces_have_some_of_the_default() -> None:
    pages = {str(param.id).partition(":")[0] for param in OF_THE_DEFAULT}
    assert {"command-line", "why-retransmit"} <= pages


@pytest.mark.parametrize("crate", ["control", "link", "path", "coap", "sim"])
def test_what_takes_part_in_a_run_has_no_exception_from_the_lint_on_clocks(crate: str) -> None:
    sources = list((facts.ROOT / "crates" / crate / "src").rglob("*.rs"))
    assert sources
    assert [file.name for file in sources if "disallowed_methods" in file.read_text(encoding="utf-8")] == []
