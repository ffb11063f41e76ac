"""The page of a diagnosis: every picture draws, or says why not, and one exchange is chosen by its name."""

from __future__ import annotations

from pathlib import Path

import pytest
from picture_checks import check_texts
from right_diagnosis import of_drawn, of_scenario
from test_diagnose_truth import SLOW

from millpond.diagnose import page, pictures
from millpond.errors import UsageError
from millpond.show.document import Missing

ALL = (pictures.loop_time, pictures.answers, pictures.retransmissions, pictures.queue, pictures.devices)


@pytest.mark.parametrize("picture", ALL, ids=lambda picture: picture.__name__)
def test_every_text_of_a_picture_is_inside_and_apart(picture: object) -> None:
    found, _ = of_drawn(0)
    assert callable(picture)
    plot = picture(found)
    assert plot.rows.rows
    check_texts(plot.draw())


def test_the_queue_is_what_the_link_had() -> None:
    found, true = of_drawn(0)
    most = max(length for _, length in pictures.queue(found).rows.rows if isinstance(length, float))
    # its buffer holds 2229 B, and was full
    assert 0.9 * true.figures["path.downlink.buffer_bytes"] < most <= true.figures["path.downlink.buffer_bytes"]


def test_what_cannot_be_drawn_says_why() -> None:
    found, _ = of_drawn(0, "devices")
    with pytest.raises(Missing, match="not visible"):
        pictures.queue(found)
    quiet, _ = of_drawn(1)
    with pytest.raises(Missing, match="Nothing was sent again"):
        pictures.retransmissions(quiet)


def test_one_exchange_is_drawn_with_all_its_transmissions() -> None:
    found, _ = of_scenario(SLOW)
    plot = pictures.one(found, "10.0.0.2:5683/1")
    assert [row[:1] + row[2:3] for row in plot.rows.rows] == [(1, "first"), (2, "spurious")]
    check_texts(plot.draw())
    most = pictures.exchange(found, None)
    assert most["transmissions"] == 2


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("7", "--exchange: '7' is no PEER/MESSAGE_ID, such as 10.0.0."),
        ("10.0.0.9:5683/1", "--exchange: unknown peer '10.0.0.9:5683': did you mean"),
        ("10.0.0.1:5683/99", "--exchange: 10.0.0.1:5683 has no exchange with message ID 99"),
    ],
)
def test_an_exchange_that_is_not_there_is_one_line(name: str, says: str) -> None:
    found, _ = of_scenario(SLOW)
    with pytest.raises(UsageError) as refused:
        pictures.exchange(found, name)
    assert str(refused.value).startswith(says)


def test_the_page_holds_all_of_it(tmp_path: Path) -> None:
    found, _ = of_drawn(0)
    file = page.write(page.document(found, "drawn.pcapng", found.sentences), tmp_path / "page.html")
    text = file.read_text(encoding="utf-8")
    for word in (
        "Loop time",
        "Retransmissions by verdict",
        "One exchange: 10.0.",
        "It is right.",
        "timers.ack_timeout_s",
    ):
        assert word in text
