"""The part of the glossary that lists the words of claims, written from them: `python -m manual.words`."""

from __future__ import annotations

from collections.abc import Mapping

from millpond.judge.words import CLOSENESS, NEEDED, PRINTED_POINTS, PRINTED_SHARE, ROUGHLY, STATES, Word


def page() -> str:
    """The words of claims, in Markdown."""
    numbers = (
        "Where the study gives a number, that is taken instead of a word. A published change in percent holds within "
        f"{100 * PRINTED_POINTS:.0f}\npercentage points, any other number within {100 * PRINTED_SHARE:.0f} %; one that "
        f"the study calls rough within {100 * ROUGHLY:.0f} %, if that is more."
    )
    needed = "\n".join(f"| {name} | {means} |" for name, means in NEEDED.items())
    return "\n\n".join(
        (
            'How near two numbers lie, `within = "..."`:\n\n' + _table(CLOSENESS),
            'How one number stands to another, or to nothing but itself, `is = "..."`:\n\n' + _table(STATES),
            f'At how many of the points it must be so, `needed = "..."`:\n\n| word | means |\n|---|---|\n{needed}',
            numbers,
        )
    )


def _table(words: Mapping[str, Word]) -> str:
    lines = ["| word | of | means | also for |", "|---|---|---|---|"]
    lines += [f"| {name} | a {w.of} | {w.means} | {', '.join(w.also)} |" for name, w in words.items()]
    return "\n".join(lines).replace("| a per message |", "| copies per message |")


if __name__ == "__main__":
    print(page())
