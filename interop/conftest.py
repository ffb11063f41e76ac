"""Both sides of every pair, and what is left out here."""

import pytest

from links import hosts
from sides import PEERS, Ours, Peer, installed

__all__ = ["hosts"]


@pytest.fixture(scope="session")
def ours() -> Ours:
    """The program under test."""
    return Ours()


@pytest.fixture(params=PEERS, ids=lambda peer: peer.name)
def peer(request: pytest.FixtureRequest) -> Peer:
    """One of the other implementations; the test is skipped where it is not installed."""
    return installed(request.param)
