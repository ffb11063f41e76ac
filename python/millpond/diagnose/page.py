"""What is shown of a diagnosis: what it says, its pictures, its devices, and what was written from it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from millpond.diagnose import pictures
from millpond.diagnose.analysis import Diagnosis, Given, Verdict, places
from millpond.diagnose.repeat import Beside
from millpond.diagnose.score import Accuracy, Score
from millpond.results.store import write_text
from millpond.show import html, labels
from millpond.show.document import Document, Entry, Listing, Picture, Section, Tone

FOOTER = (
    "Everything is computed from the capture alone. A figure that cannot be seen from where it was taken is not "
    "guessed; how right the others are is measured on drawn scenarios."
)
_TONES: dict[Verdict, Tone] = {"healthy": "good", "strained": "unsure", "collapse": "bad", "unknown": "quiet"}
#: Devices with a row.
_DEVICES = 200


def document(
    found: Diagnosis,
    source: str,
    sentences: Sequence[str],
    exchange: str | None = None,
    repeated: Sequence[Beside] = (),
) -> Document:
    """All that is shown of a diagnosis.

    Args:
        found: The diagnosis.
        source: What the capture is called.
        sentences: What the program prints of it.
        exchange: The one that is drawn: `PEER/MESSAGE_ID`; None: that with the most transmissions.
        repeated: The check of what was written from it.
    """
    compose = partial(_sections, found, tuple(sentences), exchange, tuple(repeated))
    devices = labels.counted(found.figures["devices"], "device", "devices")
    return Document(f"Diagnosis of {source}", devices, FOOTER, compose)


def write(shown: Document, file: Path) -> Path:
    """Write the page; it appears whole or not at all."""
    write_text(file, html.render(shown))
    return file


def check_table(repeated: Sequence[Beside]) -> Listing:
    """The capture beside the runs of what was written from it."""
    rows = []
    for number in repeated:
        spread = f"{labels.number(min(number.runs))} to {labels.number(max(number.runs))}"
        off = labels.percent(number.off, signed=True)
        rows.append(
            (
                f"{number.name} ({number.unit})" if number.unit == "s" else number.name,
                labels.number(number.capture),
                labels.number(number.middle),
                spread,
                Entry(off, "good" if number.is_near else "bad"),
            )
        )
    runs = len(repeated[0].runs) if repeated else 0
    return Listing(
        "repeated",
        ("", "capture", f"median of {labels.runs(runs)}", "range", "difference"),
        tuple(rows),
        "Runs of the written scenario with different seeds, measured as the capture was; of ratios in points.",
        (1, 2, 3, 4),
    )


def score_sections(scored: Score) -> list[Section]:
    """A diagnosis beside the truth."""
    found = Accuracy([scored])
    lines = (
        f"{scored.name}, captured at the {scored.end}: {scored.verdict}, and is {scored.true_verdict}. "
        f"{scored.devices} of {labels.counted(scored.true_devices, 'device', 'devices')}.",
        f"Retransmissions that are seen: {scored.labels.seen}, of which {scored.labels.unknown} cannot be told.",
    )
    labels_table = Listing(
        "labels",
        ("retransmissions", "are", "told to be", "rightly", "precision", "recall"),
        tuple(
            (
                word, str(scored.labels.true[word]), str(scored.labels.told[word]), str(scored.labels.right[word]),
                labels.percent(found.share("precision", word)), labels.percent(found.share("recall", word)),
            )
            for word in scored.labels.true
        ),
        numeric=(1, 2, 3, 4, 5),
    )  # fmt: skip
    figures = Listing(
        "figures",
        ("figure", "value", "grade", "truth", ""),
        tuple(
            (place, labels.number(figure.value), figure.grade, labels.number(figure.truth),
             Entry("wrong" if figure.is_violated(place) else "", "bad"))
            for place, figure in scored.figures.items()
        ),
        numeric=(1, 3),
    )  # fmt: skip
    return [Section("score", "Beside the truth", lines, listings=(labels_table, figures))]


# ----------------------------------------------------------------------------------------------- helpers


def _sections(
    found: Diagnosis, sentences: tuple[str, ...], exchange: str | None, repeated: tuple[Beside, ...]
) -> list[Section]:
    chosen = pictures.exchange(found, exchange)
    name = f"{chosen['peer']}/{chosen['message_id']}"
    drawn = [
        Picture("loop-time", "Loop time", "From an answer to the next request of the same device. Above the band of "
                "the first timer answers come too late: what is sent again then is spurious.",
                partial(pictures.loop_time, found)),
        Picture("answers", "Answers, and those of use", "What answers take, and of it what was the first to be taken "
                "by its device.", partial(pictures.answers, found)),
        Picture("retransmissions", "Retransmissions by verdict", "Spurious: the answer to an earlier transmission "
                "reached the device. Needed: none did.", partial(pictures.retransmissions, found)),
        Picture("queue", "Queue of the downlink, inferred", "All answers that were seen, put through the rate and the "
                "buffer that were estimated.", partial(pictures.queue, found)),
    ]  # fmt: skip
    each = Picture("devices", "Device by device", f"Those that sent most again, at most {pictures.DEVICES}.",
                   partial(pictures.devices, found))  # fmt: skip
    one = Picture("exchange", f"One exchange: {name}", "The times of one end are those of the capture; those of the "
                  "other are half a base round trip away, queues left out.",
                  partial(pictures.one, found, exchange))  # fmt: skip
    sections = [
        Section("summary", "In short", sentences, listings=(_figures(found),)),
        Section("course", "What happens", pictures=tuple(drawn)),
        Section("devices", "Devices", pictures=(each,), listings=(_devices(found),), detail=True),
        Section("exchange", "One exchange", pictures=(one,)),
    ]
    if repeated:
        sections.insert(1, Section("repeated", "What was written, run again", listings=(check_table(repeated),)))
    return sections


def _figures(found: Diagnosis) -> Listing:
    rows = []
    for place in places(found.figures):
        given = found.figure(place)
        rows.append((place, "" if given.value is None else f"{given.value:.6g}", _grade(given), given.because))
    return Listing("figures", ("figure", "value", "grade", "because"), tuple(rows), numeric=(1,), detail=True)


def _grade(given: Given) -> Entry:
    tones: dict[str, Tone] = {"exact": "good", "unknown": "quiet"}
    return Entry(
        "not visible" if given.grade == "unknown" else given.grade.replace("-", " "), tones.get(given.grade, "")
    )


def _devices(found: Diagnosis) -> Listing:
    table = found.devices.to_pylist()
    header = ("peer", "requests", "transmissions", "spurious", "needed", "unknown", "answered")
    chosen = sorted(table, key=lambda row: row["requests"] - row["transmissions"])[:_DEVICES]
    rows = tuple(tuple(str(row[name]) for name in header) for row in chosen)
    left = len(table) - len(chosen)
    more = f"{labels.counted(left, 'device', 'devices')} more." if left else ""
    return Listing(
        "devices-table", (*header[:5], "cannot tell", "answered"), rows, more,
        tuple(range(1, len(header))), title="Every device", folded=True,
    )  # fmt: skip
