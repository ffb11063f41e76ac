"""`millpond paths`: the list, the file of one, and what is refused."""

from __future__ import annotations

import json

import pytest

from millpond import cli


def said(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as end:
        cli.main(["paths", *arguments])
    out, err = capfd.readouterr()
    return end.value.code, out, err


def test_every_named_path_is_told_with_its_source(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capfd)
    assert code == 0
    assert "nbiot-anrw18\n    " in out
    told = json.loads(said(capfd, "--json")[1])
    assert {"nbiot-anrw18", "nbiot-upc", "nbiot-tcp20-high"} <= {path["name"] for path in told}
    assert all(path["title"] in out and path["source"] in out and path["text"] for path in told)


def test_the_file_of_a_path_can_be_laid_into_a_scenario(capfd: pytest.CaptureFixture[str]) -> None:
    text = said(capfd, "nbiot-anrw18")[1]
    assert "[uplink]" in text
    assert json.loads(said(capfd, "nbiot-anrw18", "--json")[1])[0]["text"] == text


def test_an_unknown_path_is_answered_with_the_nearest(capfd: pytest.CaptureFixture[str]) -> None:
    code, _, err = said(capfd, "nbiot-anrw8")
    assert code == 2
    assert err.count("\n") == 1
    assert "did you mean 'nbiot-anrw18'?" in err
