"""fabricbench-hpl over a network, beside the HPL in Debian's hpcc: four nodes of a lab, the same BLAS, N, NB and grid.

    python -m benchmarks.hpl_lab [--n 1200] [--nb 64] [--rounds 3] [--fabric fast-ethernet] [--write docs/workloads.md]

Each round starts ours and then hpcc, A B A B. hpcc runs with Debian's Open MPI, whose ranks yield where they wait, and ours with
the MPI that it was built with; both talk TCP over the fabric alone. hpcc runs all its other parts as well, some minutes a start on
a slow fabric. The last line holds the target: at most 1.0 times the time of hpcc's HPL, as the median of pairs.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.hpcc import hpcc_input
from benchmarks.hpl_speed import Debian, debian
from benchmarks.lab_truth import running
from benchmarks.page import show

from fabricbench.errors import FabricbenchError
from fabricbench.lab import Lab, parse_fabric
from fabricbench.launch.lab import LabLauncher
from fabricbench.launch.mpi import find_starter
from fabricbench.launch.starting import yield_library
from fabricbench.native import native_file
from fabricbench.record.kernel_lines import read_kernel_record
from fabricbench.testbed.model import Fabric

NODES, GRID = 4, (2, 2)
TIME_LIMIT_S = 900
MOST = 1.0


def own_seconds(lab: Lab, fabric: Fabric, given: Debian, n: int, nb: int) -> float:
    """Return the seconds of one start of ours, verified, with Debian's BLAS."""
    p, q = GRID
    options = {"n": n, "nb": nb, "p": p, "q": q, "blas": given.blas}
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "record.jsonl"
        variables = ["env", f"LD_LIBRARY_PATH={given.blas_environment.get('LD_LIBRARY_PATH', '')}"]
        program = [*variables, str(native_file("fabricbench-hpl")), *words, "--output", str(record)]
        launcher = LabLauncher(lab, find_starter(), yield_library())
        _done(list(launcher.command(fabric, program, Path(folder), NODES).tokens), folder)
        (run,) = read_kernel_record(record).runs
    return run.seconds


def their_seconds(lab: Lab, fabric: Fabric, given: Debian, n: int, nb: int) -> float:
    """Return the seconds of the HPL of one start of hpcc, verified."""
    hosts = ",".join(f"{node.name}:1" for node in lab.testbed().nodes)
    settings = {
        "plm_rsh_agent": lab.agent,
        "oob_tcp_if_include": lab.control_interface,
        "mpi_yield_when_idle": 1,
        "pml": "ob1",
        "btl": "tcp,self",
        "btl_tcp_if_include": fabric.interface,
    }
    words = [word for name, value in settings.items() for word in ("--mca", name, str(value))]
    preload = ["-x", f"LD_PRELOAD={yield_library()}"]
    start, program = given.start(NODES)[:-1], given.start(NODES)[-1]
    tokens = [*start, "--host", hosts, "--bind-to", "none", *words, "-x", "LD_LIBRARY_PATH", *preload, program]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "hpccinf.txt").write_text(hpcc_input(n, nb, *GRID))
        first = lab.testbed().nodes[0].name
        _done(lab.command_in(first, tokens, working_directory=Path(folder), environment=given.environment), folder)
        text = (Path(folder) / "hpccoutf.txt").read_text()
    seconds = re.search(r"^HPL_time=(\S+)$", text, re.MULTILINE)
    if seconds is None or re.search(r"^\|\|Ax-b\|\|.*PASSED$", text, re.MULTILINE) is None:
        raise RuntimeError(f"hpcc ended without a verified HPL: {text[-1000:]}")
    return float(seconds[1])


def _done(tokens: list[str], folder: str) -> None:
    done = subprocess.run(tokens, cwd=folder, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(tokens)} ended with {done.returncode}: {(done.stdout + done.stderr)[-1500:]}")


def main() -> None:
    """Measure, print the table, write it into a page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=1200)
    parser.add_argument("--nb", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--fabric", default="fast-ethernet")
    parser.add_argument("--write", type=Path, help="the page that holds the table")
    asked = parser.parse_args()
    ours, theirs = [], []
    try:
        given = debian()
        with running(parse_fabric(asked.fabric), nodes=NODES) as lab:
            (fabric,) = lab.testbed().fabrics
            for done in range(asked.rounds):
                print(f"round {done + 1} of {asked.rounds}", file=sys.stderr)
                ours.append(own_seconds(lab, fabric, given, asked.n, asked.nb))
                theirs.append(their_seconds(lab, fabric, given, asked.n, asked.nb))
                print(f"ours {ours[-1]:.3f} s, hpcc {theirs[-1]:.3f} s", file=sys.stderr)
    except (FabricbenchError, RuntimeError, subprocess.TimeoutExpired) as error:
        sys.exit(f"hpl_lab: {error}")
    ratio = statistics.median(own / other for own, other in zip(ours, theirs, strict=True))
    about = (
        f"N = {asked.n}, NB = {asked.nb}, 2 x 2 ranks on {NODES} nodes of the lab's {asked.fabric} (emulated), {asked.rounds} "
        f"rounds, Linux {platform.release()}, {os.cpu_count()} processors; medians, and from the least to the most."
    )
    lines = [
        about,
        "",
        "| HPL over the lab | time |",
        "| --- | ---: |",
        *(
            f"| {name} | {statistics.median(one):.3f} s ({min(one):.3f} to {max(one):.3f}) |"
            for name, one in (("ours", ours), ("hpcc 1.5", theirs))
        ),
        "",
        f"Ours over hpcc's, median of pairs, at most {MOST:.1f}: {ratio:.2f}{'' if ratio <= MOST else ', which DOES NOT HOLD'}.",
    ]
    show(lines, "hpl-lab", asked.write)


if __name__ == "__main__":
    main()
