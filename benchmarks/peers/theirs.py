"""One run of each peer over a lab's link: the figure it prints, in our unit (ns of a round trip, bit/s)."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.peers.link import Link
from benchmarks.peers.programs import library_path, same_mpich_as_ours

from fabricbench.launch.lab import LabLauncher

TIME_LIMIT_S = 90


def sockperf_round_trip_ns(link: Link, program: Path, message_bytes: int, seconds: int, *, tcp: bool) -> float:
    """Return sockperf's median, which it halves, as a round trip. Both ends sleep in recvfrom, as our blocking mode does."""
    protocol = ["--tcp"] if tcp else []
    server = [str(program), "server", "-i", link.address(1), *protocol]
    with _server(link, server):
        text = _run(
            link,
            [str(program), "ping-pong", "-i", link.address(1), *protocol, "-m", str(message_bytes), "-t", str(seconds)],
        )
    match = re.search(r"percentile 50\.000 =\s+([0-9.]+)", text)
    if match is None:
        raise RuntimeError(f"sockperf printed no median:\n{text[-1000:]}")
    return float(match.group(1)) * 2e3


def netpipe_tcp_round_trip_ns(link: Link, program: Path, message_bytes: int) -> float:
    """Return twice the one-way time that NPtcp prints: the mean of its best trial."""
    size = ["-l", str(message_bytes), "-u", str(message_bytes), "-p", "0"]
    with tempfile.TemporaryDirectory() as folder, _server(link, [str(program), *size], folder):
        output = Path(folder) / "np.out"
        _run(link, [str(program), "-h", link.address(1), *size, "-o", str(output)])
        return _netpipe_round_trip_ns(output)


def netpipe_mpi_round_trip_ns(link: Link, program: Path, launcher: LabLauncher, message_bytes: int) -> float:
    """Return twice the one-way time that NPmpich2 prints, started exactly as our measurer is and on the same MPICH."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "np.out"
        arguments = ["-l", str(message_bytes), "-u", str(message_bytes), "-p", "0", "-o", str(output)]
        library = ["env", f"LD_LIBRARY_PATH={same_mpich_as_ours()}"]
        command = launcher.command(link.fabric, [*library, str(program), *arguments], Path(folder), 2)
        checked(list(command.tokens), folder)
        return _netpipe_round_trip_ns(output)


def iperf3_bit_s(link: Link, program: Path, seconds: int) -> float:
    """Return what iperf3's receiver counted over its TCP stream with default settings."""
    with _server(link, [str(program), "-s", "-1", "-B", link.address(1)]):
        text = _run(link, [str(program), "-c", link.address(1), "-t", str(seconds), "-J"])
    return float(json.loads(text)["end"]["sum_received"]["bits_per_second"])


def _netpipe_round_trip_ns(output: Path) -> float:
    return float(output.read_text().split()[2]) * 2e9


@contextmanager
def _server(link: Link, command: Sequence[str], folder: str = "/") -> Iterator[None]:
    process = subprocess.Popen(
        _inside(link, 1, command, folder),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        time.sleep(0.7)
        yield
    finally:
        process.terminate()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _run(link: Link, command: Sequence[str]) -> str:
    return checked(_inside(link, 0, command, "/"), "/")


def checked(command: Sequence[str], folder: str) -> str:
    """Return what a program printed; one that fails or hangs is an error."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[-6:]} ended with {done.returncode}: {(done.stdout + done.stderr)[-1000:]}")
    return done.stdout


def _inside(link: Link, node: int, command: Sequence[str], folder: str) -> list[str]:
    environment = {"LD_LIBRARY_PATH": library_path()}
    # A session of its own for each end: MPI's starter gives our ranks one each, and the kernel shares processors by session.
    alone = ["setsid", "--wait", *command]
    return link.lab.command_in(f"n{node}", alone, working_directory=Path(folder), environment=environment)
