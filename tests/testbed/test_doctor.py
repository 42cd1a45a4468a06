from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fabricbench.testbed.advice import (
    Advice,
    AdviceWeight,
    advise_on_interface,
    advise_on_permissions,
    advise_on_processors,
    advise_on_system,
)
from fabricbench.testbed.doctor import _version, examine, inventory
from fabricbench.testbed.host import (
    Permissions,
    read_board,
    read_clock,
    read_kernel,
    read_load,
    read_memory_bytes,
    read_processors,
    read_sysctls,
)
from fabricbench.testbed.interfaces import Interface

LAPTOP = {
    "proc/cpuinfo": "processor : 0\nmodel name\t: Cyrix 6x86\nflags\t: fpu hypervisor tsc\n",
    "proc/meminfo": "MemTotal:       2048 kB\nMemFree: 1 kB\n",
    "proc/loadavg": "3.50 1.00 0.50 1/100 4242\n",
    "proc/cmdline": "root=/dev/sda1 mitigations=off password=hunter2 isolcpus=1\n",
    "proc/sys/kernel/osrelease": "6.1.0\n",
    "proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t262144\n",
    "proc/sys/net/ipv4/tcp_congestion_control": "vegas\n",
    "proc/sys/net/core/busy_poll": "50\n",
    "etc/os-release": 'NAME="Debian"\nPRETTY_NAME="Debian GNU/Linux 12"\n',
    "sys/devices/system/cpu/smt/active": "1\n",
    "sys/devices/system/cpu/cpufreq/boost": "1\n",
    "sys/devices/system/cpu/isolated": "1\n",
    "sys/devices/system/cpu/vulnerabilities/meltdown": "Mitigation: PTI\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet\n",
    "sys/devices/system/clocksource/clocksource0/available_clocksource": "hpet acpi_pm\n",
    "sys/class/dmi/id/product_name": "KVM\n",
    "sys/class/dmi/id/board_vendor": "Supermicro\n",
    "sys/class/dmi/id/board_name": "X11DPi-N\n",
}
for cpu in range(4):
    folder = f"sys/devices/system/cpu/cpu{cpu}"
    LAPTOP[f"{folder}/topology/physical_package_id"] = "0\n"
    LAPTOP[f"{folder}/topology/core_id"] = f"{cpu // 2}\n"
    LAPTOP[f"{folder}/cpufreq/scaling_governor"] = "powersave\n"
for index, (level, kind, size) in enumerate((("1", "Data", "32K"), ("2", "Unified", "1M"))):
    folder = f"sys/devices/system/cpu/cpu0/cache/index{index}"
    LAPTOP |= {f"{folder}/level": level, f"{folder}/type": kind, f"{folder}/size": size}


@pytest.fixture
def laptop(tmp_path: Path) -> Path:
    for name, text in LAPTOP.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def subjects(advice: list[Advice]) -> set[str]:
    assert all(one.finding and one.action for one in advice)
    return {one.subject for one in advice}


def test_processors_are_read_from_the_kernel(laptop: Path):
    cpu = read_processors(laptop)
    assert (cpu.model, cpu.logical, cpu.cores, cpu.sockets) == ("Cyrix 6x86", 4, 2, 1)
    assert (cpu.governors, cpu.has_turbo, cpu.has_smt, cpu.isolated) == (("powersave",), True, True, "1")
    assert cpu.cache_bytes == {"L1d": 32768, "L2": 1048576}


def test_kernel_memory_clock_and_load_are_read(laptop: Path):
    kernel = read_kernel(laptop)
    assert (kernel.release, kernel.distribution) == ("6.1.0", "Debian GNU/Linux 12")
    assert kernel.mitigations == {"meltdown": "Mitigation: PTI"}
    assert kernel.virtualisation == "virtual machine (KVM)"
    assert read_memory_bytes(laptop) == 2048 * 1024
    assert (read_clock(laptop).source, read_load(laptop)) == ("hpet", 3.5)


def test_the_board_is_called_by_its_maker_and_product(laptop: Path, tmp_path: Path):
    assert read_board(laptop) == "Supermicro X11DPi-N"
    assert read_board(tmp_path / "nothing") is None


def test_only_the_words_of_the_command_line_that_matter_are_kept(laptop: Path):
    assert read_kernel(laptop).command_line == "mitigations=off isolcpus=1"


def test_a_kernel_that_tells_nothing_is_no_error(tmp_path: Path):
    cpu = read_processors(tmp_path)
    assert cpu.logical >= 1
    assert (cpu.governors, cpu.has_turbo, cpu.cache_bytes) == ((), None, {})
    assert read_memory_bytes(tmp_path) is None
    assert read_sysctls(tmp_path) == {}
    assert list(advise_on_system(read_kernel(tmp_path), read_clock(tmp_path), {})) == []


def test_settings_that_hurt_are_named_with_what_to_do(laptop: Path):
    cpu = read_processors(laptop).model_copy(update={"usable": 1})
    found = [
        *advise_on_processors(cpu, 3.5),
        *advise_on_system(read_kernel(laptop), read_clock(laptop), read_sysctls(laptop)),
    ]
    assert subjects(found) == {
        "cpu.governor",
        "cpu.turbo",
        "cpu.smt",
        "cpu.usable",
        "load",
        "clock.source",
        "virtualisation",
        "sysctl.net.core.busy_poll",
        "sysctl.net.ipv4.tcp_rmem",
        "sysctl.net.ipv4.tcp_congestion_control",
    }


def test_a_quiet_machine_set_for_performance_gets_no_advice(laptop: Path):
    quiet = read_processors(laptop).model_copy(
        update={"governors": ("performance",), "has_turbo": False, "has_smt": False, "usable": 4}
    )
    assert list(advise_on_processors(quiet, 0.1)) == []


PLAIN = Interface(
    name="eth0",
    driver="e1000",
    mac=None,
    mtu=1500,
    speed_bit_s=1e9,
    duplex="full",
    state="up",
    numa_node=None,
    receive_queues=1,
    transmit_queues=1,
    has_rps=False,
)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, {}),
        ({"coalescing": {"use_adaptive_rx_coalesce": 1}}, {"net.eth0.coalescing": AdviceWeight.WARNING}),
        ({"coalescing": {"rx_coalesce_usecs": 50}}, {"net.eth0.coalescing": AdviceWeight.NOTE}),
        ({"coalescing": {"rx_coalesce_usecs": 0}}, {}),
        ({"offloads": {"lro": True}}, {"net.eth0.lro": AdviceWeight.WARNING}),
        ({"offloads": {"tso": True, "gro": False}}, {"net.eth0.offloads": AdviceWeight.NOTE}),
        ({"offloads": {"tso": True}, "name": "lo"}, {}),
        ({"offloads": {"tso": True}, "state": "down"}, {}),
        ({"duplex": "half"}, {"net.eth0.duplex": AdviceWeight.WARNING}),
    ],
)
def test_an_interface_is_judged_by_its_settings(changes: dict[str, object], expected: dict[str, AdviceWeight]):
    assert {one.subject: one.weight for one in advise_on_interface(PLAIN.model_copy(update=changes))} == expected


def test_a_user_without_raw_sockets_is_told_which_layers_that_costs():
    refused = Permissions(
        is_root=False, may_open_frame_sockets=False, may_open_ip_sockets=False, may_create_user_namespaces=True
    )
    (advice,) = advise_on_permissions(refused)
    assert "the frame and ip layer" in advice.finding


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("HYDRA build details:\n    Version:   5.0.2\n", "MPICH hydra 5.0.2"),
        ("mpirun (Open MPI) 5.0.11\n\nReport bugs", "mpirun (Open MPI) 5.0.11"),
        ("", "unknown"),
    ],
)
def test_the_version_of_each_mpi_is_recognised(text: str, version: str):
    assert _version(text) == version


def test_this_host_is_examined_and_everything_is_text():
    host = examine()
    facts = host.inventory()
    assert all(isinstance(value, str) and value for value in facts.values())
    assert {"cpu.model", "cpu.logical", "kernel.release", "memory_bytes", "net.lo.mtu", "python"} <= set(facts)
    assert "lo" in [interface.name for interface in host.interfaces]
    assert set(inventory()) >= {key for key in facts if key.startswith(("cpu.", "kernel.", "sysctl.", "net.lo."))}


def test_a_node_prints_its_inventory_as_json():
    command = [sys.executable, "-m", "fabricbench.testbed.doctor", "--json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    printed = json.loads(done.stdout)
    assert printed["host"]
    assert printed["inventory"]["cpu.logical"].isdigit()
