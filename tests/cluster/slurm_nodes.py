"""A Slurm over the nodes of a lab: munged, slurmctld on the first node, slurmd on each, all of them ended by their ids.

Debian's packages are installed where root and apt are there. Keys, sockets, state and logs are in a folder of its own, so that a
Slurm or a munge of the machine is not touched. Needs root: slurmd becomes the user of a job.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fabricbench.lab import Lab

PACKAGES = ("slurm-wlm", "munge", "libpmix-dev")
"""mpi/pmix of Debian loads `libpmix.so`, which only the -dev package has, and says nothing of it but in the log of slurmd."""
PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "salloc", "squeue", "scancel", "scontrol", "sinfo")
PMIX = ("lib/*/pmix2/lib/libpmix.so", "lib/*/libpmix.so", "lib64/libpmix.so")
START_SECONDS, END_SECONDS, COMMAND_SECONDS = 30.0, 10.0, 120.0

CONFIGURATION = """\
ClusterName=lab
SlurmctldHost={head}({head_address})
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
TmpFS={folder}/tmp.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
KillWait=5
MinJobAge=300
SchedulerParameters=sched_interval=1,batch_sched_delay=0,sched_min_interval=0
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
"""TmpFS must hold %n, or steps of PMIx fail where nodes share a file system."""


@dataclass(frozen=True)
class Slurm:
    """A Slurm that runs over a lab. Commands run on its first node, as on a login node."""

    lab: Lab
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def head(self) -> str:
        return self.lab.topology.nodes[0].name

    def tokens(self, *command: str, environment: Mapping[str, str] | None = None) -> list[str]:
        told = {**self.environment, **(environment or {})}
        return self.lab.command_in(self.head, command, working_directory=self.folder, environment=told)

    def run(
        self, *command: str, seconds: float = COMMAND_SECONDS, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command there and return what it said; it may fail."""
        tokens = self.tokens(*command, environment=environment)
        return subprocess.run(tokens, capture_output=True, text=True, timeout=seconds, check=False)


def why_none() -> str | None:
    """Return why no Slurm can be had here, None if it can; it is installed where apt and root are there."""
    if os.geteuid() != 0:
        return "a Slurm over virtual nodes needs root"
    if _missing() and shutil.which("apt-get") is not None:
        # Where packages start services, this machine must not get a Slurm of its own out of a test.
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
        for tokens in (["update"], ["install", "-y", "--no-install-recommends", *PACKAGES]):
            done = subprocess.run(
                ["apt-get", "-q", *tokens], capture_output=True, text=True, timeout=180, check=False, env=environment
            )
            if done.returncode:
                return f"{' '.join(PACKAGES)} could not be installed: {done.stderr.strip()[-300:]}"
    missing = _missing()
    return f"not here: {', '.join(missing)} (Debian: apt-get install {' '.join(PACKAGES)})" if missing else None


def _missing() -> list[str]:
    programs = [name for name in PROGRAMS if shutil.which(name) is None]
    has_pmix = any(path for place in PMIX for path in Path("/usr").glob(place))
    return programs if has_pmix else [*programs, "libpmix.so"]


@contextmanager
def slurm_over(lab: Lab, folder: Path) -> Iterator[Slurm]:
    """Give a Slurm whose nodes are the lab's, idle and ready; its files are in a new folder, which batch scripts may use too."""
    folder.mkdir(parents=True)
    names = [node.name for node in lab.topology.nodes]
    for name in ("state", *(f"{kind}.{node}" for kind in ("spool", "tmp") for node in names)):
        (folder / name).mkdir()
    nodes = "\n".join(
        f"NodeName={node.name} NodeAddr={node.control_address} CPUs=2 RealMemory=4000 State=UNKNOWN"
        for node in lab.topology.nodes
    )
    head = lab.topology.nodes[0]
    configuration = folder / "slurm.conf"
    configuration.write_text(
        CONFIGURATION.format(head=head.name, head_address=head.control_address, folder=folder, nodes=nodes)
    )
    (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")  # else slurmd looks for systemd, and dies
    slurm = Slurm(lab, folder, {"SLURM_CONF": str(configuration)})
    with ExitStack() as stack:
        stack.enter_context(_munged(slurm))
        stack.enter_context(_daemon(slurm, head.name, "slurmctld", "-D", "-f", str(configuration)))
        for name in names:
            stack.enter_context(_daemon(slurm, name, "slurmd", "-D", "-N", name, "-f", str(configuration)))
        _wait_until_idle(slurm, len(names))
        yield slurm


@contextmanager
def _munged(slurm: Slurm) -> Iterator[None]:
    key = slurm.folder / "munge.key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o400)
    files = {
        option: slurm.folder / f"munge.{option.partition('-')[0]}"
        for option in ("socket", "pid-file", "log-file", "seed-file")
    }
    options = [f"--{option}={path}" for option, path in files.items()]
    # --force: the folder is a test's, below one that all may write to.
    with _daemon(slurm, slurm.head, "munged", "--foreground", "--force", f"--key-file={key}", *options):
        _wait(files["socket"].exists, "munged made no socket", slurm)
        yield


@contextmanager
def _daemon(slurm: Slurm, node: str, *command: str) -> Iterator[None]:
    tokens = slurm.lab.command_in(node, command, working_directory=Path("/"), environment=slurm.environment)
    with (slurm.folder / f"{command[0]}.{node}.out").open("wb") as out:
        process = subprocess.Popen(tokens, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
    try:
        yield
    finally:
        process.terminate()  # the daemon hears of it as its starter dies; what it leaves ends with the lab
        process.wait(END_SECONDS)


def _wait_until_idle(slurm: Slurm, nodes: int) -> None:
    def all_are_idle() -> bool:
        said = slurm.run("sinfo", "--noheader", "--Node", "--format=%T")
        return said.stdout.split() == ["idle"] * nodes

    _wait(all_are_idle, "not all nodes became idle", slurm)


def _wait(condition: object, what: str, slurm: Slurm) -> None:
    assert callable(condition)
    until = time.monotonic() + START_SECONDS
    while not condition():
        if time.monotonic() > until:
            logs = {path.name: path.read_text(errors="replace")[-1000:] for path in slurm.folder.glob("*.out")}
            raise RuntimeError(f"{what} within {START_SECONDS:.0f} s: {logs}")
        time.sleep(0.1)
