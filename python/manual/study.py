"""What a study's page tells of a run: its verdicts, and the numbers of ours in its text and tables.

    python -m manual.study upc19-results docs/studies/upc19.md

writes both anew from a full run: the verdicts between the two comments that mark them, the numbers where `marks` says,
as `numbers` measures them, and the values into `measured.csv` beside the plan.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from manual import marks, numbers
from millpond.errors import MillpondError, UsageError
from millpond.judge.checks import Judgement
from millpond.judge.compare import Comparison
from millpond.measure.measures import Measures
from millpond.plan import study
from millpond.plan.study import Plan
from millpond.results.directory import Cell, Results
from millpond.studies.reproduction import compare

BEGIN, END = "<!-- verdicts of a full run, written by manual.study -->", "<!-- end of the verdicts -->"

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
        cells = [comparison.reading.say(reading) or reading] if first else []
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


def whole_cells(results: Results, plan: Plan, cells: Iterable[Cell]) -> set[str]:
    """Which of the plan's cells, by their ids, were run as it has them: by this scenario, with all of its seeds."""
    if results.manifest["state"] != "complete" or list(results.manifest["seeds"]) != list(study.seeds(plan)):
        return set()
    told = {cell.id: cell for cell in cells}
    same = (cell for cell in results.cells if cell.id in told and cell.scenario == told[cell.id].scenario)
    return {cell.id for cell in same if cell.replications == told[cell.id].replications}


def main(arguments: Sequence[str]) -> None:
    """Writes the verdicts and the numbers of a results directory into a page.

    Of results that hold some cells of the study alone, those numbers are written that these cells give.
    """
    if len(arguments) != 2:
        raise UsageError("two places are needed: a directory of results, and the page")
    results, place = Results.open(Path(arguments[0])), Path(arguments[1])
    if results.study is None:
        raise UsageError(f"{results.directory}: results of a single scenario: no page tells of them")
    folder = study.find(results.study)
    plan = study.load(folder)
    cells = [planned.cell for planned in study.unfold(plan).cells]
    known, run = numbers.read(folder, plan), whole_cells(results, plan, cells)
    found = numbers.measure(known.values(), Measures(results), plan, run)
    before = numbers.kept(folder)
    values = {name: found.get(name, before.get(name, [])) for name in known}
    text = place.read_text(encoding="utf-8")
    if len(run) == len(cells):
        text = written_into(text, page(compare(results)))
    else:
        print("not the whole study: the verdicts stay")
    text = marks.rewritten(text, found)
    missing = [name for name, points in values.items() if not points]
    if missing:
        print(f"not run yet: {', '.join(missing)}")
    if known:
        (folder / numbers.MEASURED).write_text(numbers.table(values), encoding="utf-8")
    place.write_text(text, encoding="utf-8")


# ----------------------------------------------------------------------------------------------- helpers


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except MillpondError as error:
        sys.exit(f"error: {error}")
