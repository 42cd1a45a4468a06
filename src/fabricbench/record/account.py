"""The account of a run: what was started for each test on each fabric, what of it counts, what was lost, and why.

Made from the plan, the journal and the stored launches in one pass; samples are not read. `run` and `resume` take their exit code
from it, and every report what it says first. What it comes to in words is `report.losses`.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from fabricbench.record.farm_jobs import FarmJobs
from fabricbench.record.farm_lines import DONE, JOBS, LOST, RETRIED
from fabricbench.record.journal import START_IS_OVER, Journal, JournalEntry, JournalEvent
from fabricbench.record.launch import scan_cells
from fabricbench.record.lines import FailureCode
from fabricbench.record.lock import is_locked
from fabricbench.record.manifest import PlannedLaunch
from fabricbench.record.outcome import LaunchOutcome
from fabricbench.record.run_account import LossKind, LostLaunches, RunAccount, SubjectAccount
from fabricbench.record.store import Run, StoredLaunch

MOST_NAMED = 8
"""Launches of a kind of loss that an account names one by one; it counts all."""

NOT_POSSIBLE = (FailureCode.PERMISSION, FailureCode.UNSUPPORTED)
"""Of a test that failed: it cannot be measured here at all, as its warning says. That is no result that was lost."""

DOUBTED_SHARE = 0.1
"""Of the starts: where more of them gave nothing that counts, those that did may be a selection."""


@dataclass
class _Starts:
    """What the journal tells of a launch."""

    starts: int = 0
    failed: int = 0
    killed: int = 0
    """Starts without an end that another one followed."""
    reason: str = ""
    is_over: bool = False
    is_under_way: bool = False
    """The last start has no end."""
    is_stopped: bool = False
    is_interrupted: bool = False
    """The last start was ended by who asked for it, with Ctrl-C."""


@dataclass
class _Sum:
    """What was counted of a subject on a fabric so far."""

    planned: int = 0
    starts: int = 0
    failed_starts: int = 0
    failed_start_reason: str = ""
    killed_starts: int = 0
    measured: int = 0
    set_aside: int = 0
    tests: int = 0
    failed_tests: int = 0
    failed_test_launches: int = 0
    failed_test_reason: str = ""
    is_stopped: bool = False
    lost: dict[LossKind, list[tuple[str, str]]] = field(default_factory=lambda: defaultdict(list))
    jobs: list[FarmJobs] = field(default_factory=list)


def account_of(run: Run) -> RunAccount:
    """Return the account of a run, finished or not. Cells are read of launches with failed tests alone."""
    told = _starts_of(Journal(run.path).entries())
    if any(one.is_under_way for one in told.values()) and is_locked(run.path):  # it goes on
        for one in told.values():
            one.is_under_way = False
    stored = {one.launch_id: one for one in (*run.launches, *run.unfinished)}
    damaged = {one.launch_id: one.reason for one in run.damaged}
    aside = Counter(one.directory.parent.name for one in run.set_aside)
    launches = run.manifest.planned or [_unplanned(one) for one in stored.values()]
    sums: dict[tuple[str, str], _Sum] = {}
    for launch in launches:
        total = sums.setdefault((launch.subject, launch.fabric), _Sum())
        _add(total, launch.launch_id, stored.get(launch.launch_id), told[launch.launch_id], damaged)
        total.set_aside += aside[launch.launch_id]
    fabrics = [fabric.name for fabric in run.manifest.testbed.fabrics]
    planned = {launch.launch_id for launch in launches}
    return RunAccount(
        strays={name: reason for name, reason in damaged.items() if name not in planned},
        subjects=tuple(
            _account(subject, fabric, sums[subject, fabric])
            for subject in sorted({subject for subject, _ in sums})
            for fabric in fabrics
            if (subject, fabric) in sums
        ),
    )


def joined(accounts: Sequence[SubjectAccount]) -> SubjectAccount:
    """Return the accounts of one subject on one fabric in several runs as one."""
    first = accounts[0]
    lost: dict[LossKind, list[LostLaunches]] = {}
    for one in (each for account in accounts for each in account.lost):
        lost.setdefault(one.kind, []).append(one)
    counts = (
        "planned",
        "starts",
        "failed_starts",
        "killed_starts",
        "measured",
        "set_aside",
        "tests",
        "failed_tests",
        "failed_test_launches",
    )
    update = {name: sum(getattr(one, name) for one in accounts) for name in counts} | {
        name: next((text for one in accounts if (text := getattr(one, name))), "")
        for name in ("failed_start_reason", "failed_test_reason")
    }
    jobs = [one.jobs for one in accounts if one.jobs is not None]
    return first.model_copy(
        update=update
        | {
            "lost": tuple(
                LostLaunches(
                    kind=kind,
                    launches=sum(one.launches for one in lost[kind]),
                    names=tuple(name for one in lost[kind] for name in one.names)[:MOST_NAMED],
                    reason=lost[kind][0].reason,
                )
                for kind in LossKind
                if kind in lost
            ),
            "jobs": FarmJobs.joined(jobs) if jobs else None,
            "is_stopped": any(one.is_stopped for one in accounts),
        }
    )


def _starts_of(entries: Iterable[JournalEntry]) -> defaultdict[str, _Starts]:
    found: defaultdict[str, _Starts] = defaultdict(_Starts)
    for entry in entries:
        if entry.launch_id is None:
            continue
        one = found[entry.launch_id]
        if entry.event in START_IS_OVER:
            one.is_under_way = False
        match entry.event:
            case JournalEvent.INTERRUPTED:
                one.is_interrupted = True
            case JournalEvent.STARTED:
                one.is_interrupted = False
                one.starts += 1
                one.killed += one.is_under_way
                one.is_over = False
                one.is_stopped = False
                one.is_under_way = True
            case JournalEvent.FAILED:
                one.failed += 1
                one.reason = str(entry.facts.get("reason", ""))
                one.is_over = True
            case JournalEvent.STOPPED:
                one.is_stopped = True
            case _:
                pass
    return found


def _unplanned(launch: StoredLaunch) -> PlannedLaunch:
    """Return the place of a launch of a run whose manifest holds no plan: one that was imported."""
    return PlannedLaunch(
        launch_id=launch.launch_id, block=launch.block, position=0, fabric=launch.fabric, subject=launch.subject
    )


def _add(one: _Sum, launch_id: str, stored: StoredLaunch | None, told: _Starts, damaged: Mapping[str, str]) -> None:
    """Count one launch."""
    one.planned += 1
    # A run without a journal, of an earlier version or an import, has started what it holds.
    one.starts += max(told.starts, told.failed, int(stored is not None or launch_id in damaged))
    one.failed_starts += told.failed
    one.killed_starts += told.killed
    one.failed_start_reason = one.failed_start_reason or told.reason
    one.is_stopped |= told.is_stopped
    kind, reason = _loss_of(launch_id, stored, told, damaged)
    if stored is not None and kind in (None, LossKind.EMPTY):
        reason = _count_tests(one, stored)
    if kind is None:
        one.measured += 1
    else:
        one.lost[kind].append((launch_id, reason))


def _count_tests(one: _Sum, launch: StoredLaunch) -> str:
    """Count the tests of a launch that counts, and a farm's jobs; return why the first test that failed did."""
    summary = launch.summary
    one.tests += summary.cells + summary.failed
    if summary.workload is not None and summary.workload.kind == FARM and (jobs := _jobs_of(launch)) is not None:
        one.jobs.append(jobs)
    if not summary.failed:
        return ""
    failed = (
        scan_cells(launch.directory)
        .filter(pl.col("status") == "failed")
        .select("failure_code", "reason")
        .collect()
        .rows()
    )
    lost = [str(reason) for code, reason in failed if code not in NOT_POSSIBLE]
    if lost:
        one.failed_tests += len(lost)
        one.failed_test_launches += 1
        one.failed_test_reason = one.failed_test_reason or lost[0]
    return next((str(reason) for _, reason in failed), "")


FARM = "farm"


def _jobs_of(launch: StoredLaunch) -> FarmJobs | None:
    """Return what became of a farm's jobs in one launch; of an earlier version the counts of its cell, and its checks' words."""
    part = launch.summary.workload
    if part is None or part.jobs is not None:
        return None if part is None else part.jobs
    for text in scan_cells(launch.directory).select(pl.col("values").drop_nulls()).collect()["values"]:
        values = json.loads(text)
        if JOBS in values:
            jobs, done, lost, retried = (int(values.get(name, 0)) for name in (JOBS, DONE, LOST, RETRIED))
            return FarmJobs(jobs=jobs, done=done, lost=lost, retried=retried)
    return None


def _loss_of(
    launch_id: str, stored: StoredLaunch | None, told: _Starts, damaged: Mapping[str, str]
) -> tuple[LossKind | None, str]:
    """Return how a launch was lost, and why; None for one that counts."""
    if launch_id in damaged:
        return LossKind.DAMAGED, damaged[launch_id]
    summary = None if stored is None else stored.summary
    if summary is not None and summary.is_finished:
        if not summary.is_valid:
            because = summary.facts.invalid_because
            return LossKind.INVALID, because[0] if because else "its path proof failed"
        return (None, "") if summary.cells else (LossKind.EMPTY, "")
    if told.is_over or told.is_under_way:
        return (LossKind.FAILED, told.reason) if told.is_over else (LossKind.KILLED, f"{launch_id} was under way")
    if summary is not None and not told.is_interrupted:
        is_cut = summary.outcome is LaunchOutcome.CUT_SHORT
        return (LossKind.CUT_SHORT, "its record is not whole") if is_cut else (LossKind.FAILED, "its program failed")
    return (LossKind.FAILED, "") if told.is_stopped else (LossKind.NOT_MEASURED, "")


def _account(subject: str, fabric: str, one: _Sum) -> SubjectAccount:
    return SubjectAccount(
        fabric=fabric,
        subject=subject,
        planned=one.planned,
        starts=one.starts,
        failed_starts=one.failed_starts,
        failed_start_reason=one.failed_start_reason,
        killed_starts=one.killed_starts,
        measured=one.measured,
        lost=tuple(
            LostLaunches(
                kind=kind,
                launches=len(one.lost[kind]),
                names=tuple(name for name, _ in one.lost[kind][:MOST_NAMED]),
                reason=next((reason for _, reason in one.lost[kind] if reason), ""),
            )
            for kind in LossKind
            if one.lost.get(kind)
        ),
        set_aside=one.set_aside,
        tests=one.tests,
        failed_tests=one.failed_tests,
        failed_test_reason=one.failed_test_reason,
        failed_test_launches=one.failed_test_launches,
        jobs=FarmJobs.joined(one.jobs) if one.jobs else None,
        is_stopped=one.is_stopped,
    )
