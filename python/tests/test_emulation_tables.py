"""What an emulation came to, as Parquet."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from millpond import api
from millpond.errors import MillpondError
from millpond.live import _out
from millpond.results.emulation import write_tables

LINK = {
    "link": "uplink", "offered_packets": 3, "offered_bytes": 300, "dropped_queue_packets": 0, "dropped_queue_bytes": 0,
    "dropped_aqm_packets": 0, "dropped_radio_packets": 1, "dropped_radio_bytes": 100, "delivered_packets": 2,
    "delivered_bytes": 200, "busy_us": 7, "queue_mean_bytes": 0.5, "queue_p95_bytes": 1, "queue_max_bytes": 2,
    "queue_mean_packets": 0.25, "queue_max_packets": 1,
}  # fmt: skip
FLOW = {"flow": 0, "transport": "udp", "client": "10.77.1.1:4000", "first_send_us": 5, "fct_us": None}


def test_rows_have_the_names_and_kinds_of_the_simulators_tables(tmp_path: Path) -> None:
    report = {"links": [LINK, {**LINK, "link": "downlink"}], "flows": [FLOW]}
    (tmp_path / "report.json").write_text(json.dumps(report), encoding="utf-8")
    links, flows = map(pq.read_table, write_tables(tmp_path))
    assert links.column("link").to_pylist() == ["uplink", "downlink"]
    assert flows.to_pylist() == [{"run": 0, **FLOW}]
    scenario = Path(api.__file__).parent / "scenarios" / "first.toml"
    simulated = api.run(
        scenario, changes={"run.until": "1 min"}, out=tmp_path / "simulated", report=False
    ).results.table("links")
    for field in links.schema:
        there = simulated.schema.field(field.name).type
        # words may be kept as a dictionary
        assert field.type == getattr(there, "value_type", there), field.name


@pytest.mark.parametrize("text", ["", "{}", '{"links": 1, "flows": []}', '{"links": [{"a": 1}, {}], "flows": []}'])
def test_what_is_no_report_is_told_in_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "report.json").write_text(text, encoding="utf-8")
    with pytest.raises(MillpondError, match="no report of an emulation") as refused:
        write_tables(tmp_path)
    assert len(str(refused.value).splitlines()) == 1


def test_the_folder_is_that_of_the_emulator_not_of_the_program_behind_it() -> None:
    assert _out(("nbiot-anrw18", "--out", "here", "--", "prog", "--out", "there")) == Path("here")
    assert _out(("nbiot-anrw18", "--out=here")) == Path("here")
    assert _out(("nbiot-anrw18", "--", "prog", "--out", "there")) is None
