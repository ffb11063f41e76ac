"""Two loads side by side: intervals where there are several runs, and words where there are none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import ttest_ind

from millpond import cli
from millpond.errors import UsageError
from millpond.judge import loads
from millpond.measure.estimate import Difference


def run(median: float, *, controller: str = "rfc7252", **more: Any) -> dict[str, Any]:
    """A run as `millpond load --json` tells it, a thousand requests."""
    times = {"median": median, "p90": 2 * median, "p99": 3 * median, "p999": 4 * median, "longest": 5 * median}
    counted = {
        "requests": 1000, "not_started": 0, "answers_per_second": 1000 / median, "failed": 0, "unfinished": 0,
        "retransmissions": 20, "spurious_retransmissions": 4, "needed_retransmissions": 6,
    }  # fmt: skip
    return {"controller": controller, "milliseconds": {**times, "at_least": []}, **counted, **more}


def written(file: Path, *runs: dict[str, Any], **more: Any) -> str:
    told = {"uri": "coap://host/", "clients": 4, "rate": None, "loads": list(runs), **more}
    file.write_text(json.dumps(told), encoding="utf-8")
    return str(file)


def said(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        cli.main(["compare", *words])
    return int(ended.value.code or 0)


def line(found: loads.Loads, metric: str) -> loads.Line:
    return next(line for line in found.pairs[0].lines if line.metric == metric)


def test_the_interval_is_welchs() -> None:
    one, other = np.array([3.0, 4.0, 5.5]), np.array([7.0, 6.0, 9.0, 7.5, 7.2])
    theirs = ttest_ind(other, one, equal_var=False).confidence_interval(0.95)
    found = Difference.of(other, one, paired=False).estimate()
    assert found.interval == pytest.approx((theirs.low, theirs.high))
    assert Difference.of(np.full(3, 5.0), np.full(4, 2.0), paired=False).estimate().interval == (3.0, 3.0)
    assert Difference.of(other, one[:2], paired=False).estimate().interval is None


def test_several_runs_have_intervals_and_one_has_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = written(tmp_path / "one.json", run(10), run(11), run(10.5))
    other = written(tmp_path / "other.json", run(20), run(21), run(20.5))
    found = loads.compare(one, other)
    median = line(found, "median (ms)")
    assert (median.difference, median.verdict) == (10.0, "more")
    assert line(found, "failed, of requests").verdict == "equal"
    assert said(one, other) == 0
    assert "Welch's interval" in capsys.readouterr().out
    single = written(tmp_path / "single.json", run(30))
    median = line(loads.compare(one, single), "median (ms)")
    assert (median.difference, median.interval, median.verdict) == (19.5, None, "")
    assert said(one, single) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "how much equal runs differ is not known" in out
    assert "Welch" not in out
    # runs in files of their own
    assert loads.compare(f"{single},{other}", one).runs == 3


def test_what_has_no_answer_has_no_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bound = run(5000, unfinished=600)
    bound["milliseconds"] |= {"p999": None, "longest": None, "at_least": ["median", "p90", "p99"]}
    one, other = written(tmp_path / "one.json", run(10), run(11)), written(tmp_path / "other.json", bound, bound)
    found = loads.compare(one, other)
    assert (line(found, "median (ms)").difference, line(found, "median (ms)").other.is_bound) == (None, True)
    assert line(found, "longest (ms)").other.value == float("inf")
    assert line(found, "without an answer at the end").difference == pytest.approx(0.6)
    assert said(one, other) == 0
    out = capsys.readouterr().out
    assert "never" in out
    assert "requests had no answer when a load ended" in " ".join(out.split())


def test_what_is_not_alike_is_told_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = written(tmp_path / "one.json", run(10), rate=10.0)
    other = written(tmp_path / "other.json", run(10), clients=64)
    assert said(one, other) == 0
    assert capsys.readouterr().out.startswith("Not alike: clients 4 / 64; rate 10.0 / none.")
    assert said(one, other, "--json") == 0
    out = json.loads(capsys.readouterr().out)
    assert out["not_alike"] == {"clients": [4, 64], "rate": [10.0, None]}
    assert out["pairs"][0]["lines"][0]["metric"] == "answers a second"


def test_controllers_are_compared_by_name_and_two_alone_with_each_other(tmp_path: Path) -> None:
    both = written(tmp_path / "both.json", run(10), run(9, controller="calm"))
    again = written(tmp_path / "again.json", run(8, controller="calm"), run(11))
    assert [pair.one.controller for pair in loads.compare(both, again).pairs] == ["rfc7252", "calm"]
    alone = [written(tmp_path / f"{name}.json", run(8, controller=name)) for name in ("calm", "fasor")]
    assert loads.compare(alone[0], alone[1]).pairs[0].other.controller == "fasor"
    with pytest.raises(UsageError, match="no controller in common"):
        loads.compare(both, alone[1])


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"loads": [], "rate": 1}', '{"loads": [1], "rate": 1}', "[" * 100_000]
)  # fmt: skip
def test_what_is_no_load_is_one_line(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, good = tmp_path / "bad.json", written(tmp_path / "good.json", run(1))
    file.write_text(text, encoding="utf-8")
    assert said(str(file), good) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"millpond: {file}: ")
    assert err.count("\n") == 1
    assert said(str(tmp_path), good) == 2
    assert "beside what?" in capsys.readouterr().err
