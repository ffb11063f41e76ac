"""aiocoap under OSCORE as a peer: `serve PORT CONTEXT` or `METHOD URI CONTEXT`; put carries a body.

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

    def __init__(self) -> None:
        super().__init__()
        self.kept = b"protected"

    async def render_put(self, request: aiocoap.Message) -> aiocoap.Message:
        self.kept = request.payload
        return aiocoap.Message(code=codes.CHANGED)

    async def render_get(self, request: aiocoap.Message) -> aiocoap.Message:
        return aiocoap.Message(payload=self.kept)


async def serve(port: int, context: str) -> None:
    """Serves until killed."""
    site = aiocoap.resource.Site()
    site.add_resource(["store"], Store())
    credentials = CredentialsMap()
    credentials.load_from_dict({":client": {"oscore": {"basedir": context}}})
    protected = OscoreSiteWrapper(site, credentials)
    where = ("127.0.0.1", port)
    await aiocoap.Context.create_server_context(protected, bind=where, server_credentials=credentials)
    print("ready", flush=True)
    await asyncio.get_running_loop().create_future()


async def ask(method: str, uri: str, context: str) -> None:
    """Asks once and prints code and payload."""
    client = await aiocoap.Context.create_client_context()
    client.client_credentials.load_from_dict({f"coap://{urlsplit(uri).netloc}/*": {"oscore": {"basedir": context}}})
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
    else:
        asyncio.run(ask(sys.argv[1], sys.argv[2], sys.argv[3]))
