"""`millpond controllers`: the list, one controller explained and drawn, one's own, and what is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import guide
import numpy as np
import pytest
from matplotlib.figure import Figure
from picture_checks import check_texts, laid_out, panels

import millpond
from millpond import cli
from millpond.controllers import series
from millpond.controllers.catalogue import Choice, names
from millpond.controllers.peer import SECOND
from millpond.controllers.requirements import REQUIREMENTS, VERDICTS
from millpond.show.controllers import picture

ROOT = Path(__file__).parents[2]


@dataclass
class Said:
    code: int
    out: str
    err: str


Millpond = Callable[..., Said]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Millpond:
    """The program in a directory that holds the controllers of the guide."""
    monkeypatch.chdir(tmp_path)
    for name, text in guide.files().items():
        Path(name).write_text(text, encoding="utf-8")

    def call(*arguments: str) -> Said:
        with pytest.raises(SystemExit) as ended:
            cli.main(["controllers", *arguments])
        out, err = capfd.readouterr()
        return Said(int(ended.value.code or 0), out, err)

    return call


# ----------------------------------------------------------------------------------------------- the list


def test_the_list_holds_every_controller_with_its_verdicts_and_parameters(program: Millpond) -> None:
    said = program()
    assert (said.code, said.err) == (0, "")
    lines = said.out.splitlines()
    assert max(map(len, lines)) <= 100
    for name in names():
        assert any(re.fullmatch(rf"{name} +\d+ .*\S *", line) for line in lines), name
        marks = next(line.split()[1:] for line in lines if re.fullmatch(rf"{name}( +[✓◐✗E–])+ *", line))  # noqa: RUF001
        assert len(marks) == len(REQUIREMENTS)
    for word in ("max-wait", "weak-retransmissions", "slow-factor", "least-variation", "previous"):
        assert word in said.out


def test_the_list_as_json(program: Millpond) -> None:
    told = json.loads(program("--json").out)
    assert list(told) == ["version", "requirements", "controllers"]
    assert told["version"] == millpond.__version__
    assert [one["id"] for one in told["requirements"]] == [f"C{n}" for n in range(1, 16)]
    assert [one["name"] for one in told["controllers"]] == names()
    for one in told["controllers"]:
        check_entry(one)
        assert one["state_bytes"] > 0
        assert one["source"]
        assert one["summary"]
    kept = {one["name"]: one["keeps"] for one in told["controllers"]}
    assert kept["rfc7252"] == []
    assert kept["default-fb1"] == ["persisted backoff"]
    assert kept["cocoa-s"] == ["timeout", "smoothed RTT", "RTT variation"]
    assert kept["fasor"] == ["timeout", "smoothed RTT", "RTT variation", "slow timeout"]


def check_entry(one: dict[str, Any]) -> None:
    """The form programs rely on: no more keys, no fewer."""
    keys = "name source summary readings state_bytes keeps naming confirmable_every parameters requirements"
    assert list(one) == keys.split()
    assert all(list(parameter) == ["name", "value", "legal"] for parameter in one["parameters"])
    assert all(list(verdict) == ["id", "verdict", "evidence"] for verdict in one["requirements"])
    assert {verdict["verdict"] for verdict in one["requirements"]} <= set(VERDICTS)


def test_the_page_of_the_manual_is_what_the_command_prints(program: Millpond) -> None:
    page = (ROOT / "docs" / "appendix" / "controllers.md").read_text(encoding="utf-8")
    marker = "<!-- From here on: millpond controllers --markdown -->\n\n"
    refresh = "sed -i '/^<!-- From here on/q' docs/appendix/controllers.md && "
    refresh += "(echo; .venv/bin/millpond controllers --markdown) >> docs/appendix/controllers.md"
    assert page.partition(marker)[2] == program("--markdown").out, refresh


def test_the_page_of_the_manual_tells_the_truth_in_its_own_words(program: Millpond) -> None:
    told = json.loads(program("--json").out)["controllers"]
    verdicts = {one["name"]: {each["id"]: each["verdict"] for each in one["requirements"]} for one in told}
    assert not any(set(found.values()) <= {"met", "endpoint"} for found in verdicts.values())
    keeping = {name for name, found in verdicts.items() if found["C7"] in ("met", "partly")}
    assert {"default-fb2", "fasor", "linux-rto"} <= keeping
    forgetting = {name for name, found in verdicts.items() if found["C15"] == "met"}
    assert forgetting
    # of the published ones; calm is ours and does both
    assert all(verdicts[name]["C7"] == "not met" for name in forgetting - {"calm", "calm-unlimited"})
    pacing = {name for name, found in verdicts.items() if found["C10"] == "met"}
    assert pacing == {name for name in names() if name.startswith(("cocoa", "fasor", "calm"))}


# ----------------------------------------------------------------------------------------------- one controller


@pytest.mark.parametrize("name", names())
def test_one_is_explained_and_drawn(program: Millpond, name: str) -> None:
    said = program(name)
    assert (said.code, said.err) == (0, "")
    assert max(map(len, said.out.splitlines())) <= 100
    preset = Choice(name).maker()()
    for word in (preset.summary, preset.source, *preset.readings, *(setting for setting, *_ in preset.settings)):
        assert all(part in said.out for part in word.split()), word
    for requirement in REQUIREMENTS:
        assert f"\n{requirement.id} " in said.out
    assert "Waits of an exchange nobody answers, to an unknown peer" in said.out
    assert "First waits (s) after an answer with r retransmissions" in said.out
    assert "First waits on a path that changes" in said.out


def test_the_terminal_draws_what_was_measured(program: Millpond) -> None:
    out = program("default-fb1").out
    after = out[out.index("First waits (s) after") : out.index("First waits on a path")].splitlines()
    rows = [line.split() for line in after if "default-fb1" in line]
    # in force after 4 retransmissions of a middle draw of 2.5 s; carried, then a draw again
    assert rows[3] == ["4", "default-fb1", "2.50", "40.0", "40.0", "2.50", "2.50", "2.50", "2.50"]
    waits = [line for line in out.splitlines() if re.match(r" *[0-7] +[\d.]+ to", line)]
    assert waits[0].split()[:4] == ["0", "2.00", "to", "3.00"]
    bars = [line.count("█") for line in out[out.index("to an unknown peer (s") :].splitlines()[3:8]]
    assert bars == sorted(bars)
    assert bars[0] < bars[-1]
    path = next(line for line in out.splitlines() if line.startswith("path "))
    assert {"▁", " "} < set(path.removeprefix("path"))


def test_one_as_json(program: Millpond) -> None:
    told = json.loads(program("fasor", "--json").out)
    assert list(told) == ["version", "controller", "waits"]
    check_entry(told["controller"])
    assert list(told["waits"]) == ["fasor", "rfc7252"]
    assert list(told["waits"]["fasor"]) == ["unanswered", "after_answers", "changing_path"]
    unknown = told["waits"]["rfc7252"]["unanswered"][0]
    assert unknown["lowest_us"] == [2 * SECOND << copy for copy in range(8)]
    assert unknown["highest_us"] == [3 * SECOND << copy for copy in range(8)]


def test_a_parameter_can_be_set(program: Millpond) -> None:
    told = json.loads(program("cocoa-03", "--json", "--set", "max-wait=60 s", "--set", "weak-k=2").out)
    one = told["controller"]
    assert one["name"] == "cocoa-03 with max-wait = 60 s, weak-k = 2"
    values = {parameter["name"]: parameter["value"] for parameter in one["parameters"]}
    assert (values["max-wait"], values["weak-k"]) == ("60 s", "2")
    assert max(told["waits"][one["name"]]["unanswered"][0]["highest_us"]) > 32 * SECOND


def test_one_of_ones_own(program: Millpond) -> None:
    one = json.loads(program("careful.py:Careful", "--json").out)["controller"]
    check_entry(one)
    assert (one["name"], one["state_bytes"], one["parameters"]) == ("careful.py:Careful", None, [])
    assert one["summary"].startswith("The timer of RFC 6298")
    verdicts = {
        each["verdict"]
        for each in json.loads(program("patient.py:Patient", "--json").out)["controller"]["requirements"]
    }
    assert "not met" in verdicts
    said = program("patient.py:Patient", "--set", "first_s=5", "--json")
    first = json.loads(said.out)["waits"]["patient.py:Patient with first_s = 5"]["unanswered"][0]
    assert (first["lowest_us"][0], first["highest_us"][0]) == (5 * SECOND, 7.5 * SECOND)


# ----------------------------------------------------------------------------------------------- files


def test_a_picture_is_always_the_same(program: Millpond) -> None:
    for file in ("a.svg", "b.svg"):
        assert program("cocoa-fb1", "--out", file).out.splitlines()[-1] == f"drawn: {file}"
    assert Path("a.svg").read_bytes() == Path("b.svg").read_bytes()
    assert Path("a.svg").read_text(encoding="utf-8").startswith("<svg")
    assert Path("a.svg").stat().st_size < 250_000


def test_a_page_holds_everything_and_opens_offline(program: Millpond) -> None:
    said = program("fasor-token", "--out", "fasor.html", "--json")
    assert said.err == "drawn: fasor.html\n"
    one = json.loads(said.out)["controller"]
    page = Path("fasor.html").read_text(encoding="utf-8").replace("\N{NO-BREAK SPACE}", " ")
    assert re.findall(r"(?:src|href)=\"(?!data:|#)", page) == []
    for word in (one["source"], one["summary"], *(verdict["evidence"] for verdict in one["requirements"])):
        assert word.replace("'", "&#39;") in page
    for parameter in one["parameters"]:
        assert parameter["name"] in page
    assert "data:image/svg+xml;base64," in page


@pytest.fixture(scope="module", params=["rfc7252", "cocoa-plus", "cocoa-fb2", "fasor", "careful.py:Careful"])
def drawn(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Figure:
    name = str(request.param)
    if ":" in name:
        folder = tmp_path_factory.mktemp("own")
        (folder / "careful.py").write_text(guide.files()["careful.py"], encoding="utf-8")
        name = f"{folder}/{name}"
    return picture.waits(Choice(name).beside_the_standard()).draw()


def test_no_text_lies_on_another_or_outside(drawn: Figure) -> None:
    check_texts(drawn)


def test_axes_carry_units_and_the_legend_stands_outside(drawn: Figure) -> None:
    labels = {text for panel in panels(drawn) for text in (panel.get_xlabel(), panel.get_ylabel()) if text}
    assert labels == {
        "wait after the copy (s)",
        "first wait (s)",
        "time (s)",
        "copy (0: the first)",
        "exchanges later",
    }
    renderer = laid_out(drawn)
    box = drawn.legends[0].get_window_extent(renderer)
    assert not any(box.overlaps(panel.get_window_extent(renderer)) for panel in panels(drawn))


def test_every_point_is_in_view(drawn: Figure) -> None:
    for panel in panels(drawn):
        low, high = panel.get_ylim()
        for line in panel.lines:
            if line.get_transform() == panel.transData:
                heights = np.asarray(line.get_ydata(), dtype=float)
                assert low <= heights.min(), panel.get_title("left")
                assert heights.max() <= high, panel.get_title("left")


def test_the_numbers_of_the_picture_can_be_downloaded() -> None:
    makes = Choice("default-fb2").beside_the_standard()
    rows = picture.waits(makes).rows
    assert len(rows.rows) == sum(
        2 * series.COPIES + len(series.RETRANSMISSIONS) * series.FOLLOWING + len(series.trace(make))
        for make in makes.values()
    )
    mine = [row for row in rows.rows if row[:2] == ("default-fb2", "after 4 retransmissions")]
    # halved by each clean answer until a fresh draw wins
    assert [row[3] for row in mine] == [40.0, 20.0, 10.0, 5.0, 2.5]


def test_the_path_of_the_story_is_followed() -> None:
    points = series.trace(Choice("rfc7252").maker())
    assert {point.rtt_us for point in points} == {phase.rtt_us for phase in series.STORY if phase.rtt_us is not None}
    assert [point.lost for point in points if point.lost] == list(series.LOSSES.values())
    assert all(point.answered for point in points)
    silence = next(at for at, phase in enumerate(series.STORY) if phase.rtt_us is None)
    begun, ended = series.STORY[silence - 1].until_s, series.STORY[silence].until_s
    assert not [point for point in points if begun <= point.at_s < ended]
    assert [point.at_s for point in points] == sorted({point.at_s for point in points})


# ----------------------------------------------------------------------------------------------- what is refused

BAD = """
import millpond
from careful import Careful


class Endless(Careful):
    def on_timeout(self, exchange, cx):
        return 3 * exchange.current_us


class Short(Careful):
    def on_timeout(self, exchange, cx):
        return millpond.Wait(2 * exchange.current_us, "backed-off", "abandon")


class Broken(Careful):
    def on_reply(self, exchange, sample, cx):
        self.nothing.there


class Wordy(Careful):
    def on_start(self, exchange, length, cx):
        return "soon"
"""


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["cocoa-3"], "unknown controller 'cocoa-3': did you mean 'cocoa-03'? known: rfc7252"),
        (["nothing-like-it"], "one of your own is named mine.py:Mine"),
        (["carefull.py:Careful"], "did you mean 'careful.py'?"),
        (["careful.py:Carefull"], "unknown class 'Carefull': did you mean 'Careful'?"),
        (["bad.py:Endless"], "more than its longest_wait_us()"),
        (["bad.py:Broken"], "on_reply raised AttributeError"),
        (["bad.py:Wordy"], "on_start returned 'soon'"),
        (["cocoa-03", "--set", "max-wiat=3 s"], "did you mean `max-wait`"),
        (["cocoa-03", "--set", "max-wait=3"], "max-wait takes a length of time"),
        (["cocoa-03", "--set", "max-wait"], "'max-wait' is no NAME=VALUE"),
        (["cocoa-03", "--set", "weak-k=1", "--set", "weak-k=2"], "weak-k is set twice"),
        (["careful.py:Careful", "--set", "forget=3"], "did you mean 'forget_s'"),
        (["--set", "weak-k=1"], "--set: which controller? name one"),
        (["--out", "a.svg"], "--out: which controller? name one"),
        (["fasor", "--out", "a.png"], "--out: a.png: the name must end in .svg or .html"),
        (["fasor", "--markdown"], "--markdown: it is about all controllers: leave the name out"),
        (["--json", "--markdown"], "--json and --markdown: only one of them"),
    ],
)
def test_a_request_that_makes_no_sense(program: Millpond, arguments: list[str], told: str) -> None:
    Path("bad.py").write_text(BAD)
    said = program(*arguments)
    assert (said.code, said.out) == (2, "")
    assert len(said.err.splitlines()) == 1
    assert told in said.err


def test_one_that_abandons_exchanges_is_judged_and_drawn_too(program: Millpond) -> None:
    Path("bad.py").write_text(BAD)
    said = program("bad.py:Short", "--out", "short.svg")
    assert (said.code, said.err) == (0, "")
    assert re.search(r"\n +1 +4\.00 to 6\.00 ", said.out)
    assert not re.search(r"\n +2 +8\.00 to 12\.0 .*to", said.out)


def test_a_file_that_cannot_be_written(program: Millpond) -> None:
    Path("folder.svg").mkdir()
    said = program("fasor", "--out", "folder.svg")
    assert said.code == 1
    assert len(said.err.splitlines()) == 1
    assert "folder.svg" in said.err
