"""Two algorithms, or two values of a factor, in pairs of equal seeds."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import small_sweep

import millpond
from millpond import Results, UsageError, cli
from millpond.judge import side_by_side


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    out = tmp_path_factory.mktemp("swept") / "out"
    text = small_sweep.tree(replications=4)
    text["scenario"]["clients"][0]["max_retransmit"] = 8
    text["matrix"]["clients[0].count"] = [2, 40]
    return millpond.sweep(text, out=out, report=False).results


def test_algorithms_meet_wherever_both_were_run(results: Results) -> None:
    found = side_by_side.compare(results, "rfc7252", "cocoa-03", ["makespan"])
    assert found.factor == "algorithm"
    assert len(found.lines) == 4
    assert len({line.place for line in found.lines}) == 4
    assert all(line.runs == 4 for line in found.lines)


def test_the_difference_is_that_of_the_runs_in_pairs(results: Results) -> None:
    found = side_by_side.compare(results, "queue=1 kB", "queue=8 kB", ["makespan"])
    table = millpond.Run(results).table("runs").to_pylist()

    def times(queue: str, algorithm: str) -> list[float]:
        where = {"queue": queue, "algorithm": algorithm, "clients[0].count": 40}
        return [row["makespan_us"] / 1e6 for row in table if where.items() <= row.items()]

    (line,) = (line for line in found.lines if "40" in line.place and "cocoa-03" in line.place)
    ours, theirs = times("1 kB", "cocoa-03"), times("8 kB", "cocoa-03")
    assert (line.one, line.other) == pytest.approx((np.mean(ours), np.mean(theirs)))
    assert line.difference == pytest.approx(line.one - line.other)
    assert line.low is not None
    assert line.high is not None
    spread = np.std(np.subtract(ours, theirs), ddof=1) / 2
    # 3.182 is the quantile of Student's t for three degrees of freedom at 97.5 %
    assert line.high - line.low == pytest.approx(2 * 3.18245 * spread, rel=1e-4)


def test_runs_that_only_one_of_the_two_has_are_left_out(tmp_path: Path) -> None:
    text = small_sweep.tree()
    text["scenario"]["path"]["uplink"]["loss"] = {"kind": "bernoulli", "rate": 0.2}
    where = {"clients[0].count": [2], "algorithm": ["rfc7252"]}
    text["matrix"] = [{**where, "queue": ["1 kB"], "replications": 5}, {**where, "queue": ["8 kB"], "replications": 3}]
    swept = millpond.sweep(text, out=tmp_path / "out", report=False)
    (line,) = side_by_side.compare(swept.results, "queue=1 kB", "queue=8 kB", ["makespan"]).lines
    table = swept.table("runs").to_pylist()
    times = {
        queue: [row["makespan_us"] / 1e6 for row in table if row["queue"] == queue and row["replication"] < 3]
        for queue in ("1 kB", "8 kB")
    }
    assert line.runs == 3
    assert (line.one, line.other) == pytest.approx([np.mean(found) for found in times.values()])
    # neither queue ever fills, so the random stream of both is the same
    assert line.verdict == "equal"


def test_the_verdict_follows_from_the_interval() -> None:
    def verdict(low: float | None, high: float | None, runs: int = 3, statistic: str = "median") -> str:
        return side_by_side.Line("", "fct", statistic, "s", 1.0, 1.0, 0.0, low, high, runs).verdict

    assert verdict(-1.0, 1.0) == "within the noise"
    assert verdict(-2.0, -1.0) == "less"
    assert verdict(1.0, 2.0) == "more"
    assert verdict(None, None, 1) == "one run only"
    assert verdict(None, None, 2) == "fewer than 3 runs"
    assert verdict(None, None, 9, "max-min") == "an extreme"


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        ("rfc7252", "cocoa", "unknown algorithm or value 'cocoa': did you mean 'cocoa-03'?"),
        ("rfc7252", "rfc7252", "rfc7252 and rfc7252: the same"),
        ("rfc7252", "1 kB", "no values of one factor"),
        ("queue=1 kB", "algorithm=rfc7252", "values of two factors"),
        ("quue=1 kB", "queue=8 kB", "quue=1 kB: unknown factor 'quue': did you mean 'queue'?"),
        ("queue=1 kB", "quue=1 kB", "quue=1 kB: unknown factor 'quue': did you mean 'queue'?"),
    ],
)
def test_what_cannot_be_compared_is_refused(results: Results, one: str, other: str, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        side_by_side.compare(results, one, other)
    assert told in str(caught.value)


def test_an_unknown_metric_gets_the_nearest(results: Results) -> None:
    with pytest.raises(UsageError, match=r"--metric: unknown metric 'fctt': did you mean 'fct'"):
        side_by_side.compare(results, "rfc7252", "cocoa-03", ["fctt"])


def test_the_program_prints_it(results: Results, capfd: pytest.CaptureFixture[str]) -> None:
    for flags in ([], ["--json"]):
        with pytest.raises(SystemExit) as ended:
            cli.main(["compare", str(results.directory), "rfc7252", "cocoa-03", "--metric", "fct,makespan", *flags])
        assert ended.value.code == 0
        out, _ = capfd.readouterr()
        if flags:
            told = json.loads(out)
            assert [line["metric"] for line in told["lines"]] == ["fct", "makespan"] * 4
            assert Path(results.directory).is_dir()
        else:
            assert "rfc7252 beside cocoa-03" in out


def test_a_place_stands_above_its_metrics_in_one_piece(results: Results, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["compare", str(results.directory), "queue=1 kB", "queue=8 kB"])
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    places = {line.place for line in side_by_side.compare(results, "queue=1 kB", "queue=8 kB").lines}
    assert places <= set(lines)


def test_what_does_not_differ_is_called_equal_to_programs_too(results: Results) -> None:
    told = side_by_side.compare(results, "rfc7252", "cocoa-03", ["unfinished"]).to_json()["lines"]
    assert {line["verdict"] for line in told} == {"equal"}


def test_python_has_the_same_call(results: Results) -> None:
    told = side_by_side.compare(results, "rfc7252", "cocoa-03", ["fct"])
    for place in (results, millpond.Run(results), results.directory, str(results.directory)):
        assert millpond.compare(place, "rfc7252", "cocoa-03", metrics="fct") == told
    assert isinstance(told, millpond.SideBySide)


def test_two_results_of_one_plan_stand_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = small_sweep.tree(replications=3)
    slower = {"path.downlink.rate": "10 kbit/s"}
    before = millpond.sweep(plan, out=tmp_path / "before", report=False)
    after = millpond.sweep(plan, changes=slower, out=tmp_path / "after", report=False)
    found = millpond.compare(after, before, metrics="makespan", margin=0.1)
    assert (found.is_paired, len(found.lines)) == (True, 8)
    assert {line.verdict for line in found.lines} == {"more"}
    assert {line.beside_margin for line in found.lines} == {"worse"}
    same = millpond.compare(before, before.directory, margin=0.1)
    assert {line.verdict for line in same.lines} == {"equal"}
    assert {line.beside_margin for line in same.lines} == {"no worse"}
    # of other seeds runs are independent
    others = millpond.sweep(plan, seed=99, out=tmp_path / "others", report=False)
    assert not millpond.compare(before, others).is_paired
    with pytest.raises(SystemExit) as ended:
        cli.main(["compare", str(after.directory), str(before.directory), "--p-values", "--metric", "makespan"])
    assert not ended.value.code
    out = capsys.readouterr().out
    assert "after has" in out.replace("\n", " ")
    assert "effect" in out
    assert "Holm's" in out


def test_results_of_different_plans_are_one_line(tmp_path: Path) -> None:
    plan = small_sweep.tree()
    one = millpond.sweep(plan, out=tmp_path / "one", report=False)
    plan["matrix"] = {"queue": ["1 kB", "8 kB"], "clients[0].count": [3], "algorithm": ["rfc7252"]}
    other = millpond.sweep(plan, out=tmp_path / "other", report=False)
    with pytest.raises(UsageError, match=r"one and .*other: results of different plans: no place was run in both"):
        millpond.compare(one, other)
    plan["matrix"] = {"path.uplink.queue": ["1 kB"], "clients[0].count": [2], "algorithm": ["rfc7252"]}
    del plan["vary"]
    third = millpond.sweep(plan, out=tmp_path / "third", report=False)
    with pytest.raises(UsageError, match=r"different plans: .*queue.* here, .*path.uplink.queue.* there"):
        millpond.compare(one, third)
    with pytest.raises(UsageError, match="margin: 5: a share above 0 and below 1"):
        millpond.compare(one, other, margin=5)
