"""Runs a program and writes down what the network interfaces carried meanwhile: `python -I -S counted.py FILE PROGRAM...`.

For MPI programs that know nothing of fabricbench: on rank 0 this counts around the whole program, start and end included, and on
every other rank it becomes the program. Only the standard library, and every descriptor stays open: some MPI starters talk to
their ranks through one.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

COUNTERS = "interfaces.json"
DEVICES = Path("/proc/net/dev")

RANK_VARIABLES = ("PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")
"""Where a starter tells a process its rank before MPI_Init."""

CANNOT_START = 127


def is_first() -> bool:
    """Tell whether this is rank 0; so is a process that no starter told."""
    return next((os.environ[name] for name in RANK_VARIABLES if name in os.environ), "0") == "0"


def parse_counters(text: str) -> dict[str, dict[str, int]]:
    """Return what each interface has carried, from the text of /proc/net/dev."""
    counters = {}
    for line in text.splitlines()[2:]:
        name, _, numbers = line.partition(":")
        fields = numbers.split()
        counters[name.strip()] = {"sent": int(fields[8]), "received": int(fields[0])}
    return counters


def read_counters(path: Path) -> dict[str, dict[str, int]]:
    """Return what `main` wrote, empty if it wrote nothing."""
    try:
        found: dict[str, dict[str, int]] = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found


def main(arguments: list[str]) -> int:
    """Run the program; return its exit code, 128 + N for a signal N, as a shell does."""
    path, command = Path(arguments[0]), arguments[1:]
    try:
        if not is_first():
            os.execvp(command[0], command)  # noqa: S606 - tokens, never a shell string
        before = parse_counters(DEVICES.read_text())
        child = os.posix_spawnp(command[0], command, os.environ)
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return CANNOT_START
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    after = parse_counters(DEVICES.read_text())
    none = {"sent": 0, "received": 0}
    carried = {
        name: {way: count - before.get(name, none)[way] for way, count in counts.items()}
        for name, counts in after.items()
    }
    path.write_text(json.dumps(carried))
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
