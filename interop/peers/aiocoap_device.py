"""A device on aiocoap as it comes: `READY_DIRECTORY DEVICES URI COUNT FILE`. It asks so often, one after the other."""

import asyncio
import importlib
import os
import sys
import time
from pathlib import Path

import aiocoap

# Its own context, or one that a port has in its place.
_HOME, _, _NAME = os.environ.get("CONTEXT", "aiocoap.Context").rpartition(".")
Context = getattr(importlib.import_module(_HOME), _NAME)


async def main(ready: Path, devices: int, uri: str, count: int, file: Path) -> None:
    """Waits until all devices are there, asks, and writes start, end (ns) and how many requests failed."""
    context = await Context.create_client_context()
    (ready / file.name).touch()
    while len(list(ready.iterdir())) < devices:
        await asyncio.sleep(0.2)
    start, failed = time.time_ns(), 0
    for _ in range(count):
        try:
            await context.request(aiocoap.Message(code=aiocoap.GET, uri=uri)).response
        except aiocoap.error.Error:
            failed += 1
    file.write_text(f"{start} {time.time_ns()} {failed}\n")
    await context.shutdown()


asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), Path(sys.argv[5])))
