"""A run directory that is disturbed: its processes, what was finished in it, and what must not be left."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from random import Random
from threading import Lock

import polars as pl

from fabricbench.lab import drop_stale_labs
from fabricbench.native import FOLDER_VARIABLE, native_file
from fabricbench.record.journal import Journal, JournalEvent

FABRICBENCH = str(Path(sys.executable).with_name("fabricbench"))
MARK = "FABRICBENCH_SOAK"
YIELD = "libfabricbench-yield.so"

GONE_S = 15.0
"""How long what was ended may take to be gone: the guard's grace, the lab's end, and a busy machine."""
WHOLE_S = 900.0
"""How long an undisturbed resume may take; a launch that hangs is ended after 30 s and more."""
DISK_BYTES = 48 * 2**20
BUSY_S = 4.0
"""How long it is tried to make a disk read-only between two moments at which a file is open for writing."""

STANDSTILL_NS = 10_000_000_000
"""No sample of the campaign takes so long, unless what it needs stood still."""

BLOCKS = {"lab": 20, "local": 60}
"""So many that a run is seldom whole before the last disturbance."""

PROBE, RANKS_OF_KERNELS, RANKS_OF_FARMS = "a rank", "a kernel's rank", "a farm's rank"
RANKS = (PROBE, RANKS_OF_KERNELS, RANKS_OF_FARMS)
IN_LAB_ONLY = ("the lab's keeper", "a switch", "a switch for a moment")
TARGETS: dict[str, Callable[[str, list[str]], bool]] = {
    "the run": lambda _, __: False,  # known by its number
    PROBE: lambda name, _: name == "fabricbench-probe",
    RANKS_OF_KERNELS: lambda name, _: name == "fabricbench-npb",
    RANKS_OF_FARMS: lambda name, _: name == "fabricbench-farm",
    "the starter": lambda name, _: name.startswith("mpiexec"),
    "a node's starter": lambda name, _: name == "hydra_pmi_proxy",
    "the guard": lambda _, words: any(word.endswith("/launch/guard.py") for word in words),
    "the lab's keeper": lambda _, words: "fabricbench.lab.keeper" in words,
    "a switch": lambda name, _: name == "fabricbench-switch",
}
"""The kinds of process that a run has, each told by its program's name and its words."""

CAMPAIGN = """
[campaign]
name = "soak"
blocks = BLOCKS
unfit = "leave out"

[[experiment]]
layers = ["udp", "tcp", "mpi"]
pattern = "pingpong"
message_bytes = ["64B"]
maximum_seconds = "20ms"

[[npb]]
benchmarks = ["EP"]
class = "S"
ranks = [2]

[[farm]]
name = "jobs"
jobs = 6
input = "20kB"
command = ["sh", "-c", "sleep 0.1; cat {input} | sha256sum"]
output = "1kB"
expect_seconds = "200ms"
"""


class Subject:
    """One run directory, the processes of its sessions, and what was finished in it."""

    def __init__(self, work: Path, number: int) -> None:
        self.home = work / f"run-{number}"
        self.place = "local" if number % 3 == 2 else "lab"
        self.disk = self.home / "disk"
        self.run = self.disk / "run"
        self.mark = f"{os.getpid()}-{number}"
        self.fault = self.home / "fault"
        self.known: dict[tuple[str, str], str] = {}
        self.looked_at: set[str] = set()
        shutil.rmtree(self.home, ignore_errors=True)
        for folder in (self.disk, self.home / "tmp", self.home / "bin"):
            folder.mkdir(parents=True)
        self.has_disk = (
            os.geteuid() == 0
            and not subprocess.run(
                ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "soak", str(self.disk)],
                check=False,
                capture_output=True,
            ).returncode
        )
        (self.home / "soak.toml").write_text(CAMPAIGN.replace("BLOCKS", str(BLOCKS[self.place])))
        self._make_hook()

    def _make_hook(self) -> None:
        """Put the programs into a folder in which the yield library brings the hook along."""
        source = Path(__file__).with_name("fault.c")
        library = native_file(YIELD)
        for path in library.parent.iterdir():
            if path.name != YIELD:
                (self.home / "bin" / path.name).symlink_to(path)
        build = ["cc", "-shared", "-fPIC", "-O1", str(source)]
        subprocess.run([*build, "-o", str(self.home / "hook.so"), "-ldl"], check=True)
        subprocess.run(
            [
                *build,
                "-Wl,--no-as-needed",
                str(library),
                f"-Wl,-rpath,{library.parent}",
                "-o",
                str(self.home / "bin" / YIELD),
                "-ldl",
            ],
            check=True,
        )

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            MARK: self.mark,
            "XDG_STATE_HOME": str(self.home / "state"),
            "TMPDIR": str(self.home / "tmp"),
            "SOAK_FAULT": str(self.fault),
            "SOAK_PATH": str(self.run.resolve()),
            "LD_PRELOAD": str(self.home / "hook.so"),
            FOLDER_VARIABLE: str(self.home / "bin"),
        }

    def command(self) -> list[str]:
        if (self.run / "plan.json").exists():
            return [FABRICBENCH, "resume", str(self.run)]
        where = ["local"] if self.place == "local" else ["lab:fast-ethernet,myrinet", "--nodes", "2"]
        return [
            FABRICBENCH,
            "run",
            str(self.home / "soak.toml"),
            "--testbed",
            *where,
            "--seed",
            "1",
            "-o",
            str(self.run),
        ]

    def start(self) -> subprocess.Popen[bytes]:
        with (self.home / "out").open("wb") as out, (self.home / "err").open("wb") as err:
            return subprocess.Popen(
                self.command(), env=self.environment, stdout=out, stderr=err, stdin=subprocess.DEVNULL
            )

    def processes(self) -> dict[int, str]:
        """Return the living processes of all sessions with their commands."""
        wanted = f"{MARK}={self.mark}".encode()
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with suppress(OSError):
                    if wanted in (entry / "environ").read_bytes().split(b"\0"):
                        state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                        if state != "Z":
                            words = (entry / "cmdline").read_bytes().split(b"\0")
                            found[int(entry.name)] = b" ".join(words).decode(errors="replace")
        return found

    def find(self, target: str, session: int, random: Random) -> int | None:
        """Return a process of a kind: the program itself, not the guard or starter whose command names it too."""
        if target == "the run":
            return session
        found = []
        for pid, command in self.processes().items():
            words = command.split(" ")
            is_asked = words[-1] == "--version"  # by the preflight
            if not is_asked and TARGETS[target](Path(words[0]).name, words):
                found.append(pid)
        return random.choice(sorted(found)) if found else None

    @contextmanager
    def disk_full(self) -> Iterator[bool]:
        """Fill the disk to its last byte, and empty it at the end."""
        filler = self.disk / "filler"
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(2**16))
        try:
            yield True
        finally:
            filler.unlink(missing_ok=True)

    @contextmanager
    def disk_read_only(self) -> Iterator[bool]:
        """Make the disk read-only, once no file on it is open for writing, and writable at the end; yield whether it was."""

        def remounted(how: str) -> bool:
            command = ["mount", "-o", f"remount,{how}", str(self.disk)]
            return subprocess.run(command, check=False, capture_output=True).returncode == 0

        deadline = time.monotonic() + BUSY_S
        while not (is_read_only := remounted("ro")) and time.monotonic() < deadline:
            time.sleep(0.001)
        try:
            yield is_read_only
        finally:
            remounted("rw")

    def said(self) -> str:
        """Return what the session said was wrong, without what differs from run to run."""
        text = (self.home / "err").read_text(errors="replace")
        if "Traceback (most recent call last)" in text:
            return f"Traceback: {text.strip().splitlines()[-1]}"
        lines = [line for line in text.splitlines() if line.startswith("fabricbench: ")] or text.strip().splitlines()
        if not lines:
            return ""
        told = lines[-1].removeprefix("fabricbench: ").replace(str(self.run), "RUNDIR")
        return told.replace(f"{Path(FABRICBENCH).parent}/", "").replace(str(self.home), "HOME")[:160]

    def finished(self) -> dict[str, str]:
        """Return each launch that the journal says is finished, with what it may be measured again for not being."""
        done: dict[str, str] = {}
        for entry in Journal(self.run).entries() if self.run.is_dir() else ():
            if entry.event in (JournalEvent.FINISHED, JournalEvent.ADOPTED) and entry.launch_id:
                done[entry.launch_id] = "in place"
            elif entry.event is JournalEvent.AGAIN:
                for launch in entry.facts.get("set_aside", []):
                    done.pop(launch, None)
            elif entry.event is JournalEvent.STARTED:
                done.pop(entry.launch_id or "", None)
        return done

    def stored(self) -> dict[tuple[str, str], Path]:
        """Return the hash of what every launch folder and attempt holds: (launch, hash) -> folder."""
        found = {}
        for path in self.run.glob("launches/*/**/samples.parquet"):
            names = ("samples.parquet", "cells.parquet", "launch.json")
            with suppress(OSError):
                content = b"".join((path.parent / name).read_bytes() for name in names)
                launch = path.relative_to(self.run / "launches").parts[0]
                found[launch, sha256(content).hexdigest()] = path.parent
        return found

    def check_kept(self) -> Iterator[str]:
        """Yield what of the finished launches is lost or changed, and note what is finished now."""
        stored = self.stored()
        for launch, digest in self.known:
            if (launch, digest) not in stored:
                yield f"lost: {launch} is not as it was when it was finished"
        in_place = {launch: digest for (launch, digest), path in stored.items() if path.name == launch}
        for launch in self.finished():
            if launch not in in_place:
                yield f"lost: {launch} is finished by the journal and not there"
            else:
                self.known[launch, in_place[launch]] = launch

    def check_told(self) -> Iterator[str]:
        """Yield which finished launches count a sample as long as a standstill, and say nothing of one."""
        for launch in sorted(self.finished().keys() - self.looked_at):
            self.looked_at.add(launch)
            folder = self.run / "launches" / launch
            samples = pl.scan_parquet(folder / "samples.parquet").filter(~pl.col("missed"))
            longest = samples.select(pl.col("time_ns").max()).collect().item() or 0
            facts = json.loads((folder / "launch.json").read_text())["facts"]
            if longest > STANDSTILL_NS and facts["is_valid"] and not facts.get("standstills"):
                yield f"untold: {launch} counts a sample of {longest / 1e9:.1f} s"

    def check_gone(self, interfaces: set[str]) -> Iterator[str]:
        """Yield what is left of a session that has ended, once it had its time to go."""
        deadline = time.monotonic() + GONE_S
        while (left := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.1)
        yield from (f"left: process {command[:90]}" for command in left.values())
        # A process that is ending shows no environment any more, and a keeper takes a while to take its namespaces down.
        while (entries := self._stale_entries()) and time.monotonic() < deadline:
            time.sleep(0.1)
        yield from (f"left: ledger entry {name}" for name in entries)
        yield from (f"left: temporary {path.name}" for path in (self.home / "tmp").iterdir())
        while (more := interfaces_here() - interfaces) and time.monotonic() < deadline:
            time.sleep(0.1)  # others make interfaces, too, and take them away
        yield from (f"left: interface {name}" for name in more)

    def _stale_entries(self) -> list[str]:
        """Return what is in the ledger after the next start would have tidied it."""
        with _state_home(self.home / "state"):
            drop_stale_labs()
        return [path.name for path in (self.home / "state/fabricbench/labs").glob("*/[!.]*")]

    def check_whole(self) -> Iterator[str]:
        """Resume to the end and yield what keeps the run from being whole."""
        process = self.start()
        try:
            code = process.wait(WHOLE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            yield f"hung: an undisturbed resume did not end within {WHOLE_S:.0f} s"
            return
        if code != 0:
            yield f"an undisturbed resume ended with {code}: {self.said()}"
            return
        planned = {one["launch_id"] for one in json.loads((self.run / "plan.json").read_text())["plan"]["launches"]}
        yield from (f"missing: {launch}" for launch in sorted(planned - self.finished().keys()))
        yield from (
            f"left: {path.relative_to(self.run)}" for path in self.run.rglob("*.tmp") if "attempt-" not in str(path)
        )
        yield from (f"left: {path.relative_to(self.run)}" for path in self.run.rglob("*.moving"))

    def close(self, *, is_kept: bool) -> None:
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if is_kept:
            shutil.copytree(self.disk, self.home / "kept", symlinks=True, dirs_exist_ok=True)
        if self.has_disk:
            subprocess.run(["umount", "-l", str(self.disk)], check=False)
        if not is_kept:
            shutil.rmtree(self.home, ignore_errors=True)


def interfaces_here() -> set[str]:
    return {path.name for path in Path("/sys/class/net").iterdir()}


@contextmanager
def _state_home(path: Path) -> Iterator[None]:
    """The ledger of a subject as ours, for a moment; one subject at a time."""
    with _one_at_a_time:
        before = os.environ.get("XDG_STATE_HOME")
        os.environ["XDG_STATE_HOME"] = str(path)
        try:
            yield
        finally:
            if before is None:
                del os.environ["XDG_STATE_HOME"]
            else:
                os.environ["XDG_STATE_HOME"] = before


_one_at_a_time = Lock()
