"""What each MPI is told to reach a fabric by each transport, and how a node finds its own RDMA port."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricbench.errors import UsageError
from fabricbench.launch.installation import Installation
from fabricbench.launch.library import intelmpi, mpich, openmpi
from fabricbench.launch.library.mvapich import MVAPICH, MVAPICH2
from fabricbench.launch.mpi import LIBRARIES, find_library
from fabricbench.launch.on_subnet import rdma_port, told
from fabricbench.launch.starting import Library, version_in
from fabricbench.testbed.model import Fabric, MpiTransport

NET = Fabric(name="ib", interface="ib0", subnet="10.2.0.0/24")
MEMORY = ("UCX_TLS", "MPIR_CVAR_NOLOCAL", "I_MPI_FABRICS", "MV2_USE_SHARED_MEM", "OMPI_MCA_btl")

VERSIONS = {
    "mpicxx for MPICH version 5.0.2": (mpich, "5.0.2"),
    "MPICH Version:      5.0.2": (mpich, "5.0.2"),
    "HYDRA build details:\n    Version:      5.0.2": (mpich, "5.0.2"),
    "mpicxx: Open MPI 5.0.11 (Language: C++)": (openmpi, "5.0.11"),
    "Open MPI v5.0.11, package: Open MPI user@localhost Distribution, ident: 5.0.11": (openmpi, "5.0.11"),
    "mpirun (Open MPI) 4.1.4": (openmpi, "4.1.4"),
    "mpicxx for MVAPICH2 version 2.3.7": (MVAPICH2, "2.3.7"),
    "MVAPICH2 Version      : 2.3.7": (MVAPICH2, "2.3.7"),
    "mpicxx for MVAPICH version 4.0": (MVAPICH, "4.0"),
    "MVAPICH Version:	4.0": (MVAPICH, "4.0"),
    "mpigxx for the Intel(R) MPI Library 2021.19 for Linux*": (intelmpi, "2021.19"),
    "Intel(R) MPI Library for Linux* OS, Version 2021.19.0 Build 20260929 (id: 1821d9b)": (intelmpi, "2021.19.0"),
}


@pytest.mark.parametrize("text", VERSIONS)
def test_each_library_is_known_by_its_own_words(text: str):
    library, version = VERSIONS[text]
    assert next(one for one in LIBRARIES if one.is_it(text)) is library
    assert version_in(text) == version


HAVE = {
    "MPICH": ("tcp", "ucx", "ofi"),
    "Open MPI": ("tcp", "ucx", "ofi"),
    "Intel MPI": ("tcp", "ucx", "ofi"),
    "MVAPICH": ("tcp", "ucx", "ofi"),
    "MVAPICH2": ("tcp", "verbs"),
}


@pytest.mark.parametrize("transport", MpiTransport)
@pytest.mark.parametrize("library", LIBRARIES, ids=lambda one: one.NAME)
def test_a_transport_names_the_fabrics_interface_shuts_memory_out_or_is_refused_with_the_reason(
    library: Library, transport: MpiTransport
):
    fabric = NET.model_copy(update={"transport": transport})
    if transport not in HAVE[library.NAME]:
        with pytest.raises(UsageError, match=rf"fabric ib: {library.NAME} has no transport {transport}: ."):
            library.selection(fabric, shares_memory=False)
        return
    apart, together = (library.selection(fabric, shares_memory=shares) for shares in (False, True))
    values = [*apart.environment.values(), *apart.by_node.values()]
    assert any(
        "ib0" in one or "10.2.0.0/24" in one or "{interface}" in one or "{device}" in one or "{way}" in one
        for one in values
    )
    for selection, may_share in ((apart, False), (together, True)):
        whole = {**selection.environment, **selection.by_node}
        said = {name: whole[name] for name in MEMORY if name in whole}
        shut_out = {"MPIR_CVAR_NOLOCAL": "1", "I_MPI_FABRICS": "ofi", "MV2_USE_SHARED_MEM": "0"}
        assert any(said.get(name) == value for name, value in shut_out.items()) is (
            not may_share and library is not openmpi
        )
        assert ("vader" in said.get("OMPI_MCA_btl", "").split(",")) is (may_share and library is openmpi)


WHEELS = "MPICH Version:      5.0.2\nMPICH Device:       ch4:ucx ofi\nMPICH configure:    --with-device=ch4:ucx,ofi\n"
DEBIANS = "MPICH Version:    \t4.0.2\nMPICH Device:    \tch4:ucx\nMPICH configure: \t--with-libfabric=/usr --with-device=ch4:ucx\n"


def test_an_mpich_without_libfabric_is_known_by_its_device_and_told_by_ucx():
    assert [mpich.OVER_UCX_ALONE.is_it(text) for text in (DEBIANS, WHEELS, "MPICH Device: ch3:nemesis", "")] == [
        True,
        False,
        False,
        False,
    ]
    apart, together = (mpich.OVER_UCX_ALONE.selection(NET, shares_memory=shares) for shares in (False, True))
    assert apart.environment == {"UCX_TLS": "tcp,self", "MPIR_CVAR_NOLOCAL": "1"}
    assert together.environment == {"UCX_TLS": "tcp,sm,self"}
    assert apart.by_node == together.by_node == {"UCX_NET_DEVICES": "{interface}"}
    with pytest.raises(UsageError, match=r"MPICH has no transport ofi: .*ch4:ucx"):
        mpich.OVER_UCX_ALONE.selection(NET.model_copy(update={"transport": MpiTransport.OFI}), shares_memory=False)


@pytest.mark.parametrize(("printed", "library"), [(WHEELS, mpich), (DEBIANS, mpich.OVER_UCX_ALONE)])
def test_what_an_mpich_was_built_for_is_asked_beside_its_compiler(printed: str, library: Library, tmp_path: Path):
    for name, text in (("mpicxx", "mpicxx for MPICH version 4.0.2"), ("mpichversion", printed)):
        (tmp_path / name).write_text(f"#!/bin/sh\nprintf '%s\\n' '{text}'\n")
        (tmp_path / name).chmod(0o755)
    found, version = find_library(Installation("site", str(tmp_path / "mpicxx"), ""))
    assert (found, version) == (library, "4.0.2")
    (tmp_path / "mpichversion").unlink()
    assert find_library(Installation("other", str(tmp_path / "mpicxx"), ""))[0] is mpich


def test_over_rdma_ucx_and_libfabric_are_kept_to_the_port_and_over_tcp_to_the_interface():
    by_ucx = mpich.selection(NET.model_copy(update={"transport": MpiTransport.UCX}), shares_memory=False).by_node
    by_ofi = mpich.selection(NET.model_copy(update={"transport": MpiTransport.OFI}), shares_memory=False).by_node
    port = ("mlx5_0", "1")
    assert {name: told(one, "ib0", port) for name, one in by_ucx.items()} == {
        "UCX_TLS": "ib,self",
        "UCX_NET_DEVICES": "mlx5_0:1",
    }
    assert {name: told(one, "eth1", None) for name, one in by_ucx.items()} == {
        "UCX_TLS": "tcp,self",
        "UCX_NET_DEVICES": "eth1",
    }
    assert told(by_ofi["FI_PROVIDER"], "ib0", port) == "verbs;ofi_rxm"
    assert told(by_ofi["FI_PROVIDER"], "eth1", None) == "tcp;ofi_rxm"


def sysfs(root: Path, ports: dict[str, dict[str, str]], cards: dict[str, tuple[str, str]]) -> Path:
    """Ports with the interfaces of their addresses, by device; interfaces with their device and place on it."""
    for device, numbers in ports.items():
        for number, netdev in numbers.items():
            ndevs = root / "class/infiniband" / device / "ports" / number / "gid_attrs/ndevs"
            ndevs.mkdir(parents=True)
            (ndevs / "0").write_text(f"{netdev}\n")
    for interface, (device, place) in cards.items():
        (root / "class/net" / interface / "device/infiniband" / device).mkdir(parents=True)
        (root / "class/net" / interface / "dev_port").write_text(f"{place}\n")
    return root


def test_a_node_finds_the_rdma_port_of_an_interface(tmp_path: Path):
    root = sysfs(
        tmp_path,
        {"mlx4_0": {"1": "", "2": ""}, "mlx5_0": {"1": "eth2"}, "mlx5_1": {"1": "vlan7"}},
        {"ib0": ("mlx4_0", "0"), "ib1": ("mlx4_0", "1"), "eth2": ("mlx5_0", "0")},
    )
    found = {name: rdma_port(name, root) for name in ("ib0", "ib1", "eth2", "vlan7", "eth0")}
    assert found == {
        "ib0": ("mlx4_0", "1"),
        "ib1": ("mlx4_0", "2"),
        "eth2": ("mlx5_0", "1"),
        "vlan7": ("mlx5_1", "1"),
        "eth0": None,
    }
    assert rdma_port("eth0", tmp_path / "without") is None
