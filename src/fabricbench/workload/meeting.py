"""Has the ranks of a program that knows no MPI meet: `python -I -S meeting.py RANKS FIRST PORT [--keep] PROGRAM...`.

Every rank connects to rank 0, at the address or name FIRST, and says where it is on the fabric (FABRICBENCH_ADDRESS, which
`launch/on_subnet.py` has set). When all are there each is told of all and becomes the program, with

    FABRICBENCH_RANK, FABRICBENCH_RANKS     who it is (`counted` has set the first)
    FABRICBENCH_ADDRESS, _ADDRESSES         where it is on the fabric, and where all ranks are, with commas between them
    FABRICBENCH_PORT                        a port that nobody here has, for the program's own use

With `--keep` the connections stay open, for what is in front of the program, as descriptors that FABRICBENCH_MEETING names: on
rank 0 that of each other rank in turn, on the others that to rank 0. Only the standard library.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

MEET_SECONDS = 30.0
"""Ranks of one launch start within a second of each other; machines under load within some."""

HELLO_SECONDS = 2.0
"""Whoever connects says at once who it is; somebody else may never."""

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


def receive(connection: socket.socket) -> dict[str, Any] | None:
    """Return the next line of JSON, byte by byte so that nothing behind it is taken; None where the other end is gone."""
    line = bytearray()
    while not line.endswith(b"\n"):
        byte = connection.recv(1)
        if not byte:
            return None
        line += byte
    found = json.loads(line)
    return found if isinstance(found, dict) else None


def gather(ranks: int, port: int, address: str) -> tuple[list[str], list[socket.socket]]:
    """Wait as rank 0 for all others; return the addresses of all and the connections. TimeoutError names who is missing."""
    there: dict[int, tuple[str, socket.socket]] = {}
    deadline = time.monotonic() + MEET_SECONDS
    with socket.create_server(("", port), backlog=ranks, reuse_port=False) as server:
        while len(there) < ranks - 1:
            server.settimeout(max(0.01, deadline - time.monotonic()))
            try:
                connection, _ = server.accept()
                connection.settimeout(HELLO_SECONDS)
                said = receive(connection) or {}
            except (TimeoutError, ValueError):
                said = {}
            rank = said.get("rank")
            if isinstance(rank, int) and 0 < rank < ranks and rank not in there and said.get("ranks") == ranks:
                there[rank] = (str(said.get("address")), connection)
            elif time.monotonic() > deadline:
                missing = ", ".join(str(one) for one in range(1, ranks) if one not in there)
                raise TimeoutError(f"rank {missing} did not come to port {port} of rank 0 within {MEET_SECONDS:g} s")
    others = [there[rank] for rank in range(1, ranks)]
    addresses = [address, *(one for one, _ in others)]
    for _, connection in others:
        connection.settimeout(None)
        send(connection, {"addresses": addresses})
    return addresses, [connection for _, connection in others]


def join(rank: int, ranks: int, first: str, port: int, address: str) -> tuple[list[str], socket.socket]:
    """Go to rank 0; return the addresses of all, with the connection. TimeoutError where rank 0 is not there, or says nothing."""
    deadline = time.monotonic() + MEET_SECONDS
    while True:
        try:
            connection = socket.create_connection((first, port), timeout=MEET_SECONDS)
            send(connection, {"rank": rank, "ranks": ranks, "address": address})
            told = receive(connection)
        except OSError as error:
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"rank 0 was not to be had at {first}, port {port}: {error.strerror or error}"
                ) from None
            time.sleep(0.05)  # it is not there yet
            continue
        connection.settimeout(None)
        if told is None:
            raise TimeoutError(f"rank 0 at {first}, port {port}, ended before all ranks were there")
        return [str(one) for one in told["addresses"]], connection


def main(arguments: Sequence[str]) -> int:
    """Meet and become the program; return only where that is not possible."""
    ranks, first, port, *command = arguments
    keep = command[0] == KEEP
    command = command[1:] if keep else command
    rank, address = int(os.environ["FABRICBENCH_RANK"]), os.environ["FABRICBENCH_ADDRESS"]
    try:
        if rank == 0:
            addresses, connections = gather(int(ranks), int(port), address)
        else:
            addresses, connection = join(rank, int(ranks), first, int(port), address)
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
