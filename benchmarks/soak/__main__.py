"""Is anything lost, left behind or hung when something dies? Short runs, killed and hurt at random moments, resumed, and looked at.

    python -m benchmarks.soak [--hits 200] [--minutes 60] [--beside 1] [--seed 1]
        [--work build/soak] [--write docs/soak.md]

A *trial* starts or resumes a run in a lab of two nodes (or, every third run directory, on this machine alone), waits a random
moment, does one thing to it, and looks at what is left; after some trials the run is resumed undisturbed to its end. It goes on
until so many have hit. Every choice comes from the seed and the trial's number; the moment at which it hits does
not, for processes run as they like. What was found is kept in WORK/trials.jsonl, a line a trial, and is gone on with; a run
directory in which something was wrong is kept too. Faults that the system does not give on demand come from a preload (`fault.c`).
Filling a disk needs root, else it is left out.
"""

from __future__ import annotations

import argparse
import json
import shlex
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import TextIO

from benchmarks.page import show
from benchmarks.soak.counts import page
from benchmarks.soak.subject import Subject, interfaces_here
from benchmarks.soak.trials import TRIALS, Trial, plan_trial, read_trials, run_trial

TRIALS_EACH_RUN = 12
"""Disturbances of one run directory before it is resumed to its end."""


def soak(arguments: argparse.Namespace) -> list[Trial]:
    """Disturb runs, `beside` of them at a time, until as many trials have hit as asked for, or the time is over."""
    work = arguments.work
    work.mkdir(parents=True, exist_ok=True)
    done = read_trials(work)
    end = time.monotonic() + 60.0 * arguments.minutes
    interfaces = interfaces_here()
    number = max((int(path.name.partition("-")[2]) for path in work.glob("run-*")), default=-1) + 1
    first = max((trial.index for trial in done), default=-1) + 1

    def has_enough() -> bool:
        return sum(trial.has_hit for trial in done) >= arguments.hits or time.monotonic() > end

    with ThreadPoolExecutor(arguments.beside) as pool, (work / TRIALS).open("a", buffering=1) as file:
        going: set[Future[list[Trial]]] = set()
        try:
            for one in count():
                if has_enough():
                    break
                indices = range(first + one * TRIALS_EACH_RUN, first + (one + 1) * TRIALS_EACH_RUN)
                going.add(pool.submit(disturb_one_run, Subject(work, number + one), indices, arguments, interfaces))
                while len(going) >= arguments.beside:
                    ended, going = wait(going, return_when=FIRST_COMPLETED)
                    done += _kept(ended, file)
        finally:  # also after Ctrl-C: what was tried counts
            done += _kept(wait(going).done, file)
    return done


def _kept(ended: Iterable[Future[list[Trial]]], file: TextIO) -> list[Trial]:
    trials = [trial for future in ended for trial in future.result()]
    file.writelines(json.dumps(asdict(trial)) + "\n" for trial in trials)
    return trials


def disturb_one_run(
    subject: Subject, indices: Sequence[int], arguments: argparse.Namespace, interfaces: set[str]
) -> list[Trial]:
    """Begin a run, disturb it in so many trials, and resume it to its end."""
    trials: list[Trial] = []
    try:
        for index in indices:
            trial, random = plan_trial(index, arguments.seed, subject.place, subject.has_disk)
            run_trial(subject, trial, random, interfaces)
            trials.append(trial)
        trials[-1].problems += subject.check_whole()
        trials[-1].problems += subject.check_gone(interfaces)
        trials[-1].problems += subject.check_kept()
    finally:
        subject.close(is_kept=any(trial.problems for trial in trials))
    lines = []
    for trial in trials:
        lines.append(
            f"{trial.index} {trial.kind} after {trial.after_s} s ({trial.place}): {trial.outcome}; {trial.said}"
        )
        lines += [f"    WRONG {problem}  ({shlex.quote(str(subject.home))})" for problem in trial.problems]
    print("\n".join(lines), flush=True)
    return trials


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hits", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--beside", type=int, default=1, help="so many runs at a time, which makes the machine busy")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", type=lambda text: Path(text).absolute(), default=Path("build/soak").absolute())
    parser.add_argument("--write", type=Path, help="put the counts into this page")
    arguments = parser.parse_args()
    # A shell that starts us in the background has it ignored, and sessions would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    trials = soak(arguments)
    show(page(trials), "soak", arguments.write)
    sys.exit(any(trial.problems for trial in trials))


if __name__ == "__main__":
    main()
