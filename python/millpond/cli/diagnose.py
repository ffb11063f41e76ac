"""The verb `diagnose`: the engine's, and what the laboratory makes of it: files that repeat, a page, a score."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from millpond import _engine
from millpond.cli import arguments
from millpond.cli.output import print_json, say
from millpond.errors import UsageError

if TYPE_CHECKING:
    from millpond.diagnose.analysis import Diagnosis
    from millpond.diagnose.repeat import Beside

_PATH = click.Path(path_type=Path)

#: Flags that the engine does not have. Without any of them the verb is the engine's, as it is.
OWN = ("write", "seeds", "report", "exchange", "truth", "cell", "replication")
_PARQUET = ".parquet"


class _OnTheEngine(arguments.Verb):
    """Hands its arguments on as they are, unless the laboratory is asked for something."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = {f"--{name}" for name in OWN} | {"-h", "--help"}
        before = args[: args.index("--")] if "--" in args else args
        asked = {word.partition("=")[0] for word in before}
        if not asked & own and not any(word.endswith(_PARQUET) for word in before):
            raise SystemExit(_engine.live(["millpond", "diagnose", *args]))
        return super().parse_args(ctx, args)


@click.command(
    cls=_OnTheEngine,
    epilog=arguments.examples(
        "millpond diagnose server.pcap",
        "millpond diagnose --side devices --times --devices gateway.pcapng",
        "millpond diagnose --json --exchanges verdicts.csv server.pcap",
        "millpond diagnose --anonymise to-send.pcap server.pcap",
        "tcpdump -i eth0 -w - udp port 5683 | millpond diagnose -",
        "millpond diagnose server.pcap --write cell --report cell.html",
        "millpond fleet --from cell",
        "millpond diagnose --truth results/first",
    ),
)
@click.argument("files", metavar="FILE...", type=_PATH, nargs=-1)
@click.option("--side", metavar="SIDE", help="Where it was captured: server, devices or both. [found out]")
@click.option(
    "--port", type=int, multiple=True, metavar="PORT", help="A port of servers besides 5683; may be repeated."
)
@click.option("--devices", is_flag=True, help="Tell of the devices with the most retransmissions, too.")
@click.option("--times", is_flag=True, help="Tell how it was over time, too.")
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
@click.option(
    "--exchanges", type=_PATH, metavar="FILE",
    help="Write each transmission of a request with its verdict: .csv, .jsonl or .parquet.",
)  # fmt: skip
@click.option(
    "--anonymise", type=_PATH, metavar="OUT",
    help="Judge nothing, but write a capture that can be given away (pcap): addresses, payloads, paths and queries are "
    "replaced, sizes and times kept.",
)  # fmt: skip
@click.option(
    "--write", type=_PATH, metavar="DIR",
    help="Write a path, a scenario and a fleet that repeat the capture, and run them beside it. What is not visible is "
    "fitted.",
)  # fmt: skip
@click.option(
    "--seeds", type=int, default=10, show_default=True, metavar="N", help="Of --write: runs beside the capture."
)
@click.option("--report", type=_PATH, metavar="FILE.html", help="Write a page with pictures.")
@click.option(
    "--exchange", metavar="PEER/ID", help="Of --report: this exchange is drawn. [that with most transmissions]"
)
@click.option("--truth", type=_PATH, metavar="DIR", help="Capture a run of these results, and score its diagnosis.")
@click.option("--cell", metavar="CELL", help="Of --truth: which cell, if the results have several.")
@click.option(
    "--replication", type=int, default=0, show_default=True, metavar="N", help="Of --truth: which of its runs."
)
def diagnose(
    files: tuple[Path, ...],
    side: str | None,
    port: tuple[int, ...],
    devices: bool,
    times: bool,
    as_json: bool,
    exchanges: Path | None,
    anonymise: Path | None,
    write: Path | None,
    seeds: int,
    report: Path | None,
    exchange: str | None,
    truth: Path | None,
    cell: str | None,
    replication: int,
) -> None:
    """Say from a capture which retransmissions were spurious, and what the path is like.

    FILE is a capture (pcap or pcapng), several are read one after the other as parts of one; `-` reads standard input.

    A figure is exact, a bound (at least, at most), an estimate (about), or not visible from that side.
    """
    from millpond.diagnose import analysis, page, written

    if exchange is not None and report is None:
        raise UsageError("--exchange: goes with --report alone")
    if anonymise is not None:
        raise UsageError("--anonymise: goes alone: nothing is judged with it")
    if seeds < 1:
        raise UsageError(f"--seeds: {seeds} makes no sense here: at least 1")
    if truth is not None:
        if files:
            raise UsageError(f"--truth: {truth} is captured anew: leave {files[0]} out")
        if write is not None or report is not None or exchanges is not None:
            raise UsageError("--truth: scores alone: leave --write, --report and --exchanges out")
        _score(truth, cell, replication, side, as_json)
        return
    if not files:
        raise UsageError("FILE is missing: name a capture, such as server.pcap")
    if Path("-") in files:
        raise UsageError("-: a pipe is read once: write it to a file, and name that")
    if report is not None and report.suffix != ".html":
        raise UsageError(f"--report: {report}: the name must end in .html")
    if write is not None:
        written.check(write)
    found = analysis.of_files(files, side, port)
    source = files[0].name if len(files) == 1 else f"{files[0].name} and {len(files) - 1} more"
    if exchanges is not None and exchanges.suffix == _PARQUET:
        analysis.write_exchanges(found, exchanges)
    elif exchanges is not None:
        raise UsageError(f"--exchanges: {exchanges}: beside --write and --report the name must end in {_PARQUET}")
    if as_json:
        print_json(found.figures)
    else:
        _print(found, files, side, port, devices, times)
    repeated = [] if write is None else _repeated(found, source, write, seeds, as_json)
    if report is not None:
        shown = page.document(found, source, found.sentences, exchange, repeated)
        say(f"report: {page.write(shown, report)}", err=as_json)


def _print(
    found: Diagnosis, files: tuple[Path, ...], side: str | None, port: tuple[int, ...], devices: bool, times: bool
) -> None:
    if not (devices or times):
        say(found.text, nl=False)
        return
    told = [f"--side={side}"] if side is not None else []
    told += [f"--port={number}" for number in port]
    told += ["--devices"] * devices + ["--times"] * times
    if code := _engine.live(["millpond", "diagnose", *told, "--", *map(str, files)]):
        raise SystemExit(code)


def _repeated(found: Diagnosis, source: str, folder: Path, seeds: int, as_json: bool) -> list[Beside]:
    """Write what repeats the capture, run it, and print both side by side."""
    from millpond.diagnose import fitted, page, repeat, written
    from millpond.show import terminal
    from millpond.show.document import Section

    hidden = not sys.stderr.isatty()
    with click.progressbar(
        length=fitted.MOST, label="fitting what is not visible", file=sys.stderr, hidden=hidden
    ) as bar:
        made = written.of(fitted.fitted(found, source, lambda: bar.update(1)), source)
    written.write(made, folder)
    repeated = repeat.check(found, folder, range(1, seeds + 1))
    if not as_json:
        say("")
        terminal.show(terminal.of_sections([Section("", "", listings=(page.check_table(repeated),))]))
    say(f"written: {', '.join(str(folder / name) for name in made.texts)}", err=as_json)
    return repeated


def _score(directory: Path, cell: str | None, replication: int, side: str | None, as_json: bool) -> None:
    from millpond.diagnose import analysis, page, score, truth
    from millpond.diagnose.ends import ENDS
    from millpond.results.directory import Results
    from millpond.run import capture
    from millpond.show import terminal

    end: Any = side or "server"
    if end not in ENDS:
        raise UsageError(f"--side: {end}: one of {', '.join(ENDS)}: a score is of one end")
    results = Results.open(directory)
    chosen, _, content = capture.of_results(results, cell, replication)
    if "path" not in chosen.scenario:
        raise UsageError(f"--truth: {chosen.id} has no [path]: what is scored are the figures of one")
    found = analysis.of_capture(content, end)
    scored = score.score(found, truth.of(content, chosen.scenario), end, chosen.id)
    if as_json:
        print_json(scored.to_json())
    else:
        terminal.show(terminal.of_sections(page.score_sections(scored)))
