"""A study rerun: its plan carried out, its figures and claims put beside what was measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from millpond.controllers.own import OwnControllers
from millpond.errors import MillpondError, UsageError
from millpond.judge import claim_file, claims, figures, settings
from millpond.judge.claim_file import Claim, ClaimFile
from millpond.judge.compare import Comparison, Verdict
from millpond.judge.published import Published, Row
from millpond.judge.published import read as read_published
from millpond.measure.measures import Measures
from millpond.plan import study
from millpond.plan.plan import Matrix
from millpond.plan.scenario import named_files
from millpond.plan.study import Plan
from millpond.plan.toml_file import read_tree
from millpond.real.description import LIVE
from millpond.results.directory import MANIFEST, Results, read_manifest
from millpond.studies import pages

#: Where a results directory keeps the study it belongs to.
KEPT = "study"
#: Why a sentence is not judged that a file of published figures tells and no check speaks of.
UNTOLD = "no check of claims.toml speaks of these rows"


def compare(results: Results, published: Path | str | None = None, measures: Measures | None = None) -> Comparison:
    """Everything published beside these results.

    Reads nothing but the results directory and, if given, another file of published figures.

    Raises:
        MillpondError: if the results are those of a single scenario.
        UsageError: if the published figures cannot be read.
    """
    if results.study is None:
        raise MillpondError(f"{results.directory}: results of a single scenario: there is nothing published about it")
    plan = study.load(results.plan or results.kept / KEPT)
    measures = measures or Measures(results)
    built_in = Published((), "none") if plan.published is None else read_published(plan.published, "built in")
    chosen = built_in if published is None else read_published(published)
    written = ClaimFile() if plan.claims is None else claim_file.read(plan.claims, plan.factors, plan.columns)
    read_off = written.calibration
    found = figures.match(chosen, measures, plan.reading, written.figures)
    verdicts = _verdicts(chosen, built_in, written.claims, measures, plan)
    return Comparison(
        study=plan.name,
        version=str(results.manifest["version"]),
        figures=[replace(figure, calibrates=read_off.get(figure.id, "")) for figure in found],
        claims=[replace(verdict, calibrates=read_off.get(verdict.id, "")) for verdict in verdicts],
        settings=settings.match(chosen, measures),
        published=chosen.name,
        confidence=plan.reading.confidence,
        reading=results.reading,
    )


def check(plan: Plan) -> None:
    """Read what is published and what is claimed, so that what is wrong with it is told before anything runs.

    Raises:
        UsageError: one line: file, place and fix.
    """
    pages.check(plan.page, plan.file)
    for key, file in (("published", plan.published), ("claims", plan.claims)):
        if file is not None and not file.is_file():
            raise UsageError(f"{plan.file}: {key}: {file}: no such file")
    if plan.published is not None:
        read_published(plan.published, "built in")
    if plan.claims is not None:
        claim_file.read(plan.claims, plan.factors, plan.columns)


def know_kept(plan: Plan, own: OwnControllers) -> None:
    """Take the users' controllers that lie with a plan that results keep: it runs again as it lies."""
    home = plan.folder.resolve().parent
    if plan.folder.name == KEPT and (home / MANIFEST).is_file():
        for name in read_manifest(home).get("controllers", {}):
            own.know(name, home)


def kept_files(plan: Plan) -> dict[str, Path]:
    """What a results directory keeps of its study, so that it can be read by itself."""
    if not plan.file.is_file():
        return {}
    # all that the plan names, also where only some of its matrices were run
    scenarios = (matrix.scenario_file for matrix in study.load(plan.file).matrices)
    published = [] if plan.published is None else [plan.published]
    claims = [] if plan.claims is None else [plan.claims]
    live = [file for file in [plan.file.parent / LIVE] if file.is_file()]
    # maps and paths lie where the scenarios find them
    named = [
        (name, matrix.scenario_file.parent / name)
        for matrix in study.load(plan.file).matrices
        for name in named_files(_as_written(plan, matrix), matrix.scenario_file.parent)
    ]
    files = (file for file in (*scenarios, *published, *claims, *live) if file != plan.file)
    return {
        f"{KEPT}/{study.PLAN}": plan.file,
        **{f"{KEPT}/{file.name}": file for file in files},
        **{f"{KEPT}/{name}": file for name, file in named},
    }


def _as_written(plan: Plan, matrix: Matrix) -> Mapping[str, Any]:
    """The scenario of a matrix before its files were read."""
    return matrix.scenario if matrix.scenario_file == plan.file else read_tree(matrix.scenario_file)


def _verdicts(
    chosen: Published, built_in: Published, written: Mapping[str, Claim], measures: Measures, plan: Plan
) -> list[Verdict]:
    """One verdict a claim, by `claims.toml` if it speaks of these very rows; of others there is none.

    Claims of `claims.toml` that no row of the study's own figures speaks of come last.
    """
    known = built_in.claims()
    rest = {name: list[Row]() for name in written if name not in known} if chosen is built_in else {}
    verdicts = []
    for name, told in (chosen.claims() | rest).items():
        claim = written.get(name)
        if claim is not None and _says_the_same(told, known.get(name, [])):
            verdicts.append(claims.judge(claim, measures, plan.reading.apart, plan.reading.confidence))
        else:
            says = "; ".join(dict.fromkeys(row["raw"] for row in told))
            verdicts.append(Verdict(name, says, "unjudged", "", UNTOLD))
    return verdicts


def _says_the_same(rows: list[Row], known: list[Row]) -> bool:
    return {row.key() for row in rows} <= {row.key() for row in known}
