"""Which addresses answer over a fabric, and whether a message of its full MTU comes there in one piece: the kernels answer.

Started on every node, `python -I -S reaching.py ADDRESS PAYLOAD_BYTES PEER...`; it prints one line of JSON. Only the standard
library, since a lab starts one for each node and fabric on a single machine. No program of ours runs at the other end: a connection
to a closed port is refused (RFC 9293, 3.10.7.1), and a datagram to one is answered by ICMP "port unreachable" (RFC 1122, 4.1.3.1).
The datagram fills the MTU and may not be fragmented (IP_PMTUDISC_PROBE of ip(7)), so that a switch or interface on the way that is
set to less loses it. Needs no privileges. A firewall that drops silently looks like a network that does: `joining` knows what may
be concluded.
"""

from __future__ import annotations

import errno
import json
import random
import select
import socket
import sys
import time
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

IP_MTU_DISCOVER, IP_PMTUDISC_PROBE = 10, 3
"""Of linux/in.h, which the module socket does not have: do not fragment, and do not ask what is known of the path."""

FIRST_PORT, PORTS = 33434, 400
"""Where traceroute sends to closed ports: what firewalls pass if they pass any."""

TRIES = 4
TRY_SECONDS = 0.75
"""Kernels answer a stranger so many times at once and then once a second (icmp_ratelimit): later tries are for that."""

AT_ONCE = 200
"""Peers at a time: two sockets for each must stay below the usual limit of 1,024 files."""


class _Trial:
    """One socket towards one peer: it has an answer, waits for one, or cannot ask."""

    def __init__(self, kind: socket.SocketKind, own: str, peer: str, payload: bytes) -> None:
        self.is_answered = self.is_too_long = self.is_over = False
        self.socket = socket.socket(socket.AF_INET, kind)
        self.peer, self._payload = peer, payload
        try:
            self.socket.setblocking(False)
            self.socket.bind((own, 0))
            self.begin(kind)
        except BaseException:
            self.socket.close()
            raise

    def begin(self, kind: socket.SocketKind) -> None:
        """Connect, or send the message; without a route, or where the message is too long, that is the end of it."""
        target = (self.peer, FIRST_PORT + random.randrange(PORTS))  # noqa: S311 - no secret
        if kind is socket.SOCK_STREAM:
            self._take(self.socket.connect_ex(target))
            return
        self.socket.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE)
        try:
            self.socket.connect(target)
            self.socket.send(self._payload)
        except OSError as error:
            self._take(error.errno or 0)

    def look(self) -> None:
        """Take what has come. Without an error a connection stands: somebody listens at that port after all."""
        with suppress(OSError):
            self._take(self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))

    def _take(self, code: int) -> None:
        self.is_answered = code in (errno.ECONNREFUSED, 0)
        self.is_too_long = code == errno.EMSGSIZE
        self.is_over = code != errno.EINPROGRESS


def reach(own: str, payload_bytes: int, peers: Sequence[str]) -> dict[str, object]:
    """Return which peers answer an own address, and which of them a full message reaches: the fields of `joining.Reached`."""
    try:
        answering, _ = _asked(socket.SOCK_STREAM, own, peers, b"")
        full, is_too_long = _asked(socket.SOCK_DGRAM, own, peers, bytes(payload_bytes))
    except OSError as error:
        return {"problem": f"{own}: {error.strerror}"}
    return {
        "answering": [peer for peer in peers if peer in answering | full],
        "full": [peer for peer in peers if peer in full],
        "too_long": is_too_long,
    }


def _asked(kind: socket.SocketKind, own: str, peers: Sequence[str], payload: bytes) -> tuple[set[str], bool]:
    """Return the peers that answered one of several tries, and whether a message was too long for the own interface."""
    found: set[str] = set()
    is_too_long = False
    for first in range(0, len(peers), AT_ONCE):
        missing = list(peers[first : first + AT_ONCE])
        for _ in range(TRIES):
            random.shuffle(missing)  # so that not all nodes ask the same one at the same time
            answered, is_refused = _tried(kind, own, missing, payload)
            found |= answered
            is_too_long |= is_refused
            missing = [peer for peer in missing if peer not in answered]
            if not missing or is_refused:
                break
    return found, is_too_long


def _tried(kind: socket.SocketKind, own: str, peers: Iterable[str], payload: bytes) -> tuple[set[str], bool]:
    trials: list[_Trial] = []
    try:
        trials += (_Trial(kind, own, peer, payload) for peer in peers)
        waiting = {one.socket.fileno(): one for one in trials if not one.is_over}
        poll = select.poll()
        for number in waiting:
            poll.register(number, select.POLLOUT if kind is socket.SOCK_STREAM else select.POLLERR)
        end = time.monotonic() + TRY_SECONDS
        while waiting and (left := end - time.monotonic()) > 0:
            for number, _ in poll.poll(left * 1000):
                waiting[number].look()
                poll.unregister(number)
                del waiting[number]
        return {one.peer for one in trials if one.is_answered}, any(one.is_too_long for one in trials)
    finally:
        for one in trials:
            one.socket.close()


def main(arguments: Sequence[str]) -> None:
    """Ask the peers, and print what was found as one line of JSON."""
    own, payload_bytes, *peers = arguments
    sys.stdout.write(json.dumps({"reached": reach(own, int(payload_bytes), peers)}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
