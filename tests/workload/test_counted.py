"""What a host's counters tell around a program that counts nothing itself; native/tests/traffic_test.cpp holds the same cases."""

from __future__ import annotations

import errno
import json
import os
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest

from fabricbench.record.lines import InterfaceBytes
from fabricbench.workload.adapter import split_counted_output
from fabricbench.workload.counted import (
    CANNOT_WRITE,
    MOST_COUNTERS,
    RANK_LINE,
    RANK_VARIABLES,
    TRAFFIC_LINE,
    _asked,
    carried_since,
    host_turn,
    main,
    rank,
    read_around,
    read_traffic,
    set_variables,
    traffic_line,
    wrapped,
)


class Host:
    """A file system in which a host's counters stand."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, path: str, text: str = "") -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(f"{text}\n")

    def netdevs(self, **counts: tuple[int, int]) -> None:
        """Sent and received."""
        lines = [f"{name}: {received} 0 0 0 0 0 0 0 {sent} 0" for name, (sent, received) in counts.items()]
        self.write("proc/net/dev", "\n".join(("Inter-|   Receive", " face |bytes", *lines)))
        for name in counts:
            (self.root / "sys/class/net" / name).mkdir(parents=True, exist_ok=True)

    def port(self, device: str, number: int, sent_words: int, received_words: int) -> None:
        folder = f"sys/class/infiniband/{device}/ports/{number}/counters"
        self.write(f"{folder}/port_xmit_data", str(sent_words))
        self.write(f"{folder}/port_rcv_data", str(received_words))

    def beside(self, name: str, device: str, position: int = 0) -> None:
        (self.root / f"sys/class/net/{name}/device/infiniband/{device}").mkdir(parents=True)
        self.write(f"sys/class/net/{name}/dev_port", str(position))

    def since(self, before: dict[str, tuple[int, ...]]) -> dict[str, InterfaceBytes]:
        return {name: InterfaceBytes.model_validate(one) for name, one in carried_since(before, self.root).items()}


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


@pytest.mark.parametrize(
    ("before", "asked", "found"),
    [
        ("/ours.so", "/theirs.so", "/ours.so:/theirs.so"),
        (None, "/theirs.so", "/theirs.so"),
        ("/ours.so", "", "/ours.so"),
    ],
)
def test_a_workloads_preload_is_joined_behind_what_was_preloaded(
    monkeypatch: pytest.MonkeyPatch, before: str | None, asked: str, found: str
):
    monkeypatch.setattr(os, "environ", {"A": "1", **({} if before is None else {"LD_PRELOAD": before})})
    set_variables({"LD_PRELOAD": asked, "A": "2"})
    assert dict(os.environ) == {"A": "2", "LD_PRELOAD": found}


@pytest.mark.parametrize(
    ("inherited", "set_by_starter", "found"),
    [
        ({}, {"PMI_RANK": "3"}, 3),
        ({"PMIX_RANK": "0"}, {"PMI_RANK": "3"}, 3),
        ({"PMI_RANK": "0"}, {"PMIX_RANK": "3"}, 3),
        ({"SLURM_PROCID": "0"}, {"SLURM_PROCID": "3"}, 3),
        ({"SLURM_PROCID": "0"}, {"SLURM_PROCID": "0"}, 0),
        ({"PMIX_RANK": "0", "PMI_RANK": "0"}, {"PMI_RANK": "2"}, 2),
        ({}, {"PALS_RANKID": "2"}, 2),
        ({"SLURM_PROCID": "0"}, {"MV2_COMM_WORLD_RANK": "1"}, 1),
        ({}, {"PMI_RANK": ""}, 0),
        ({}, {}, 0),
    ],
)
def test_a_rank_is_what_its_own_starter_says(
    monkeypatch: pytest.MonkeyPatch, inherited: dict[str, str], set_by_starter: dict[str, str], found: int
):
    """Whoever starts the launch may be in a job of another starter."""
    for name in RANK_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in inherited.items():
        monkeypatch.setenv(name, value)
    tokens = wrapped(["program"], Path("/run/around.json"))
    for name, value in set_by_starter.items():
        monkeypatch.setenv(name, value)
    asked = _asked(tokens[tokens.index("/run/around.json") :])
    assert (rank(asked.inherited), asked.command) == (found, ["program"])


def test_a_bonds_traffic_is_counted_by_its_cards_as_well(host: Host):
    host.netdevs(eth0=(10, 20), bond0=(0, 0), eth1=(0, 0))
    host.write("sys/class/net/eth0/upper_bond0")
    host.write("sys/class/net/bond0/upper_bond0.7")
    before = read_traffic(host.root)
    host.netdevs(eth0=(110, 220), bond0=(90, 180), eth1=(1, 1))
    found = host.since(before)
    assert found["eth0"] == InterfaceBytes(sent=100, received=200, above=("bond0", "bond0.7"))
    assert found["eth1"] == InterfaceBytes(sent=1, received=1)


def test_ports_of_rdma_devices_count_octets_by_four(host: Host):
    host.netdevs(ib0=(10, 10))
    host.port("mlx5_0", 1, 1000, 2000)
    host.beside("ib0", "mlx5_0")
    before = read_traffic(host.root)
    host.port("mlx5_0", 1, 1250, 2500)
    assert host.since(before)["mlx5_0/1"] == InterfaceBytes(sent=1000, received=2000, above=("ib0",))


def test_a_port_of_two_has_the_interface_of_its_number(host: Host):
    host.netdevs(ib0=(0, 0), ib1=(0, 0), eth7=(0, 0))
    for number, name in ((1, "ib0"), (2, "ib1")):
        host.port("mlx4_0", number, 0, 0)
        host.beside(name, "mlx4_0", number - 1)
    host.write("sys/class/infiniband/mlx4_0/ports/2/gid_attrs/ndevs/3", "eth7")
    found = host.since(read_traffic(host.root))
    assert (found["mlx4_0/1"].above, found["mlx4_0/2"].above) == (("ib0",), ("eth7", "ib1"))


def test_a_port_without_counters_and_one_that_was_reset_are_there_and_uncounted(host: Host):
    host.netdevs(eth0=(1000, 1000))
    host.write("sys/class/infiniband/rxe0/ports/1/gid_attrs/ndevs/0", "eth0")
    before = read_traffic(host.root)
    host.netdevs(eth0=(10, 2000))
    found = host.since(before)
    assert found["rxe0/1"] == InterfaceBytes(sent=0, received=0, above=("eth0",), is_counted=False)
    assert found["eth0"] == InterfaceBytes(sent=0, received=0, is_counted=False)


def test_arguments_that_are_files_are_known_by_their_content_unless_the_program_writes_them(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)  # and back: what is run goes there for good
    for name in ("in.txt", "out.txt"):
        (tmp_path / name).write_text("before")
    around = tmp_path / "around.json"
    command = ["sh", "-c", 'echo more >> "$2"', "sh", "in.txt", "out.txt", "nonesuch"]
    assert main([str(around), "--in", str(tmp_path), "--", *command]) == 0
    capfd.readouterr()
    digest = sha256(b"before").hexdigest()
    assert list(read_around(around).arguments_sha256) == ["", "", "", digest, "", ""]


def test_what_was_counted_is_synced_and_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    def full(_descriptor: int) -> None:
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    around = tmp_path / "around.json"
    monkeypatch.setenv("PMI_RANK", "0")
    monkeypatch.setattr(os, "fsync", full)
    assert main([str(around), "--", "true"]) == CANNOT_WRITE
    assert not around.exists()
    assert f"{around}: Disk quota exceeded" in capfd.readouterr().err


def test_one_rank_of_a_host_counts_for_it_until_it_ends(tmp_path: Path):
    first = host_turn(tmp_path / "around.json")
    assert first is not None
    assert host_turn(tmp_path / "around.json") is None
    other_launch = host_turn(tmp_path / "another/around.json")
    assert other_launch is not None
    other_launch.close()
    first.close()
    again = host_turn(tmp_path / "around.json")
    assert again is not None
    again.close()


def test_a_host_tells_what_carried_most_and_the_fabrics_interface_always():
    def count(sent: int) -> dict[str, object]:
        return {"sent": sent, "received": 0, "above": [], "is_counted": True}

    carried = {f"veth{number}": count(number) for number in range(200)} | {"eth1": count(0)}
    (line,) = traffic_line(carried, "eth1").splitlines()
    told = json.loads(line.removeprefix(TRAFFIC_LINE))["interfaces"]
    assert list(told)[:2] == ["eth1", "veth199"]
    assert len(told) == MOST_COUNTERS
    assert "veth0" not in told


def run_rank(number: int, tmp_path: Path, *program: str) -> subprocess.CompletedProcess[str]:
    """Run a program as that rank of a launch on a host of its own, as far as the network goes: without anything but loopback."""
    tokens = wrapped(list(program), tmp_path / "around.json", fabric="127.0.0.0/8")
    return subprocess.run(
        tokens, capture_output=True, text=True, timeout=60, check=False, env={**os.environ, "PMI_RANK": str(number)}
    )


def test_a_rank_on_another_host_tells_its_interface_and_its_counters_and_ends_as_its_program_does(tmp_path: Path):
    done = run_rank(1, tmp_path, "sh", "-c", "echo time 3")
    told = split_counted_output(done.stdout)
    (one,) = told.ranks
    assert (one.rank, one.interface) == (1, "lo")
    assert "lo" in told.other_hosts[one.host]
    assert told.own == "time 3\n"
    assert run_rank(1, tmp_path, "sh", "-c", "exit 7").returncode == 7
    assert run_rank(1, tmp_path, "sh", "-c", "kill -SEGV $$").returncode == -11


def test_what_rank_0_counts_is_not_told_twice(tmp_path: Path):
    lines = "".join(run_rank(number, tmp_path, "true").stdout for number in (0, 1))
    assert RANK_LINE in lines
    assert TRAFFIC_LINE in lines  # of rank 1, which ran alone here
    assert split_counted_output(lines).other_hosts == {}
