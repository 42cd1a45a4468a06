"""What carries an interface, RDMA ports and limits, from trees as the kernel shows them on machines with such cards."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricbench.testbed.adapter import Adapter, PcieLink, as_list, as_set, read_adapter
from fabricbench.testbed.advice import (
    AdviceWeight,
    advise_on_interface,
    advise_on_limits,
    advise_on_rdma,
    advise_on_system,
)
from fabricbench.testbed.host import HostClock, Kernel, ProcessLimits, read_hugepages, read_limits, runs_irqbalance
from fabricbench.testbed.interfaces import Interface
from fabricbench.testbed.rdma import RdmaPort, read_rdma

CARD = "sys/devices/pci0000:80/0000:80:02.0/0000:81:00.0"
SLOT = "sys/devices/pci0000:80/0000:80:02.0"
TREE = {
    f"{CARD}/current_link_speed": "8.0 GT/s PCIe\n",
    f"{CARD}/current_link_width": "4\n",
    f"{CARD}/max_link_speed": "16.0 GT/s PCIe\n",
    f"{CARD}/max_link_width": "16\n",
    f"{SLOT}/max_link_speed": "8.0 GT/s PCIe\n",
    f"{SLOT}/max_link_width": "16\n",
    f"{CARD}/numa_node": "1\n",
    f"{CARD}/local_cpulist": "8-15\n",
    f"{CARD}/msi_irqs/131": "msix\n",
    f"{CARD}/msi_irqs/132": "msix\n",
    f"{CARD}/net/ib9/mtu": "2044\n",
    "proc/irq/131/effective_affinity_list": "0\n",
    "proc/irq/132/smp_affinity_list": "1-2\n",
    "proc/4242/comm": "irqbalance\n",
    "proc/self/limits": (
        "Limit                     Soft Limit           Hard Limit           Units     \n"
        "Max core file size        unlimited            unlimited            bytes     \n"
        "Max open files            1024                 524288               files     \n"
        "Max locked memory         65536                65536                bytes     \n"
    ),
    "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "512\n",
    f"{CARD}/infiniband/mlx5_9/fw_ver": "20.31.1014\n",
    f"{CARD}/infiniband/mlx5_9/hca_type": "MT4123\n",
    f"{CARD}/infiniband/mlx5_9/ports/1/state": "4: ACTIVE\n",
    f"{CARD}/infiniband/mlx5_9/ports/1/phys_state": "5: LinkUp\n",
    f"{CARD}/infiniband/mlx5_9/ports/1/link_layer": "InfiniBand\n",
    f"{CARD}/infiniband/mlx5_9/ports/1/rate": "100 Gb/sec (2X HDR)\n",
    f"{CARD}/infiniband/mlx5_9/ports/1/gids/0": "fe80:0000:0000:0000:0c42:a103:0065:7a1e\n",
    f"{CARD}/infiniband/mlx5_9/ports/1/gids/1": "0000:0000:0000:0000:0000:0000:0000:0000\n",
    f"{CARD}/infiniband/mlx5_9/ports/1/gid_attrs/ndevs/0": "ib9\n",
}
LINKS = {
    f"{CARD}/net/ib9/device": CARD,
    f"{CARD}/infiniband/mlx5_9/device": CARD,
    "sys/class/infiniband/mlx5_9": f"{CARD}/infiniband/mlx5_9",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in TREE.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for name, target in LINKS.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).symlink_to(tmp_path / target)
    return tmp_path


def interface(adapter: Adapter, **changes: object) -> Interface:
    plain = Interface(
        name="ib9",
        driver="mlx5_core",
        mac=None,
        mtu=2044,
        speed_bit_s=1e11,
        duplex="full",
        state="up",
        numa_node=1,
        receive_queues=1,
        transmit_queues=1,
        has_rps=False,
        adapter=adapter,
    )
    return plain.model_copy(update=changes)


def test_a_card_is_read_with_its_link_its_place_and_where_its_interrupts_go(root: Path):
    adapter = read_adapter(root / CARD / "net/ib9", root)
    assert adapter.pcie == PcieLink(
        address="0000:81:00.0", transfers_s=8e9, lanes=4, most_transfers_s=8e9, most_lanes=16
    )
    assert (adapter.near, adapter.interrupt_count, adapter.interrupts) == ("8-15", 2, "0-2")


def test_a_narrow_link_and_interrupts_and_ranks_far_away_are_told_with_what_to_do(root: Path):
    adapter = read_adapter(root / CARD / "net/ib9", root)
    found = {one.subject: one for one in advise_on_interface(interface(adapter), {0, 1})}
    assert set(found) == {"net.ib9.pcie", "net.ib9.numa", "net.ib9.interrupts"}
    assert "8 GT/s x4; it and its slot could do 8 GT/s x16" in found["net.ib9.pcie"].finding
    assert all(one.weight is AdviceWeight.WARNING and one.action for one in found.values())


@pytest.mark.parametrize(
    ("changes", "queues", "expected"),
    [
        ({}, 1, {}),
        ({"near": "0-7"}, 1, {"net.ib9.numa": AdviceWeight.NOTE}),
        ({"near": "0-15", "interrupts": "3"}, 4, {"net.ib9.interrupts": AdviceWeight.NOTE}),
        ({"pause": {"autoneg": True, "rx": True, "tx": False}}, 1, {"net.ib9.pause": AdviceWeight.NOTE}),
        ({"pause": {"autoneg": True, "rx": False, "tx": False}}, 1, {}),
    ],
)
def test_an_adapter_is_judged_by_where_it_is(
    changes: dict[str, object], queues: int, expected: dict[str, AdviceWeight]
):
    one = interface(Adapter().model_copy(update=changes), receive_queues=queues)
    assert {each.subject: each.weight for each in advise_on_interface(one, set(range(16)))} == expected


def test_an_rdma_port_is_read_with_its_card(root: Path):
    (port,) = read_rdma(root)
    assert (port.name, port.state, port.physical_state, port.link_layer) == (
        "mlx5_9/1",
        "ACTIVE",
        "LinkUp",
        "InfiniBand",
    )
    assert (port.rate_bit_s, port.gids, port.netdev, port.firmware) == (1e11, 1, "ib9", "20.31.1014")
    assert (port.netdevs, port.gid_netdevs) == (("ib9",), {0: "ib9"})
    assert port.pcie is not None
    assert list(advise_on_rdma(port)) == []


def test_an_rdma_port_has_the_interfaces_of_its_addresses_and_of_iwarp_that_of_its_mac(root: Path):
    files = {
        f"{CARD}/infiniband/mlx5_9/ports/1/gids/10": "fe80:0000:0000:0000:0c42:a103:0065:7a1f\n",
        f"{CARD}/infiniband/mlx5_9/ports/1/gid_attrs/ndevs/10": "ib9.7\n",
        "sys/class/infiniband/siw0/node_type": "4: RNIC\n",
        "sys/class/infiniband/siw0/ports/1/gids/0": "02fb:0000:0102:0000:0000:0000:0000:0000\n",
        "sys/class/net/fe0/address": "02:fb:00:00:01:02\n",
        "sys/class/net/fe1/address": "02:fb:00:00:02:02\n",
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    roce, iwarp = read_rdma(root)
    assert (roce.netdevs, roce.gid_netdevs) == (("ib9", "ib9.7"), {0: "ib9", 10: "ib9.7"})
    assert (iwarp.netdevs, iwarp.netdev, iwarp.gid_netdevs) == (("fe0",), "fe0", {0: ""})


@pytest.mark.parametrize(
    ("changes", "subject"),
    [
        ({"state": "INIT"}, "rdma.mlx5_9/1"),
        ({"state": "DOWN", "physical_state": "Polling"}, "rdma.mlx5_9/1"),
        ({"link_layer": "Ethernet", "gids": 0}, "rdma.mlx5_9/1.gids"),
        ({"is_allowed": False}, "permission.rdma.mlx5_9"),
        ({"netdev": None}, "rdma.mlx5_9/1.pcie"),
    ],
)
def test_a_port_that_cannot_be_used_says_why(root: Path, changes: dict[str, object], subject: str):
    (port,) = read_rdma(root)
    (advice,) = advise_on_rdma(RdmaPort.model_validate(port.model_dump() | changes))
    assert advice.subject == subject
    assert advice.action


def test_limits_hugepages_and_irqbalance_are_read(root: Path):
    limits = read_limits(root)
    assert limits == ProcessLimits(locked_memory_bytes=65536, open_files=1024, core_bytes=None)
    assert [one.subject for one in advise_on_limits(limits, has_rdma=True)] == [
        "limits.locked_memory",
        "limits.open_files",
    ]
    assert [one.subject for one in advise_on_limits(limits, has_rdma=False)] == ["limits.open_files"]
    assert read_hugepages(root) == {"2048kB": 512}
    assert runs_irqbalance(root)
    kernel = Kernel(
        release="",
        version="",
        distribution=None,
        command_line="",
        mitigations={},
        virtualisation=None,
        transparent_hugepages=None,
    )
    clock = HostClock(source="tsc", available=())
    assert [one.subject for one in advise_on_system(kernel, clock, {}, has_irqbalance=True)] == ["irqbalance"]


def test_a_kernel_that_tells_nothing_of_cards_is_no_error(tmp_path: Path):
    assert read_adapter(tmp_path / "sys/class/net/none9", tmp_path) == Adapter()
    assert read_rdma(tmp_path) == ()
    assert (read_limits(tmp_path), read_hugepages(tmp_path), runs_irqbalance(tmp_path)) == (None, {}, False)


@pytest.mark.parametrize("text", ["", "3", "0-3", "0-3,8", "1,3,5-6"])
def test_processors_are_listed_as_the_kernel_lists_them(text: str):
    assert as_list(as_set(text)) == text
