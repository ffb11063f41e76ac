"""What becomes of requests and observers when servers at one port (SO_REUSEPORT) follow one another.

One ends while another stays, and a third begins. In a minute it prints what the page on OSCORE says of it.
Run it by MILLPOND=target/debug/millpond .venv/bin/python interop/two_servers.py
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time

#: Clients that ask all the time, and observers of what is new each second.
CLIENTS, OBSERVERS, SECONDS = 40, 20, 60


def bound(port: int) -> socket.socket:
    """One socket of several at this port of the loopback interface; at a free one if it is 0."""
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    one.bind(("127.0.0.1", port))
    one.setblocking(False)
    return one


def serving(millpond: str, one: socket.socket) -> subprocess.Popen[bytes]:
    """A server that is passed a socket, as systemd does."""
    port = str(one.getsockname()[1])
    passing = ["sh", "-c", 'exec 3<&0 </dev/null; LISTEN_PID=$$ exec "$@"', "sh"]
    serve = [millpond, "serve", "--quiet", "--bind", "127.0.0.1", "--port", port]
    with one:
        return subprocess.Popen(
            [*passing, *serve], env={**os.environ, "LISTEN_FDS": "1"}, stdin=one.fileno(), stdout=subprocess.DEVNULL
        )


def main() -> int:
    """Prints what came of it."""
    if "MILLPOND" not in os.environ:
        print("two_servers: set MILLPOND to the program, such as target/debug/millpond", file=sys.stderr)
        return 2
    millpond = os.environ["MILLPOND"]
    first = bound(0)
    port = first.getsockname()[1]
    second, where = bound(port), f"coap://127.0.0.1:{port}/time"
    ends, stays = serving(millpond, first), serving(millpond, second)
    time.sleep(1)
    asking = [millpond, "load", where, "--clients", str(CLIENTS), "--duration", "8s", "--json"]
    load = subprocess.Popen(asking, stdout=subprocess.PIPE)
    observing = [millpond, "observe", where, "--for", f"{SECONDS}s"]
    observers = [subprocess.Popen(observing, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(OBSERVERS)]
    time.sleep(2)
    ends.send_signal(signal.SIGTERM)
    ends.wait()
    time.sleep(2)
    comes = serving(millpond, bound(port))
    asked = json.loads(load.communicate()[0])["loads"][0]
    told = ["requests", "failed", "refused", "retransmissions"]
    print(f"of {CLIENTS} clients: " + ", ".join(f"{asked[name]:,} {name}" for name in told))
    heard = [observer.communicate() for observer in observers]
    for what, is_it in (("ended", True), ("stayed", False)):
        counts = sorted(len(out.split()) for out, err in heard if (b"the server ended it" in err) is is_it)
        print(f"observers of the one that {what}: {len(counts)}, notifications of {SECONDS}: {counts}")
    for server in (stays, comes):
        server.terminate()
        server.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
