"""What it costs when 50 devices report at once after a power cut, in the clear, under OSCORE and over DTLS.

Each is a process of its own, behind the emulated cell nbiot-anrw18; in half a minute it prints a table for the manual.
Run it by MILLPOND=target/debug/millpond .venv/bin/python interop/power_cut.py
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

DEVICES = 50


def outcome(folder: Path, serve: str, get: str) -> str:
    """A row of the table: bytes of IP a device, and when the last one has its answer."""
    millpond = os.environ["MILLPOND"]
    told = subprocess.run(
        [
            *[millpond, "emulate", "nbiot-anrw18", "--json", "--devices", str(DEVICES)],
            *["--server", f"{millpond} serve --bind 10.77.0.2 {serve}"],
            *["--", "sh", "-c", f"{millpond} get --controller rfc7252 {get} > /dev/null"],
        ],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    run = json.loads(told.stdout)
    up, down = (round(link["delivered_bytes"] / DEVICES) for link in run["links"])
    # Whether it is a collapse: copies that nothing was lost for.
    spurious = run["retransmissions"]["spurious"]
    return f"| {up:,} | {down:,} | {run['elapsed_us'] / 1e6:.1f} s | {spurious} |"


def main() -> int:
    """Prints the table."""
    if "MILLPOND" not in os.environ:
        print("power_cut: set MILLPOND to the program, such as target/debug/millpond", file=sys.stderr)
        return 2
    os.environ["MILLPOND"] = str(Path(os.environ["MILLPOND"]).resolve())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for device in range(1, DEVICES + 1):
            new = ["oscore", "new", "--client-id", f"{device:04x}", f"device{device}", f"server{device}"]
            subprocess.run([os.environ["MILLPOND"], *new], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        keys = folder / "keys"
        keys.write_text("".join(f"device{device}:0x{device:032x}\n" for device in range(1, DEVICES + 1)))
        keys.chmod(0o600)
        contexts = " ".join(f"--oscore server{device}" for device in range(1, DEVICES + 1))
        number = "$MILLPOND_DEVICE"
        protected = (contexts, f"--oscore device{number} coap://server/hello")
        secret = f"0x$(printf %032x {number})"
        print("| | up | down | all have reported after | spurious retransmissions |\n|---|---|---|---|---|")
        for what, (serve, get) in {
            "in the clear": ("", "coap://server/hello"),
            "OSCORE": protected,
            "OSCORE, whose server was restarted and asks for Echo": protected,
            "DTLS 1.2, pre-shared key": (
                "--psk-file keys",
                f"--psk device{number}:{secret} coaps://server/hello",
            ),
        }.items():
            print(f"| {what} {outcome(folder, serve, get)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
