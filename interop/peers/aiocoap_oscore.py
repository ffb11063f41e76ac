"""aiocoap's OSCORE beside ours, without a network: `PROGRAM COUNT SEED`.

PROGRAM is the example `oscore` of millpond-coap. Random contexts, requests and responses are protected by both; the
bytes are compared, and each reads what the other wrote.
"""

import random
import subprocess
import sys
from dataclasses import dataclass

from aiocoap import Message, oscore
from aiocoap.message import Direction

OBSERVE = 6

# Not Uri-Host, Uri-Port and Proxy-Scheme, of which aiocoap reads none outside; not Proxy-Uri and OSCORE, which cannot
# be protected.
OPAQUE = (1, 4, 252, 292, 65000, 65001)
TEXTS = (8, 11, 15, 20)
NUMBERS = ((12, 2), (14, 4), (17, 2), (60, 4))
BLOCKS = (23, 27)

HASHES = {"256": "sha256", "512": "sha512"}

Options = list[tuple[int, bytes]]


class Context(oscore.CanProtect, oscore.CanUnprotect, oscore.SecurityContextUtils):
    """One side, in memory."""

    echo_recovery = None

    def __init__(self, case: "Case", *, is_client: bool) -> None:
        self.alg_aead = oscore.algorithms[case.algorithm]
        self.hashfun = oscore.hashfunctions[HASHES[case.hash]]
        self.id_context = case.id_context
        ids = (case.client, case.server)
        self.sender_id, self.recipient_id = ids if is_client else ids[::-1]
        self.sender_sequence_number = case.first if is_client else 0
        self.recipient_replay_window = oscore.ReplayWindow(32, lambda: None)
        self.recipient_replay_window.initialize_empty()
        self.derive_keys(case.salt, case.secret)

    def post_seqnoincrease(self) -> None:
        """Nothing is stored."""


@dataclass
class Case:
    """What both are given."""

    algorithm: str
    hash: str
    secret: bytes
    salt: bytes
    id_context: bytes | None
    client: bytes
    server: bytes
    first: int
    request: bytes
    response: bytes

    @classmethod
    def random(cls, chance: random.Random) -> "Case":
        algorithm = chance.choice(
            [name for name, kind in oscore.algorithms.items() if isinstance(kind, oscore.AeadAlgorithm)]
        )
        longest = oscore.algorithms[algorithm].iv_bytes - 6
        client = chance.randbytes(chance.randint(0, longest))
        server = client
        while server == client:
            server = chance.randbytes(chance.randint(0, longest))
        observes = chance.random() < 0.2
        return cls(
            algorithm,
            chance.choice(list(HASHES)),
            chance.randbytes(chance.randint(16, 48)),
            chance.randbytes(chance.choice((0, 8, 30))),
            chance.choice((None, b"", chance.randbytes(chance.randint(1, 40)))),
            client,
            server,
            chance.choice((0, chance.randrange(300), chance.randrange(2**40 - 1))),
            message(0x44, chance.randint(1, 7), options(chance, observes), chance),
            message(0x64, chance.choice((65, 68, 69, 95, 132, 160)), options(chance, observes), chance),
        )


def options(chance: random.Random, observes: bool) -> Options:
    """Values that aiocoap writes as it read them."""
    chosen: Options = [(OBSERVE, b"")] if observes else []
    for _ in range(chance.randint(0, 6)):
        kind = chance.randrange(4)
        if kind == 0:
            chosen.append((chance.choice(OPAQUE), chance.randbytes(chance.randint(1, 8))))
        elif kind == 1:
            chosen.append((chance.choice(TEXTS), bytes(chance.randint(97, 122) for _ in range(chance.randint(0, 20)))))
        elif kind == 2:
            number, most = chance.choice(NUMBERS)
            chosen.append((number, chance.randbytes(chance.randint(0, most)).lstrip(b"\0")))
        else:
            chosen.append((chance.choice(BLOCKS), bytes([chance.randint(0, 15) << 4 | chance.randint(1, 6)])))
    once = {number for number, _ in chosen if number not in (1, 4, *TEXTS, 292)}
    last = [option for option in chosen if option[0] not in once]
    return sorted(
        last + [next(option for option in chosen if option[0] == number) for number in once],
        key=lambda option: option[0],
    )


def message(first: int, code: int, chosen: Options, chance: random.Random) -> bytes:
    """A message with a token of four bytes."""
    written = bytes([first, code]) + chance.randbytes(6)
    after = 0
    for number, value in chosen:
        written += header(number - after, len(value)) + value
        after = number
    payload = chance.randbytes(chance.choice((0, chance.randint(1, 20), chance.randint(200, 400))))
    return written + (b"\xff" + payload if payload else b"")


def header(delta: int, length: int) -> bytes:
    """RFC 7252 §3.1."""

    def extended(value: int) -> tuple[int, bytes]:
        if value < 13:
            return value, b""
        return (13, bytes([value - 13])) if value < 269 else (14, (value - 269).to_bytes(2, "big"))

    (high, before), (low, behind) = extended(delta), extended(length)
    return bytes([high << 4 | low]) + before + behind


def outgoing(plain: bytes) -> Message:
    """The message as its application made it."""
    made = Message.decode(plain)
    made.direction = Direction.OUTGOING
    return made


def body(made: Message) -> bytes:
    """Code, options and payload."""
    return bytes([made.code]) + made.opt.encode() + (b"\xff" + made.payload if made.payload else b"")


def whole(like: bytes, made: Message) -> bytes:
    """The message with the header of another one."""
    written = body(made)
    return like[:1] + written[:1] + like[2:8] + written[1:]


def protected(case: Case) -> tuple[bytes, bytes, bytes]:
    """By aiocoap: the request, the response with the request's nonce, and the response with a Partial IV."""
    client, server = Context(case, is_client=True), Context(case, is_client=False)
    request, _ = client.protect(outgoing(case.request))
    _, identifiers = server.unprotect(Message.decode(whole(case.request, request)))
    answers = [server.protect(outgoing(case.response), identifiers)[0] for _ in range(2)]
    for answer in answers:
        # Where a notification leaves, aiocoap sets the outer option, without which it is none.
        answer.opt.observe = outgoing(case.response).opt.observe
    first, second = (whole(case.response, answer) for answer in answers)
    return whole(case.request, request), first, second


def same(plain: bytes, read: Message) -> bool:
    """Observe is what each makes of it, and stands in both or in neither."""
    made = Message.decode(plain)
    if (made.opt.observe is None) != (read.opt.observe is None):
        return False
    made.opt.observe = read.opt.observe = None
    return body(made) == body(read)


def check(case: Case, theirs: tuple[bytes, bytes, bytes], ours: list[bytes], read: list[bytes]) -> None:
    """Ours and theirs, as protected by each and as read by the other."""
    observes = Message.decode(case.request).opt.observe is not None
    assert ours[0] == theirs[0], "request"
    for one, other in zip(ours[1:], theirs[1:], strict=True):
        one, other = Message.decode(one), Message.decode(other)
        assert (one.opt.oscore, one.payload) == (other.opt.oscore, other.payload), "response"
        one.opt.observe = other.opt.observe = None
        assert body(one) == body(other), "outside of the response"
    assert read[0] == case.request, "their request, read by us"
    assert read[1] == read[2] == case.response, "their responses, read by us"
    client, server = Context(case, is_client=True), Context(case, is_client=False)
    plain, _ = server.unprotect(Message.decode(ours[0]))
    assert same(case.request, plain), "our request, read by them"
    _, identifiers = client.protect(outgoing(case.request))
    for response in ours[1:]:
        plain, _ = client.unprotect(Message.decode(response), identifiers)
        assert same(case.response, plain), f"our response, read by them, {observes=}"


def main(program: str, count: int, seed: int) -> None:
    """Compares so many cases, and names the first that differs."""
    chance = random.Random(seed)
    cases = [Case.random(chance) for _ in range(count)]
    given = []
    for case in cases:
        theirs = protected(case)
        number = str(oscore.algorithms[case.algorithm].value)
        id_context = "-" if case.id_context is None else case.id_context.hex()
        fields = [case.secret.hex(), case.salt.hex(), id_context, case.client.hex(), case.server.hex(), str(case.first)]
        messages = [each.hex() for each in (case.request, case.response, *theirs)]
        given.append((case, theirs, " ".join([number, case.hash, *fields, *messages])))
    lines = "".join(line + "\n" for _, _, line in given)
    answers = subprocess.run([program], input=lines, capture_output=True, check=True, text=True).stdout.splitlines()
    for (case, theirs, line), answer in zip(given, answers, strict=True):
        try:
            messages = [bytes.fromhex(field) for field in answer.split(" ")]
            check(case, theirs, messages[:3], messages[3:])
        except Exception as error:
            raise SystemExit(f"{error!r}\n{case}\ngiven    {line}\nanswered {answer}") from error
    print(f"{count} cases are equal")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
