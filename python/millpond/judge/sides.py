"""The two sides of a claim row, `baseline` and `comparator`, read as choices of populations.

Each is a list of algorithms, or of conditions (`clients=1`, `buffer_bytes>=14100`), or words: `full backoff variants`,
`clients with retx`, `later batches`, `larger buffer`, and for mixes of populations `default beside default_fb1`,
`default_fb1 (mixed)`, `default alone`. Whatever cannot be read is refused, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from millpond.judge.checks import Pick
from millpond.judge.published import Condition, Row
from millpond.measure.measures import Measures
from millpond.measure.population import VARIANT, Population
from millpond.plan.plan import NUMBERS

_MIX = re.compile(
    r"\b(mix|mixed|mixture|mixes|half|halves|together|coexist\w*|beside|alongside|shared|sharing)\b|50/50"
)
_ALONE = re.compile(r"\b(alone|only|homogeneous|unmixed|pure|all)\b")
_BOTH = re.compile(r"\b(with|and|against|next to)\b|[+/&]")
#: Words that say nothing about which population is meant.
_EMPTY = frozenset(
    ("a", "all", "an", "and", "both", "bottleneck", "by", "client", "clients", "coap", "half", "in", "is", "of", "on",
     "one", "other", "population", "populations", "same", "the", "variant", "variants", "when", "with")
)  # fmt: skip
_STEP = re.compile(r"(smaller|larger|bigger|fewer|more) (buffer|clients)s?")


class UnreadableError(Exception):
    """A row says something that this program cannot select or measure. The message says what."""


@dataclass(frozen=True)
class Side:
    """One reading: changes to a population, conditions on it, and what of it is looked at."""

    changes: Mapping[str, Any] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    pick: Pick = field(default_factory=Pick)
    #: A column and -1 or +1: the population with the next smaller or larger value of it.
    step: tuple[str, int] | None = None

    @property
    def algorithm(self) -> str | None:
        """The algorithm the side names, if it names one."""
        return self.changes.get("algorithm")


def speaks_of_a_mix(row: Row) -> bool:
    """Whether the row's conditions put several populations on one bottleneck."""
    return any(mixed_words(row[column]) for column in ("traffic", "config", "bin"))


def mixed_words(text: str) -> bool:
    """Whether the words speak of several populations on one bottleneck."""
    return _MIX.search(text.lower()) is not None


class Reader:
    """Reads sides with the names that one set of results knows."""

    def __init__(self, measures: Measures) -> None:
        self._measures = measures
        populations = list(measures.populations())
        self.names = list(dict.fromkeys(population.algorithm for population in populations))
        self._mixes = {(p.algorithm, p.partner) for p in populations if p.partner}
        backoff = [name for name in self.names if "_fb" in name]
        self._words: dict[str, list[str]] = {name: [name] for name in self.names}
        for name, label in measures.results.manifest.get("labels", {}).items():
            if name in self.names:
                self._words.setdefault(str(label).lower(), [name])
        for words, ending in (("full backoff", ""), ("fb", ""), ("full backoff 1", "1"), ("fb1", "1"),
                              ("full backoff 2", "2"), ("fb2", "2")):  # fmt: skip
            self._words.setdefault(words, [name for name in backoff if name.endswith(ending)])
        longest_first = sorted(self._words, key=len, reverse=True)
        self._pattern = re.compile(rf"(?<![a-z0-9_])({'|'.join(map(re.escape, longest_first))})(?![a-z0-9_+])")

    def pairs(self, row: Row, usual: Sequence[str]) -> list[tuple[Side, Side | None]]:
        """Every comparator of a row with every baseline it is put beside; None where there is none.

        Where the row names no algorithm, `usual` are meant. Each comparator has an algorithm.
        """
        of, against = self._side(row, "comparator"), self._side(row, "baseline")
        listed = row.list("algorithm")
        for name in listed:
            if name not in self.names:
                raise UnreadableError(f"algorithm {name!r} was not run")
        wanted = listed or tuple(name for name in usual if name in self.names)
        of = self._with_partners(of or [Side()], row)
        against = self._with_partners(against, row)
        made: list[tuple[Side, Side | None]] = []
        for left in of:
            for right in _kin(left, of, against) if against else [None]:
                names = [left.algorithm] if left.algorithm else wanted
                for name in names:
                    mine = replace(left, changes={**left.changes, "algorithm": name})
                    made.append((mine, _apart(mine, right)))
        return made

    def partners(self, row: Row, name: str) -> list[str]:
        """The algorithms that `name` shares the bottleneck with, in the mix the row speaks of."""
        run = sorted(partner for algorithm, partner in self._mixes if algorithm == name)
        told = " ; ".join(row[c] for c in ("algorithm", "comparator", "baseline", "bin", "traffic", "config"))
        mentioned = [other for found in self._mentions(told) for other in found]
        fitting = [other for other in run if other in mentioned] or run
        if not fitting:
            raise UnreadableError(f"no mix with {name} was run")
        return fitting

    def others(self, of: Population, against: Side | None) -> list[Population | None]:
        """The populations that the baseline means for a population of the comparator."""
        if against is None:
            return [None]
        base = of.but(**{VARIANT: "", **against.changes})
        if against.algorithm is not None and "partner" not in against.changes:
            base = base.but(partner="")
        if against.step is not None:
            return list(self._stepped(base, *against.step))
        if not against.conditions:
            return [base]
        found: list[Population | None] = []
        for condition in against.conditions:
            ran = self._measures.values(condition.column)
            if condition.sign == "=":
                # one that was not run is kept as it is told, so that it is said to be missing
                known = {str(value): value for value in ran}
                number = condition.column in NUMBERS
                wanted: list[Any] = [known.get(v, int(v) if number else v) for v in condition.values]
            else:
                wanted = [value for value in ran if condition.met(value)]
            found.extend(base.but(**{condition.column: value}) for value in wanted)
        return found

    # ------------------------------------------------------------------------------------------- words

    def _side(self, row: Row, column: str) -> list[Side]:
        sides: list[Side] = []
        for word in _split(row[column]):
            condition = Condition.parse(word)
            if condition is not None:
                sides.append(Side(conditions=(condition,)))
            else:
                sides.extend(self._read(word, column))
        return sides

    def _read(self, word: str, column: str) -> list[Side]:
        text = word.lower()
        if text in ("clients with retx", "clients without retx"):
            return [Side(pick=Pick(flows=text.replace("clients ", "").replace("retx", "retransmissions")))]
        if text in ("first batch", "later batches"):
            return [Side(pick=Pick(batch=text.split()[0]))]
        step = _STEP.fullmatch(text)
        if step is not None:
            if column == "comparator":
                return [Side()]
            direction = -1 if step[1] in ("smaller", "fewer") else 1
            return [Side(step=("buffer_bytes" if step[2] == "buffer" else "clients", direction))]
        found = self._mentions(text)
        mixed, alone = _MIX.search(text), _ALONE.search(text)
        rest = re.findall(r"[a-z0-9_]+", _ALONE.sub(" ", _MIX.sub(" ", self._pattern.sub(" ", text))))
        plain = not [word for word in rest if word not in _EMPTY]
        if len(found) == 1 and plain and mixed:
            return [Side({"algorithm": name, "partner": "?"}) for name in found[0]]
        if len(found) == 1 and plain and alone:
            return [Side({"algorithm": name, "partner": ""}) for name in found[0]]
        if len(found) == 1 and plain:
            return [Side({"algorithm": name}) for name in found[0]]
        if len(found) == 2 and (mixed or _BOTH.search(text)):
            pairs = [(a, b) for a in found[0] for b in found[1] if (a, b) in self._mixes]
            if not pairs:
                raise UnreadableError(f"{column}: no mix of {word} was run")
            return [Side({"algorithm": a, "partner": b}) for a, b in pairs]
        if not found and re.fullmatch(r"[a-z][a-z0-9_]*", word):
            raise UnreadableError(f"{column}: {word} was not run")
        raise UnreadableError(f"{column}: {word!r} is not something this program can select")

    def _mentions(self, text: str) -> list[list[str]]:
        """The algorithms a text names, in the order it names them; a name of several stands for all."""
        words = dict.fromkeys(self._pattern.findall(text.lower()))
        return [self._words[word] for word in words if self._words[word]]

    def _with_partners(self, sides: Sequence[Side], row: Row) -> list[Side]:
        """Fill in the partner of an algorithm in a mix where it is not put beside the name."""
        in_mix = speaks_of_a_mix(row)
        made = []
        for side in sides:
            asked = side.changes.get("partner", "?" if in_mix and side.algorithm else "")
            if asked != "?" or side.algorithm is None:
                made.append(side)
                continue
            for partner in self.partners(row, side.algorithm):
                made.append(replace(side, changes={**side.changes, "partner": partner}))
        return made

    def _stepped(self, base: Population, column: str, direction: int) -> Sequence[Population]:
        here: Any = base.column(column)
        ran: list[Any] = sorted(self._measures.values(column))
        beyond = [value for value in ran if (value < here if direction < 0 else value > here)]
        if not beyond:
            return []
        return [base.but(**{column: beyond[-1] if direction < 0 else beyond[0]})]


# ----------------------------------------------------------------------------------------------- helpers


def _split(text: str) -> list[str]:
    """The entries of a list; further values of a condition (`clients=200;400`) stay with it."""
    words: list[str] = []
    for word in (part.strip() for part in text.split(";") if part.strip()):
        further = re.fullmatch(r"[\d.]+|continuous|random|none|low|medium|high", word) is not None
        if further and words and re.search(r"[<>=]", words[-1]):
            words[-1] += f";{word}"
        else:
            words.append(word)
    return words


def _kin(left: Side, lefts: Sequence[Side], rights: Sequence[Side]) -> list[Side | None]:
    """The baselines a comparator is put beside: those of its own family, if both sides hold several."""
    if left.algorithm is None or len(rights) < 2 or len(lefts) < 2:
        return list(rights)
    same = [right for right in rights if right.algorithm == left.algorithm]
    if same:
        return list(same)
    mine = left.algorithm.split("_fb")[0]
    kin = [right for right in rights if (right.algorithm or "").split("_fb")[0] == mine]
    partnered = [right for right in kin if right.changes.get("partner") == left.algorithm]
    return list(partnered or kin or rights)


def _apart(left: Side, right: Side | None) -> Side | None:
    """An algorithm in a mix beside itself means: beside itself when all clients are alike."""
    if right is None or left.algorithm != right.algorithm or not left.changes.get("partner"):
        return right
    if right.changes.get("partner") == left.changes.get("partner"):
        return replace(right, changes={**right.changes, "partner": ""})
    return right
