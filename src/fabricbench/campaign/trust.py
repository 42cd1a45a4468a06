"""Whether to start what a plan asks for: a run directory may come from anybody, and `resume` starts programs.

Most of a plan chooses among what this installation starts anyway. What goes beyond that (programs of a folder, commands of
applications, variables and arguments of MPI, another starter, machines reached over ssh) is started without asking only where this
user's fabricbench wrote the plan. A seal beside it tells that: an HMAC-SHA256 (RFC 2104) over the plan's bytes, whose key never
leaves this user's state directory.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from shlex import join, quote

from fabricbench.campaign.condition import commands_of
from fabricbench.campaign.run_directory import SEAL, RunDirectory, StoredPlan
from fabricbench.campaign.start import start_of
from fabricbench.campaign.venue import Conditioned
from fabricbench.errors import EnvironmentLacks, FabricbenchError, UsageError
from fabricbench.lab.ledger import check_own, own_directory, state_directory
from fabricbench.private import OTHERS, read_private, write_private
from fabricbench.record.atomic import replace_text
from fabricbench.record.integrity import PLAN, read_file
from fabricbench.testbed.model import LauncherKind, Mpi, Testbed

KEY = "plan.key"
KEY_BYTES = 32
MOST_COMMANDS = 4
"""Commands that are shown whole; the rest of a long plan is like them."""


def seal_plan(directory: RunDirectory) -> None:
    """Note that this user's fabricbench wrote the plan; where no key can be kept the plan stays unsealed."""
    key = _key(is_made=True)
    if key is not None:
        replace_text(directory.path / SEAL, _seal(key, directory) + "\n")


def is_sealed(directory: RunDirectory) -> bool:
    """Tell whether this user's fabricbench wrote the plan as it is now."""
    key = _key(is_made=False)
    try:
        found = read_file(directory.path / SEAL).decode(errors="replace").strip()
    except OSError:
        return False
    return key is not None and hmac.compare_digest(found.encode(), _seal(key, directory).encode())


def check_trust(directory: RunDirectory, stored: StoredPlan, *, is_trusted: bool = False) -> None:
    """Raise UsageError, which shows what would be started, where a plan of unknown origin asks for more than our programs."""
    asked = tuple(beyond_this_installation(stored))
    if is_trusted or not asked or is_sealed(directory):
        return
    lines = "".join(f"\n  {line}" for line in (*asked, *_commands(directory, stored)))
    if (exposed := _exposed_key()) is not None:
        raise UsageError(
            f"nobody can tell whether you wrote {directory.path / PLAN}: others may have read or written {exposed}, which its seal "
            f"is made with, and it asks for more than this installation starts by itself:{lines}",
            hint=f"find out who could, then `rm {quote(str(exposed))}`: the next run makes another; if you trust the plan, "
            f"`fabricbench resume {quote(str(directory.path))} --trust-plan` starts just that (docs/trust.md)",
        )
    raise UsageError(
        f"{directory.path / PLAN} was not written here by you, and asks for more than this installation starts by itself:{lines}",
        hint=f"if you trust it, `fabricbench resume {quote(str(directory.path))} --trust-plan` starts just that (docs/trust.md)",
    )


def beyond_this_installation(stored: StoredPlan) -> Iterator[str]:
    """Yield in words what a plan starts, sets or reaches that this installation would not by itself."""
    workloads = [launch.workload for launch in stored.plan.launches if launch.workload is not None]
    yield from dict.fromkeys(line for workload in workloads for line in workload.external_commands())
    for fabric in stored.plan.fabrics:
        for name, value in fabric.mpi_environment.items():
            yield f"fabric {fabric.name}: every rank gets {name}={quote(value)}"
        if fabric.mpi_arguments:
            yield f"fabric {fabric.name}: the MPI starter is told {join(fabric.mpi_arguments)}"
    testbed = stored.venue.testbed()
    for mpi in dict.fromkeys((*stored.plan.mpis, *testbed.mpis)):
        yield from _of_mpi(mpi)
    if isinstance(stored.venue, Conditioned):
        yield from _of_conditions(stored.venue)
    yield from _of_reaching(testbed)


def _of_conditions(venue: Conditioned) -> Iterator[str]:
    for side, lines in commands_of(venue.of.testbed(), venue.conditions, with_sudo=False):
        yield from (f"settings of hosts for {side}: {line}" for line in lines)
    for one in venue.conditions:
        yield from (f"custom {each.name} of condition {one.name} is read by {join(each.read)}" for each in one.custom)


def _of_reaching(testbed: Testbed) -> Iterator[str]:
    nodes = ", ".join(node.name for node in testbed.nodes)
    if isinstance(testbed.starter, tuple):
        yield f"ranks are started by {join(testbed.starter)}"
    elif testbed.starter is not None:
        yield f"{testbed.starter} starts ranks on {nodes}"
    if testbed.slurm is not None:
        yield from (f"a job of it runs {line}" for line in testbed.slurm.lines)
        yield from (f"a job of it is submitted with {option}" for option in testbed.slurm.options)
    if testbed.reach is not None:
        yield f"nodes are reached by {join(testbed.reach)}"
    if testbed.fan_out is not None:
        yield f"nodes are asked together by {join(testbed.fan_out)}"
    if testbed.launcher is LauncherKind.SSH:
        yield f"ssh logs in on {nodes}"


def _of_mpi(mpi: Mpi) -> Iterator[str]:
    for line in mpi.load:
        yield f"MPI {mpi.name}: a login shell here runs {quote(line)}"
    programs = {"of": mpi.prefix, "built by": mpi.mpicxx, "started by": mpi.mpiexec, "run inside": join(mpi.inside)}
    yield f"MPI {mpi.name}: programs " + ", ".join(f"{how} {quote(what)}" for how, what in programs.items() if what)


def _commands(directory: RunDirectory, stored: StoredPlan) -> Iterator[str]:
    """Yield the command of a launch of each kind, as far as it can be told here: an MPI of the testbed is not loaded to know it."""
    if stored.plan.mpis or stored.venue.testbed().mpis:
        return
    kinds = {(one.fabric, one.workload and one.workload.name): one for one in reversed(stored.plan.launches)}
    for launch in list(reversed(kinds.values()))[:MOST_COMMANDS]:
        with suppress(FabricbenchError):
            folder = directory.path / "launches" / launch.launch_id
            launcher = stored.venue.sketch()
            fabric, ranks = stored.plan.fabric(launch.fabric), stored.plan.ranks_of(launch)
            program = start_of(launch, stored.plan).program(folder, launcher.meeting_address(fabric))
            yield f"{launch.launch_id} would start: {launcher.command(fabric, program, folder, ranks)}"


def _seal(key: bytes, directory: RunDirectory) -> str:
    return hmac.digest(key, read_file(directory.path / PLAN), "sha256").hex()


def _key(*, is_made: bool) -> bytes | None:
    """Return this user's key; None where there is none, or it is not this user's alone, and none can be made or is to be."""
    try:
        path = state_directory() / KEY
        if is_made:
            own_directory()
            _make_key(path)
        check_own()
        key = read_private(path, OTHERS)
    except (OSError, EnvironmentLacks):
        return None
    return key if len(key) == KEY_BYTES else None


def _exposed_key() -> Path | None:
    """Return this user's key where it is there and not this user's alone, by its owner or its mode."""
    path = state_directory() / KEY
    try:
        read_private(path, OTHERS)
    except PermissionError:
        return path
    except OSError:
        return None
    return None


def _make_key(path: Path) -> None:
    """Make the key, unless there is one; one that others can read or have written is replaced: it proves nothing any more."""
    with suppress(FileExistsError):
        write_private(path, secrets.token_bytes(KEY_BYTES))
        return
    try:
        read_private(path, OTHERS)
    except OSError:
        path.unlink()
        with suppress(FileExistsError):
            write_private(path, secrets.token_bytes(KEY_BYTES))
