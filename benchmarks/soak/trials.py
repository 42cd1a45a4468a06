"""What is done to a run, when, and what came of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from benchmarks.soak.subject import Subject

TRIALS = "trials.jsonl"

LATEST_S = 5.0
"""The latest moment of a disturbance: a launch or two into a session on a busy machine."""
END_S = 30.0
"""How long a run may take to end after Ctrl-C."""
KILLS = ("kill the run", "kill a rank", "kill the launcher", "kill the lab's keeper", "kill a switch")
FAULTS = ("full disk", "ENOSPC on a record", "EIO on writes", "connection reset", "lost frames", "hung rank")
OF_A_RANK = {"kill a rank", "hung rank"}
APPEARS_S = 20.0
"""How long what is to be disturbed may take to be there, on a busy machine."""
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
    # A rank lives for a moment of each launch: wait for one, and for a while in its life.
    deadline = time.monotonic() + APPEARS_S
    age = random.choice((0.0, random.uniform(0.0, 0.4))) if trial.kind in OF_A_RANK else 0.0
    while True:
        pid = subject.find(trial.kind, session.pid, random)
        if pid is not None:
            time.sleep(age)
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL if trial.kind.startswith("kill") else signal.SIGSTOP)
                trial.has_hit = True
                break
        if session.poll() is not None or time.monotonic() > deadline:
            return
        time.sleep(0.005)
    if trial.kind == "lost frames":
        _wait(session, hold)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


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
