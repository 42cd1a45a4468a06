"""Traffic over a lab, loosely: a busy machine must not fail these. benchmarks/lab_truth.py measures it closely."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fabricbench.lab import PRESETS, lab_support
from fabricbench.model import Layer
from fabricbench.native import build_info
from support.another_user import BECOME, need_another_user
from support.lab_outside import RunIn, StartLab

pytestmark = pytest.mark.lab

RECEIVE = """
import socket, sys, time
server = socket.create_server(("", 5001))
print("listening", flush=True)
stream, _ = server.accept()
first = last = total = 0
while piece := stream.recv(1 << 18):
    last = time.monotonic_ns()
    first = first or last
    total += len(piece)
print(total * 8e9 / (last - first), flush=True)
"""

SEND = """
import socket, sys, time
stream = socket.create_connection((sys.argv[1], 5001), timeout=20)
until = time.monotonic() + float(sys.argv[2])
while time.monotonic() < until:
    stream.sendall(bytes(1 << 16))
"""


@pytest.mark.parametrize("name", ["fast-ethernet", "atm-oc3"])
def test_a_tcp_stream_is_no_faster_than_the_line_and_not_much_slower(start_lab: StartLab, run_in: RunIn, name: str):
    fabric = PRESETS[name]
    lab = start_lab(name)
    tokens = lab.command_in("n1", [sys.executable, "-c", RECEIVE], working_directory=Path("/"), environment={})
    with subprocess.Popen(tokens, stdout=subprocess.PIPE, text=True) as receiver:
        assert receiver.stdout is not None
        assert receiver.stdout.readline() == "listening\n"
        assert run_in(lab, "n0", sys.executable, "-c", SEND, "10.98.1.2", "1.5").returncode == 0
        rate_bit_s = float(receiver.communicate(timeout=30)[0])
    ideal_bit_s = fabric.wire.payload_rate_bit_s(Layer.TCP, 1 << 20, fabric.mtu)
    assert ideal_bit_s is not None
    assert 0.5 * ideal_bit_s < rate_bit_s < 1.03 * ideal_bit_s
    switch = lab.status().fabrics[0].switch
    assert switch.ports[0].received_bytes >= rate_bit_s / 8
    assert switch.lateness_ns is not None
    assert switch.lateness_ns.count > 1000


HELLO = r"""
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  int rank = 0;
  int sum = 0;
  char host[64];
  gethostname(host, sizeof host);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("%s %d %d\n", host, rank, sum);
  MPI_Finalize();
  return 0;
}
"""


@pytest.mark.mpi
def test_mpi_starts_over_the_control_network_and_talks_over_the_fabric(
    start_lab: StartLab, run_in: RunIn, tmp_path: Path
):
    if (
        "hydra"
        not in subprocess.run(
            [build_info().mpiexec, "--version"], capture_output=True, text=True, check=False
        ).stdout.lower()
    ):
        pytest.skip("this test speaks to MPICH's starter, and the native part was built with another MPI")
    (tmp_path / "hello.cpp").write_text(HELLO)
    program = tmp_path / "hello"
    subprocess.run([build_info().mpicxx, str(tmp_path / "hello.cpp"), "-o", str(program)], check=True, timeout=60)
    lab = start_lab("fast-ethernet,myrinet", nodes=4)
    (tmp_path / "hosts").write_text("".join(f"{node.name}:1\n" for node in lab.topology.nodes))
    starter = [
        build_info().mpiexec,
        "-launcher",
        "ssh",
        "-launcher-exec",
        str(lab.agent),
        "-f",
        str(tmp_path / "hosts"),
    ]
    selectors = {"MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "myr1"}
    done = run_in(
        lab,
        "n0",
        *starter,
        "-n",
        "4",
        "-iface",
        lab.control_interface,
        str(program),
        environment=selectors,
        timeout_s=60,
    )
    assert sorted(done.stdout.splitlines()) == [f"n{rank} {rank} 6" for rank in range(4)], done.stderr
    received = {
        fabric.name: sum(port.received_frames for port in fabric.switch.ports) for fabric in lab.status().fabrics
    }
    assert received["myrinet"] > 0
    assert received["fast-ethernet"] == 0


UNPRIVILEGED = """
import subprocess
from pathlib import Path
from fabricbench.lab import Lab, lab_support, parse_fabrics
assert lab_support().mode == "user-namespace", lab_support()
lab = Lab.up("unprivileged", 2, parse_fabrics("fast-ethernet"), owned=True)
ping = "import socket; socket.create_connection(('10.98.1.2', 5001), timeout=20).sendall(b'hello')"
listen = "import socket; s = socket.create_server(('', 5001)); print('ready', flush=True); print(s.accept()[0].recv(9))"
def tokens(node, program):
    import sys
    return lab.command_in(node, [sys.executable, "-c", program], working_directory=Path("/"), environment={})
server = subprocess.Popen(tokens("n1", listen), stdout=subprocess.PIPE, text=True)
server.stdout.readline()
subprocess.run(tokens("n0", ping), check=True, timeout=30)
print(server.communicate(timeout=30)[0].strip())
told = lab.command_in_each(["n0", "n1"], "fabricbench.testbed.doctor", ["--json"])
answers = subprocess.run(told, check=True, capture_output=True, text=True, timeout=60).stdout.splitlines()
print([line[: line.index(":")] for line in answers])
status = lab.status()
print(status.mode, status.fabrics[0].switch.ports[0].received_frames > 3)
lab.down()
"""


@pytest.mark.usefixtures("lab_mode")
def test_an_ordinary_user_gets_a_lab_in_a_user_namespace():
    if os.geteuid() != 0:
        pytest.skip(f"the other tests have run as an ordinary user already ({lab_support().reason})")
    need_another_user(sys.executable)
    # No home and no state directory: the ledger must find a place by itself.
    environment = {name: value for name, value in os.environ.items() if name not in {"HOME", "XDG_STATE_HOME"}}
    command = [*BECOME, sys.executable, "-c", UNPRIVILEGED]
    trial = [*command[:-1], "from fabricbench.lab import lab_support; print(lab_support().model_dump_json())"]
    support = subprocess.run(trial, capture_output=True, text=True, cwd="/", env=environment, check=False, timeout=60)
    if '"user-namespace"' not in support.stdout:
        pytest.skip(f"an ordinary user cannot have a lab here: {support.stdout}{support.stderr[-500:]}")
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", env=environment, check=False, timeout=90)
    assert done.stdout.splitlines() == ["b'hello'", "['n0', 'n1']", "user-namespace True"], done.stderr
