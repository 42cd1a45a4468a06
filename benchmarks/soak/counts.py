"""The trials counted, as the page has them."""

from __future__ import annotations

import os
import platform
import re
from collections import Counter
from collections.abc import Sequence

from benchmarks.soak.trials import KINDS, Trial


def page(trials: Sequence[Trial]) -> list[str]:
    """Return the counts as the page has them."""
    hours = sum(trial.seconds for trial in trials) / 3600
    head = f"{len(trials)} trials, {sum(trial.has_hit for trial in trials)} of which hit their target, in {hours:.1f} hours"
    head += f"; Linux {platform.release()}, {os.cpu_count()} processors."
    lines = [
        head,
        "",
        "| done to the run | trials | hit | went on | ended by itself, exit code | killed with it | something was wrong |",
        "| --- | ---: | ---: | ---: | --- | ---: | ---: |",
    ]
    for kind in KINDS:
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


NAMES = (
    (re.compile(r"\b(b\d+|run)-[\w.-]+|\bLAUNCH\b"), "LAUNCH"),
    (re.compile(r"process \d+"), "process N"),
    (re.compile(r"/\S*/(?=mpiexec)"), ""),
)
"""What differs from trial to trial: launches, numbers of processes, where things are."""


def _without_names(text: str) -> str:
    for pattern, name in NAMES:
        text = pattern.sub(name, text)
    return text.split("; ")[0][:120]
