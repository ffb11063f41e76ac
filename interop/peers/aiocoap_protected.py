"""aiocoap under OSCORE as a peer: `serve PORT CONTEXT`, `observe URI CONTEXT` or `METHOD URI CONTEXT`.

The method put carries a body.

CONTEXT is the directory of a security context in aiocoap's form.
"""

import asyncio
import sys
from urllib.parse import urlsplit

import aiocoap
import aiocoap.resource
from aiocoap.credentials import CredentialsMap
from aiocoap.numbers import codes
from aiocoap.oscore_sitewrapper import OscoreSiteWrapper

LARGE = bytes(65 + i % 26 for i in range(20_000))


class Store(aiocoap.resource.Resource):
    """Keeps what it is given."""

    def __init__(self, kept: bytes = b"protected") -> None:
        super().__init__()
        self.kept = kept

    async def render_put(self, request: aiocoap.Message) -> aiocoap.Message:
        self.kept = request.payload
        return aiocoap.Message(code=codes.CHANGED)

    async def render_get(self, request: aiocoap.Message) -> aiocoap.Message:
        return aiocoap.Message(payload=self.kept)


class Count(aiocoap.resource.ObservableResource):
    """Grows as long as somebody observes it."""

    count = 0

    def update_observation_count(self, newcount: int) -> None:
        if newcount > 0:
            asyncio.get_running_loop().call_later(0.2, self.grow)

    def grow(self) -> None:
        self.count += 1
        self.updated_state()
        asyncio.get_running_loop().call_later(0.2, self.grow)

    async def render_get(self, request: aiocoap.Message) -> aiocoap.Message:
        return aiocoap.Message(payload=str(self.count).encode())


async def serve(port: int, context: str) -> None:
    """Serves until killed."""
    site = aiocoap.resource.Site()
    site.add_resource(["store"], Store())
    site.add_resource(["bench"], Store(b"0123456789" * 4))
    site.add_resource(["count"], Count())
    credentials = CredentialsMap()
    credentials.load_from_dict({":client": {"oscore": {"basedir": context}}})
    protected = OscoreSiteWrapper(site, credentials)
    where = ("127.0.0.1", port)
    await aiocoap.Context.create_server_context(protected, bind=where, server_credentials=credentials)
    print("ready", flush=True)
    await asyncio.get_running_loop().create_future()


async def of_context(uri: str, context: str) -> aiocoap.Context:
    """A client."""
    client = await aiocoap.Context.create_client_context()
    client.client_credentials.load_from_dict({f"coap://{urlsplit(uri).netloc}/*": {"oscore": {"basedir": context}}})
    return client


async def observe(uri: str, context: str) -> None:
    """Prints four representations, each in a line."""
    client = await of_context(uri, context)
    requested = client.request(aiocoap.Message(code=codes.GET, uri=uri, observe=0))
    response = await requested.response
    print(response.code.dotted, response.payload.decode(), sep="\n", flush=True)
    taken = 1
    async for response in requested.observation:
        print(response.payload.decode(), flush=True)
        taken += 1
        if taken == 4:
            break
    await client.shutdown()


async def ask(method: str, uri: str, context: str) -> None:
    """Asks once and prints code and payload."""
    client = await of_context(uri, context)
    body = LARGE if method == "put" else b""
    request = aiocoap.Message(code=getattr(codes, method.upper()), uri=uri, payload=body)
    response = await client.request(request).response
    print(response.code.dotted, flush=True)
    sys.stdout.buffer.write(response.payload)
    sys.stdout.flush()
    await client.shutdown()


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        asyncio.run(serve(int(sys.argv[2]), sys.argv[3]))
    elif sys.argv[1] == "observe":
        asyncio.run(observe(sys.argv[2], sys.argv[3]))
    else:
        asyncio.run(ask(sys.argv[1], sys.argv[2], sys.argv[3]))
