"""The token lists and the script that run a command inside a node. Pure.

Each token list is a chain of small programs of util-linux and coreutils, each of which becomes the next; the kernel's own
permission checks apply, and no daemon of ours takes commands.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

_DIES_WITH_ITS_STARTER = ["setpriv", "--pdeathsig", "TERM"]
"""nsenter stays outside and waits; without this the command would outlive a killed nsenter."""


def command_from_outside(
    holder_pid: int,
    command: Sequence[str],
    *,
    has_root: bool,
    cpus: Sequence[int],
    working_directory: Path,
    environment: Mapping[str, str],
) -> list[str]:
    """Return the tokens that run `command` inside the node held by `holder_pid`, on the nodes' processors.

    `environment` is added to the caller's. Ctrl-C reaches the command and only it: nsenter must live to pass its exit code on.
    """
    user = [] if has_root else ["--user", "--preserve-credentials"]
    return [
        *("env", "--ignore-signal=INT", "--ignore-signal=QUIT"),
        *("nsenter", "--target", str(holder_pid), *user, "--net", "--uts", "--ipc", "--mount", "--pid", "--"),
        *_DIES_WITH_ITS_STARTER,
        *("taskset", "--cpu-list", _cpu_list(cpus)),
        *("env", "--default-signal=INT", "--default-signal=QUIT", f"--chdir={working_directory}"),
        *(f"{name}={value}" for name, value in environment.items()),
        *command,
    ]


def agent_script(inner_pids: Mapping[str, int], cpus: Sequence[int]) -> str:
    """Return a program that is called as ssh is (options, host, command) inside the lab and runs the command in that node."""
    hosts = "\n".join(f"        {shlex.quote(name)}) pid={pid} ;;" for name, pid in inner_pids.items())
    return f"""#!/bin/sh
# Launch agent of a fabricbench lab: takes what ssh takes, for MPI's starters. Works inside the lab only.
while [ $# -gt 0 ]; do
    case $1 in
        -[bcDEeFIiJLlmOopQRSWw]) shift 2 ;;
        -*) shift ;;
        *) break ;;
    esac
done
host=$1
shift
case $host in
{hosts}
        *) echo "fabricbench lab agent: no node $host; there are {" ".join(inner_pids)}" >&2; exit 255 ;;
esac
exec nsenter --target "$pid" --net --uts --ipc --mount -- \\
    taskset --cpu-list {_cpu_list(cpus)} env --chdir="$PWD" /bin/sh -c "$*"
"""


def _cpu_list(cpus: Sequence[int]) -> str:
    return ",".join(str(cpu) for cpu in cpus)
