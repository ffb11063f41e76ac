"""aiocoap as the clients or the server of a run: `serve ADDRESS BYTES RESOURCE` or `ask URI CLIENTS EXCHANGES FILE`.

Run by a Python that has aiocoap; needs nothing of ours.
"""

import asyncio
import json
import sys

import aiocoap
import aiocoap.resource


class Hello(aiocoap.resource.Resource):
    """So many bytes that never change."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self._payload = b"x" * length

    async def render_get(self, _request: aiocoap.Message) -> aiocoap.Message:
        """Answer a GET."""
        return aiocoap.Message(payload=self._payload, content_format=0)


async def serve(address: str, length: int, resource: str) -> None:
    """Serve until killed."""
    site = aiocoap.resource.Site()
    site.add_resource([resource], Hello(length))
    await aiocoap.Context.create_server_context(site, bind=(address, 5683))
    await asyncio.get_running_loop().create_future()


async def ask(uri: str, clients: int, exchanges: int) -> int:
    """Ask with so many clients, each with a socket of its own, one request after the other. Gives the answers."""

    async def one(context: aiocoap.Context) -> int:
        answered = 0
        for _ in range(exchanges):
            try:
                answer = await context.request(aiocoap.Message(code=aiocoap.GET, uri=uri)).response
            except aiocoap.error.Error:
                continue
            answered += answer.code.is_successful()
        return answered

    contexts = [await aiocoap.Context.create_client_context() for _ in range(clients)]
    return sum(await asyncio.gather(*map(one, contexts)))


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        asyncio.run(serve(sys.argv[2], int(sys.argv[3]), sys.argv[4]))
    else:
        told = {"answered": asyncio.run(ask(sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))}
        with open(sys.argv[5], "w", encoding="ascii") as file:  # noqa: PTH123
            json.dump(told, file)
