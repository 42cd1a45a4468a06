"""Where a starter listens whose ranks are all on this machine."""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path

import pytest

from fabricbench.launch import guard
from fabricbench.launch.local import LocalLauncher
from fabricbench.launch.mpi import find_starter
from fabricbench.launch.starting import loopback_library
from fabricbench.launch.watch import run_watched
from fabricbench.model import Layer
from fabricbench.preload import PRELOAD
from fabricbench.testbed.model import Fabric

MEMORY = Fabric(name="memory", layers=(Layer.MPI,))
LISTENING = "0A"


def listening(process: int) -> set[str]:
    """The IPv4 addresses at which a process listens, as the kernel tells them."""
    held = set()
    for descriptor in Path("/proc", str(process), "fd").iterdir():
        try:
            held.add(str(descriptor.readlink()))
        except OSError:
            continue
    found = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == LISTENING and f"socket:[{fields[9]}]" in held:
            found.add(socket.inet_ntoa(struct.pack("=I", int(fields[1].partition(":")[0], 16))))
    return found


@pytest.mark.mpi
def test_the_starter_of_ranks_on_this_machine_listens_at_the_loopback_alone(tmp_path: Path):
    launcher = LocalLauncher(find_starter(), None, loopback=loopback_library())
    command = launcher.command(MEMORY, ["sleep", "2"], tmp_path, 2)
    found: set[str] = set()

    def look() -> None:
        for process in guard.descendants(os.getpid()):
            found.update(listening(process))

    assert run_watched(command, limit_seconds=30, on_tick=look).exit_code == 0
    assert found == {"127.0.0.1"}


@pytest.mark.mpi
def test_what_keeps_it_there_is_no_ranks_and_the_callers_preload_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    launcher = LocalLauncher(find_starter(), None, loopback=loopback_library())
    program = ["/bin/sh", "-c", f'echo "[${PRELOAD}]"']
    for theirs, expected in (("", "[]\n"), ("/nowhere/theirs.so", "[/nowhere/theirs.so]\n")):
        monkeypatch.setenv(PRELOAD, theirs)
        assert run_watched(launcher.command(MEMORY, program, tmp_path, 1), limit_seconds=30).exit_code == 0
        assert (tmp_path / "stdout.log").read_text() == expected
