"""What a port makes of another implementation, beside what every peer must do: copies have names."""

from pathlib import Path

import pytest

from relay import CLIENT_TO_SERVER, Relay
from sides import CalmAiocoap, Missing, Ours


@pytest.fixture
def calm_aiocoap() -> CalmAiocoap:
    """The port on aiocoap; the test is skipped without aiocoap."""
    peer = CalmAiocoap()
    try:
        peer.command()
    except Missing as missing:
        pytest.skip(str(missing))
    return peer


def test_copies_have_one_message_id_and_tokens_that_end_with_their_numbers(
    ours: Ours, calm_aiocoap: CalmAiocoap, tmp_path: Path
) -> None:
    with ours.serving(tmp_path) as port, Relay(port, lambda way, n: way == CLIENT_TO_SERVER and n < 2) as relay:
        assert calm_aiocoap.ask("get", f"coap://127.0.0.1:{relay.port}/hello").code == "2.05"
        up = [passed for passed in relay.passed if passed.way == CLIENT_TO_SERVER]
        assert len(up) >= 3
        assert len({passed.message_id for passed in up}) == 1
        assert [passed.token[-1] for passed in up] == list(range(len(up)))
        assert len({passed.token[:-1] for passed in up}) == 1
