"""Job scripts as SLURM begins them: by their environment, with a `srun` that starts as many tasks as there are."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples" / "cluster"

#: What the nodes of an allocation have: programs of this environment, and SLURM's own.
PROGRAMS = {
    "millpond": 'exec {python} -m millpond "$@"',
    "dask": 'exec {dask} "$@"',
    "hostname": "echo 127.0.0.1",
    "srun": """\
trap 'kill $(jobs -p) 2>/dev/null; wait; exit 143' TERM
for task in $(seq "${{SLURM_NTASKS:-1}}"); do "$@" & done
wait""",
}


def job(
    home: Path, script: str, told: Mapping[str, str], *arguments: str, programs: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """A job that runs to its end in `home`. `programs` stand in place of those there are."""
    there = home / "bin"
    there.mkdir(exist_ok=True)
    for name, body in {**PROGRAMS, **(programs or {})}.items():
        program = there / name
        dask = Path(sys.executable).with_name("dask")
        program.write_text(f"#!/bin/bash\n{body.format(python=sys.executable, dask=dask)}\n")
        program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{there}:{os.environ['PATH']}", "SLURM_JOB_ID": "7", **told}
    command = ["bash", str(EXAMPLES / script), *arguments]
    return subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, check=False)
