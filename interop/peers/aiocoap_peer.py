"""aiocoap as a peer: `serve PORT [ADDRESS]`, `measured PORT`, `discover URI` or `METHOD URI [PAYLOAD]`.

As one of a group: `serve PORT GROUP INTERFACE ADDRESS`. So many GETs: `get*N URI` one after the other, `non*N URI` of
those that are not confirmable, `open*N URI` all at once.
"""

import asyncio
import contextlib
import importlib
import os
import sys

import aiocoap
import aiocoap.resource
from aiocoap.numbers import codes

# Its own context, or one that a port has in its place.
_HOME, _, _NAME = os.environ.get("CONTEXT", "aiocoap.Context").rpartition(".")
Context = getattr(importlib.import_module(_HOME), _NAME)

LARGE = bytes(65 + i % 26 for i in range(20_000))
BENCH = b"0123456789012345678901234567890123456789"
PATIENCE = 5.0
"""Seconds after which a request that is not confirmable has no answer."""


class Test(aiocoap.resource.Resource):
    """Answers every method with its name."""

    async def render(self, request: aiocoap.Message) -> aiocoap.Message:
        answers = {
            codes.GET: codes.CONTENT,
            codes.FETCH: codes.CONTENT,
            codes.POST: codes.CREATED,
            codes.PUT: codes.CHANGED,
            codes.DELETE: codes.DELETED,
            codes.PATCH: codes.CHANGED,
            codes.iPATCH: codes.CHANGED,
        }
        return aiocoap.Message(code=answers[request.code], payload=request.code.name_printable.lower().encode())


class Separate(aiocoap.resource.Resource):
    """Answers after a while, so that an empty acknowledgement goes before."""

    async def render_get(self, request: aiocoap.Message) -> aiocoap.Message:
        await asyncio.sleep(1.5)
        return aiocoap.Message(payload=b"separate")


class Large(aiocoap.resource.Resource):
    """Twenty thousand bytes."""

    async def render_get(self, request: aiocoap.Message) -> aiocoap.Message:
        return aiocoap.Message(payload=LARGE)


class Bench(aiocoap.resource.Resource):
    """Forty bytes, for measurements."""

    async def render_get(self, request: aiocoap.Message) -> aiocoap.Message:
        return aiocoap.Message(payload=BENCH)


class Tally(aiocoap.resource.Resource):
    """How often it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    async def render_get(self, request: aiocoap.Message) -> aiocoap.Message:
        self.asked += 1
        return aiocoap.Message(payload=f"{self.asked}".encode())


class Store(aiocoap.resource.Resource):
    """Keeps what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.kept = b""

    async def render_put(self, request: aiocoap.Message) -> aiocoap.Message:
        self.kept = request.payload
        return aiocoap.Message(code=codes.CHANGED)

    async def render_get(self, request: aiocoap.Message) -> aiocoap.Message:
        return aiocoap.Message(payload=self.kept)


class Counter(aiocoap.resource.ObservableResource):
    """Counts up, a step every 200 ms."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.steps = asyncio.get_running_loop().create_task(self.step())

    async def step(self) -> None:
        while True:
            await asyncio.sleep(0.2)
            self.count += 1
            self.updated_state()

    async def render_get(self, request: aiocoap.Message) -> aiocoap.Message:
        return aiocoap.Message(payload=f"{self.count}".encode())


async def serve(port: int, *where: str) -> None:
    """Serves until killed, at an address or as one of a group on an interface if that is given."""
    site = aiocoap.resource.Site()
    site.add_resource([".well-known", "core"], aiocoap.resource.WKCResource(site.get_resources_as_linkheader))
    for name, resource in {
        "test": Test(),
        "separate": Separate(),
        "large": Large(),
        "store": Store(),
        "count": Counter(),
        "bench": Bench(),
        "tally": Tally(),
    }.items():
        site.add_resource([name], resource)
    if len(where) > 1:
        await Context.create_server_context(site, bind=("::", port), multicast=[(where[0], where[1])])
    else:
        await Context.create_server_context(site, bind=(where[0] if where else "127.0.0.1", port))
    print("ready", flush=True)
    await asyncio.get_running_loop().create_future()


class Mebibyte(aiocoap.resource.Resource):
    """So many bytes."""

    body = bytes(1 << 20)

    async def render_get(self, request: aiocoap.Message) -> aiocoap.Message:
        return aiocoap.Message(payload=self.body)


class State(aiocoap.resource.ObservableResource):
    """Changes with each PUT, of which its observers are told."""

    async def render_get(self, request: aiocoap.Message) -> aiocoap.Message:
        return aiocoap.Message(payload=BENCH)

    async def render_put(self, request: aiocoap.Message) -> aiocoap.Message:
        self.updated_state()
        return aiocoap.Message(code=codes.CHANGED)


async def measured(port: int) -> None:
    """Serves what is measured until killed, over each transport that the library serves by default."""
    site = aiocoap.resource.Site()
    for name, resource in {"bench": Bench(), "mebibyte": Mebibyte(), "state": State()}.items():
        site.add_resource([name], resource)
    await Context.create_server_context(site, bind=("127.0.0.1", port))
    await asyncio.get_running_loop().create_future()


async def ask_often(context: aiocoap.Context, how: str, count: int, uri: str) -> None:
    """So many GETs, one after the other or all at once."""

    async def get() -> None:
        kind = aiocoap.NON if how == "non" else aiocoap.CON
        response = context.request(aiocoap.Message(code=codes.GET, mtype=kind, uri=uri)).response
        if how == "non":
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(response, PATIENCE)
        else:
            await response

    if how == "open":
        await asyncio.gather(*(get() for _ in range(count)))
    else:
        for _ in range(count):
            await get()


async def ask(method: str, uri: str, payload: bytes) -> None:
    """Asks once and prints code and payload; `observe` prints three notifications."""
    context = await Context.create_client_context()
    if method == "observe":
        request = context.request(aiocoap.Message(code=codes.GET, uri=uri, observe=0))
        first = await request.response
        print(first.payload.decode(), flush=True)
        seen = 0
        async for notification in request.observation:
            print(notification.payload.decode(), flush=True)
            seen += 1
            if seen == 2:
                break
        await context.shutdown()
        return
    if method == "discover":
        # Its client hands up one answer of a group.
        message = aiocoap.Message(code=codes.GET, mtype=aiocoap.NON, uri=uri)
        response = await context.request(message, handle_blockwise=False).response
        print(response.code.dotted, response.payload.decode(), flush=True)
        await context.shutdown()
        return
    how, _, count = method.partition("*")
    if count:
        await ask_often(context, how, int(count), uri)
        await context.shutdown()
        return
    code = {"ipatch": codes.iPATCH}.get(method) or getattr(codes, method.upper())
    response = await context.request(aiocoap.Message(code=code, uri=uri, payload=payload)).response
    print(response.code.dotted, flush=True)
    sys.stdout.buffer.write(response.payload)
    sys.stdout.flush()
    await context.shutdown()


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        asyncio.run(serve(int(sys.argv[2]), *sys.argv[3:]))
    elif sys.argv[1] == "measured":
        asyncio.run(measured(int(sys.argv[2])))
    else:
        body = sys.stdin.buffer.read() if sys.argv[3:] == ["-"] else " ".join(sys.argv[3:]).encode()
        asyncio.run(ask(sys.argv[1], sys.argv[2], body))
