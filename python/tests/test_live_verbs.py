"""The verbs that need no laboratory run the stand-alone program's code, with its output and its exit codes."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from millpond.cli import program


def millpond(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "millpond", *arguments], capture_output=True, text=True, check=False)


def test_help_is_the_programs_own() -> None:
    said = millpond("get", "--help")
    assert said.returncode == 0
    assert "coap://127.0.0.1/hello" in said.stdout


def test_every_verb_stands_in_the_help() -> None:
    verbs = millpond("--help").stdout
    for verb in ("run", "reproduce", "get", "observe", "serve", "load", "ping", "completions", "manual"):
        assert f"\n  {verb} " in verbs


@pytest.mark.parametrize("shell", ["bash", "elvish", "fish", "powershell", "zsh"])
def test_completions_know_every_verb_and_its_flags(shell: str) -> None:
    said = millpond("completions", shell)
    assert (said.returncode, said.stderr) == (0, "")
    for word in (*program.commands, "verify", "replications", "no-open", "observe", "controller"):
        assert word in said.stdout


def test_every_verb_has_a_page_for_man(tmp_path: Path) -> None:
    said = millpond("manual", str(tmp_path / "man1"))
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout.startswith(str(tmp_path))
    pages = {page.name: page.read_text(encoding="utf-8") for page in (tmp_path / "man1").iterdir()}
    assert {f"millpond-{verb}.1" for verb in program.commands} < set(pages)
    sweep = pages["millpond-sweep.1"].replace("\\-", "-")
    assert "--replications" in sweep
    assert "PLAN" in sweep
    assert "millpond-results-verify.1" in pages
    overview = pages["millpond.1"].replace("\\-", "-")
    assert "millpond-arena(1)" in overview
    assert "Not here" not in overview


def test_a_shell_takes_the_completions_and_offers_flags_of_the_laboratory(tmp_path: Path) -> None:
    script = tmp_path / "millpond.bash"
    script.write_text(millpond("completions", "bash").stdout)
    asked = "COMP_WORDS=(millpond sweep --repl); COMP_CWORD=2; _millpond millpond --repl sweep"
    ask = f". {script}; {asked}; echo $COMPREPLY"
    said = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["--replications"]


def test_errors_are_one_line_and_a_code() -> None:
    said = millpond("get", "http://127.0.0.1/")
    assert said.returncode == 2
    assert said.stderr.startswith("millpond: ")
    assert said.stderr.count("\n") == 1


def test_an_unanswered_port_is_a_failure() -> None:
    said = millpond("get", "--timeout", "20s", "coap://127.0.0.1:9/")
    assert said.returncode == 7
    assert "127.0.0.1:9" in said.stderr


def test_what_stands_behind_two_dashes_is_handed_on_with_them() -> None:
    said = millpond("emulate", "nope", "--", "get", "--help")
    assert said.returncode == 2
    assert "unknown profile `nope`" in said.stderr


def started(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "millpond", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def stopped(*arguments: str) -> tuple[int, str]:
    """Exit code and standard error of a verb that Ctrl-C ends after its first line of output."""
    with started(*arguments) as verb:
        assert verb.stdout
        assert verb.stdout.readline()
        verb.send_signal(signal.SIGINT)
        _, errors = verb.communicate()
        return verb.returncode, errors


@pytest.fixture
def address() -> Iterator[str]:
    """Where a server listens."""
    with started("serve", "--quiet", "--port", "0") as server:
        assert server.stdout
        yield server.stdout.readline().split()[-1]
        server.terminate()


def test_a_server_and_an_observation_that_ctrl_c_ends_were_told_to(address: str) -> None:
    assert stopped("serve", "--port", "0") == (0, "")
    assert stopped("observe", f"{address}/count") == (0, "")


def test_a_verb_that_ctrl_c_stops_before_its_end_says_so_once(address: str) -> None:
    assert stopped("ping", "--count", "1000", address) == (130, "millpond: stopped\n")
