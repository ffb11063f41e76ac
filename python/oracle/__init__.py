"""The exact oracle: every algorithm once more, in rationals, straight from its source.

It shares no code with the controllers under test. `python -m oracle` writes the call lists in `vectors/`, which the
suites of every language read; `vectors/README.md` describes them. Numbers like D8 or E3 in the comments are the
readings of `docs/appendix/interpretations.md`.
"""
