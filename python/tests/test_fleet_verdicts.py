"""The words for a fleet say what they say: devices that give up first, and their thresholds stand in the manual."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from millpond import cli
from millpond.errors import MillpondError
from millpond.fleet import answer, description, files, page, told, verdict
from millpond.measure.links import COLLAPSE
from millpond.show.text import as_json

PAGE = Path(__file__).parents[2] / "docs" / "fleet.md"
#: So many devices that send three reports each: their cell is busy for 177 s, and two of three give up.
CROWD = {"devices": 1400, "waking.readings": 3, "try_controllers": []}
#: A queue of 1.41 MB each way, in which a thousandth of it would be enough.
DEEP = {"cell.buffer": "1410 kB", "try_controllers": []}
FEW = {"devices": 20, "everyday.others": 2, "try_controllers": []}


def asked(changes: Mapping[str, object], seeds: int = 3) -> answer.Answer:
    return answer.find(description.read(None, changes), range(1, seeds + 1), pictures=False)


def plain(lines: list[str]) -> str:
    return " ".join(lines).replace("\N{NARROW NO-BREAK SPACE}", " ")


def test_the_word_of_a_run_is_the_worst_whose_condition_it_meets() -> None:
    of_run = verdict.of_run
    assert of_run(met=True, never=0.0, useful=1.0) == "safe"
    assert of_run(met=False, never=0.5, useful=0.5) == "strained"
    assert of_run(met=False, never=0.0, useful=0.391) == "congested"
    assert of_run(met=False, never=0.0, useful=0.3) == "collapse"
    assert of_run(met=False, never=0.807, useful=0.86) == "lost"
    assert of_run(met=False, never=0.807, useful=0.2) == "lost"
    assert of_run(met=True, never=0.0, useful=math.nan) == "safe"


def test_the_word_of_a_fleet_is_that_of_half_of_its_runs() -> None:
    def of_fleet(**counts: int) -> verdict.Verdict:
        return verdict.of_fleet([word for word in verdict.VERDICTS for _ in range(counts.get(word, 0))])

    assert of_fleet(safe=19, lost=1) == "safe"
    assert of_fleet(safe=18, lost=2) == "strained"
    assert of_fleet(safe=10, collapse=10) == "collapse"
    assert of_fleet(safe=11, collapse=9) == "strained"
    assert of_fleet(strained=10, collapse=5, lost=5) == "collapse"


def test_most_devices_give_up_is_told_first_and_not_called_strained() -> None:
    found = asked(CROWD)
    assert found.as_it_is.verdict == "lost"
    assert told.headline(found).startswith("Most devices give up: ")
    lines = told.lead(found)
    assert re.match(r"(67|68|69)(\.\d)? % of the devices never report", plain(lines[:1]))
    assert "mostly carries" not in plain(lines)
    assert told.facts(found)[0][0] == "devices that never report"
    # alone nothing brings the goal about; both make every device report, in less time than either
    remedies = {one.outcome.change.name: one for one in found.remedies}
    pair = remedies["gateway+patient"].outcome
    assert pair.median("never") == 0
    assert pair.median("goal_s") < min(remedies[name].outcome.median("goal_s") for name in ("gateway", "patient"))
    assert found.best is not None
    assert "+" in found.best.outcome.change.name


def test_every_device_reports_is_told_as_well() -> None:
    found = asked(FEW)
    assert plain(told.lead(found)[:1]) == "Every device reports within 60.0 min."
    assert found.spread is None
    assert found.no_gain == ()


def test_a_goal_barely_above_the_cells_own_minimum_is_told_to_be_so() -> None:
    near, far = (asked({"goal.done": f"99 % in {seconds} s", "try_controllers": []}, 2) for seconds in (40, 100))
    assert near.least_s == pytest.approx(0.99 * 400 * near.cost.work_s)
    assert "barely above what the cell can carry, 1.32 times its own minimum" in plain(told.lead(near))
    assert "barely" not in plain(told.lead(far))


def test_where_a_calm_server_cannot_help_it_is_told_and_what_can() -> None:
    found = asked(DEEP)
    remedies = {one.outcome.change.name: one.outcome for one in found.remedies}
    assert remedies["calm-server"].verdict != "safe"
    assert remedies["spread-1"].verdict == remedies["gateway"].verdict == "safe"
    said = plain(told.lead(found))
    waits = re.search(r"A calm server alone cannot help here: requests wait up to (\d+\.\d) s in the uplink", said)
    assert waits is not None
    assert float(waits[1]) == pytest.approx(20, abs=2)
    assert "A calm server alone" not in plain(told.lead(asked({"try_controllers": []}, 2)))


def test_the_least_safe_spread_lies_between_two_that_were_run() -> None:
    found = asked({"try_controllers": []}).spread
    assert found is not None
    assert found.least_s is not None
    points = {over: outcome.verdict for over, outcome in found.points}
    assert points[found.least_s] == "safe"
    assert points[found.unsafe_s] != "safe"
    assert found.least_s - found.unsafe_s <= max(1.0, 0.05 * found.least_s)
    assert 20 < found.least_s < 31
    late = asked({**CROWD, "goal.done": "99 % in 205 s"}).spread
    assert late is not None
    assert late.least_s is None


def test_what_was_assumed_is_told_with_its_keys() -> None:
    text = plain(told.assumed(asked(FEW, 2)))
    for part in ("registration of 200 B (waking.registration)", "1 observation set up",
                 "a report of 100 B (everyday.report)", "28 B below CoAP", "rfc7252, MAX_RETRANSMIT 4"):  # fmt: skip
        assert part in text, text
    dtls = plain(told.assumed(asked({"devices": 5, "security": "dtls-psk", "try_controllers": []}, 2)))
    assert "28 B below CoAP, 29 B of DTLS 1.2 with a pre-shared key (security)" in dtls
    assert "a handshake of 114 and 60 B, 146 and 108 B, 96 and 67 B" in dtls
    oscore = plain(told.assumed(asked({"devices": 5, "security": "oscore", "try_controllers": []}, 2)))
    assert "15 B of OSCORE (security) (11 B in answers)" in oscore
    assert "handshake" not in oscore


def test_the_manual_has_every_word_and_threshold() -> None:
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    for word in verdict.VERDICTS:
        assert f"| {word} | *{verdict.WORDS[word]}*: {verdict.MEANS[word]} |" in text
    assert f"at least {100 * verdict.SURE:g} % of its runs" in text
    assert f"less than {verdict.BARELY:g} times the least time" in text
    assert COLLAPSE == 2 / 3


def test_an_answer_is_read_back_as_it_was_and_drawn_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    changes = {"devices": 200, "everyday.others": 2, "try_controllers": ["cocoa-03"], "goal.done": "99 % in 16 s"}
    found = answer.find(description.read(None, changes), range(1, 3), largest=True)
    folder = Path("out")
    files.write(found, folder)
    again = files.read(folder)
    assert as_json(again.to_json()) == (folder / "answer.json").read_text("utf-8")
    assert page.render(again) == (folder / "report.html").read_text("utf-8")
    for words in (["report", "out", "--figures", "pdf", "--tables", "csv"], ["report", "out", "--json"]):
        with pytest.raises(SystemExit) as ended:
            cli.main(words)
        assert ended.value.code == 0
    assert {file.name for file in (folder / "figures").iterdir()} >= {"done.pdf", "collapse.pdf", "edge.pdf"}
    assert (folder / "tables" / "remedies.csv").is_file()
    # with its own figures beside it the folder is still its own
    assert files.folder(folder, "out") == folder


def test_an_answer_has_all_inputs() -> None:
    found = asked(FEW, 2)
    inputs = found.to_json()["inputs"]
    once_more = description.understood(inputs["description"], inputs["from"], path=inputs["path"])
    assert once_more == found.fleet
    assert answer.find(once_more, inputs["seeds"], pictures=False).to_json() == found.to_json()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("[]", "not an answer of this version"),
        ('{"format": 0}', "not an answer of this version"),
        ('{"format": 1}', "damaged: KeyError 'inputs'"),
        (
            '{"format": 1, "inputs": {"from": "fleet", "description": {"devices": "x"}, "path": null}}',
            "devices: expected",
        ),
    ],
)
def test_what_is_no_answer_is_one_line(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "answer.json").write_text(text, encoding="utf-8")
    with pytest.raises(MillpondError) as caught:
        files.read(tmp_path)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
