"""One User-Mode Linux guest with four soft-RoCE hosts, in which tests run commands.

The hosts are four interfaces of one network namespace (rxe of Linux 6.1 does not work in others): host 1 has h1 with 10.1.0.1, its
port rxe1, and the bridge's end of its wire, s1, where traffic towards it can be shaped and lost. Rank r of a launch lives on host
r + 1. The guest's root is the host's file system, read-only; a folder of the host lies at its own path, writable, and the guest
runs each script that is put into it. The guest ends with the process that started it, however that ends.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import lzma
import os
import re
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from ctypes.util import find_library
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fabricbench.native import build_info, native_file
from fabricbench.record.lines import LINE_ADAPTER
from fabricbench.record.probe_plan import ProbePlan, options_of, plan_beside
from fabricbench.record.reading import read_record
from support.measurer import Outcome, plan_of

REPOSITORY = Path(__file__).parents[2]
KERNEL_VARIABLE = "FABRICBENCH_UML"
FIXTURE = REPOSITORY.parent / "shared" / "uml" / "linux-6.1-rdma.xz"
CACHE = REPOSITORY / "build" / "uml"
UNPACKED = REPOSITORY / "build" / "debian" / "rdma"
PACKAGES = ("perftest", "rdmacm-utils", "ibverbs-utils")
LIBRARIES = Path("usr/lib/x86_64-linux-gnu")

HOSTS = (1, 2, 3, 4)
FABRIC = {"name": "roce", "subnet": "10.1.0.0/24", "mtu": 4200}
MEMORY = "768M"
BOOT_SECONDS, END_SECONDS = 30.0, 10.0
LONG_SECONDS = 10.0
"""Of what may take longer, and does, is told which tasks had the processor shortly before its end."""
TOO_LONG = 124
"""timeout(1)."""
LAUNCH_SECONDS = 40.0
"""A launch takes 3 to 7 s; other work on the machine may double that."""

SUPERVISOR = """exec 3<&0
"$@" </dev/null & guest=$!
{ read -r _ <&3; kill -s KILL -- -$guest; kill -s KILL -- -$$; } & watcher=$!
wait $guest; code=$?
kill -s KILL -- -$guest $watcher 2>/dev/null
exit $code
"""
"""Runs the guest until it ends, or until our end of the pipe is closed: then all of its session is killed, and this."""


class NoGuestError(Exception):
    """This machine cannot have a guest; the message says why."""


@dataclass(frozen=True)
class Done:
    """How a command in the guest ended: `TOO_LONG` where it took longer than it was given."""

    code: int
    stdout: str
    stderr: str


@dataclass
class Guest:
    """A guest that is up. `folder` has the same path in the guest and on the host, and both may write to it."""

    folder: Path
    environment: dict[str, str]
    process: subprocess.Popen[bytes]
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def run(self, command: Sequence[str | Path] | str, limit_s: float = 20) -> Done:
        """Run tokens, or a script of bash, as root of the guest."""
        script = command if isinstance(command, str) else shlex.join(map(str, command))
        name = f"{next(self._numbers):04d}"
        base = self.folder / "commands" / name
        base.with_suffix(".body").write_text(script + "\n")
        exports = "".join(f"export {key}={shlex.quote(value)}\n" for key, value in self.environment.items())
        part = base.with_suffix(".new")
        part.write_text(f"{exports}cd {self.folder}\ntimeout -k 2 {limit_s} chrt -o 0 bash {base}.body\n")
        part.rename(base.with_suffix(".sh"))
        begin, running = time.monotonic(), ""
        while not base.with_suffix(".rc").exists():
            seconds = time.monotonic() - begin
            if self.process.poll() is not None or seconds > limit_s + END_SECONDS:
                raise AssertionError(
                    f"the guest does not answer; it was told to run\n{script}\n{running}\n{self.console()}"
                )
            if not running and seconds > limit_s - 1 > LONG_SECONDS:  # it is about to be ended: who kept it?
                running = "had the processor: " + "; ".join(self.running_tasks())
            time.sleep(0.01)
        out, err = (base.with_suffix(end).read_text(errors="replace") for end in (".out", ".err"))
        code = int(base.with_suffix(".rc").read_text())
        return Done(code, out, err + running if code == TOO_LONG else err)

    def mpiexec(
        self,
        ranks: int,
        program: Sequence[str | Path],
        *,
        limit_s: float = LAUNCH_SECONDS,
        environment: Mapping[str, str] | None = None,
        before: str = "",
    ) -> Done:
        """Run an MPI program, its control plane over lo. `before` is script that goes first, `ulimit -l 64` say."""
        told = {
            "MPIR_CVAR_CH4_NETMOD": "ofi",
            "FI_PROVIDER": "tcp",
            "FI_TCP_IFACE": "lo",
            "FI_TCP_MAX_RX_SIZE": "1024",  # else 16 MB of buffers are touched, and a page costs 0.1 ms here
            "MPIR_CVAR_NOLOCAL": "1",
            "LD_PRELOAD": str(native_file("libfabricbench-yield.so")),
            **(environment or {}),
        }
        options = [token for name, value in told.items() for token in ("-genv", name, value)]
        # In SCHED_RR a rank that yields goes behind the others; CFS would let it go on until the next tick, 10 ms later.
        starter = ("chrt", "-r", "1", build_info().mpiexec, "-launcher", "fork", "-bind-to", "none")
        tokens = (*starter, "-n", str(ranks), *options, str(self.folder / "rank.sh"), *map(str, program))
        return self.run(f"{before}\n{shlex.join(tokens)}", limit_s)

    def probe(
        self,
        probes: Sequence[dict[str, Any]],
        *,
        ranks: int = 2,
        fabric: dict[str, Any] | None = None,
        limit_s: float = LAUNCH_SECONDS,
        environment: Mapping[str, str] | None = None,
        before: str = "",
    ) -> Outcome:
        """Measure cells, as `plan_of` completes them, with the measurer; its record contradicts nothing."""
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        folder.chmod(0o777)
        output, plan = folder / "records.jsonl", folder / "plan.json"
        plan.write_text(json.dumps(plan_of(probes, output, fabric or FABRIC)))
        options = options_of(ProbePlan.model_validate_json(plan.read_bytes()).probes)
        program = (native_file("fabricbench-probe"), *options, plan)
        done = self.mpiexec(ranks, program, limit_s=limit_s, environment=environment, before=before)
        text = output.read_text() if output.exists() else ""
        lines = [LINE_ADAPTER.validate_json(line) for line in text.splitlines()]
        if done.code == 0 and lines:
            damage = read_record(output, plan_beside(folder)).damage
            assert damage == [], damage
        return Outcome(done.code, done.stderr, lines)

    def probe_into_loss(self, cell: dict[str, Any], *, ranks: int = 2) -> tuple[Outcome, float]:
        """Measure a long cell; while it runs, all that goes towards host 1 gets lost. Returns also the seconds from then until all
        ranks have ended.
        """
        times = {name: self.folder / name for name in ("watched", "lost", "ended")}
        for path in times.values():
            path.unlink(missing_ok=True)
        # The control plane goes over lo: so many packets at h1 are the cell's. Before the ranks, which may leave it no time.
        (self.folder / "lose.sh").write_text(
            "packets() { read -r count </sys/class/net/h1/statistics/rx_packets; }\n"
            f"packets; first=$count; echo >{times['watched']}\n"
            "until packets; ((count > first + 200)); do sleep 0.05; done\n"
            f"read -r now _ </proc/uptime; echo $now >{times['lost']}\n"
            "tc qdisc add dev s1 root netem loss 100%\n"
        )
        before = (
            f"chrt -r 2 timeout {LAUNCH_SECONDS} bash {self.folder}/lose.sh &\n"
            f"until [ -e {times['watched']} ]; do sleep 0.02; done\n"
            f"trap 'read -r now _ </proc/uptime; echo $now >{times['ended']}; kill $! 2>/dev/null' EXIT"
        )
        long = {"minimum_seconds": 20, "maximum_seconds": 20, "maximum_samples": 1_000_000}
        try:
            outcome = self.probe([{**cell, "stopping": long}], ranks=ranks, before=before)
        finally:
            self.lose(1, None)
        assert times["lost"].exists(), outcome.stderr
        lost, ended = (float(times[name].read_text()) for name in ("lost", "ended"))
        return outcome, ended - lost

    def shape(self, host: int, rate: str | None, *, queue: str = "20m") -> None:
        """Let no more than `rate` (tc's, "200mbit" say) towards a host; None: all. It ends what `lose` told.

        What the `queue` has no room for is dropped.
        """
        self._towards(host, None if rate is None else f"tbf rate {rate} burst 64k limit {queue}")

    def lose(self, host: int, percent: float | None) -> None:
        """Lose so much of what goes towards a host; None: nothing. It ends what `shape` told."""
        self._towards(host, None if percent is None else f"netem loss {percent}%")

    def _towards(self, host: int, discipline: str | None) -> None:
        add = "" if discipline is None else f"tc qdisc add dev s{host} root {discipline}"
        done = self.run(f"tc qdisc del dev s{host} root 2>/dev/null\n{add}")
        assert discipline is None or done.code == 0, done.stderr

    def counters(self, device: str, port: int = 1) -> dict[str, int]:
        """All counters of a device's port."""
        base = f"/sys/class/infiniband/{device}/ports/{port}"
        done = self.run(f"cd {base} && grep -s . hw_counters/* counters/*")
        lines = (line.rpartition(":") for line in done.stdout.splitlines())
        return {path.rpartition("/")[2]: int(value) for path, _, value in lines if value.isdigit()}

    def use(self, kind: str) -> None:
        """Give each host a device of another kind: "rxe" (soft RoCE) or "siw" (soft iWARP), named rxe1 or siw1 on host 1."""
        script = (
            "for old in $(ls /sys/class/infiniband); do echo link del $old; done | rdma -b -\n"
            f"for i in {' '.join(map(str, HOSTS))}; do echo link add {kind}$i type {kind} netdev h$i; done | rdma -b -\n"
            "chmod 666 /dev/infiniband/uverbs*"
        )
        done = self.run(script)
        assert done.code == 0, done.stderr

    def console(self) -> str:
        """What the guest's kernel and its init said."""
        return (self.folder / "console").read_text(errors="replace")[-3000:]

    def running_tasks(self) -> list[str]:
        """Return which task had the processor at ten moments, of a guest that does not answer by itself.

        Its kernel is asked from outside, in an interrupt, by its management console (uml_mconsole(1)).
        """
        self._ask_kernel("sysrq 9")  # whatever it says is to be handed on
        found = []
        for _ in range(10):
            found += re.findall("Pid: .*, comm: .*", self._ask_kernel("sysrq p")) or ["nothing was told"]
            time.sleep(0.03)
        return found

    def _ask_kernel(self, command: str) -> str:
        request, reply = (
            struct.Struct("Iii512s"),
            struct.Struct("iii"),
        )  # magic, version, length; error, is there more, length
        magic, version = 0xCAFEBABE, 2
        answers = []
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as console, suppress(OSError):
            console.settimeout(3)
            console.bind(str(self.folder / f"asking{next(self._numbers)}"))
            where = next((self.folder / "home/.uml").glob("*/mconsole"), None)
            if where is not None:
                console.sendto(request.pack(magic, version, len(command), command.encode()), str(where))
            is_more = where is not None
            while is_more:
                answer = console.recv(4096)
                _, is_more, length = reply.unpack_from(answer)
                answers.append(answer[reply.size : reply.size + length].decode(errors="replace").strip("\0\n "))
        return "\n".join(filter(None, answers))

    def end(self) -> int:
        """End the guest, by force where it does not obey, and remove what it left. Returns its exit status."""
        try:
            (self.folder / "end").touch()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(END_SECONDS)
        finally:
            if self.process.stdin:
                self.process.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(END_SECONDS)
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        return self.process.returncode


def start_guest(number: int = 0) -> Guest:
    """Boot a guest, which takes about a second, on a processor of its own where there are as many. NoGuestError where this machine
    cannot.
    """
    kernel, environment = find_kernel(), find_user_space()
    for program in ("taskset", "chrt", "ip", "tc", "rdma", "timeout"):
        if not (shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")):
            raise NoGuestError(f"there is no program {program}, which the guest needs (Debian: util-linux, iproute2)")
    folder = Path(tempfile.mkdtemp(prefix="fabricbench-guest-"))
    folder.chmod(0o755)  # others than root in the guest are to reach it
    for name in ("commands", "home", "memory"):
        (folder / name).mkdir()
    # The file behind the guest's memory must be mapped executable; in memory it is fastest.
    shared = Path("/dev/shm")
    is_usable = os.access(shared, os.W_OK) and not os.statvfs(shared).f_flag & os.ST_NOEXEC
    memory = shared if is_usable else folder / "memory"
    (folder / "cpuinfo").write_text(Path("/proc/cpuinfo").read_text())
    (folder / "rank.sh").write_text('#!/bin/sh\nFABRICBENCH_INTERFACE=h$((PMI_RANK % 4 + 1)) exec "$@"\n')
    (folder / "rank.sh").chmod(0o755)
    init = folder / "init.sh"
    shutil.copyfile(Path(__file__).with_name("uml_init.sh"), init)
    init.chmod(0o755)
    processors = sorted(os.sched_getaffinity(0), reverse=True)
    processor = processors[number % len(processors)]  # a guest that hops between processors is four times slower
    tokens = ["taskset", "-c", str(processor), str(kernel), f"mem={MEMORY}"]
    tokens += ["root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", f"init={init}", f"folder={folder}"]
    tokens += ["con=null", "con0=null,fd:1", "quiet"]
    preload = str(native_file("libfabricbench-guest.so"))
    with (folder / "console").open("wb") as console:
        process = subprocess.Popen(
            ["sh", "-c", SUPERVISOR, "guest", *tokens],
            stdin=subprocess.PIPE,
            stdout=console,
            stderr=subprocess.STDOUT,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(folder / "home"),
                "TMPDIR": str(memory),
                "LD_PRELOAD": preload,
            },
            start_new_session=True,
        )
    guest = Guest(folder, environment, process)
    deadline = time.monotonic() + BOOT_SECONDS
    while not (folder / "up").exists():
        if process.poll() is not None or time.monotonic() > deadline:
            text = guest.console()
            guest.end()
            shutil.rmtree(folder, ignore_errors=True)
            raise AssertionError(f"the guest did not come up:\n{text}")
        time.sleep(0.02)
    return guest


def find_kernel() -> Path:
    """Return the guest's kernel, unpacked once. NoGuestError where there is none or where it is not the one that its sum says."""
    given = os.environ.get(KERNEL_VARIABLE)
    path = Path(given) if given else FIXTURE
    if os.uname().machine != "x86_64":
        raise NoGuestError(f"the guest's kernel is for x86_64, this machine is {os.uname().machine}")
    if not path.exists():
        raise NoGuestError(
            f"no User-Mode Linux kernel: {path} is not there, and {KERNEL_VARIABLE} does not name another"
        )
    if path.suffix != ".xz":
        return path
    packed = path.read_bytes()
    CACHE.mkdir(parents=True, exist_ok=True)
    kernel = CACHE / f"linux-{hashlib.sha256(packed).hexdigest()[:16]}"
    if not kernel.exists():
        content = lzma.decompress(packed)
        sums = path.with_suffix(".sha256")
        known = {word for word in sums.read_text().split() if len(word) == 64} if sums.exists() else set()
        found = {hashlib.sha256(text).hexdigest() for text in (packed, content)}
        if known and not known & found:
            raise NoGuestError(f"{path} is damaged: its SHA-256 is not what {sums.name} says")
        part = Path(tempfile.mkdtemp(dir=CACHE)) / "linux"
        part.write_bytes(content)
        part.chmod(0o755)
        part.rename(kernel)
        part.parent.rmdir()
    return kernel


def find_user_space() -> dict[str, str]:
    """Return the environment in which verbs and their tools are found: those installed, else Debian's, unpacked below build/."""
    base = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/", "TMPDIR": "/mnt"}
    if find_library("ibverbs") and all(shutil.which(program) for program in ("ib_send_lat", "rping", "ibv_devinfo")):
        return base
    made = subprocess.run(
        [REPOSITORY / "tools/unpack", UNPACKED, *PACKAGES], capture_output=True, text=True, timeout=100, check=False
    )
    if made.returncode or not UNPACKED.exists():
        raise NoGuestError(f"no RDMA user space ({', '.join(PACKAGES)}): {made.stderr.strip()}")
    libraries = UNPACKED / LIBRARIES
    found = {
        **base,
        "PATH": f"{UNPACKED / 'usr/bin'}:{base['PATH']}",
        "LD_LIBRARY_PATH": f"{libraries}:{UNPACKED / 'lib/x86_64-linux-gnu'}",
    }
    providers = libraries / "libibverbs"
    if providers.exists():  # there is no /etc/libibverbs.d to name them
        found["IBV_DRIVERS"] = f"{providers / 'librxe'}:{providers / 'libsiw'}"
    return found
