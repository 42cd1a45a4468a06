"""The guest itself: four hosts with soft RoCE that reach one another, MPI between them, and nothing left when it ends."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.uml import HOSTS, REPOSITORY, Guest, NoGuestError, find_kernel, start_guest

pytestmark = pytest.mark.alone

LATENCY = """
timeout 10 ib_send_lat -e -d rxe1 -x 1 -n 200 >server.out 2>&1 &
for i in $(seq 50); do grep -q ':4853 ' /proc/net/tcp && break; sleep 0.05; done
timeout 10 ib_send_lat -e -d rxe2 -x 1 -n 200 10.1.0.1
code=$?
wait
exit $code
"""


def _group_is_gone(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


def test_four_hosts_have_an_active_port_each(guest: Guest) -> None:
    done = guest.run("rdma link show; cat /sys/class/infiniband/rxe*/ports/1/gid_attrs/ndevs/1")
    assert done.code == 0, done.stderr
    for host in HOSTS:
        assert f"link rxe{host}/1 state ACTIVE physical_state LINK_UP netdev h{host}" in done.stdout
    assert done.stdout.split()[-4:] == ["h1", "h2", "h3", "h4"]


def test_a_command_tells_how_it_ended(guest: Guest) -> None:
    done = guest.run("echo out; echo err >&2; exit 7")
    assert (done.code, done.stdout, done.stderr) == (7, "out\n", "err\n")
    assert guest.run(["echo", "two words"]).stdout == "two words\n"
    assert guest.run("sleep 20", limit_s=0.5).code == 124


def test_a_command_that_never_waits_ends_at_its_limit(guest: Guest) -> None:
    """In the class of MPI's ranks, which nothing keeps from having all of the guest's time."""
    spinning = ["chrt", "-r", "1", "sh", "-c", "while :; do :; done"]
    assert guest.run(spinning, limit_s=1.5).code == 124
    assert guest.run(["true"]).code == 0


def test_which_tasks_run_is_asked_from_outside(guest: Guest) -> None:
    with ThreadPoolExecutor(1) as pool:
        spinning = pool.submit(guest.run, ["sh", "-c", "while :; do :; done"], 4)
        seen: list[str] = []
        while not spinning.done() and not any("comm: sh " in task for task in seen):
            seen += guest.running_tasks()
        assert spinning.result().code == 124
    assert any("comm: sh " in task for task in seen), seen


def test_mpi_starts_a_rank_on_each_host(guest: Guest) -> None:
    done = guest.mpiexec(4, ["sh", "-c", "echo $FABRICBENCH_INTERFACE"])
    assert done.code == 0, done.stderr
    assert sorted(done.stdout.split()) == ["h1", "h2", "h3", "h4"]


def test_the_measurer_takes_the_interfaces_of_the_hosts(guest: Guest) -> None:
    """What is sent from one of the hosts to another leaves by its own interface."""
    outcome = guest.probe([{"layer": "tcp", "pattern": "pingpong", "message_bytes": 8}], ranks=4)
    assert outcome.code == 0, outcome.stderr
    assert [rank.interface for rank in outcome.header.ranks] == ["h1", "h2", "h3", "h4"]
    assert len(outcome.times(0)) >= 20
    carried = outcome.end(0).interfaces
    assert min(carried["h1"].sent, carried["h2"].sent) >= 8 * len(outcome.times(0))


def test_perftest_runs_between_two_hosts(guest: Guest) -> None:
    """It calibrates its clock after the run, which other work on the machine can spoil: then it reports nothing, or `inf`."""
    before = guest.counters("rxe1")["rcvd_pkts"]
    for _ in range(3):
        done = guest.run(LATENCY, limit_s=25)
        if done.code == 0:
            break
    assert done.code == 0 or "Can't produce a report" in done.stderr, done.stdout + done.stderr
    assert guest.counters("rxe1")["rcvd_pkts"] - before >= 200


def test_what_is_shaped_and_lost_is_what_goes_towards_a_host(guest: Guest) -> None:
    guest.shape(1, "100mbit")
    assert "rate 100Mbit" in guest.run("tc qdisc show dev s1").stdout
    guest.lose(1, 100)
    assert "loss 100%" in guest.run("tc qdisc show dev s1").stdout
    guest.lose(1, None)
    assert "netem" not in guest.run("tc qdisc show dev s1").stdout


@pytest.mark.parametrize("ending", ["asked", "owner killed"])
def test_a_guest_leaves_no_process(ending: str) -> None:
    """Neither where it is asked to end, nor where the process that started it is killed."""
    if ending == "asked":
        try:
            own = start_guest()
        except NoGuestError as reason:
            pytest.skip(str(reason))
        group, folder = own.process.pid, own.folder
        assert own.end() == 0
        assert "GUEST_ENDED" in own.console()
    else:
        try:
            find_kernel()
        except NoGuestError as reason:
            pytest.skip(str(reason))
        program = (
            "from support.uml import start_guest; import time\n"
            "own = start_guest(); print(own.process.pid, own.folder, flush=True); time.sleep(60)"
        )
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "tests")}
        with subprocess.Popen(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environment
        ) as owner:
            assert owner.stdout is not None
            first, path = owner.stdout.readline().split()
            group, folder = int(first), Path(path)
            assert not _group_is_gone(group)
            owner.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 5
    while not _group_is_gone(group) and time.monotonic() < deadline:
        time.sleep(0.02)
    shutil.rmtree(folder, ignore_errors=True)
    assert _group_is_gone(group)
