"""Published figures made up for a test."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from millpond.judge.published import COLUMNS, Published, read


@dataclass
class MakeRows:
    """Writes rows of the columns given (the others are empty) to a file, and reads it."""

    file: Path

    def __call__(self, *entries: Mapping[str, str]) -> Published:
        usual = {"source": "anrw18", "category": "result", "kind": "text", "suspect": "0"}
        with self.file.open("w", newline="") as stream:
            columns = dict.fromkeys((*COLUMNS, *(column for entry in entries for column in entry)))
            writer = csv.DictWriter(stream, columns, restval="", lineterminator="\n")
            writer.writeheader()
            writer.writerows({"id": f"x-r{number}", **usual, **entry} for number, entry in enumerate(entries))
        return read(self.file)
