"""Launches as steps of a Slurm job, by srun; and the job itself: submitted, asked about, never cancelled by us.

Whatever srun, sbatch, squeue and their like say is asked here and nowhere else.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fabricbench.errors import EnvironmentLacks
from fabricbench.launch.machines import MachinesApart
from fabricbench.launch.mpi import MpiStarter, find_starter
from fabricbench.launch.starter import srun
from fabricbench.testbed.allocation import JOB, allocated_nodes
from fabricbench.testbed.model import Testbed

ASK_SECONDS = 30.0
"""A controller that is busy, or whose backup takes over, answers within some seconds."""

SUBMIT_SECONDS = 120.0
"""What sbatch may take: a site's submit filter may ask others."""


JOB_NODES = "SLURM_JOB_NODELIST"

STEP_ADVICE = (
    "look at the node's state and reason in `scontrol show node {node}`, whether slurmd runs there (`systemctl status slurmd`), "
    "and see in the job what `srun --overlap --nodes=1 --nodelist={node} true` says"
)
"""About a node of the job that does not answer."""

STEP_LOST = re.compile(r"^srun: (?:error|Job step aborted|fatal)\b", re.MULTILINE)
"""What srun says by itself where a step was not started or was lost; what the program said does not begin so."""


def is_step_lost(stderr: str) -> bool:
    """Tell whether srun, and not the program of a step, says why there is no answer: a slurmd that is dead, a node that is down.

    Of a program that ends with an exit code srun tells an error as well, and names that: `task 0: Exited with exit code 1`.
    """
    own = [line for line in stderr.splitlines() if STEP_LOST.match(line)]
    return bool(own) and not any("Exited with exit code" in line for line in own)


class SlurmLauncher(MachinesApart):
    """One rank on each node of the job, and around again. Questions to a node are steps of the job as well."""

    def __init__(self, starter: MpiStarter, testbed: Testbed) -> None:
        super().__init__(starter, _in_order_of_job(testbed))
        self._reaching = starter if starter.reaches_nodes else find_starter(srun.NAME)

    def in_node(self, node: str, tokens: Sequence[str]) -> list[str]:
        """Return the tokens that run something on a node."""
        return self._reaching.on_node(node, tokens)

    def _on_all(self, nodes: Sequence[str], tokens: Sequence[str]) -> list[str] | None:
        """Return the tokens of the testbed's `fan_out`, else one step of the job on all of the nodes."""
        return super()._on_all(nodes, tokens) or srun.on_nodes(self._reaching.program, nodes, tokens)

    def check(self) -> None:
        """Raise EnvironmentLacks where srun has no plugin by which the ranks of some fabric could speak with Slurm."""
        if self._starter is not self._reaching:
            return  # what the testbed's own tokens start is its own matter
        for fabric in self._testbed.fabrics:
            starter = self._starter.of(fabric)
            wanted = srun.plugin_of(starter.tokens(self._placement(fabric, 1), fabric, ()))
            there = _plugins(starter.program)
            if there and wanted not in there:
                raise EnvironmentLacks(
                    f"fabric {fabric.name}: {starter.library.NAME} is started by `srun {srun.MPI_OPTION}{wanted}`, "
                    f"and this Slurm has {', '.join(there)} (`srun {srun.MPI_OPTION}list`)",
                    hint=f"ask for Slurm's plugin {wanted} (docs/slurm.md), name another that this MPI was built for, "
                    f'mpi_arguments = ["{srun.MPI_OPTION}..."], or take launcher = "ssh" within the job',
                )


def _in_order_of_job(testbed: Testbed) -> Testbed:
    """Return the testbed with its nodes as Slurm orders them, whatever is asked for: rank 0 is on the first of them."""
    if not os.environ.get(JOB_NODES):
        return testbed
    order = allocated_nodes()
    places = {name: place for place, name in enumerate(order)}
    nodes = sorted(testbed.nodes, key=lambda node: places.get(node.name, len(order)))
    return testbed.model_copy(update={"nodes": tuple(nodes)})


@cache
def _plugins(program: str) -> tuple[str, ...]:
    """Return what `srun --mpi=list` names; empty where it does not say."""
    try:
        return srun.plugins_in(_said([program, f"{srun.MPI_OPTION}list"]))
    except SlurmSilent:
        return ()


class SlurmSilent(EnvironmentLacks):
    """A command of Slurm that is not here, does not answer, or refuses."""


class SlurmRefusal(SlurmSilent):
    """A command of Slurm that was not started, or ended with an exit code: what it was to do, it has not done."""


PENDING, COMPLETING = "PENDING", "COMPLETING"
CONTROLLER = "is Slurm's controller well? `scontrol ping` tells; then give the same command again"

ENDED = frozenset(
    (
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "REVOKED",
        "TIMEOUT",
    )
)
"""The states in which a job is over (squeue(1), JOB STATE CODES)."""


@dataclass(frozen=True)
class JobState:
    """What Slurm says of a job. `reason` is why it waits or failed, `begins` when it may begin; empty where nobody knows."""

    state: str
    reason: str = ""
    begins: str = ""
    nodes: str = ""
    exit_code: int | None = None
    signal: int = 0

    @property
    def is_over(self) -> bool:
        """Whether nothing of the job runs or ever will."""
        return self.state in ENDED


@dataclass(frozen=True)
class JobId:
    """A job: its number, and the cluster where that is not the one that is asked by default."""

    number: str
    cluster: str = ""

    @property
    def options(self) -> list[str]:
        """The options of Slurm's commands that mean the job."""
        return [*([f"--clusters={self.cluster}"] if self.cluster else []), f"--jobs={self.number}"]

    @property
    def cancelling(self) -> str:
        """The command with which its owner cancels it."""
        return shlex.join(["scancel", *([f"--clusters={self.cluster}"] if self.cluster else []), self.number])


def submit(script: Path) -> JobId:
    """Submit a batch script; SlurmRefusal where sbatch is not here or refuses it, SlurmSilent where nobody knows what came of it.

    In a session of its own, so that Ctrl-C does not end sbatch while it submits.
    """
    said = _said(["sbatch", "--parsable", str(script)], SUBMIT_SECONDS)
    # Sites print notes before it.
    answers = [found for line in said.splitlines() if (found := re.fullmatch(r"(\d+)(?:;(\S+))?", line.strip()))]
    if not answers:
        raise SlurmSilent(
            f"sbatch told no job: {said.strip()[-300:]!r}",
            hint="look with `squeue --me` whether it was submitted; if not, give the same command again",
        )
    return JobId(answers[-1][1], answers[-1][2] or "")


def job_named(name: str) -> JobId | None:
    """Return this user's newest job of that name, which no other job has; None where Slurm knows of none."""
    found = _said(["squeue", "--me", "--noheader", "--states=all", f"--name={name}", "--format=%A"]).split()
    return JobId(max(found, key=int)) if found else None


def ask_job(job: JobId) -> JobState | None:
    """Return how a job is; None where Slurm does not know it (any more). SlurmSilent where it does not answer."""
    try:
        said = _said(["squeue", "--noheader", "--states=all", *job.options, "--format=%T|%r|%S|%N"])
    except SlurmSilent as error:
        if "Invalid job id" not in error.message:
            raise
        return _recorded(job)
    fields = said.strip().splitlines()[-1].split("|") if said.strip() else []
    if len(fields) != 4:
        return _recorded(job)
    state, reason, begins, nodes = (_known(field) for field in fields)
    found = JobState(state, reason, begins if state == PENDING else "", nodes)
    return _with_code(job, found) if found.is_over else found


def is_own_job_ending() -> bool:
    """Tell whether the job that this process runs in is being ended; no where it is in none, or Slurm does not answer."""
    number = os.environ.get(JOB)
    try:
        state = ask_job(JobId(number)) if number is not None else None
    except SlurmSilent:
        return False
    return state is not None and state.state == COMPLETING


def _known(field: str) -> str:
    return "" if field.strip() in ("", "None", "N/A", "(null)", "Unknown") else field.strip()


def _with_code(job: JobId, state: JobState) -> JobState:
    """Return the state of a job that is over with how its script ended, as the controller or the accounting remembers it."""
    cluster = [f"--clusters={job.cluster}"] if job.cluster else []
    try:
        said = _said(["scontrol", *cluster, "--oneliner", "show", "job", job.number])
    except SlurmSilent:
        return _recorded(job) or state
    code = re.search(r"\bExitCode=(\d+):(\d+)", said)
    reason = re.search(r"\bReason=(\S+)", said)
    return JobState(
        state.state,
        state.reason or (_known(reason[1]) if reason else ""),
        nodes=state.nodes,
        exit_code=int(code[1]) if code else None,
        signal=int(code[2]) if code else 0,
    )


def _recorded(job: JobId) -> JobState | None:
    """Return how a job ended as the accounting has it; None where there is none, or it knows nothing."""
    try:
        said = _said(
            ["sacct", "--noheader", "--parsable2", "--allocations", *job.options, "--format=State,ExitCode,NodeList"]
        )
    except SlurmSilent:
        return None
    fields = said.strip().splitlines()[-1].split("|") if said.strip() else []
    if len(fields) != 3:
        return None
    state = fields[0].split()[0]  # `CANCELLED by 1000`
    code, _, signal = fields[1].partition(":")
    return JobState(state, nodes=_known(fields[2]), exit_code=int(code or 0), signal=int(signal or 0))


def _said(command: Sequence[str], seconds: float | None = None) -> str:
    """Return what a command of Slurm prints; SlurmSilent where it cannot be asked or refuses."""
    asked, seconds = shlex.join(command), seconds or ASK_SECONDS
    if shutil.which(command[0]) is None:
        raise SlurmRefusal(
            f"there is no {command[0]} here",
            hint="go to where Slurm's commands are: a login node, or load its module",
        )
    try:
        answer = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
            start_new_session=True,
        )
    except OSError as error:
        raise SlurmRefusal(f"`{asked}` cannot be started: {error.strerror}", hint="repeat it by hand") from error
    except subprocess.TimeoutExpired as error:
        raise SlurmSilent(f"`{asked}` gave no answer within {seconds:.0f} s", hint=CONTROLLER) from error
    if answer.returncode:
        # One that a signal ended may have done it all the same.
        raise (SlurmRefusal if answer.returncode > 0 else SlurmSilent)(
            f"`{asked}` ended with {answer.returncode}: {answer.stderr.strip()[-1000:]}",
            hint="mend what it says; options come from [slurm] of the testbed and `--sbatch-option` (docs/slurm.md)"
            if command[0] == "sbatch"
            else CONTROLLER,
        )
    return answer.stdout + (answer.stderr if command[0].endswith("srun") else "")
