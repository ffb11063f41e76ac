"""The verbs that need no laboratory run the stand-alone program's code, with its output and its exit codes."""

import subprocess
import sys


def millpond(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "millpond", *arguments], capture_output=True, text=True, check=False)


def test_help_is_the_programs_own() -> None:
    said = millpond("get", "--help")
    assert said.returncode == 0
    assert "coap://127.0.0.1/hello" in said.stdout


def test_every_verb_stands_in_the_help() -> None:
    verbs = millpond("--help").stdout
    for verb in ("run", "reproduce", "get", "observe", "serve", "load", "ping"):
        assert f"\n  {verb} " in verbs
    for verb in ("completions", "manual"):
        assert verb not in verbs


def test_errors_are_one_line_and_a_code() -> None:
    said = millpond("get", "http://127.0.0.1/")
    assert said.returncode == 2
    assert said.stderr.startswith("millpond: ")
    assert said.stderr.count("\n") == 1


def test_an_unanswered_port_is_a_failure() -> None:
    said = millpond("get", "--timeout", "100ms", "coap://127.0.0.1:9/")
    assert said.returncode == 7
    assert "127.0.0.1:9" in said.stderr
