"""The registry of metrics: each number worked out on paper from a few rows."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hand_made import results

import millpond
from millpond.errors import UsageError
from millpond.measure.measures import Measures
from millpond.measure.metrics import ALIASES, METRICS, metric
from millpond.measure.population import Population
from millpond.measure.statistics import jain, known
from millpond.show.report import story
from millpond.show.report.grid import Grid

#: 38 B take 10.133 ms at 30 kbit/s; 100 clients with 2.0267 s between two requests make a load of one half.
M_D_1 = """
[path.uplink]
rate = "30 kbit/s"
delay = "0 ms"
queue = "1 MB"
[path.downlink]
rate = "100 Mbit/s"
delay = "0 ms"
queue = "1 MB"
[[clients]]
count = 100
controller = "rfc7252"
workload = { kind = "poisson", interval = "2026667 us" }
[run]
for = "500 s"
warm_up = "20 s"
"""
HERE = Population.of("mine")


def alone(**tables: object) -> Measures:
    return Measures(results([({}, ["mine"])], **tables))  # type: ignore[arg-type]


def test_names_are_told_apart_and_statistics_are_known() -> None:
    assert not set(ALIASES) & set(METRICS)
    assert set(ALIASES.values()) <= set(METRICS)
    for name, found in METRICS.items():
        assert (found.name, known(found.usual)) == (name, True)
        assert found.per in ("client", "run", "link", "group")
        assert found.better in ("", "less", "more")
        assert found.summary[-1] != "."
    with pytest.raises(UsageError, match="unknown metric 'fcd': did you mean 'fct'"):
        metric("fcd")


def test_values_are_written_with_their_unit() -> None:
    assert METRICS["useful_share"].written(0.2) == "20 %"
    assert METRICS["fct"].written(2425.04) == "2425 s"
    assert (METRICS["fct"].axis, METRICS["useful_share"].axis) == (
        "flow completion time (s)", "goodput ratio of the bottleneck (%)",
    )  # fmt: skip
    assert (METRICS["fct"].factor("ms"), METRICS["fct"].factor("percent")) == (1000, None)


def test_spurious_copies_over_tcp_are_segments_that_the_client_had() -> None:
    tcp = {"fast_retransmits": 5, "timeout_retransmits": 29, "request_retransmits": 1, "spurious": 28}
    rows = [{"run": 0, "flow": 0, "unnecessary": 0, "retransmissions": 0, "completed": 50, **tcp}]
    measures = alone(flows=rows)
    assert measures.usual("unnecessary_retx_per_client", HERE) == 28
    assert measures.usual("unnecessary_retx_per_exchange", HERE) == pytest.approx(0.56)
    assert measures.usual("retx_per_exchange", HERE) == pytest.approx(0.7)
    assert measures.usual("unnecessary_share_of_retransmissions", HERE) == pytest.approx(0.8)
    assert measures.usual("necessary_retx_per_client", HERE) == 7


def test_requests_end_in_one_of_three_ways() -> None:
    rows = [
        {"run": 0, "flow": 0, "arrivals": 10, "answered": 7, "requests_failed": 2, "never_finished": 1, "delivered": 9,
         "done_us": None},
        {"run": 0, "flow": 1, "arrivals": 10, "answered": 8, "requests_failed": 2, "never_finished": 0, "delivered": 8,
         "done_us": 5_000_000},
        {"run": 0, "flow": 2, "arrivals": 4, "answered": 4, "requests_failed": 0, "never_finished": 0, "delivered": 4,
         "done_us": 3_000_000},
        {"run": 0, "flow": 3, "arrivals": 0, "answered": 0, "requests_failed": 0, "never_finished": 0, "delivered": 0,
         "done_us": 3_000_000},
    ]  # fmt: skip
    measures = alone(flows=rows)
    found = {name: measures.usual(name, HERE) for name in METRICS if name.endswith(("_share", "_clients", "_ratio"))}
    assert found["delivery_ratio"] == pytest.approx((0.9 + 0.8 + 1) / 3)
    assert found["answered_share"] + found["failed_share"] + found["never_finished_share"] == pytest.approx(1)
    # of the three that asked something
    assert (found["complete_clients"], found["lost_clients"], found["unfinished_clients"]) == (1 / 3, 2 / 3, 1 / 3)
    assert measures.usual("failed", HERE) == 1
    assert (measures.usual("answered", HERE), measures.usual("delivered", HERE)) == (19 / 4, 21 / 4)
    done = measures.sample("done", HERE)
    assert (done.take("max"), done.covered) == (5, 0.75)


def test_a_message_is_counted_once_however_many_copies_it_takes() -> None:
    measures = alone(flows=[
        {"run": 0, "flow": 0, "transmissions": 12, "retransmissions": 5},
        {"run": 0, "flow": 1, "transmissions": 3, "retransmissions": 0},
        {"run": 0, "flow": 2, "transmissions": 3, "retransmissions": 2},
        {"run": 0, "flow": 3, "transmissions": 5, "retransmissions": 0},
    ])  # fmt: skip
    assert measures.usual("first_copies", HERE) == 4


def test_what_an_earlier_version_did_not_keep_is_missing() -> None:
    measures = alone(flows=[{"run": 0, "flow": 0}, {"run": 0, "flow": 1}])
    for name in ("delivery_ratio", "failed", "done", "complete_clients", "one_way_delay", "requests_done_99"):
        sample = measures.sample(name, HERE)
        assert (sample.n, math.isnan(sample.take(METRICS[name].usual))) == (0, True), name
        assert sample.missing > 0


def test_delays_are_distributions() -> None:
    rows = [
        {"run": 0, "group": 0, "kind": "one_way", "upper_us": upper, "count": count}
        for upper, count in ((2_000_000, 9), (1_000_000, 90), (8_000_000, 1))
    ]
    rows.append({"run": 0, "group": 0, "kind": "rtt", "upper_us": 99, "count": 5})
    sample = alone(flows=[{"run": 0, "flow": 0}], delays=rows).sample("one_way_delay", HERE)
    assert sample.n == 100
    assert [sample.take(name) for name in ("min", "median", "p90", "p95", "p99", "max")] == [1, 1, 1, 2, 2, 8]
    assert sample.take("mean") == pytest.approx((90 + 18 + 8) / 100)


def test_when_how_much_was_done_is_read_off_the_curve() -> None:
    told = {"run": 0, "group": 0, "event": 0, "of": 40, "clients_of": 4}
    rows = [
        told | {"t_us": at * 1_000_000, "answered": answered, "clients": clients}
        for at, answered, clients in ((1, 19, 0), (2, 20, 1), (3, 36, 2), (9, 39, 3))
    ]
    measures = alone(flows=[{"run": 0, "flow": 0}], reported=rows)
    assert [measures.usual(f"requests_done_{share}", HERE) for share in (50, 90)] == [2, 3]
    assert measures.usual("clients_done_50", HERE) == 3
    # one request was never answered
    for name in ("requests_done_99", "requests_done_100", "clients_done_90"):
        assert (measures.sample(name, HERE).n, measures.sample(name, HERE).missing) == (0, 1)


def test_an_event_is_over_when_requests_take_as_long_as_before_it() -> None:
    def arrivals(run: int, delays: dict[int, float]) -> list[dict[str, object]]:
        told = {"run": run, "group": 0, "arrivals": 2, "delivered": 2}
        return [told | {"since_us": s * 1_000_000, "delay_us": 2 * delay * 1e6} for s, delay in delays.items()]

    usual = {-2: 1.0, -1: 1.0}
    # the mean of seconds 8 to 27 is 1.1 at last: two of 2 s and eighteen of 1 s
    felt = arrivals(0, usual | {s: 2.0 if s < 10 else 1.0 for s in range(60)})
    never = arrivals(1, usual | dict.fromkeys(range(30), 2.0))
    unknown = arrivals(2, dict.fromkeys(range(30), 1.0))
    flows = [{"run": run, "flow": 0} for run in range(3)]
    measures = alone(flows=flows, arrivals=[*felt, *never, *unknown], replications=3)
    times, settled = (measures.sample(name, HERE) for name in ("settling_time", "settled"))
    # what never settles counts with the thirty seconds in which something arrived
    assert (times.values.tolist(), times.missing) == ([8.0, 30.0], 1)
    assert (settled.values.tolist(), settled.missing) == ([1.0, 0.0], 1)


def test_clients_with_more_requests_count_for_more_of_what_a_mesh_carries() -> None:
    flows = [
        {"run": 0, "flow": 0, "arrivals": 90, "delivered": 45},
        {"run": 0, "flow": 1, "arrivals": 10, "delivered": 10},
        {"run": 1, "flow": 0, "arrivals": 100, "delivered": 75},
        {"run": 1, "flow": 1, "arrivals": 0, "delivered": 0},
    ]
    loaded = Measures(results([({"offered_kbps": 4}, ["mine"])], flows=flows, replications=2))
    here = Population.of("mine", offered_kbps=4)
    assert loaded.sample("packet_delivery_ratio", here).values.tolist() == [0.55, 0.75]
    assert loaded.sample("carried_load", here).values.tolist() == pytest.approx([2200, 3000])
    assert METRICS["carried_load"].factor("kbps") == 1e-3
    # nothing says what was offered
    assert alone(flows=flows[:2]).sample("carried_load", HERE).missing == 1


def test_first_waits_and_variations_are_distributions_of_exchanges() -> None:
    rows = [
        {"run": 0, "group": 0, "kind": kind, "upper_us": upper, "count": count}
        for kind, upper, count in (("first_wait", 2_000_000, 3), ("first_wait", 6_000_000, 1), ("weak_variation", 8, 5))
    ]
    measures = alone(flows=[{"run": 0, "flow": 0}], delays=rows)
    assert (measures.usual("first_wait", HERE), measures.sample("first_wait", HERE).take("mean")) == (2, 3)
    assert measures.sample("rttvar_weak", HERE).take("mean") == pytest.approx(8e-6)


def test_what_arrives_within_ten_seconds_after_any_event_is_delayed_by_it() -> None:
    told = {"group": 0, "arrivals": 1, "delivered": 1}
    # events at 60 s and 120 s: 1 s, 3 s and 5 s count, the 9 s before and between them do not
    delays = {-1: 9.0, 0: 1.0, 9: 3.0, 10: 9.0, 59: 9.0, 60: 5.0, 70: 9.0}
    arrivals = [
        told | {"run": 0, "since_us": s * 1_000_000, "delay_us": int(d * 1e6), "crossing_us": int(d * 1e5)}
        for s, d in delays.items()
    ]
    arrivals.append(told | {"run": 1, "since_us": 30_000_000, "delay_us": 1, "crossing_us": 1})
    flows = [{"run": run, "flow": 0} for run in (0, 1)]
    made = results([({}, ["mine"])], flows=flows, arrivals=arrivals, replications=2)
    made.cells[0].scenario.update({"timeline": [{"at": "1 min"}, {"at": "120 s"}]})  # type: ignore[attr-defined]
    for name, value in (("event_delay", 3.0), ("event_crossing_time", 0.3)):
        found = Measures(made).sample(name, HERE)
        assert (found.values.tolist(), found.missing) == ([pytest.approx(value)], 1)


def test_groups_with_one_algorithm_are_one_population() -> None:
    flows = [
        {"run": 0, "flow": 0, "group": 0, "fct_us": 1_000_000},
        {"run": 0, "flow": 1, "group": 1, "fct_us": 3_000_000},
    ]
    measures = Measures(results([({}, ["mine", "mine"])], flows=flows))
    assert list(measures.populations()) == [HERE]
    assert measures.sample("fct", HERE).values.tolist() == [1.0, 3.0]


def test_a_mesh_is_summed_over_its_nodes() -> None:
    lost = ("lost_buffers", "lost_neighbours", "lost_no_ack", "lost_no_channel", "lost_air", "lost_reassembly")
    none = dict.fromkeys(("data_duplicate", "data_collided", "data_deaf", "data_faded", *lost), 0)
    nodes = [
        none | {"run": 0, "data_sent": 10, "acks_sent": 2, "data_received": 4, "data_collided": 1, "data_duplicate": 1,
                "packets_begun": 5, "lost_buffers": 1, "on_air_us": 7_000},
        none | {"run": 0, "data_sent": 6, "acks_sent": 6, "data_received": 4, "data_faded": 1, "packets_begun": 3,
                "lost_no_ack": 1, "data_deaf": 0, "on_air_us": 5_000},
    ]  # fmt: skip
    measures = alone(flows=[{"run": 0, "flow": 0}], runs=[{"run": 0, "delivered": 4}], nodes=nodes)
    names = ("frames_per_message", "frames_collided", "frames_faded", "frames_duplicate", "packets_lost_in_mesh",
             "packets_lost_for_room", "packets_lost_buffers", "packets_lost_no_ack", "packets_lost_air",
             "airtime_per_message", "frames_deaf")  # fmt: skip
    expected = [6, 0.1, 0.1, 0.125, 0.25, 0.125, 0.125, 0.125, 0, 0.003, 0]
    assert [measures.usual(name, HERE) for name in names] == pytest.approx(expected)
    without = alone(flows=[{"run": 0, "flow": 0}])
    assert [without.sample(name, HERE).missing for name in names] == [1] * len(names)


def test_messages_of_rpl_are_summed_and_count_as_frames() -> None:
    lost = ("lost_buffers", "lost_neighbours", "lost_no_ack", "lost_no_channel", "lost_air", "lost_reassembly")
    node = dict.fromkeys(lost, 0) | {"run": 0, "data_sent": 10, "acks_sent": 2, "packets_begun": 10, "lost_no_ack": 1}
    rpl = [
        {"run": 0, "dis": 1, "dio": 7, "dao": 6, "dao_no_path": 1, "control_sent": 16, "parent_switches": 2,
         "lost_no_route": 1, "lost_stale_route": 2},
        {"run": 0, "dis": 0, "dio": 7, "dao": 2, "dao_no_path": 0, "control_sent": 4, "parent_switches": 1,
         "lost_no_route": 0, "lost_stale_route": 0},
    ]  # fmt: skip
    measures = alone(flows=[{"run": 0, "flow": 0}], runs=[{"run": 0, "delivered": 4}], nodes=[node, node], rpl=rpl)
    of_rpl = ("rpl_dis", "rpl_dio", "rpl_dao", "rpl_dao_no_path", "parent_switches", "control_share")
    losses = ("packets_lost_in_mesh", "packets_lost_no_route", "packets_lost_stale_route")
    names = (*of_rpl, "frames_per_message", *losses)
    expected = [1, 14, 8, 1, 3, 0.5, 11, 0.25, 0.05, 0.1]
    assert [measures.usual(name, HERE) for name in names] == pytest.approx(expected)
    without = alone(flows=[{"run": 0, "flow": 0}], runs=[{"run": 0, "delivered": 4}], nodes=[node, node])
    assert without.usual("frames_per_message", HERE) == 6
    assert [without.sample(name, HERE).missing for name in of_rpl] == [1] * len(of_rpl)


def test_the_bottleneck_is_the_busiest_link() -> None:
    up = {"run": 0, "link": "uplink", "busy_us": 9_000_000, "useful_bytes": 2_000, "queue_mean_bytes": 500.0,
          "queue_mean_packets": 5.0, "dropped_queue_packets": 20, "dropped_queue_bytes": 5_000}  # fmt: skip
    down = {"run": 0, "link": "downlink", "busy_us": 8_000_000}
    measures = alone(flows=[{"run": 0, "flow": 0}], links=[down, up])
    assert measures.bottleneck(measures.cells[0]) == "uplink"
    names = ("useful_share", "wasted_share", "utilisation", "loss_rate", "queue")
    assert [measures.usual(name, HERE) for name in names] == pytest.approx([0.2, 0.8, 0.9, 0.2, 500])
    # 5 packets are held on average for 10 s and 80 come; for 9 s one of them is being sent: each waits 41/80 s
    assert measures.usual("queueing_delay", HERE) == pytest.approx(41 / 80)
    assert measures.usual("link_capacity_wasted_on_unnecessary_retx", HERE) == pytest.approx(0.8)


def test_links_that_do_not_count_in_the_warm_up_are_busy_for_a_part_of_the_rest() -> None:
    busy = {"run": 0, "link": "uplink", "busy_us": 1_000_000, "queue_mean_packets": 5.0, "dropped_queue_packets": 0}
    made = results([({}, ["mine"])], flows=[{"run": 0, "flow": 0}], links=[busy])
    made.cells[0].scenario["run"] = {"warm_up": "6 s"}  # type: ignore[index]
    measures = Measures(made)
    assert measures.usual("utilisation", HERE) == pytest.approx(1 / 4)
    # 5 packets are held for 4 s, one of them is being sent for 1 s, and 100 come; then for half the time.
    assert measures.usual("queueing_delay", HERE) == pytest.approx(19 / 100)
    made.cells[0].scenario["run"] = {"warm_up": "8 s"}  # type: ignore[index]
    assert Measures(made).usual("queueing_delay", HERE) == pytest.approx(9 / 100)


def test_what_waits_at_a_busy_link_waits_as_long_as_queueing_theory_says(tmp_path: Path) -> None:
    """M/D/1: with service time s and load 1/2 an arrival waits s / 2 on average, its own service not counted."""
    (tmp_path / "queue.toml").write_text(M_D_1, encoding="utf-8")
    done = millpond.run(tmp_path / "queue.toml", replications=8, out=tmp_path / "out", report=False)
    (population,) = done.measures.populations()
    # some 190,000 waits, correlated over busy periods, are known to 0.6 %
    assert done.measures.usual("queueing_delay", population) == pytest.approx(38 * 8 / 30e3 / 2, rel=0.02)


def test_a_plan_may_name_the_bottleneck() -> None:
    made = results(
        [({}, ["mine"])],
        flows=[{"run": 0, "flow": 0}],
        links=[{"run": 0, "link": "first", "busy_us": 9}, {"run": 0, "link": "second", "busy_us": 8}],
    )
    made.manifest["bottleneck"] = "second"  # type: ignore[index]
    assert Measures(made).bottleneck(made.cells[0]) == "second"


@pytest.mark.parametrize(
    ("useful", "told"), [(0.1, ""), (0.3, "75.0\N{NARROW NO-BREAK SPACE}% wasted it would not be one"),
                         (0.45, "50.0\N{NARROW NO-BREAK SPACE}% wasted it would be a collapse"), (0.6, "")]
)  # fmt: skip
def test_a_verdict_on_collapse_says_where_another_line_would_turn_it(useful: float, told: str) -> None:
    link = {"run": 0, "link": "air", "useful_bytes": round(10_000 * useful)}
    grid = Grid(alone(flows=[{"run": 0, "flow": 0}], links=[link]).results)
    assert story.near_the_line(grid) == ([f"With the line drawn at {told}."] if told else [])


def test_equal_shares_are_fair() -> None:
    assert jain(np.array([3.0, 3.0, 3.0])) == pytest.approx(1)
    assert jain(np.array([3.0, 0.0, 0.0])) == pytest.approx(1 / 3)
    assert math.isnan(jain(np.array([0.0, 0.0])))
    rows = [{"run": 0, "flow": number, "answered": answered} for number, answered in enumerate((10, 10, 0, 0))]
    assert alone(flows=rows).usual("fairness", HERE) == pytest.approx(0.5)


def test_what_a_mix_takes_is_measured_against_all_alike() -> None:
    # beside the greedy ones the meek get 5 of the 10 exchanges a second that they get among their like
    cells = [({"rate": 1}, ["greedy", "meek"]), ({"rate": 1}, ["meek"]), ({"rate": 2}, ["greedy", "meek"])]
    flows = [
        {"run": run, "flow": flow, "group": flow, "completed": completed}
        for run, completions in ((0, (15, 5)), (1, (10,)), (2, (5, 5)))
        for flow, completed in enumerate(completions)
    ]
    measures = Measures(results(cells, flows=flows))
    greedy = Population.of("greedy", "meek", rate=1)
    assert measures.usual("share_taken_from_neighbours", greedy) == pytest.approx(0.5)
    # there is no cell in which all are like the neighbours
    assert measures.sample("share_taken_from_neighbours", greedy.but(rate=2)).missing == 1
    assert measures.sample("share_taken_from_neighbours", Population.of("meek", rate=1)).missing == 1


def test_what_a_mix_takes_is_measured_where_nobody_is_ever_done() -> None:
    # with endless backlogs no client completes: what counts is what was answered until the end of the run
    nowhere: dict[str, int] = {}
    cells = [(nowhere, ["greedy", "meek"]), (nowhere, ["meek"])]
    flows = [
        {"run": run, "flow": flow, "group": flow, "completed": answered, "answered": answered, "fct_us": None}
        for run, answers in ((0, (15, 4)), (1, (10,)))
        for flow, answered in enumerate(answers)
    ]
    measures = Measures(results(cells, flows=flows))
    assert measures.usual("share_taken_from_neighbours", Population.of("greedy", "meek")) == pytest.approx(0.6)


def test_proxies_are_summed_over_all_of_a_run() -> None:
    row = {"requests": 9, "answered": 6, "failed": 2, "refused": 1, "transmissions": 10, "retransmissions": 4,
           "unnecessary": 3, "held_max": 5}  # fmt: skip
    first, second = ({"run": 0, "proxy": name, **row} for name in ("near", "far"))
    measures = alone(flows=[{"run": 0, "flow": 0}], proxies=[first, {**second, "held_max": 7, "refused": 0}])
    names = [name for name in METRICS if name.startswith("proxy_")]
    assert {name: measures.usual(name, HERE) for name in names} == {
        "proxy_requests": 18, "proxy_answered": 12, "proxy_failed": 4, "proxy_refused": 1,
        "proxy_transmissions": 20, "proxy_retransmissions": 8, "proxy_unnecessary": 6, "proxy_held": 7,
    }  # fmt: skip
    without = alone(flows=[{"run": 0, "flow": 0}])
    assert [without.sample(name, HERE).missing for name in names] == [1] * len(names)
