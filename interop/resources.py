"""What the servers have: each under a name of its own where it is not ours to choose."""

LARGE = bytes(65 + i % 26 for i in range(20_000))

# Of the programs in peers/, and of libcoap's example server.
_PATHS = {"test": "/test", "separate": "/separate", "large": "/large", "store": "/store", "count": "/count"}
_LIBCOAP = {"test": "/example_data", "separate": "/async?1", "store": "/example_data", "count": "/time"}


def path(peer: str, resource: str) -> str | None:
    """Where a peer's server has a resource; none if it has no such thing."""
    return (_LIBCOAP if peer == "libcoap" else _PATHS).get(resource)
