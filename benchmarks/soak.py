"""Is anything lost, left behind or hung when something dies? Short runs, killed and hurt at random moments, resumed, and looked at.

    python -m benchmarks.soak [--kills 1000] [--faults 200] [--minutes 60] [--seed 1] [--work build/soak] [--write docs/soak.md]

A *trial* starts or resumes a run in a lab of two nodes (or, every third run directory, on this machine alone), waits a random
moment, does one thing to it, and looks at what is left; after some trials the run is resumed undisturbed to its end. Every choice
comes from the seed and the trial's number; the moment at which it hits does not, for processes run as they like. What was found is
kept in WORK/trials.jsonl, a line a trial, and is gone on with; a run directory in which something was wrong is kept too. Faults
that the system does not give on demand come from a preload (`soak_fault.c`). Filling a disk needs root, else it is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from random import Random

from benchmarks.page import show

from fabricbench.campaign.journal import Happened, Journal
from fabricbench.lab import drop_stale_labs
from fabricbench.native import FOLDER_VARIABLE, native_file

FABRICBENCH = str(Path(sys.executable).with_name("fabricbench"))
MARK = "FABRICBENCH_SOAK"
TRIALS = "trials.jsonl"
YIELD = "libfabricbench-yield.so"

TRIALS_EACH_RUN = 6
"""Disturbances of one run directory before it is resumed to its end."""
LATEST_S = 9.0
"""The latest moment of a disturbance: a launch or two into a session on a busy machine."""
GONE_S = 15.0
"""How long what was ended may take to be gone: the guard's grace, the lab's end, and a busy machine."""
END_S = 30.0
"""How long a run may take to end after Ctrl-C."""
WHOLE_S = 400.0
"""How long an undisturbed resume may take; a launch that hangs is ended after 30 s and more."""
DISK_BYTES = 48 * 2**20

CAMPAIGN = """
[campaign]
name = "soak"
blocks = 4
unfit = "leave out"

[[experiment]]
layers = ["udp", "tcp", "mpi"]
pattern = "pingpong"
message_bytes = ["64B"]
maximum_seconds = "20ms"
"""

KILLS = ("kill the run", "kill a rank", "kill the launcher", "kill the lab's keeper", "kill a switch")
FAULTS = ("full disk", "ENOSPC on a record", "EIO on writes", "connection reset", "lost frames", "hung rank")
IN_LAB_ONLY = {"kill the lab's keeper", "kill a switch", "lost frames"}


@dataclass
class Trial:
    """One disturbance: what was done after how long, how the run ended, what it said, and what was wrong."""

    index: int
    kind: str
    place: str
    after_s: float
    has_hit: bool = False
    outcome: str = ""
    exit_code: int | None = None
    said: str = ""
    finished: int = 0
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)


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
        self.trials = 0
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
        (self.home / "soak.toml").write_text(CAMPAIGN)
        self._make_hook()

    def _make_hook(self) -> None:
        """Put the programs into a folder in which the yield library brings the hook along."""
        source = Path(__file__).with_name("soak_fault.c")
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

    def find(self, kind: str, session: int, random: Random) -> int | None:
        """Return a process of a kind: the rank itself, not the guard or starter whose command names it too."""

        def program(command: str) -> str:
            return Path(command.split(" ", maxsplit=1)[0]).name

        tests: dict[str, Callable[[int, str], bool]] = {
            "kill the run": lambda pid, _: pid == session,
            "kill a rank": lambda _, command: program(command) == "fabricbench-probe",
            "hung rank": lambda _, command: program(command) == "fabricbench-probe",
            "kill the launcher": lambda _, command: program(command).startswith("mpiexec"),
            "kill the lab's keeper": lambda _, command: (
                "lab/keeper.py" in command or "fabricbench.lab.keeper" in command
            ),
            "kill a switch": lambda _, command: program(command) == "fabricbench-switch",
            "lost frames": lambda _, command: program(command) == "fabricbench-switch",
        }
        found = sorted(pid for pid, command in self.processes().items() if tests[kind](pid, command))
        return random.choice(found) if found else None

    def said(self) -> str:
        """Return what the session said was wrong, without what differs from run to run."""
        text = (self.home / "err").read_text(errors="replace")
        if "Traceback (most recent call last)" in text:
            return f"Traceback: {text.strip().splitlines()[-1]}"
        lines = [line for line in text.splitlines() if line.startswith("fabricbench: ")]
        return lines[-1].removeprefix("fabricbench: ").replace(str(self.run), "RUNDIR")[:160] if lines else ""

    def finished(self) -> dict[str, str]:
        """Return each launch that the journal says is finished, with what it may be measured again for not being."""
        done: dict[str, str] = {}
        for entry in Journal(self.run).entries() if self.run.is_dir() else ():
            if entry.event in (Happened.FINISHED, Happened.ADOPTED) and entry.launch_id:
                done[entry.launch_id] = "in place"
            elif entry.event is Happened.AGAIN:
                for launch in entry.facts.get("set_aside", []):
                    done.pop(launch, None)
            elif entry.event is Happened.STARTED:
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

    def check_gone(self, interfaces: set[str]) -> Iterator[str]:
        """Yield what is left of a session that has ended, once it had its time to go."""
        deadline = time.monotonic() + GONE_S
        while (left := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.1)
        yield from (f"left: process {command[:90]}" for command in left.values())
        with _state_home(self.home / "state"):
            drop_stale_labs()
        yield from (f"left: ledger entry {path.name}" for path in (self.home / "state/fabricbench/labs").glob("[!.]*"))
        yield from (f"left: temporary {path.name}" for path in (self.home / "tmp").iterdir())
        while (more := _interfaces() - interfaces) and time.monotonic() < deadline:
            time.sleep(0.1)  # others make interfaces, too, and take them away
        yield from (f"left: interface {name}" for name in more)

    def check_whole(self) -> Iterator[str]:
        """Resume to the end and yield what keeps the run from being whole."""
        process = self.start()
        try:
            code = process.wait(WHOLE_S)
        except subprocess.TimeoutExpired:
            _end(process)
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


def disturb(subject: Subject, trial: Trial, session: subprocess.Popen[bytes], random: Random) -> None:
    """Do to a session what the trial says, and undo it after a moment where it is not a death."""
    hold = random.uniform(0.3, 2.5)
    if trial.kind == "full disk":
        filler = subject.disk / "filler"
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(2**16))
        trial.has_hit = True
        _wait(session, hold + 4.0)
        filler.unlink(missing_ok=True)
        return
    written = {"ENOSPC on a record": "write 28", "EIO on writes": "write 5", "connection reset": "recv 104"}.get(
        trial.kind
    )
    if written is not None:
        subject.fault.write_text(written)
        trial.has_hit = True
        _wait(session, hold)
        subject.fault.unlink()
        return
    deadline = time.monotonic() + LATEST_S  # a rank lives for a moment of each launch: wait for one
    while (pid := subject.find(trial.kind, session.pid, random)) is None:
        if session.poll() is not None or time.monotonic() > deadline:
            return
        time.sleep(0.02)
    if trial.kind in ("kill a rank", "hung rank"):
        time.sleep(random.uniform(0.0, 0.5))
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL if trial.kind.startswith("kill") else signal.SIGSTOP)
        trial.has_hit = True
    if trial.kind == "lost frames":
        _wait(session, hold)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def run_trial(subject: Subject, trial: Trial, random: Random, interfaces: set[str]) -> None:
    begin = time.monotonic()
    session = subject.start()
    if not _wait(session, trial.after_s):
        disturb(subject, trial, session, random)
    goes_on = random.uniform(1.0, 6.0)
    if _wait(session, goes_on):
        trial.outcome = "killed" if session.returncode == -signal.SIGKILL else f"ended with {session.returncode}"
    else:
        for times in ("", "second "):  # the first is heard where nothing is half done: not while a testbed is built
            session.send_signal(signal.SIGINT)
            if _wait(session, END_S):
                trial.outcome = f"went on; {times}Ctrl-C: {session.returncode}"
                break
        else:
            trial.outcome = "did not end"
            trial.problems.append(f"hung: did not end within {END_S:.0f} s of a second Ctrl-C")
            _end(session)
    trial.exit_code, trial.said = session.returncode, subject.said()
    is_killed = session.returncode in (
        -signal.SIGKILL,
        -signal.SIGINT,
    )  # Ctrl-C while the program loads ends it silently
    if session.returncode not in (0, 3, 4, 130) and not is_killed:
        trial.problems.append(f"exit code {session.returncode}: {trial.said}")
    elif session.returncode in (3, 4) and not trial.said:  # 130 needs no word where the run had not begun
        trial.problems.append(f"exit code {session.returncode} without a word")
    trial.problems += subject.check_gone(interfaces)
    trial.problems += subject.check_kept()
    trial.finished = len(subject.finished())
    trial.seconds = round(time.monotonic() - begin, 1)


def plan_trial(index: int, seed: int, kills: int, faults: int, place: str, has_disk: bool) -> tuple[Trial, Random]:
    """Return what a trial does: of kills and faults as many as asked for, spread evenly."""
    random = Random(f"{seed} {index}")
    total = kills + faults
    is_fault = (index + 1) * faults // total > index * faults // total
    kinds = [kind for kind in (FAULTS if is_fault else KILLS) if place == "lab" or kind not in IN_LAB_ONLY]
    kinds = [kind for kind in kinds if kind != "full disk" or has_disk]
    return Trial(index, random.choice(kinds), place, round(random.uniform(0.3, LATEST_S), 2)), random


def soak(arguments: argparse.Namespace) -> list[Trial]:
    work = arguments.work
    work.mkdir(parents=True, exist_ok=True)
    done = read_trials(work)
    end = time.monotonic() + 60.0 * arguments.minutes
    interfaces = _interfaces()
    number = max((int(path.name.partition("-")[2]) for path in work.glob("run-*")), default=len(done) - 1) + 1
    while len(done) < arguments.kills + arguments.faults and time.monotonic() < end:
        subject = Subject(work, number)
        number += 1
        of_subject: list[Trial] = []
        try:
            for _ in range(TRIALS_EACH_RUN):
                if len(done) + len(of_subject) >= arguments.kills + arguments.faults or time.monotonic() > end:
                    break
                index = len(done) + len(of_subject)
                trial, random = plan_trial(
                    index, arguments.seed, arguments.kills, arguments.faults, subject.place, subject.has_disk
                )
                run_trial(subject, trial, random, interfaces)
                of_subject.append(trial)
            if of_subject:
                of_subject[-1].problems += subject.check_whole()
                of_subject[-1].problems += subject.check_gone(interfaces)
                of_subject[-1].problems += subject.check_kept()
        finally:
            subject.close(is_kept=any(trial.problems for trial in of_subject))
        for trial in of_subject:
            print(
                f"{trial.index} {trial.kind} after {trial.after_s} s ({trial.place}): {trial.outcome}; {trial.said}",
                flush=True,
            )
            for problem in trial.problems:
                print(f"    WRONG {problem}  ({shlex.quote(str(subject.home))})", flush=True)
        with (work / TRIALS).open("a") as file:
            file.writelines(json.dumps(asdict(trial)) + "\n" for trial in of_subject)
        done += of_subject
    return done


def read_trials(work: Path) -> list[Trial]:
    path = work / TRIALS
    return [Trial(**json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []


def page(trials: Sequence[Trial]) -> list[str]:
    """Return the counts as the page has them."""
    kinds = [*KILLS, *FAULTS]
    hours = sum(trial.seconds for trial in trials) / 3600
    head = f"{len(trials)} trials, {sum(trial.has_hit for trial in trials)} of which hit their target, in {hours:.1f} hours"
    head += f"; Linux {platform.release()}, {os.cpu_count()} processors."
    lines = [
        head,
        "",
        "| done to the run | trials | hit | went on | ended by itself, exit code | killed with it | something was wrong |",
        "| --- | ---: | ---: | ---: | --- | ---: | ---: |",
    ]
    for kind in kinds:
        of = [trial for trial in trials if trial.kind == kind]
        if not of:
            continue
        codes = Counter(trial.exit_code for trial in of if trial.outcome.startswith("ended with"))
        told = ", ".join(f"{code}: {count}" for code, count in sorted(codes.items(), key=str)) or "-"
        went = sum(trial.outcome.startswith("went on") for trial in of)
        killed = sum(trial.outcome == "killed" for trial in of)
        wrong = sum(bool(trial.problems) for trial in of)
        lines.append(
            f"| {kind} | {len(of)} | {sum(one.has_hit for one in of)} | {went} | {told} | {killed} | {wrong} |"
        )
    wrongs = Counter(_without_names(problem) for trial in trials for problem in trial.problems)
    lines += ["", "What was wrong, with how often:" if wrongs else "Nothing was wrong in any trial."]
    lines += [""] * bool(wrongs) + [f"* {count} x {problem}" for problem, count in wrongs.most_common()]
    words = Counter(
        (trial.kind, _without_names(trial.said)) for trial in trials if trial.exit_code in (3, 4) and trial.said
    )
    lines += ["", "What runs that ended by themselves with 3 or 4 said:"] if words else []
    lines += [""] * bool(words) + [f"* {count} x {kind}: `{said}`" for (kind, said), count in sorted(words.items())]
    return lines


def _without_names(text: str) -> str:
    """Leave out what differs from trial to trial: launches and numbers of processes."""
    words = []
    for word in text.split():
        is_named = (word.startswith("b0") and "-" in word) or word.startswith("run-")
        words.append("LAUNCH" if is_named else word)
    return " ".join(words)[:120]


def _wait(session: subprocess.Popen[bytes], seconds: float) -> bool:
    """Wait so long at most; return whether the session has ended."""
    with suppress(subprocess.TimeoutExpired):
        session.wait(seconds)
    return session.poll() is not None


def _end(session: subprocess.Popen[bytes]) -> None:
    session.kill()
    session.wait()


def _interfaces() -> set[str]:
    return {path.name for path in Path("/sys/class/net").iterdir()}


class _state_home:  # noqa: N801 - reads as the function that it is
    """The ledger of a subject as ours, for a moment."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._before = os.environ.get("XDG_STATE_HOME")

    def __enter__(self) -> None:
        os.environ["XDG_STATE_HOME"] = str(self._path)

    def __exit__(self, *_: object) -> None:
        if self._before is None:
            del os.environ["XDG_STATE_HOME"]
        else:
            os.environ["XDG_STATE_HOME"] = self._before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", type=lambda text: Path(text).absolute(), default=Path("build/soak").absolute())
    parser.add_argument("--write", type=Path, help="put the counts into this page")
    arguments = parser.parse_args()
    trials = soak(arguments)
    show(page(trials), "soak", arguments.write)
    sys.exit(any(trial.problems for trial in trials))


if __name__ == "__main__":
    main()
