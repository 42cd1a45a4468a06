"""The doctor: examines the host it runs on, and says what about it hurts measurements.

`python -m fabricbench.testbed.doctor --json PROGRAM...` prints the inventory of the host as JSON, with what a preflight needs; a
campaign runs that on every node.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

from fabricbench.errors import EnvironmentLacks
from fabricbench.model import Model
from fabricbench.native import build_info
from fabricbench.testbed.advice import (
    Advice,
    advise_on_allowance,
    advise_on_interface,
    advise_on_limits,
    advise_on_permissions,
    advise_on_processors,
    advise_on_rdma,
    advise_on_system,
)
from fabricbench.testbed.allowance import Allowance, read_allowance
from fabricbench.testbed.host import (
    HostClock,
    Kernel,
    Permissions,
    ProcessLimits,
    Processors,
    read_board,
    read_clock,
    read_hugepages,
    read_kernel,
    read_limits,
    read_load,
    read_memory_bytes,
    read_processors,
    read_sysctls,
    runs_irqbalance,
    try_permissions,
)
from fabricbench.testbed.interfaces import Interface, read_interfaces
from fabricbench.testbed.node_facts import read_node
from fabricbench.testbed.rdma import RdmaPort, read_rdma

VERSION_SECONDS = 10
ROOT = Path("/")


APART = {"advice", "interfaces", "limits", "name", "processors", "rdma", "sysctls"}
"""What of a host its inventory has under names of its own."""


class InstalledMpi(Model):
    """The MPI that the measurer was built with; `problem` says why it cannot be used."""

    compiler: str | None = None
    starter: str | None = None
    version: str | None = None
    cxx_compiler: str | None = None
    problem: str | None = None


class Host(Model):
    """Everything that the doctor found on one host."""

    name: str
    processors: Processors
    memory_bytes: int | None
    board: str | None = None
    kernel: Kernel
    clock: HostClock
    load: float | None
    sysctls: dict[str, str]
    interfaces: tuple[Interface, ...]
    mpi: InstalledMpi
    permissions: Permissions
    python: str
    advice: tuple[Advice, ...] = ()
    limits: ProcessLimits | None = None
    hugepages: dict[str, int] = {}
    rdma: tuple[RdmaPort, ...] = ()
    has_irqbalance: bool = False
    allowance: Allowance = Allowance()

    def inventory(self) -> dict[str, str]:
        """Return the facts as text, `cpu.model` -> `AMD EPYC 7543`: what a manifest keeps of each host."""
        facts = self.model_dump(mode="json", exclude=APART)
        facts["cpu"] = self.processors.model_dump(mode="json")
        facts["net"] = {one.name: one.model_dump(mode="json", exclude={"name"}) for one in self.interfaces}
        limits = self.limits.model_dump(mode="json") if self.limits is not None else {}
        facts["limits"] = {name: "unlimited" if value is None else value for name, value in limits.items()}
        facts["rdma"] = {
            one.name: one.model_dump(mode="json", exclude={"device", "port", "gid_netdevs"}) for one in self.rdma
        }
        flat = {key: text for key, text in _flattened(facts) if text}
        flat |= {f"sysctl.{name}": value for name, value in self.sysctls.items()}
        flat |= {one.key: one.finding for one in self.advice}
        return dict(sorted(flat.items()))


def examine(root: Path = ROOT) -> Host:
    """Examine this host. It takes part of a second, and changes nothing."""
    processors, kernel, clock = read_processors(root), read_kernel(root), read_clock(root)
    load, sysctls, interfaces, permissions = (
        read_load(root),
        read_sysctls(root),
        read_interfaces(root),
        try_permissions(),
    )
    limits, rdma, has_irqbalance = read_limits(root), read_rdma(root), runs_irqbalance(root)
    usable, allowance = os.sched_getaffinity(0), read_allowance(root)
    advice = [
        *advise_on_processors(processors, load),
        *advise_on_system(kernel, clock, sysctls, has_irqbalance=has_irqbalance),
        *(finding for interface in interfaces for finding in advise_on_interface(interface, usable)),
        *(finding for port in rdma for finding in advise_on_rdma(port)),
        *advise_on_allowance(allowance, len(usable)),
        *advise_on_limits(limits, has_rdma=bool(rdma)),
        *advise_on_permissions(permissions),
    ]
    return Host(
        name=os.uname().nodename,
        processors=processors,
        memory_bytes=read_memory_bytes(root),
        board=read_board(root),
        kernel=kernel,
        clock=clock,
        load=load,
        sysctls=sysctls,
        interfaces=interfaces,
        mpi=find_mpi(),
        permissions=permissions,
        python=platform.python_version(),
        advice=tuple(advice),
        limits=limits,
        hugepages=read_hugepages(root),
        rdma=rdma,
        has_irqbalance=has_irqbalance,
        allowance=allowance,
    )


def inventory() -> dict[str, str]:
    """Return the facts of this host as text, as a manifest keeps them."""
    return examine().inventory()


def find_mpi() -> InstalledMpi:
    """Return the MPI that the native part was built with, and whether its starter answers."""
    try:
        info = build_info()
    except EnvironmentLacks as error:
        return InstalledMpi(problem=error.message)
    found = {"compiler": info.mpicxx, "starter": info.mpiexec, "cxx_compiler": info.compiler}
    try:
        command = [info.mpiexec, "--version"]
        shown = subprocess.run(command, check=False, capture_output=True, text=True, timeout=VERSION_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return InstalledMpi(**found, problem=f"{info.mpiexec} --version: {error}")
    if shown.returncode != 0:
        return InstalledMpi(
            **found, problem=f"{info.mpiexec} --version ended with {shown.returncode}: {shown.stderr.strip()[-200:]}"
        )
    return InstalledMpi(**found, version=_version(shown.stdout))


def _version(text: str) -> str:
    """Return the line that names the version: the first of Open MPI and Intel MPI, the second of MPICH's hydra."""
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    if lines and lines[0].startswith("HYDRA"):
        return f"MPICH hydra {lines[1].removeprefix('Version:').strip()}" if len(lines) > 1 else lines[0]
    return lines[0] if lines else "unknown"


def _flattened(value: object, key: str = "") -> list[tuple[str, str]]:
    if isinstance(value, dict):
        return [pair for name, inner in value.items() for pair in _flattened(inner, f"{key}.{name}".lstrip("."))]
    if isinstance(value, list):
        return [(key, " ".join(str(item) for item in value))]
    if isinstance(value, bool):
        return [(key, "yes" if value else "no")]
    return [(key, "" if value is None else str(value))]


def main() -> None:
    """Write the inventory of this host to stdout: text, or JSON with `--json`."""
    parser = argparse.ArgumentParser(description="the inventory of this host")
    parser.add_argument("--json", action="store_true", help="one JSON object: host, and what is known of it")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help="with --json: say its version, too")
    arguments = parser.parse_args()
    facts = inventory()
    if arguments.json:
        node = read_node(arguments.programs).model_dump(mode="json")
        sys.stdout.write(json.dumps({"host": os.uname().nodename, "inventory": facts, "node": node}) + "\n")
    else:
        sys.stdout.writelines(f"{name}: {value}\n" for name, value in facts.items())


if __name__ == "__main__":
    main()
