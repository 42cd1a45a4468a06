"""The launch agent of a lab: a program that is called as ssh is (options, host, command), for MPI's starters. Pure.

It runs the command in the node that the host names or of which it is an address (PVM hands its starter nothing else), and works
inside the lab only.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address
from pathlib import Path

from fabricbench.lab.guest import COMMANDS, folder_of


def cpu_list(cpus: Sequence[int]) -> str:
    """Return processors as `taskset` takes them."""
    return ",".join(str(cpu) for cpu in cpus)


Addresses = Mapping[str, Sequence[IPv4Address]]
"""Of each node, on the control network and on all fabrics."""


def agent_of_nodes(inner_pids: Mapping[str, int], addresses: Addresses, cpus: Mapping[str, Sequence[int]]) -> str:
    """Return the agent of a lab whose nodes are held by these processes, by their PIDs inside the lab, on their processors."""
    return _agent(
        "/bin/sh",
        addresses,
        {name: f"pid={pid} cpus={cpu_list(cpus[name])}" for name, pid in inner_pids.items()},
        """exec nsenter --target "$pid" --net --uts --ipc --mount -- \\
  taskset --cpu-list "$cpus" env --chdir="$PWD" /bin/sh -c "$*"
""",
    )


def agent_of_guests(addresses: Addresses, directory: Path) -> str:
    """Return the agent of a lab of guests, whose folders are in the lab's directory."""
    return _agent(
        "/bin/bash",
        addresses,
        {name: f"folder={shlex.quote(str(folder_of(directory, name)))}" for name in addresses},
        f"""name=$folder/{COMMANDS}/$HOSTNAME.$$
{{
  export -p
  printf 'cd %q\\n%s\\n' "$PWD" "$*"
}} >$name.new
mv $name.new $name.sh
trap 'echo >$name.end' TERM INT HUP
exec 8<><(:)
until [ -e $name.rc ]; do read -r -t 0.1 -u 8; done
cat $name.out
cat $name.err >&2
exit $(<$name.rc)
""",
    )


def _agent(shell: str, addresses: Addresses, found: Mapping[str, str], enter: str) -> str:
    """Return an agent that does what `found` says of the host, and then what runs `$*` there."""
    hosts = "\n".join(
        f"  {'|'.join((shlex.quote(name), *map(str, addresses[name])))}) {assignment} ;;"
        for name, assignment in found.items()
    )
    return f"""#!{shell}
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
  *) echo "fabricbench lab agent: no node $host; there are {" ".join(found)}" >&2; exit 255 ;;
esac
{enter}"""
