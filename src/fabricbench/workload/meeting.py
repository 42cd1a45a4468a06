"""Has the ranks of a program that knows no MPI meet: `python -I -S meeting.py RANKS FIRST PORT [--keep] PROGRAM...`.

Every rank connects to rank 0, at the address or name FIRST, and says where it is on the fabric (FABRICBENCH_ADDRESS, which
`launch/on_subnet.py` has set). When all are there each is told of all and becomes the program, with

    FABRICBENCH_RANK, FABRICBENCH_RANKS     who it is (`counted` has set the first)
    FABRICBENCH_ADDRESS, _ADDRESSES         where it is on the fabric, and where all ranks are, with commas between them
    FABRICBENCH_PORT                        a port that nobody here has, for the program's own use

Whoever comes must show that it belongs to the launch: what it says is signed with a token of 128 bits, TOKEN in the environment,
which all processes of a launch inherit and other users cannot read. A stranger, whatever it sends or holds open, is passed over; so
is one that answers in rank 0's place. Rank 0 listens at FIRST alone where that is an address of its own. A starter that hands no
variables on leaves all ranks without a token: they meet all the same, and say so.

With `--keep` the connections stay open, for what is in front of the program, as descriptors that FABRICBENCH_MEETING names: on
rank 0 that of each other rank in turn, on the others that to rank 0. Only the standard library.
"""

from __future__ import annotations

import errno
import hmac
import json
import os
import selectors
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

MEET_SECONDS = 30.0
"""Ranks of one launch start within a second of each other; machines under load within some."""

HELLO_SECONDS = 2.0
"""Whoever connects says at once who it is; somebody else may never."""

TOKEN = "FABRICBENCH_LAUNCH_MARK"  # noqa: S105 - the name of a variable
"""The variable that holds the launch's token (`launch/starting.py`: MARK)."""

MOST_OF_A_HELLO = 4096
MOST_OF_AN_ANSWER = 4 << 20
"""Bytes of a line: an address on the fabric from each rank, and those of all, of 64,000 ranks at most."""

MORE_THAN_RANKS = 64
"""So many connections besides those of ranks may say nothing at a time; then the one that was silent longest is closed."""

LEAST_PORT, PORTS = 20000, 12000
"""Below those that the kernel gives to whoever asks for any."""

CANNOT_MEET, CANNOT_START = 69, 127
"""EX_UNAVAILABLE of sysexits.h."""

KEEP = "--keep"


def port_of(directory: str) -> int:
    """Return the port of a launch: of its directory, so that launches side by side seldom meet."""
    return LEAST_PORT + 2 * (int.from_bytes(sha256(directory.encode()).digest()[:4], "big") % (PORTS // 2))


def front(ranks: int, first: str, directory: str, *, keep: bool = False) -> list[str]:
    """Return the tokens to be put in front of a program."""
    tokens = [sys.executable, "-I", "-S", __file__, str(ranks), first, str(port_of(directory))]
    return [*tokens, KEEP] if keep else tokens


def send(connection: socket.socket, message: dict[str, Any]) -> None:
    """Send one line of JSON."""
    connection.sendall(json.dumps(message).encode() + b"\n")


def signed(token: str, message: dict[str, Any]) -> dict[str, Any]:
    """Return a message with its signature."""
    return {**message, "signature": _signature(token, message)}


def opened(token: str, line: bytes) -> dict[str, Any]:
    """Return the message of a line; an empty one where it is none of this launch."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    signature = message.pop("signature", None) if isinstance(message, dict) else None
    if not isinstance(signature, str) or not hmac.compare_digest(
        signature.encode(), _signature(token, message).encode()
    ):
        return {}
    return dict(message)


def _signature(token: str, message: dict[str, Any]) -> str:
    return hmac.new(token.encode(), json.dumps(message, sort_keys=True).encode(), "sha256").hexdigest()


def receive_line(connection: socket.socket, deadline: float) -> bytes | None:
    """Return the next line, byte by byte so that nothing behind it is taken; None where the other end is gone.

    TimeoutError past the deadline, ValueError for a line that is too long.
    """
    line = bytearray()
    while not line.endswith(b"\n"):
        if len(line) > MOST_OF_AN_ANSWER:
            raise ValueError(f"a line of more than {MOST_OF_AN_ANSWER} bytes")
        connection.settimeout(max(0.001, deadline - time.monotonic()))
        byte = connection.recv(1)
        if not byte:
            return None
        line += byte
    return bytes(line)


@dataclass
class _Visitor:
    """A connection that has not said yet who it is."""

    connection: socket.socket
    deadline: float
    line: bytearray = field(default_factory=bytearray)

    def received_line(self) -> bytes | None:
        """Return the connection's line, None while there is more to come. OSError or ValueError where nothing will come of it."""
        # A rank sends its line and waits for the answer: nothing of anybody's stands behind it.
        with suppress(BlockingIOError):
            piece = self.connection.recv(MOST_OF_A_HELLO)
            if not piece:
                raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
            self.line += piece
        if len(self.line) > MOST_OF_A_HELLO:
            raise ValueError(f"a line of more than {MOST_OF_A_HELLO} bytes")
        return bytes(self.line) if self.line.endswith(b"\n") else None


class _Door:
    """Where rank 0 listens: ranks are let in, strangers go."""

    def __init__(self, server: socket.socket, ranks: int, token: str) -> None:
        self._server, self._ranks, self._token = server, ranks, token
        self._selector = selectors.DefaultSelector()
        self._visitors: dict[socket.socket, _Visitor] = {}
        self.there: dict[int, tuple[str, socket.socket]] = {}
        server.setblocking(False)
        self._selector.register(server, selectors.EVENT_READ)

    def look(self, seconds: float) -> None:
        """Wait for so long at most for somebody to come or to speak."""
        for key, _ in self._selector.select(seconds):
            if key.fileobj is self._server:
                self._accept()
            elif isinstance(key.data, _Visitor) and key.data.connection in self._visitors:
                self._read_from(key.data)
        now = time.monotonic()
        for visitor in [one for one in self._visitors.values() if now > one.deadline]:
            self._forget(visitor).close()

    def close(self) -> None:
        """Close all that came to nothing."""
        for visitor in list(self._visitors.values()):
            self._forget(visitor).close()
        self._selector.close()

    def _accept(self) -> None:
        try:
            connection, _ = self._server.accept()
        except OSError:  # a port scan resets what it has opened
            return
        if len(self._visitors) >= self._ranks + MORE_THAN_RANKS:
            self._forget(next(iter(self._visitors.values()))).close()
        connection.setblocking(False)
        visitor = _Visitor(connection, time.monotonic() + HELLO_SECONDS)
        self._visitors[connection] = visitor
        self._selector.register(connection, selectors.EVENT_READ, visitor)

    def _read_from(self, visitor: _Visitor) -> None:
        try:
            line = visitor.received_line()
        except (OSError, ValueError):
            self._forget(visitor).close()
            return
        if line is None:
            return
        connection = self._forget(visitor)
        said = opened(self._token, line)
        rank = said.get("rank")
        if not isinstance(rank, int) or not 0 < rank < self._ranks or said.get("ranks") != self._ranks:
            connection.close()
            return
        if rank in self.there:  # it has given the earlier one up
            self.there[rank][1].close()
        self.there[rank] = (str(said.get("address")), connection)

    def _forget(self, visitor: _Visitor) -> socket.socket:
        self._selector.unregister(visitor.connection)
        return self._visitors.pop(visitor.connection).connection


def own_address(first: str) -> str:
    """Return the address to listen at as rank 0, whom the others find at `first`; empty, all, where that does not tell.

    A node's own name is often an address of the loopback to itself, and another one to all others.
    """
    try:
        found = socket.gethostbyname_ex(first)[2]
    except OSError:
        return ""
    return found[0] if len(found) == 1 and (found[0] == first or not found[0].startswith("127.")) else ""


def listen(first: str, port: int, backlog: int) -> socket.socket:
    """Return rank 0's listening socket."""
    try:
        return socket.create_server((own_address(first), port), backlog=backlog)
    except OSError as error:
        if error.errno != errno.EADDRNOTAVAIL:  # behind a translation of addresses the others' is none of ours
            raise
        return socket.create_server(("", port), backlog=backlog)


def gather(ranks: int, first: str, port: int, address: str, token: str) -> tuple[list[str], list[socket.socket]]:
    """Wait as rank 0 for all others; return the addresses of all and the connections. TimeoutError names who is missing."""
    deadline = time.monotonic() + MEET_SECONDS
    with listen(first, port, ranks + MORE_THAN_RANKS) as server:
        door = _Door(server, ranks, token)
        try:
            while len(door.there) < ranks - 1:
                if time.monotonic() > deadline:
                    missing = ", ".join(str(one) for one in range(1, ranks) if one not in door.there)
                    raise TimeoutError(
                        f"rank {missing} did not come to port {port} of rank 0 within {MEET_SECONDS:g} s"
                    )
                door.look(min(0.1, max(0.0, deadline - time.monotonic())))
        finally:
            door.close()
    others = [door.there[rank] for rank in range(1, ranks)]
    addresses = [address, *(one for one, _ in others)]
    for _, connection in others:
        connection.settimeout(MEET_SECONDS)
        send(connection, signed(token, {"addresses": addresses}))
        connection.settimeout(None)
    return addresses, [connection for _, connection in others]


def join(rank: int, ranks: int, first: str, port: int, address: str, token: str) -> tuple[list[str], socket.socket]:
    """Go to rank 0; return the addresses of all, with the connection. TimeoutError where rank 0 is not there, or says nothing."""
    deadline = time.monotonic() + MEET_SECONDS
    hello = signed(token, {"rank": rank, "ranks": ranks, "address": address})
    problem = ""
    while True:
        connection = None
        try:
            connection = socket.create_connection((first, port), timeout=max(0.001, deadline - time.monotonic()))
            send(connection, hello)
            line = receive_line(connection, deadline + HELLO_SECONDS)  # rank 0 may have begun to wait later
            if line is None:
                problem = f"rank 0 at {first}, port {port}, ended before all ranks were there"
            elif addresses := opened(token, line).get("addresses"):
                connection.settimeout(None)
                return [str(one) for one in addresses], connection
            else:
                problem = f"whoever answers at {first}, port {port}, is not rank 0 of this launch"
        except ConnectionRefusedError as error:  # what was there before, and is gone, says more
            problem = problem or f"rank 0 was not to be had at {first}, port {port}: {error.strerror}"
        except (OSError, ValueError) as error:
            reason = (error.strerror or error) if isinstance(error, OSError) else error
            problem = f"rank 0 was not to be had at {first}, port {port}: {reason}"
        if connection is not None:
            connection.close()
        if time.monotonic() > deadline:
            raise TimeoutError(problem)
        time.sleep(0.05)  # it is not there yet, or not the one


def main(arguments: Sequence[str]) -> int:
    """Meet and become the program; return only where that is not possible."""
    ranks, first, port, *command = arguments
    keep = command[0] == KEEP
    command = command[1:] if keep else command
    rank, address = int(os.environ["FABRICBENCH_RANK"]), os.environ["FABRICBENCH_ADDRESS"]
    token = os.environ.get(TOKEN, "")
    if rank == 0 and not token:
        sys.stderr.write(
            f"fabricbench: the starter hands no {TOKEN} on: whoever reaches port {port} may join the launch\n"
        )
    try:
        if rank == 0:
            addresses, connections = gather(int(ranks), first, int(port), address, token)
        else:
            addresses, connection = join(rank, int(ranks), first, int(port), address, token)
            connections = [connection]
    except OSError as error:
        sys.stderr.write(f"fabricbench: rank {rank} of {ranks}: {error}\n")
        return CANNOT_MEET
    os.environ["FABRICBENCH_RANKS"] = ranks
    os.environ["FABRICBENCH_ADDRESSES"] = ",".join(addresses)
    os.environ["FABRICBENCH_PORT"] = str(int(port) + 1)
    if keep:
        for each in connections:
            each.set_inheritable(True)
        os.environ["FABRICBENCH_MEETING"] = ",".join(str(each.fileno()) for each in connections)
    try:
        os.execvp(command[0], command)  # noqa: S606 - tokens, never a shell string
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return CANNOT_START


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
