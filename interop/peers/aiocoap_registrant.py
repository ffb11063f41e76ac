"""A device on aiocoap that registers with a directory: `PORT DIRECTORY EP LIFETIME`, or `PORT DIRECTORY EP simple`.

It prints `registered` once it is, and removes its registration once its input ends.
"""

import asyncio
import sys

import aiocoap
import aiocoap.resource
from aiocoap.resourcedirectory.client.register import Registerer


class Reading(aiocoap.resource.Resource):
    """What the device is for."""

    rt = "reading"

    async def render_get(self, request: aiocoap.Message) -> aiocoap.Message:
        return aiocoap.Message(payload=b"21.5")


async def main(port: int, directory: str, name: str, how: str) -> None:
    """Serves, and is registered until its input ends."""
    site = aiocoap.resource.Site()
    site.add_resource([".well-known", "core"], aiocoap.resource.WKCResource(site.get_resources_as_linkheader))
    site.add_resource(["reading"], Reading())
    context = await aiocoap.Context.create_server_context(site, bind=("127.0.0.1", port))
    ended = asyncio.to_thread(sys.stdin.read)
    if how == "simple":
        message = aiocoap.Message(code=aiocoap.POST, uri=f"{directory}/.well-known/rd?ep={name}")
        answer = await context.request(message).response
        assert answer.code == aiocoap.CHANGED, answer.payload
        print("registered", flush=True)
        await ended
    else:
        registration = Registerer(context, rd=directory, lt=int(how), registration_parameters={"ep": name})
        while registration.state != "registered":
            assert registration.state != "failed"
            await asyncio.sleep(0.05)
        print("registered", flush=True)
        await ended
        assert registration.state in ("registered", "renewing"), registration.state
        await registration.shutdown()
    await context.shutdown()


asyncio.run(main(int(sys.argv[1]), *sys.argv[2:]))
