"""The address of the page is read in Node.js: whoever follows a link did not choose what stands in it."""

from __future__ import annotations

import base64
import subprocess
import zlib
from pathlib import Path

HERE = Path(__file__).parent
#: The longest text of a scenario that the page takes, and as much as comes out of the decompressor at a time.
MOST, CHUNK = 1_000_000, 1 << 16


def inflating_to(size: int, of: bytes = b"\n") -> str:
    """A packed scenario, as it stands in an address."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = b"".join(packer.compress(of * min(1 << 20, size - at)) for at in range(0, size, 1 << 20))
    return base64.urlsafe_b64encode(packed + packer.flush()).decode().rstrip("=")


def read(packed: str) -> list[str]:
    """What became of an address with that scenario, and how many bytes were inflated for it."""
    run = subprocess.run(
        ["node", HERE / "address.mjs"], input=f"#scenario={packed}", capture_output=True, text=True, check=True
    )
    return run.stdout.splitlines()


def test_an_address_that_inflates_without_end_is_refused_before_it_has() -> None:
    told, inflated = read(inflating_to(1 << 28))
    assert told == f"address: scenario: inflates to more than {MOST} bytes, too many for a scenario"
    # what is read ahead of the refusal included
    assert int(inflated) < MOST + 16 * CHUNK


def test_a_scenario_as_long_as_a_file_may_be_is_read_from_an_address() -> None:
    assert read(inflating_to(MOST)) == [f"read {MOST} characters", f"{MOST}"]
    assert read(inflating_to(MOST + 1))[0].startswith("address: scenario: inflates to more than")


def test_text_of_many_bytes_a_letter_survives_the_chunks_it_comes_in() -> None:
    letters = 3 * CHUNK + 1
    told, _ = read(inflating_to(letters, "ä".encode()))
    assert told == f"read {letters} characters"


def test_a_damaged_address_is_told_as_one() -> None:
    assert read("AAAA")[0].startswith("address: scenario: it is damaged")
    assert read(inflating_to(1000)[:-4])[0].startswith("address: scenario: it is damaged")
