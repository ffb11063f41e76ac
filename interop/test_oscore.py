"""OSCORE (RFC 8613) beside aiocoap's: the bytes of each, and each read by the other."""

import subprocess
from pathlib import Path

from sides import HERE, Aiocoap, Ours

CASES = 2_000


def test_random_contexts_and_messages_are_protected_as_aiocoap_does(ours: Ours) -> None:
    python = Aiocoap().command()[0]
    program = Path(ours.program).parent / "examples" / "oscore"
    arguments = [python, str(HERE / "peers" / "aiocoap_oscore.py"), str(program), str(CASES), "8613"]
    done = subprocess.run(arguments, capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{CASES} cases are equal\n"
