"""Puts the explorer together: the page's files, the engine, and the list of both that the page keeps for later.

    assemble.py ENGINE.wasm BINDGEN OUT

Prints how many bytes a reader's browser fetches, compressed as file servers do. The standard library is all it takes.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parent / "page"
#: What the page may weigh at most, compressed.
MOST = 1_500_000


def assemble(engine: Path, bindgen: Path, out: Path) -> int:
    """Write the page to `out`, which is replaced. Returns its compressed size in bytes."""
    made = out.with_name(out.name + ".part")
    shutil.rmtree(made, ignore_errors=True)
    shutil.copytree(PAGE, made)
    subprocess.run([str(bindgen), str(engine), str(made / "engine")], check=True)
    files = sorted(path for path in made.rglob("*") if path.is_file() and path.name != "sw.js")
    digest, size = hashlib.sha256(), 0
    for path in files:
        content = path.read_bytes()
        digest.update(path.relative_to(made).as_posix().encode() + b"\0" + content)
        size += len(gzip.compress(content, 9))
    names = ["./", *(path.relative_to(made).as_posix() for path in files)]
    worker = made / "sw.js"
    text = worker.read_text("utf-8").replace("@BUILD@", digest.hexdigest()[:16])
    worker.write_text(text.replace('["@FILES@"]', json.dumps(names)), "utf-8")
    shutil.rmtree(out, ignore_errors=True)
    made.rename(out)
    return size


def main() -> int:
    """Do it; an exit code."""
    engine, bindgen, out = (Path(word) for word in sys.argv[1:])
    size = assemble(engine, bindgen, out)
    print(f"{out}: {size / 1000:.0f} kB compressed")
    if size > MOST:
        print(f"more than the {MOST / 1000:.0f} kB that the page may weigh", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
