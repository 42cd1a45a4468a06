"""What is done to a run, when, and what came of it."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from benchmarks.soak.subject import IN_LAB_ONLY, RANKS, TARGETS, Subject

TRIALS = "trials.jsonl"

LATEST_S = 5.0
"""The latest moment of a disturbance: a launch or two into a session on a busy machine."""
END_S = 30.0
"""How long a run may take to end after Ctrl-C."""
STILL_S = 30.0
"""How long a stopped process stands still before it goes on."""
APPEARS_S = 20.0
"""How long what is to be disturbed may take to be there, on a busy machine."""

ROOM_BYTES = 2**20
"""What a process whose memory is limited may still map."""

OF_A_PROCESS = ("kill", "stop", "limit the memory of", "limit the descriptors of")
HANG, LOST_FRAMES = "hang a rank", "stop a switch for a moment"
BY_PRELOAD = {
    "ENOSPC on a record": "write 28",
    "EIO on writes": "write 5",
    "connection reset": "recv 104",
    "clock forward": "clock 86400",
    "clock back": "clock -86400",
}
"""What the preload is told: errno of writes or receives, seconds that the wall clock is shifted by."""
FULL, READ_ONLY = "full disk", "read-only disk"
OF_A_DISK = (FULL, READ_ONLY)

KINDS = (
    *(f"{what} {target}" for what in OF_A_PROCESS for target in TARGETS),
    HANG,
    LOST_FRAMES,
    *OF_A_DISK,
    *BY_PRELOAD,
)


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


def disturb(subject: Subject, trial: Trial, session: subprocess.Popen[bytes], random: Random) -> None:
    """Do to a session what the trial says, and undo it after a moment where it is not a death."""
    hold = random.uniform(0.3, 2.5)
    if trial.kind in OF_A_DISK:
        with subject.disk_full() if trial.kind == FULL else subject.disk_read_only() as trial.has_hit:
            _wait(session, hold + 4.0)
    elif trial.kind in BY_PRELOAD:
        subject.fault.write_text(BY_PRELOAD[trial.kind])
        trial.has_hit = True
        _wait(session, hold)
        subject.fault.unlink()
    else:
        _disturb_process(subject, trial, session, random, hold)


def _disturb_process(
    subject: Subject, trial: Trial, session: subprocess.Popen[bytes], random: Random, hold: float
) -> None:
    what, target = _process_of(trial.kind)
    # A rank lives for a moment of each launch: wait for one, and for a while in its life.
    deadline = time.monotonic() + APPEARS_S
    age = random.choice((0.0, random.uniform(0.0, 0.4))) if target in RANKS else 0.0
    while (pid := subject.find(target, session.pid, random)) is None:
        if session.poll() is not None or time.monotonic() > deadline:
            return
        time.sleep(0.005)
    time.sleep(age)
    with suppress(ProcessLookupError, FileNotFoundError):
        if what == "kill":
            os.kill(pid, signal.SIGKILL)
        elif what == "limit the memory of":
            mapped = int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * resource.getpagesize()
            resource.prlimit(pid, resource.RLIMIT_AS, (mapped + ROOM_BYTES, mapped + ROOM_BYTES))
        elif what == "limit the descriptors of":
            number = 1 + max(int(path.name) for path in Path(f"/proc/{pid}/fd").iterdir())
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (number, number))
        else:
            os.kill(pid, signal.SIGSTOP)
        trial.has_hit = True
    seconds = {LOST_FRAMES: hold}.get(trial.kind, STILL_S if what == "stop" else 0.0)
    if seconds and trial.has_hit:
        _wait(session, seconds)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def _process_of(kind: str) -> tuple[str, str]:
    """Return what is done to a process, and to which."""
    if kind == HANG:
        return "hang", "a rank"
    if kind == LOST_FRAMES:
        return "hold", "a switch"
    return next((what, kind.removeprefix(f"{what} ")) for what in OF_A_PROCESS if kind.startswith(f"{what} "))


def run_trial(subject: Subject, trial: Trial, random: Random, interfaces: set[str]) -> None:
    begin = time.monotonic()
    session = subject.start()
    if not _wait(session, trial.after_s):
        disturb(subject, trial, session, random)
    goes_on = random.uniform(0.5, 2.5)
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
    if trial.said.startswith("Traceback") and not trial.problems:
        trial.problems.append(trial.said)
    trial.problems += subject.check_gone(interfaces)
    trial.problems += subject.check_kept()
    trial.problems += subject.check_told()
    trial.finished = len(subject.finished())
    trial.seconds = round(time.monotonic() - begin, 1)


def plan_trial(index: int, seed: int, place: str, has_disk: bool) -> tuple[Trial, Random]:
    """Return what a trial does: each kind once, in a drawn order, before any comes again."""
    kinds = [kind for kind in KINDS if place == "lab" or not kind.endswith(IN_LAB_ONLY)]
    kinds = [kind for kind in kinds if kind not in OF_A_DISK or has_disk]
    Random(f"{seed} {place} {index // len(kinds)}").shuffle(kinds)
    random = Random(f"{seed} {index}")
    return Trial(index, kinds[index % len(kinds)], place, round(random.uniform(0.3, LATEST_S), 2)), random


def read_trials(work: Path) -> list[Trial]:
    path = work / TRIALS
    return [Trial(**json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []


def _wait(session: subprocess.Popen[bytes], seconds: float) -> bool:
    """Wait so long at most; return whether the session has ended."""
    with suppress(subprocess.TimeoutExpired):
        session.wait(seconds)
    return session.poll() is not None


def _end(session: subprocess.Popen[bytes]) -> None:
    session.kill()
    session.wait()
