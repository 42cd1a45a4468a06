"""What a guest is told: a User-Mode Linux kernel that takes a node's interfaces, so that RoCE runs over a lab's switches. Pure.

`keeper` boots a guest in each node of such a lab; what runs on the node runs in its guest. The guest's root is the machine's file
system, and its interfaces have the names, MAC and IP addresses that the node's have in other labs. The node's own interfaces have
none: the guest sends and receives through them by packet sockets.

Commands go through a folder: NAME.sh is run, NAME.out, NAME.err and at last NAME.rc tell how; NAME.end ends it, and so does a
NAME.beat that stops to change.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from fabricbench.lab.topology import CONTROL_INTERFACE, CONTROL_MTU, CONTROL_SUBNET, LabTopology, rdma_device

MEMORY = "1G"
"""Taken as it is touched, from a tmpfs of the node's."""

RING_FRAMES = 128
"""Of each interface of a guest."""

COMMANDS = "commands"
IS_UP = "up"
FAILED = "failed"

VAIN_BEATS = 3
"""How often in a row the guest finds a beat unchanged, every five seconds, before it ends the command."""


def folder_of(directory: Path, node: str) -> Path:
    """Return the folder of a node's guest in the lab's directory."""
    return directory / f"guest-{node}"


def kernel_tokens(kernel: Path, folder: Path, topology: LabTopology, index: int) -> list[str]:
    """Return the tokens that boot a node's guest, on one processor: one that hops between several is four times slower."""
    interfaces = [(CONTROL_INTERFACE, CONTROL_MTU), *((one.interface, one.fabric.mtu) for one in topology.fabrics)]
    return [
        *("taskset", "--cpu-list", str(_cpu_of(topology, index))),
        *(str(kernel), f"mem={MEMORY}", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "rw"),
        *(f"init={folder / 'init'}", "con=null", "con0=null,fd:1", "quiet"),
        *(
            f"vec{number}:transport=raw,ifname={name},depth={RING_FRAMES},mtu={mtu}"
            for number, (name, mtu) in enumerate(interfaces)
        ),
    ]


def _cpu_of(topology: LabTopology, index: int) -> int:
    own = topology.nodes[index].cpus
    return own[0] if own else topology.node_cpus[index % len(topology.node_cpus)]


def network_batch(topology: LabTopology, index: int) -> str:
    """Return what `ip -batch` is told in a node's guest: one start of a program, each of which costs 10 to 50 ms there."""
    node = topology.nodes[index]
    mine = [(CONTROL_INTERFACE, CONTROL_MTU, node.control_mac, node.control_address, CONTROL_SUBNET.prefixlen)]
    mine += [
        (one.interface, one.fabric.mtu, mac, address, one.subnet.prefixlen)
        for one, mac, address in zip(topology.fabrics, node.fabric_macs, node.fabric_addresses, strict=True)
    ]
    lines = ["link set lo up"]
    for number, (name, mtu, mac, address, prefix) in enumerate(mine):
        lines += [
            f"link set vec{number} name {name}",
            f"link set {name} address {mac} mtu {mtu}",
            f"addr add {address}/{prefix} dev {name}",
            f"link set {name} up",
        ]
    others = [other for other in topology.nodes if other.name != node.name]
    for place, one in enumerate(topology.fabrics):
        lines += [
            f"neigh add {other.fabric_addresses[place]} lladdr {other.fabric_macs[place]} dev {one.interface} nud permanent"
            for other in others
        ]
    return "\n".join(lines) + "\n"


def device_batch(topology: LabTopology) -> str:
    """Return what `rdma -batch` is told in a guest: a soft-RoCE device over each fabric."""
    return "".join(
        f"link add {rdma_device(one.interface)} type rxe netdev {one.interface}\n" for one in topology.fabrics
    )


def init_script(folder: Path, node: str, hosts: Path) -> str:
    """Return the init of a node's guest."""
    return f"""#!/bin/bash
# init of the guest of {node}, whose root is the machine's file system
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev 2>/dev/null
ln -s /proc/self/fd /dev/fd; ln -s fd/0 /dev/stdin; ln -s fd/1 /dev/stdout; ln -s fd/2 /dev/stderr
mkdir -p /dev/shm /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t tmpfs -o mode=755 tmpfs /run
cd {shlex.quote(str(folder))} || echo "the guest does not see {folder}"
exec 2>init.log
mount --bind cpuinfo /proc/cpuinfo
mount --bind {shlex.quote(str(hosts))} /etc/hosts
ulimit -l unlimited
hostname {node}
for scope in all default; do echo 1 >/proc/sys/net/ipv6/conf/$scope/disable_ipv6; done
echo 1 >/proc/sys/net/ipv4/tcp_no_metrics_save
echo 0 0 >/proc/sys/net/ipv4/ping_group_range
# By what memory is free at the boot they would differ from guest to guest.
echo 24000 32000 48000 >/proc/sys/net/ipv4/udp_mem
echo 12000 16000 24000 >/proc/sys/net/ipv4/tcp_mem
echo 50 >/proc/sys/vm/dirty_writeback_centisecs  # what is written here is to be seen outside soon
echo 50 >/proc/sys/vm/dirty_expire_centisecs
ip -batch network || echo "its interfaces: $(<init.log)" >{FAILED}
rdma -b - <devices || echo "its soft-RoCE devices: $(<init.log)" >{FAILED}
chmod 666 /dev/infiniband/uverbs* /dev/infiniband/rdma_cm
# All that runs here is in SCHED_RR, in which a rank that yields goes behind the others: CFS would let it go on until the next tick,
# 10 ms later. What carries packets and makes connections must not wait for ranks, and what ends commands must not either. Linux
# would else keep all of them from running for 50 ms of each second in which none of them waits.
echo -1 >/proc/sys/kernel/sched_rt_runtime_us
echo 10 >/proc/sys/kernel/sched_rr_timeslice_ms  # a rank that spins has the processor for a tick, not for ten
chrt -r -p 1 $$
# So does its kernel: it makes threads as it needs them, and never in this class: beside ranks that spin, those of connections
# (rdma_cm) would never run, nor process 2, which makes them.
hasten_kernel() {{
  local task stat
  for task in /proc/[0-9]*; do
    read -r stat <$task/stat || continue
    stat=(${{stat##*) }})
    [[ $task == /proc/2 || ${{stat[1]}} == 2 ]] || continue
    ((${{stat[38]}} != 0)) || chrt -r -p 1 ${{task##*/}}
  done 2>/dev/null
}}
hasten_kernel
mkfifo /run/pause && exec 9<>/run/pause
declare -A group last vain
run() {{
  setsid bash $1.run >$1.out 2>$1.err </dev/null 9>&- &
  echo $! >$1.pid
  wait $!
  echo $? >$1.part
  mv $1.part $1.rc
}}
echo >{IS_UP}
rounds=0
shopt -s nullglob  # else a pattern that nothing matches stays, and may match what has come by the time it is used
while :; do
  for command in {COMMANDS}/*.sh; do
    name=${{command%.sh}}
    mv $command $name.run
    hasten_kernel
    run $name &
    group[$name]=
  done
  for command in {COMMANDS}/*.end; do
    name=${{command%.end}}
    mv $command $name.ended
    read -r number <$name.pid && kill -s TERM -- -$number
  done
  if ((++rounds % 50 == 0)); then
    hasten_kernel
    for name in "${{!group[@]}}"; do
      if [ -e $name.rc ]; then unset "group[$name]"; continue; fi
      [ -e $name.beat ] && read -r beat <$name.beat || continue
      if [[ $beat != "${{last[$name]}}" ]]; then last[$name]=$beat vain[$name]=0; continue; fi
      ((++vain[$name] < {VAIN_BEATS})) || echo >$name.end
    done
  fi
  read -r -t 0.1 -u 9  # a sleep that starts no program
done
"""


def entry_tokens(
    program: Sequence[str], folder: Path, guest_pid: int, working_directory: Path, environment: Mapping[str, str]
) -> list[str]:
    """Return the tokens that run `program` in the guest of a folder, for whom the process `guest_pid` is the kernel."""
    added = [f"{name}={value}" for name, value in environment.items()]
    return [
        *("setpriv", "--pdeathsig", "TERM"),
        *(["env", *added] if added else []),
        *(sys.executable, "-I", "-S", str(Path(__file__).with_name("guest_entry.py"))),
        *(str(folder), str(guest_pid), str(working_directory), *program),
    ]
