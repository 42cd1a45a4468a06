"""Layer rdma beside Debian's perftest in one User-Mode Linux guest with soft RoCE: A B A B, and the median of ratios.

    python -m benchmarks.rdma_peers [--rounds 5] [--seconds 1] [--only TEXT] [--write docs/rdma.md]

Both sides run between the same two hosts of the guest of `tests/rdma`, which has one processor, in SCHED_RR; who goes first
changes from round to round. Like is set beside like: perftest's typical time, a median, of which `ib_send_lat` prints half the
round trip, beside the median of our round trips; its average rate beside all our bytes over all our time. Its writes are plain
ones, complete when the sender's adapter says so; ours have an immediate value and are complete when the receiver has them. So a
ratio of the two is one-sided, and no merit where it is far above 1. `ib_write_lat` spins at both ends without yielding: on one
processor its times are the scheduler's, and it is left out. perftest calibrates its clock after a run, which other work on the
machine can spoil: then it is asked again, three times at most. Ends with 0 whatever it finds; without the guest's kernel or
perftest it says what is missing.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from benchmarks.page import show

from support.measurer import Outcome
from support.uml import Guest, NoGuestError, start_guest

LEAST, MOST = 0.95, 1.05
"""Of a ratio that holds: rates at least, times at most as much, within 5 %."""
TRIES = 3

PAIR = """
chrt -r 1 timeout 20 {server} >server.out 2>&1 &
for i in $(seq 100); do grep -q ':4853 ' /proc/net/tcp && break; sleep 0.05; done
chrt -r 1 timeout 20 {server} 10.1.0.1
code=$?
wait
exit $code
"""
"""perftest's two ends: the client is the same program with the server's address, and its own device."""


@dataclass(frozen=True)
class Contest:
    """A line of the table: our cell, their program, and how their line of results is read."""

    title: str
    cell: dict[str, Any]
    program: str
    is_time: bool
    column: int
    """Of perftest's last line of results."""
    factor: float
    """From what it prints to nanoseconds of a round trip, or to bit/s."""

    def ours(self, guest: Guest, seconds: float) -> float:
        """Measure with our measurer: the median time in nanoseconds, or the rate in bit/s."""
        stopping = {"maximum_seconds": seconds, "minimum_samples": 200, "maximum_samples": 100_000}
        outcome = guest.probe([{"layer": "rdma", "warmup_samples": 20, "stopping": stopping, **self.cell}])
        if outcome.code or not outcome.times(0):
            raise SystemExit(f"{self.title}: our measurer failed: {outcome.stderr[-500:]}")
        return statistics.median(outcome.times(0)) if self.is_time else _rate_bit_s(outcome)

    def theirs(self, guest: Guest) -> float | None:
        """Measure with perftest; None where it gave no result in all its tries."""
        script = PAIR.format(server=f"{self.program} -d rxe1 -x 1").replace("-d rxe1 -x 1 10.1", "-d rxe2 -x 1 10.1")
        for _ in range(TRIES):
            done = guest.run(script, limit_s=60)
            lines = [line.split() for line in done.stdout.splitlines() if line.strip()[:1].isdigit()]
            if done.code == 0 and lines and len(lines[-1]) > self.column:
                value = float(lines[-1][self.column]) * self.factor
                if 0 < value < float("inf"):
                    return value
        return None


def _rate_bit_s(outcome: Outcome) -> float:
    cell, times = outcome.cell(0), outcome.times(0)
    return 8e9 * cell.bytes_per_sample * len(times) / sum(times)


def _latency(title: str, program: str, half: bool, **cell: Any) -> Contest:
    asked = {"pattern": "pingpong", "message_bytes": 8, **cell}
    return Contest(
        f"{title} / {program.split(' -s', maxsplit=1)[0]}", asked, program, True, 4, 2000.0 if half else 1000.0
    )


def _bandwidth(door: str, message_bytes: int) -> Contest:
    cell = {
        "pattern": "stream",
        "message_bytes": message_bytes,
        "messages_per_sample": 64,
        "receive": "blocking" if door == "write" else "polling",
        "parameters": {"door": door, "timeout": 18},
    }
    count = 3000 if message_bytes < 1 << 16 else 1000
    program = f"ib_write_bw -s {message_bytes} -n {count} -u 18 --report_gbits"
    return Contest(f"{door}, {message_bytes // 1024} KiB / ib_write_bw", cell, program, False, 3, 1e9)


CONTESTS = (
    _latency("send by events, 8 B", "ib_send_lat -e -s 8 -n 1000", True, receive="blocking"),
    _latency("read, 8 B", "ib_read_lat -s 8 -n 1000", False, receive="polling", parameters={"door": "read"}),
    _latency("atomic, 8 B", "ib_atomic_lat -n 1000", False, receive="polling", parameters={"door": "atomic"}),
    *(_bandwidth(door, size) for size in (4 << 10, 64 << 10) for door in ("write", "write-poll", "write-plain")),
)


def compare(guest: Guest, contest: Contest, rounds: int, seconds: float) -> str:
    """Take both sides in turn; a row of the table."""
    pairs: list[tuple[float, float]] = []
    for number in range(rounds):
        if number % 2 == 0:
            mine, other = contest.ours(guest, seconds), contest.theirs(guest)
        else:
            other, mine = contest.theirs(guest), contest.ours(guest, seconds)
        if other is None:
            sys.stderr.write(f"{contest.title}: perftest gave no result in {TRIES} tries of round {number + 1}\n")
            continue
        pairs.append((mine, other))
        sys.stderr.write(f"{contest.title}: round {number + 1}: {mine / other:.3f}\n")
    if not pairs:
        return f"| {contest.title} | | | perftest gave no result | | |"
    ratios = sorted(mine / other for mine, other in pairs)
    ratio = statistics.median(ratios)
    write: Callable[[float], str] = (
        (lambda v: f"{v / 1e3:.1f} us") if contest.is_time else (lambda v: f"{v / 1e9:.3f} Gbit/s")
    )
    holds = ratio <= MOST if contest.is_time else ratio >= LEAST
    ours, theirs = (statistics.median(side) for side in zip(*pairs, strict=True))
    return (
        f"| {contest.title} | {write(ours)} | {write(theirs)} | {ratio:.2f} "
        f"| {ratios[0]:.2f} to {ratios[-1]:.2f} | {'yes' if holds else 'no'} |"
    )


def main() -> None:
    """Run every contest in a guest of our own and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--only", default="", help="only what has this in its title")
    parser.add_argument(
        "--write", type=Path, help="a page with a place for the table, between <!-- rdma-peers --> marks"
    )
    given = parser.parse_args()
    try:
        guest = start_guest()
    except NoGuestError as reason:
        sys.stderr.write(f"nothing is compared: {reason}\n")
        return
    try:
        if guest.run("command -v ib_send_lat").code:
            sys.stderr.write("nothing is compared: perftest is not here and could not be fetched (Debian: perftest)\n")
            return
        rows = [
            compare(guest, contest, given.rounds, given.seconds) for contest in CONTESTS if given.only in contest.title
        ]
    finally:
        guest.end()
        shutil.rmtree(guest.folder, ignore_errors=True)
    about = (
        f"{datetime.now(UTC):%Y-%m-%d}, Linux {platform.release()}, load {os.getloadavg()[0]:.1f}; "
        f"{given.rounds} rounds, {given.seconds:g} s of ours in each."
    )
    head = ["| what / peer | ours | perftest | ratio (median of rounds) | range | holds |", "| --- " * 6 + "|"]
    show([about, "", *head, *rows], "rdma-peers", given.write)


if __name__ == "__main__":
    main()
