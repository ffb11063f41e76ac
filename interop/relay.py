"""A UDP relay between one client and one server: writes down what passes, loses or doubles what it is told to."""

import select
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType

CLIENT_TO_SERVER = "up"
SERVER_TO_CLIENT = "down"

TYPES = ("CON", "NON", "ACK", "RST")


@dataclass(frozen=True)
class Passed:
    """One datagram that came to the relay."""

    way: str
    number: int
    datagram: bytes
    lost: bool

    @property
    def kind(self) -> str:
        """CON, NON, ACK or RST."""
        return TYPES[self.datagram[0] >> 4 & 3]

    @property
    def code(self) -> str:
        """As RFC 7252 writes it: 2.05."""
        return f"{self.datagram[1] >> 5}.{self.datagram[1] & 31:02}"

    @property
    def message_id(self) -> int:
        """The message ID."""
        return int.from_bytes(self.datagram[2:4], "big")

    @property
    def token(self) -> bytes:
        """The token."""
        return self.datagram[4 : 4 + (self.datagram[0] & 15)]


class Relay:
    """Stands before a server.

    `loses(way, number)` says whether the n-th datagram of a direction, from 0, is lost, and `doubles` whether it is
    forwarded twice.
    """

    def __init__(
        self,
        server_port: int,
        loses: Callable[[str, int], bool] = lambda _way, _number: False,
        doubles: Callable[[str, int], bool] = lambda _way, _number: False,
    ) -> None:
        self.loses = loses
        self.doubles = doubles
        self.passed: list[Passed] = []
        self._outside = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._outside.bind(("127.0.0.1", 0))
        self._inside = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._inside.connect(("127.0.0.1", server_port))
        self._wake, self._woken = socket.socketpair()
        self._client: tuple[str, int] | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def port(self) -> int:
        """Where clients find the server."""
        return int(self._outside.getsockname()[1])

    @property
    def messages(self) -> list[Passed]:
        """What passed without copies of what did before, which a busy machine makes more of."""
        first: dict[tuple[str, str, int], Passed] = {}
        for passed in self.passed:
            first.setdefault((passed.way, passed.kind, passed.message_id), passed)
        return list(first.values())

    def __enter__(self) -> "Relay":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._wake.send(b"x")
        self._thread.join()
        for end in (self._outside, self._inside, self._wake, self._woken):
            end.close()

    def _run(self) -> None:
        counts = {CLIENT_TO_SERVER: 0, SERVER_TO_CLIENT: 0}
        while True:
            ready, _, _ = select.select([self._outside, self._inside, self._woken], [], [])
            ends = [end for end in ready if end is not self._woken]
            if not ends:
                # What came before it was told to end was written down.
                return
            for end in ends:
                way = CLIENT_TO_SERVER if end is self._outside else SERVER_TO_CLIENT
                try:
                    datagram, sender = end.recvfrom(65_536)
                except ConnectionRefusedError:
                    continue
                number = counts[way]
                counts[way] += 1
                lost = self.loses(way, number)
                self.passed.append(Passed(way, number, datagram, lost))
                if way == CLIENT_TO_SERVER:
                    self._client = sender
                for _copy in range(0 if lost else 2 if self.doubles(way, number) else 1):
                    if way == CLIENT_TO_SERVER:
                        self._inside.send(datagram)
                    elif self._client is not None:
                        self._outside.sendto(datagram, self._client)
