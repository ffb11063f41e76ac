"""The part of a study's page that lists its verdicts, written from a full run.

    python -m millpond.studies.manual upc19-results docs/upc19.md

writes it anew between the two comments that mark it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from millpond.errors import MillpondError, UsageError
from millpond.judge.checks import Judgement
from millpond.judge.compare import Comparison
from millpond.measure.population import path_in_words
from millpond.results.directory import Results
from millpond.studies.reproduction import compare

BEGIN, END = "<!-- verdicts of a full run, written by millpond.studies.manual -->", "<!-- end of the verdicts -->"

_COLUMNS: dict[Judgement, str] = {
    "holds": "hold",
    "noise": "within the noise",
    "fails": "fail",
    "unjudged": "cannot be judged",
}


def page(comparison: Comparison) -> str:
    """The table, in Markdown: a row for each reading on which claims were judged by themselves, else one of all."""
    readings = comparison.variants() or ("",)
    first = [] if readings == ("",) else ["reading"]
    lines = [_row([*first, *_COLUMNS.values()]), _row(["---"] * (len(first) + len(_COLUMNS)))]
    for reading in readings:
        cells = [path_in_words(reading) or reading] if first else []
        judged = [claim for claim in comparison.claims if reading in claim.variants or not claim.variants]
        for outcome in _COLUMNS:
            ids = [
                claim.id.rpartition("-")[2] for claim in judged if claim.variants.get(reading, claim).verdict == outcome
            ]
            cells.append(f"{len(ids)}: {', '.join(ids)}" if ids else "none")
        lines.append(_row(cells))
    return "\n".join(lines)


def written_into(text: str, table: str) -> str:
    """The page with its verdicts anew. Raises `UsageError` if it has no place for them."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise UsageError(f"the page has no place for verdicts: write {BEGIN} and {END} where they belong")
    return f"{before}{BEGIN}\n\n{table}\n\n{END}{after}"


def main(arguments: Sequence[str]) -> None:
    """Writes the verdicts of a results directory into a page."""
    if len(arguments) != 2:
        raise UsageError("two places are needed: a directory of results, and the page")
    results, place = Results.open(Path(arguments[0])), Path(arguments[1])
    place.write_text(written_into(place.read_text(encoding="utf-8"), page(compare(results))), encoding="utf-8")


# ----------------------------------------------------------------------------------------------- helpers


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except MillpondError as error:
        sys.exit(f"error: {error}")
