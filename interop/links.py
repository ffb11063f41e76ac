"""A link that the tests make: two hosts, each a network namespace, with a wire between them."""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

WIRE = "wire"
ADDRESSES = ("192.0.2.1", "192.0.2.2")


@dataclass(frozen=True)
class Host:
    """One end of the wire."""

    namespace: str
    address: str

    @property
    def within(self) -> list[str]:
        """What stands before a command that is to run there."""
        return ["ip", "netns", "exec", self.namespace]


def ip(*arguments: str) -> None:
    """Runs the program ip, and says what it says."""
    done = subprocess.run(["ip", *arguments], capture_output=True, check=False, text=True)
    if done.returncode:
        raise OSError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")


@pytest.fixture(scope="session")
def hosts() -> Iterator[tuple[Host, Host]]:
    """Two hosts with a wire; the tests are skipped where no namespaces can be made."""
    names = [f"millpond-{os.getpid()}-{side}" for side in "ab"]
    try:
        for name in names:
            ip("netns", "add", name)
        ip("link", "add", WIRE, "netns", names[0], "type", "veth", "peer", "name", WIRE, "netns", names[1])
        for name, address in zip(names, ADDRESSES, strict=True):
            subprocess.run(
                ["ip", "netns", "exec", name, "sysctl", "-qw", f"net.ipv6.conf.{WIRE}.accept_dad=0"],
                check=False,
                capture_output=True,
            )
            for command in (
                f"address add {address}/24 dev {WIRE}",
                "link set lo up",
                f"link set {WIRE} up",
                f"route add 224.0.0.0/4 dev {WIRE}",
            ):
                ip("-n", name, *command.split())
        yield Host(names[0], ADDRESSES[0]), Host(names[1], ADDRESSES[1])
    except OSError as refused:
        pytest.skip(f"no network namespaces can be made here: {refused}")
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
