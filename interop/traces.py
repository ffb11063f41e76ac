"""When clients send what: each installed client and ours on three paths at once, as a table for the manual."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import cast

from sides import PEERS, Missing, Ours

REQUESTS = 6
ROUND_TRIP = 3.2
ANSWER_AFTER = 9.0
#: The fifth copy of RFC 7252's timer leaves after 30 to 45 s.
PATIENCE = 50.0


class Path(asyncio.DatagramProtocol):
    """A server's end of a path: writes down when requests came, and lets a rule answer them."""

    def __init__(self, rule: "Callable[[Path, bytes, tuple[str, int]], Awaitable[None]] | None" = None) -> None:
        self.rule = rule
        self.came: list[float] = []
        self.tasks: set[asyncio.Future[None]] = set()
        self.transport: asyncio.DatagramTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        # Acknowledgements of ours are no requests.
        if data[1] != 1:
            return
        self.came.append(time.monotonic())
        if self.rule is not None:
            task = asyncio.ensure_future(self.rule(self, data, addr))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    def answer(self, datagram: bytes, client: tuple[str, int]) -> None:
        """Sends it, unless the client has ended meanwhile."""
        if not self.transport.is_closing():
            self.transport.sendto(datagram, client)


def token(request: bytes) -> bytes:
    """The token of a message."""
    return request[4 : 4 + (request[0] & 15)]


async def answer_late(path: Path, request: bytes, sender: tuple[str, int]) -> None:
    """An empty acknowledgement at once, and the response in a message of its own after a while."""
    path.transport.sendto(b"\x60\0" + request[2:4], sender)
    if len(path.came) == 1:
        await asyncio.sleep(ANSWER_AFTER)
        path.answer(bytes([0x40 | request[0] & 15, 0x45, 1, 1]) + token(request) + b"\xffdone", sender)


async def answer_from_afar(path: Path, request: bytes, sender: tuple[str, int]) -> None:
    """A response in the acknowledgement after a round trip, to every copy."""
    await asyncio.sleep(ROUND_TRIP)
    path.answer(bytes([0x60 | request[0] & 15, 0x45]) + request[2:4] + token(request) + b"\xffdone", sender)


async def traced(
    command: Callable[[str], list[str]],
    rule: "Callable[[Path, bytes, tuple[str, int]], Awaitable[None]] | None",
) -> tuple[list[float], bool]:
    """Seconds from the first request to each copy or request, until the client ends, and whether it was satisfied."""
    loop = asyncio.get_running_loop()
    transport, path = await loop.create_datagram_endpoint(lambda: Path(rule), local_addr=("127.0.0.1", 0))
    port = transport.get_extra_info("sockname")[1]
    nowhere = asyncio.subprocess.DEVNULL
    client = await asyncio.create_subprocess_exec(
        *command(f"coap://127.0.0.1:{port}/test"), stdout=nowhere, stderr=nowhere
    )
    try:
        await asyncio.wait_for(client.wait(), PATIENCE)
    except TimeoutError:
        client.kill()
        await client.wait()
    transport.close()
    return [at - path.came[0] for at in path.came], client.returncode == 0


async def row(name: str, once: Callable[[str], list[str]], often: Callable[[str], list[str]]) -> str:
    """A client's line of the table."""
    (silent, _), (late, _), (afar, is_done) = await asyncio.gather(
        traced(once, None), traced(once, answer_late), traced(often, answer_from_afar)
    )
    copies = ", ".join(f"{at:.1f}" if at else "0" for at in silent)
    return f"| {name} | {copies} | {len(late)} | {len(afar) if is_done else 'failed'} |"


async def main() -> None:
    """Prints the table."""
    rows = []
    ours = Ours().program
    for name, flags in {"`rfc7252` here": ["--controller", "rfc7252"], "the default here": []}.items():

        def once(uri: str, flags: list[str] = flags) -> list[str]:
            return [ours, "get", *flags, uri]

        def often(uri: str, flags: list[str] = flags) -> list[str]:
            return [ours, "load", "--count", str(REQUESTS), *flags, uri]

        rows.append(row(name, once, often))
    for peer in PEERS:
        try:
            peer.command()
        except Missing as missing:
            print(f"left out: {missing}")
            continue
        rows.append(row(peer.name, peer.asking_once, peer.asking_often(REQUESTS)))
    print("| client | copies of an unanswered request sent at, s |", end=" ")
    print(f"requests sent if acknowledged at once and answered after {ANSWER_AFTER:.0f} s |", end=" ")
    print(f"datagrams for {REQUESTS} requests at a round trip of {ROUND_TRIP} s |\n|---|---|---|---|")
    for line in await asyncio.gather(*rows):
        print(line)


if __name__ == "__main__":
    asyncio.run(main())
