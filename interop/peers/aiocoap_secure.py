"""aiocoap over TLS as a peer: `serve PORT CERTIFICATE KEY` or `METHOD URI AUTHORITY`."""

import asyncio
import ssl
import sys
from urllib.parse import urlsplit

import aiocoap
import aiocoap.resource
from aiocoap.numbers import codes

LARGE = bytes(65 + i % 26 for i in range(20_000))


class Store(aiocoap.resource.Resource):
    """Keeps what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.kept = b"secured"

    async def render_put(self, request: aiocoap.Message) -> aiocoap.Message:
        self.kept = request.payload
        return aiocoap.Message(code=codes.CHANGED)

    async def render_get(self, request: aiocoap.Message) -> aiocoap.Message:
        return aiocoap.Message(payload=self.kept)


async def serve(port: int, certificate: str, key: str) -> None:
    """Serves until killed."""
    site = aiocoap.resource.Site()
    site.add_resource(["store"], Store())
    secured = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    secured.load_cert_chain(certificate, key)
    # As the library itself does where it makes the context.
    secured.set_alpn_protocols(["coap"])
    # The library adds 1 for the secure port.
    where = ("127.0.0.1", port - 1)
    await aiocoap.Context.create_server_context(site, bind=where, transports=["tlsserver"], _ssl_context=secured)
    print("ready", flush=True)
    await asyncio.get_running_loop().create_future()


async def ask(method: str, uri: str, authority: str) -> None:
    """Asks once and prints code and payload."""
    context = await aiocoap.Context.create_client_context(transports=["tlsclient"])
    trusted = {"tlscert": {"certfile": authority}}
    context.client_credentials.load_from_dict({f"coaps+tcp://{urlsplit(uri).netloc}/*": trusted})
    body = LARGE if method == "put" else b""
    request = aiocoap.Message(code=getattr(codes, method.upper()), uri=uri, payload=body)
    response = await context.request(request).response
    print(response.code.dotted, flush=True)
    sys.stdout.buffer.write(response.payload)
    sys.stdout.flush()
    await context.shutdown()


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        asyncio.run(serve(int(sys.argv[2]), sys.argv[3], sys.argv[4]))
    else:
        asyncio.run(ask(sys.argv[1], sys.argv[2], sys.argv[3]))
