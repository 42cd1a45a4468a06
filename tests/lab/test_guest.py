"""What guests of a lab with RDMA are told, and what stands in the way of one: no guest is booted here."""

from __future__ import annotations

import hashlib
import lzma
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fabricbench.errors import EnvironmentLacks, UsageError
from fabricbench.lab import guest, guest_entry, parse_fabrics, rdma
from fabricbench.lab.agent import agent_of_guests
from fabricbench.lab.node import device_tokens
from fabricbench.lab.topology import GUESTS_NOTE, LabTopology, Rdma, plan_lab
from fabricbench.pattern_facts import USUAL_LAYERS, Layer
from support.calling import Call
from support.scripts import script

FABRICS = parse_fabrics("fast-ethernet,myrinet:mtu=4200")


def planned(means: Rdma | None = Rdma.GUESTS) -> LabTopology:
    return plan_lab("a", 2, FABRICS, [0, 1, 2], rdma=means)


def test_a_guest_takes_the_interfaces_of_its_node_with_their_names_and_addresses():
    batch = guest.network_batch(planned(), 1).splitlines()
    assert batch[0] == "link set lo up"
    assert "link set vec0 name ctl0" in batch
    assert "link set vec2 name myr1" in batch
    assert "link set myr1 address 02:fb:00:00:02:02 mtu 4200" in batch
    assert "addr add 10.98.2.2/24 dev myr1" in batch
    assert "neigh add 10.98.2.1 lladdr 02:fb:00:00:02:01 dev myr1 nud permanent" in batch
    assert not any("neigh add 10.98.2.2" in line for line in batch)
    assert guest.device_batch(planned()).splitlines() == [
        "link add rdma_fe0 type rxe netdev fe0",
        "link add rdma_myr1 type rxe netdev myr1",
    ]


def test_a_guest_boots_pinned_with_the_fabrics_mtu():
    folder = guest.folder_of(Path("/labs/a"), "n1")
    tokens = guest.kernel_tokens(Path("/k/linux"), folder, planned(), 1)
    assert tokens[:4] == ["taskset", "--cpu-list", "1", "/k/linux"]
    assert f"init={folder}/init" in tokens
    assert "vec0:transport=raw,ifname=ctl0,depth=128,mtu=1500" in tokens
    assert "vec2:transport=raw,ifname=myr1,depth=128,mtu=4200" in tokens


def test_the_testbed_of_guests_has_the_layer_names_the_devices_and_says_what_bounds():
    testbed = planned().testbed()
    assert all(fabric.layers == (*USUAL_LAYERS, Layer.RDMA) for fabric in testbed.fabrics)
    device = testbed.fabric("myrinet").rdma
    assert device is not None
    assert device.device == "rdma_myr1"
    assert GUESTS_NOTE in testbed.notes


def test_the_testbed_of_a_kernel_with_soft_roce_leaves_the_device_to_be_found():
    testbed = planned(Rdma.KERNEL).testbed()
    assert all(Layer.RDMA in fabric.layers and fabric.rdma is None for fabric in testbed.fabrics)
    assert GUESTS_NOTE not in testbed.notes
    assert device_tokens("a", "n1", "fe0") == ["rdma", "link", "add", "a-n1-fe0", "type", "rxe", "netdev", "fe0"]
    assert all(Layer.RDMA not in fabric.layers for fabric in planned(None).testbed().fabrics)


@pytest.mark.parametrize(
    "text", [guest.init_script(Path("/l a/g"), "n0", Path("/l/hosts")), agent_of_guests({"n0": ()}, Path("/l a"))]
)
def test_what_shells_are_told_can_be_read_by_them(text: str):
    assert subprocess.run(["bash", "-n"], input=text, text=True, check=False).returncode == 0


def test_a_pattern_that_nothing_matches_is_no_command_of_a_guests(tmp_path: Path):
    """Else one that comes between two looks at the same pattern is taken for another, and never run."""
    lines = guest.init_script(tmp_path, "n0", Path("/l/hosts")).splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith("shopt "))
    end = next(number for number, line in enumerate(lines) if line.startswith("  done"))
    (tmp_path / guest.COMMANDS).mkdir()
    looks = "\n".join(line for line in lines[begin : end + 1] if line != "while :; do")
    told = subprocess.run(
        ["bash"], input=f"mv() {{ echo $*; }}\n{looks}", text=True, cwd=tmp_path, capture_output=True, check=False
    )
    assert (told.returncode, told.stdout, told.stderr) == (0, "", "")


@pytest.fixture
def verbs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that has the library, whatever this one has."""
    monkeypatch.setattr(rdma, "VERBS_LIBRARY", "libc.so.6")
    monkeypatch.delenv(rdma.KERNEL_VARIABLE, raising=False)


@pytest.mark.usefixtures("verbs")
def test_without_a_kernel_it_is_said_how_one_is_had(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rdma, "has_namespaced_rxe", lambda: False)
    with pytest.raises(EnvironmentLacks, match="no kernel for guests is named") as caught:
        rdma.needed_rdma(None, has_root=True)
    assert "docs/rdma.md" in str(caught.value.hint)


@pytest.mark.usefixtures("verbs")
def test_the_machines_own_soft_roce_comes_before_guests_unless_a_kernel_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(rdma, "has_namespaced_rxe", lambda: True)
    kernel = script(tmp_path / "linux", "exit 0")
    assert rdma.needed_rdma(None, has_root=True).by is Rdma.KERNEL
    asked = rdma.needed_rdma(kernel, has_root=True)
    assert (asked.by, asked.kernel) == (Rdma.GUESTS, kernel)
    monkeypatch.setenv(rdma.KERNEL_VARIABLE, str(kernel))
    assert rdma.needed_rdma(None, has_root=False).kernel == kernel


def test_without_the_library_it_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rdma, "VERBS_LIBRARY", "libnot-there.so.1")
    with pytest.raises(EnvironmentLacks, match=r"libnot-there\.so\.1 cannot be loaded"):
        rdma.needed_rdma(None, has_root=True)


@pytest.mark.usefixtures("own_ledger")
def test_a_packed_kernel_is_unpacked_once_and_checked(tmp_path: Path):
    content = b"#!/bin/sh\n"
    packed, sums = tmp_path / "linux-x.xz", tmp_path / "linux-x.sha256"
    packed.write_bytes(lzma.compress(content))
    sums.write_text(f"{hashlib.sha256(content).hexdigest()}  linux-x\n")
    kernel = rdma.guest_kernel(packed)
    assert kernel.read_bytes() == content
    assert os.access(kernel, os.X_OK)
    assert rdma.guest_kernel(packed) == kernel
    sums.write_text(f"{'0' * 64}  linux-x\n")
    with pytest.raises(UsageError, match=r"is not the kernel that linux-x\.sha256 names"):
        rdma.guest_kernel(packed)
    packed.write_bytes(b"no archive")
    with pytest.raises(UsageError, match="cannot be unpacked"):
        rdma.guest_kernel(packed)
    with pytest.raises(UsageError, match="there is no kernel for guests"):
        rdma.guest_kernel(tmp_path / "nothing")


@pytest.mark.usefixtures("own_ledger")
def test_a_kernel_for_a_lab_without_rdma_is_refused(fabricbench: Call):
    code, _, told = fabricbench("lab", "up", "x", "--fabric", "fast-ethernet", "--rdma-kernel", "/linux")
    assert code == 2
    assert "add --rdma" in told


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """The folder of a guest that a loop on this machine stands for: it runs the scripts, and ends them."""
    (tmp_path / guest.COMMANDS).mkdir()
    loop = """cd "$1"; while :; do
      for c in commands/*.sh; do [ -e "$c" ] || continue; n=${c%.sh}; mv "$c" "$n.run"
        { bash "$n.run" >"$n.out" 2>"$n.err" & echo $! >"$n.pid"; wait $!; echo $? >"$n.part"; mv "$n.part" "$n.rc"; } & done
      for c in commands/*.end; do [ -e "$c" ] || continue; n=${c%.end}; mv "$c" "$n.ended"; kill "$(cat "$n.pid")"; done
      sleep 0.02; done"""
    with subprocess.Popen(["bash", "-c", loop, "guest", str(tmp_path)], start_new_session=True) as stand_in:
        yield tmp_path
        os.killpg(stand_in.pid, signal.SIGKILL)


def entered(folder: Path, program: list[str], pid: int | None = None) -> subprocess.Popen[str]:
    tokens = guest.entry_tokens(program, folder, pid or os.getpid(), Path("/"), {"ASKED": "a 'value'"})
    return subprocess.Popen(tokens, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_entering_hands_on_environment_directory_output_and_exit_code(folder: Path):
    with entered(folder, ["sh", "-c", 'echo "$ASKED" in $PWD; echo err >&2; exit 7']) as done:
        out, err = done.communicate(timeout=20)
    assert (out, err, done.returncode) == ("a 'value' in /\n", "err\n", 7)


def test_entering_ends_what_it_started_when_it_is_asked_to(folder: Path):
    with entered(folder, ["sleep", "60"]) as waiting:
        deadline = time.monotonic() + 10
        while not list(folder.glob("commands/*.pid")) and time.monotonic() < deadline:
            time.sleep(0.02)
        waiting.terminate()
        assert waiting.wait(10) == guest_entry.ENDED_BY_SIGNAL + signal.SIGTERM
    assert list(folder.glob("commands/*.rc"))


@pytest.mark.parametrize("after", ["", "sleep 60"], ids=["that ends", "that goes on"])
def test_entering_ends_quietly_what_nobody_reads_any_more(folder: Path, after: str):
    with entered(folder, ["sh", "-c", f"yes | head -c 1000000; {after}"]) as done:
        assert done.stdout is not None
        assert done.stderr is not None
        done.stdout.readline()
        done.stdout.close()
        err = done.stderr.read()
        assert done.wait(20) == guest_entry.ENDED_BY_SIGNAL + signal.SIGPIPE
    assert err == ""


def test_entering_a_guest_that_has_ended_says_so(tmp_path: Path):
    (tmp_path / guest.COMMANDS).mkdir()
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    with entered(tmp_path, ["true"], pid=gone.pid) as done:
        _, err = done.communicate(timeout=20)
    assert done.returncode == guest_entry.GUEST_GONE
    assert "the guest that this command ran in has ended" in err
