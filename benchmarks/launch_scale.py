"""What a launch of up to 65,536 ranks takes: the measurer's control plane, simulated rank by rank.

    python -m benchmarks.launch_scale PROGRAM [--ranks 1024 16384 65536] [--write docs/scale.md]

PROGRAM is `native/tests/simulation/launch_scale` of a build with tests (`tools/test-native`). It runs the measurer's own code of
the control plane on every rank, one after the other in one process, over a network that is a few numbers
(native/tests/simulation/world.hpp); what a rank computes takes the processor's time that it took here. So the times are simulated.
On a loaded machine they are somewhat longer, for the processors' caches are shared; the largest takes minutes.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.page import show

from fabricbench.quantity import format_seconds

RANKS = (64, 1024, 16_384, 65_536)
PATTERNS = ("allreduce", "chaos")
TIME_LIMIT_S = 3600
LIMITS = {1024: (5.0, 0.5), 16_384: (5.0, 2.0), 65_536: (5.0, 2.0)}
"""What is asked for, in seconds: of the start, and of a cell's end."""
MOST_BYTES = 2 << 30
"""What rank 0 may hold."""


@dataclass(frozen=True)
class Simulated:
    """One simulated launch."""

    ranks: int
    start_s: float
    ends_s: tuple[float, ...]
    """Of each pattern's cell: from the last rank's last sample until rank 0 goes on."""
    first_bytes: int
    """What rank 0 held at most."""

    @property
    def is_kept(self) -> bool:
        """Whether it keeps what is asked for."""
        start_s, end_s = LIMITS.get(self.ranks, (math.inf, math.inf))
        return self.start_s <= start_s and max(self.ends_s) <= end_s and self.first_bytes <= MOST_BYTES


def simulate(program: Path, ranks: int) -> Simulated:
    """Run the program once."""
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "records.jsonl"
        command = [str(program), str(ranks), str(record), *PATTERNS]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=True)
    figures = {name: float(value) for name, value in re.findall(r"^(\w+) ([0-9.]+)$", done.stdout, re.MULTILINE)}
    return Simulated(
        ranks,
        figures["start_seconds"],
        tuple(figures[f"end_of_{pattern}_seconds"] for pattern in PATTERNS),
        int(figures["rank_0_bytes"]),
    )


def exponent(small: Simulated, large: Simulated, of: Sequence[float]) -> float:
    """Return by which power of the ranks something grows between two launches."""
    return math.log(of[1] / of[0]) / math.log(large.ranks / small.ranks)


def table(launches: Sequence[Simulated]) -> list[str]:
    """Return the lines of the page."""
    lines = [
        f"Simulated; processor times of Linux {platform.release()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}.",
        "",
        "| ranks | start | end of an operation's cell | end of a flood's cell | rank 0 holds | kept |",
        "| ---: | ---: | ---: | ---: | ---: | --- |",
        *(
            f"| {one.ranks:,} | {format_seconds(one.start_s)} | {format_seconds(one.ends_s[0])} | {format_seconds(one.ends_s[1])} "
            f"| {one.first_bytes / 1e6:,.1f} MB | {'yes' if one.is_kept else '**no**'} |"
            for one in launches
        ),
    ]
    if len(launches) > 1:
        small, large = launches[-2:]
        exponents = [
            exponent(small, large, values)
            for values in (
                (small.start_s, large.start_s),
                (small.ends_s[0], large.ends_s[0]),
                (small.ends_s[1], large.ends_s[1]),
                (float(small.first_bytes), float(large.first_bytes)),
            )
        ]
        lines.append(f"| exponent, the last two | {' | '.join(f'{one:.2f}' for one in exponents)} | |")
    return lines


def main() -> None:
    """Simulate launches of all sizes and tell what they took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("--ranks", type=int, nargs="+", default=RANKS)
    parser.add_argument("--write", type=Path)
    arguments = parser.parse_args()
    launches = [simulate(arguments.program, ranks) for ranks in arguments.ranks]
    show(table(launches), "scale-control", arguments.write)


if __name__ == "__main__":
    main()
