"""An `srun` of our own: it takes the options that Slurm's takes, checks them as Slurm would, and starts the ranks by hydra.

`install` writes it, for a job of some nodes. All nodes are this machine; in a lab they are the lab's, reached through its agent.
Beside it lies `steps`, a line for each step that was started.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

VERSION = "slurm-wlm 22.05.8"
NODE_NAME = "SLURMD_NODENAME"
"""What each task finds in its environment."""


def install(folder: Path, nodes: str, mpiexec: str, agent: Path | None = None, control: str | None = None) -> Path:
    """Write the program `srun` into a folder and return its path; the caller sets PATH and SLURM_JOB_NODELIST."""
    folder.mkdir()
    setting = {"nodes": nodes, "mpiexec": mpiexec, "agent": str(agent) if agent else None, "control": control}
    (folder / "setting.json").write_text(json.dumps(setting))
    program = folder / "srun"
    program.write_text(f"#!{sys.executable}\n{Path(__file__).read_text()}")
    program.chmod(0o755)
    return program


def steps(program: Path) -> list[list[str]]:
    """What srun was told, step by step."""
    path = program.with_name("steps")
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _refuse(why: str) -> None:
    sys.exit(f"srun: error: {why}")


def _options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(prog="srun", allow_abbrev=False)
    options.add_argument("--version", action="version", version=VERSION)
    options.add_argument("--mpi", choices=("none", "pmi2", "pmix"), default="none")
    for name in ("nodes", "ntasks", "ntasks-per-node", "cpus-per-task", "kill-on-bad-exit"):
        options.add_argument(f"--{name}", type=int)
    options.add_argument("--nodelist")
    options.add_argument("--distribution", choices=("block", "cyclic", "plane", "arbitrary"))
    options.add_argument("--cpu-bind", choices=("none", "cores", "sockets", "threads"))
    options.add_argument("--overlap", action="store_true")
    options.add_argument("--export")
    options.add_argument("--chdir")
    options.add_argument("command", nargs=argparse.REMAINDER)
    return options


def main() -> None:
    """Check a step and become hydra, or the program itself where it is one task without MPI."""
    told = _options().parse_args()
    here = Path(sys.argv[0]).resolve().parent
    setting = json.loads((here / "setting.json").read_text())
    if os.environ.get("SLURM_JOB_NODELIST") != setting["nodes"]:
        _refuse("Unable to allocate resources: this is no job")
    if not told.overlap:
        _refuse("step creation temporarily disabled, retrying (Requested nodes are busy)")
    nodes = told.nodelist.split(",") if told.nodelist else ["here"]
    if len(nodes) != told.nodes:
        _refuse(f"Requested node count {told.nodes} does not match {told.nodelist}")
    strange = [node for node in nodes if told.nodelist and node not in setting["nodes"].split(",")]
    if strange:
        _refuse(f"Invalid node name specified: {strange[0]}")
    if told.ntasks_per_node and told.ntasks != told.nodes * told.ntasks_per_node:
        _refuse(f"can't honor --ntasks-per-node set to {told.ntasks_per_node}")  # Slurm warns, and ignores it
    with (here / "steps").open("a") as file:
        file.write(json.dumps(sys.argv[1:]) + "\n")
    if told.mpi == "none" and setting["agent"] is None:
        tasks = [subprocess.Popen(told.command, env={**os.environ, NODE_NAME: node}) for node in nodes]
        sys.exit(max(task.wait() for task in tasks))
    where = ["-launcher", "fork"]
    if setting["agent"] is not None:
        where = ["-launcher", "ssh", "-launcher-exec", setting["agent"], "-iface", setting["control"]]
        where += ["-hosts", ",".join(f"{node}:1" for node in nodes), "-wdir", told.chdir or "/"]
        if told.mpi == "none":  # a node of a lab is called as its host
            told.command = ["sh", "-c", f'{NODE_NAME}=$(hostname) exec "$@"', "sh", *told.command]
    elif told.chdir:
        where += ["-wdir", told.chdir]
    mpiexec = setting["mpiexec"]
    os.execv(mpiexec, [mpiexec, *where, "-n", str(told.ntasks), "-bind-to", "none", *told.command])


if __name__ == "__main__":
    main()
