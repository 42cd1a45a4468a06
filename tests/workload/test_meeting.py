"""Ranks that know no MPI meet, whatever strangers do at rank 0's port."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from fabricbench.launch.starting import MARK
from fabricbench.workload import meeting

TOKEN = "0123456789abcdef0123456789abcdef"
HERE = "127.0.0.1"

Met = tuple[list[str], list[socket.socket]]


def free_port() -> int:
    with socket.create_server((HERE, 0)) as server:
        return int(server.getsockname()[1])


class Waiting:
    """Rank 0, which waits for one other in a thread."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self.port = free_port()
        self.met: Future[Met] = pool.submit(meeting.gather, 2, HERE, self.port, "10.0.0.1", TOKEN)
        self.strangers: list[socket.socket] = []
        deadline = time.monotonic() + 10
        while not listeners(self.port) and time.monotonic() < deadline:
            time.sleep(0.01)

    def stranger(self) -> socket.socket:
        self.strangers.append(socket.create_connection((HERE, self.port), 5))
        return self.strangers[-1]


def listeners(port: int) -> list[str]:
    """The addresses at which somebody listens at a port, as the kernel tells them."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    found = [fields[1].split(":") for fields in lines if fields[3] == "0A"]
    return [socket.inet_ntoa(struct.pack("=I", int(address, 16))) for address, at in found if int(at, 16) == port]


def says(text: bytes) -> Callable[[Waiting], object]:
    return lambda waiting: waiting.stranger().sendall(text)


def is_reset(waiting: Waiting) -> None:
    """As a port scan does."""
    stranger = waiting.stranger()
    stranger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    stranger.close()


def hold(waiting: Waiting) -> None:
    """More than may be silent at a time."""
    for _ in range(meeting.MORE_THAN_RANKS + 20):
        waiting.stranger()


STRANGERS = {
    "says that it is rank 1": says(b'{"rank":1,"ranks":2,"address":"10.6.6.6"}\n'),
    "signs with another token": says(
        json.dumps(meeting.signed("another", {"rank": 1, "ranks": 2, "address": "10.6.6.6"})).encode() + b"\n"
    ),
    "has an empty signature": says(b'{"rank":1,"ranks":2,"address":"10.6.6.6","signature":""}\n'),
    "sends no JSON": says(b"GET / HTTP/1.1\r\n\r\n"),
    "sends no text": says(bytes(range(256)) + b"\n"),
    "sends a list": says(b"[1, 2]\n"),
    "nests without end": says(b"[" * 4000 + b"\n"),
    "sends a line without end": lambda waiting: threading.Thread(
        target=lambda stranger: [stranger.sendall(bytes(65536)) for _ in range(64)], args=(waiting.stranger(),), daemon=True
    ).start(),
    "resets": is_reset,
    "holds connections": hold,
    "says half a line": says(b'{"rank":1,'),
}  # fmt: skip


@pytest.mark.parametrize("what", STRANGERS)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_stranger_is_passed_over_and_the_ranks_meet(what: str):
    with ThreadPoolExecutor(1) as pool:
        waiting = Waiting(pool)
        STRANGERS[what](waiting)
        addresses, connection = meeting.join(1, 2, HERE, waiting.port, "10.0.0.2", TOKEN)
        found, connections = waiting.met.result(20)
    assert found == addresses == ["10.0.0.1", "10.0.0.2"]
    for each in (connection, *connections, *waiting.strangers):
        each.close()


def test_rank_0_listens_at_its_own_address_alone():
    with ThreadPoolExecutor(1) as pool:
        waiting = Waiting(pool)
        assert listeners(waiting.port) == [HERE]
        _, connection = meeting.join(1, 2, HERE, waiting.port, "10.0.0.2", TOKEN)
        _, connections = waiting.met.result(20)
    for each in (connection, *connections):
        each.close()


def test_where_a_name_is_of_the_loopback_to_its_own_node_it_listens_at_all_addresses(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(socket, "gethostbyname_ex", lambda name: (name, [], ["127.0.1.1"]))
    assert meeting.own_address("n0") == ""
    monkeypatch.setattr(socket, "gethostbyname_ex", lambda name: (name, [], ["10.1.0.1"]))
    assert meeting.own_address("n0") == "10.1.0.1"


def test_whoever_answers_in_rank_0s_place_is_not_believed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(meeting, "MEET_SECONDS", 0.5)
    with socket.create_server((HERE, 0)) as server:

        def answer() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(4096)
                    connection.sendall(b'{"addresses": ["10.6.6.6", "10.0.0.2"]}\n')

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(TimeoutError, match="is not rank 0 of this launch"):
            meeting.join(1, 2, HERE, server.getsockname()[1], "10.0.0.2", TOKEN)
        server.shutdown(socket.SHUT_RDWR)


def test_the_token_is_the_mark_that_all_of_a_launch_inherit_and_stands_in_no_command():
    assert meeting.TOKEN == MARK
    assert all(MARK not in token for token in meeting.front(4, HERE, "/runs/b00-net"))
