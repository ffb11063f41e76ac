"""Programs behind an emulated path, and what `millpond diagnose` says of the capture that is made of it."""

import csv
import json
import math
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, Literal, TypeAlias

from millpond.diagnose import score, truth
from millpond.diagnose.ends import Address, End
from sides import Ours

SERVER = "10.77.0.2"
Side: TypeAlias = Literal["devices", "server", "both"]
SIDES: tuple[Side, ...] = ("devices", "server", "both")
Label: TypeAlias = tuple[str, int, int]


@dataclass(frozen=True)
class Way:
    """A path: the delay of each direction, and the share of the packets that each loses."""

    delay: str
    loss: float
    words: frozenset[str]
    """What retransmissions behind it can be."""
    rate: str = "60 kbit/s"


PATHS = {
    # the round trip is longer than any first timer, and shorter than two
    "bloat": Way("1700 ms", 0.0, frozenset({"spurious"})),
    # all five transmissions of a request are lost once in 100,000 times: a client that gives up fails the test
    "loss": Way("100 ms", 0.05, frozenset({"needed"})),
    "both": Way("1700 ms", 0.05, frozenset({"spurious", "needed"})),
}


@dataclass(frozen=True)
class Captured:
    """A capture at both ends, and who made it say what it holds."""

    ours: Ours
    file: Path

    @cached_property
    def true(self) -> truth.Truth:
        """What became of each packet."""
        return truth.of(self.file.read_bytes(), {})

    def verdicts(self, end: End) -> set[str]:
        """What the verdict of an end can be: more than one word where the truth lies near a border between them."""
        came = [sum(at is not None for at in exchange.answered) for exchange in self.true.exchanges]
        copies = list(self.true.labels(end).values()).count("spurious") / self.true.transmissions(end)
        near, found = (0.9, 1.0, 1.1), set[str]()
        for useful, spurious in product(near, near):
            ratio = useful * sum(answers > 0 for answers in came) / max(sum(came), 1)
            share = spurious * copies
            strained = ratio < score.HEALTHY or share > score.MANY_SPURIOUS
            found.add("collapse" if ratio < score.COLLAPSE else "strained" if strained else "healthy")
        return found

    @cached_property
    def open_at_once(self) -> int:
        """The most exchanges that a device had open, from its first transmission until an answer came, or the end."""
        spans: dict[Address, list[tuple[int, float]]] = {}
        for exchange in self.true.exchanges:
            # No capture tells when a device gave up.
            ended = min((at for at in exchange.answered if at is not None), default=math.inf)
            spans.setdefault(exchange.device, []).append((exchange.sent[0], ended))
        return max(sum(began <= at < ended for began, ended in of) for of in spans.values() for at, _ in of)

    def told(self, side: Side) -> "Told":
        """What is told of one end, or of both together."""
        rows = self.file.with_name(f"{side}.csv")
        done = self.ours.run("diagnose", "--json", "--side", side, "--exchanges", str(rows), str(self.file))
        assert done.returncode == 0, done.stderr.decode(errors="replace")
        with rows.open(newline="") as lines:
            labels = {
                (row["peer"], int(row["message_id"]), round(float(row["time_s"]) * 1e6)): row["verdict"]
                for row in csv.DictReader(lines)
            }
        return Told(json.loads(done.stdout), labels)


@dataclass(frozen=True)
class Told:
    """What `millpond diagnose` says: its figures, and a word for each transmission."""

    figures: dict[str, Any]
    labels: dict[Label, str]

    def wrong(self, true: truth.Truth, end: End) -> Counter[tuple[str, str]]:
        """The retransmissions of an end that are told to be what they are not: as what, and what they are."""
        said = {seen: self.labels.get(seen, "missing") for seen in true.labels(end)}
        pairs = [(said[seen], label) for seen, label in true.labels(end).items()]
        return Counter(pair for pair in pairs if pair[0] not in ("unknown", pair[1]))


def captured(ours: Ours, way: Way, devices: int, server: Sequence[str], asking: Sequence[str], into: Path) -> Captured:
    """Runs a command on each device behind a path, before a server."""
    path, capture = into / "path.toml", into / "capture.pcapng"
    lost = f'{{ kind = "bernoulli", rate = {way.loss} }}'
    link = f'{{ rate = "{way.rate}", delay = "{way.delay}", queue = "100 kB", loss = {lost} }}'
    path.write_text(f"[path]\nuplink = {link}\ndownlink = {link}\n")
    emulate = ["emulate", "--quiet", str(path), "--devices", str(devices), "--capture", str(capture)]
    # The capture has the times at which packets left: what a busy machine made late is judged as it was.
    done = ours.run(*emulate, "--lateness", "1h", "--server", shlex.join(server), "--", *asking)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return Captured(ours, capture)


def serving_files(ours: Ours, folder: Path, *flags: str) -> list[str]:
    """The command of our server with these files and nothing else."""
    return [ours.program, "serve", "--quiet", "--only-files", "--bind", SERVER, *flags, str(folder)]
