"""What of a run was lost, in words: the first thing that every command and every report says, and nothing where nothing was.

One line for each kind of loss of each test, the gravest first. The counts are `record.account`'s; what is the same on all fabrics
is said once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from shlex import join

from fabricbench.analysis.findings import Findings, JobTrouble, LossKind, RunAccount, SubjectAccount, UnequalStarts
from fabricbench.quantity import count, enumeration

MOST_LINES = 3
"""As many losses as one reads before anything else."""
MOST_REASON = 160
"""Characters of a reason: it may be a whole line of a log."""
MOST_NAMES = 6
"""Of what the losses are that have no line of their own."""
MEASURER = "the network tests"


class _Gravity(IntEnum):
    """What is told first."""

    NOTHING = 0
    UNEQUAL = 1
    LAUNCHES = 2
    JOBS = 3
    TESTS = 4
    NODES = 5
    STARTS = 6
    JOB_STARTS = 7


@dataclass(frozen=True)
class _Line:
    """A loss in words, and what it is of."""

    gravity: _Gravity
    name: str
    text: str


def loss_lines(
    accounts: Sequence[RunAccount], names: Sequence[str] = (), unequal: Sequence[UnequalStarts] = ()
) -> tuple[str, ...]:
    """Return every loss in a line, the gravest first; of several runs each with the run's name.

    `unequal` are the tests whose starts were lost more often on one fabric than chance makes.
    """
    return tuple(line.text for line in _sorted_lines(accounts, names, unequal))


def _sorted_lines(
    accounts: Sequence[RunAccount], names: Sequence[str], unequal: Sequence[UnequalStarts]
) -> list[_Line]:
    found = [_Line(_Gravity.UNEQUAL, one.subject or MEASURER, _unequal(one)) for one in unequal]
    for index, account in enumerate(accounts):
        head = f"in {names[index]}: " if len(accounts) > 1 else ""
        fabrics = list(dict.fromkeys(one.fabric for one in account.subjects))
        for subject in dict.fromkeys(one.subject for one in account.subjects):
            of_subject = [one for one in account.subjects if one.subject == subject]
            found += [
                _Line(gravity, subject or MEASURER, head + text)
                for gravity, text in _of_subject(of_subject, len(fabrics))
            ]
        found += [_Line(_Gravity.LAUNCHES, MEASURER, head + text) for text in _strays(account)]
    return sorted(found, key=lambda line: line.gravity)


def _strays(account: RunAccount) -> Iterator[str]:
    if account.strays:
        names, reasons = zip(*account.strays.items(), strict=True)
        told = ", ".join(names[:MOST_LINES]) + (", ..." if len(names) > MOST_LINES else "")
        yield f"{count(len(names), 'launch')} that the plan does not have: {told}, of which nothing counts{_because(reasons[0])}"


def _unequal(one: UnequalStarts) -> str:
    counts = (f"{part.lost} of {count(part.starts, 'start')} on {part.fabric}" for part in (one.worse, one.better))
    return f"{one.subject or MEASURER}: {', '.join(counts)} gave nothing that counts: more than chance makes"


def first_losses(
    accounts: Sequence[RunAccount], names: Sequence[str], unequal: Sequence[UnequalStarts] = ()
) -> tuple[str, ...]:
    """Return the gravest losses, then of what the others are, as far as their names fit, and which command tells them."""
    lines = _sorted_lines(accounts, names, unequal)
    told, left = lines[:MOST_LINES], lines[MOST_LINES:]
    if not left:
        return tuple(line.text for line in told)
    of = list(dict.fromkeys(line.name for line in left))
    shown = [*of[:MOST_NAMES], *([count(len(of) - MOST_NAMES, "other")] if len(of) > MOST_NAMES else [])]
    command = join(("fabricbench", "show", names[0], "--format", "text"))
    more = f"{count(len(left), 'more loss')} of {_short(enumeration(shown))}: {command}"
    return (*(line.text for line in told), more)


def losses_of(findings: Findings) -> tuple[str, ...]:
    """Return the gravest losses of the runs that findings are of."""
    return first_losses(findings.accounts, findings.run_directories, findings.unequal_starts)


def _of_subject(accounts: Sequence[SubjectAccount], fabrics: int) -> Iterator[tuple[_Gravity, str]]:
    name = accounts[0].subject or MEASURER
    nothing = [one for one in accounts if one.gave_nothing]
    if nothing:
        yield _Gravity.NOTHING, _gave_nothing(name, nothing, fabrics)
    partly = [one for one in accounts if one not in nothing]
    for gravity, number, words in _KINDS:
        if any(map(number, partly)):
            yield gravity, f"{name}: {_each(partly, number, words)}"
    for one in accounts:
        yield from ((_Gravity.NODES, text) for text in _left_out(name, one))


def _each(
    accounts: Sequence[SubjectAccount], number: Callable[[SubjectAccount], int], words: Callable[[SubjectAccount], str]
) -> str:
    """Return what is told of each fabric that has some, once where it is the same on several, and the names of those with none."""
    told: dict[str, list[str]] = {}
    for one in accounts:
        if number(one):
            told.setdefault(words(one), []).append(one.fabric)
    none = [one.fabric for one in accounts if not number(one)]
    some = [f"{enumeration(names)}{' each' if len(names) > 1 else ''} {text}" for text, names in told.items()]
    return "; ".join(some) + (f"; {enumeration(none)} none" if none else "")


def _gave_nothing(name: str, nothing: Sequence[SubjectAccount], fabrics: int) -> str:
    where = enumeration([one.fabric for one in nothing])
    if len(nothing) == fabrics and fabrics > 1:
        where = "either fabric" if fabrics == 2 else f"any of the {fabrics} fabrics"
    kinds: dict[LossKind, tuple[int, str]] = {}
    for lost in (each for one in nothing for each in one.lost):
        before = kinds.get(lost.kind, (0, ""))
        kinds[lost.kind] = (before[0] + lost.launches, before[1] or lost.reason)
    total = sum(one.planned for one in nothing)
    told = [
        f"{_of(number, total)} {kind.value}{_because(reason)}"
        for kind, (number, reason) in kinds.items()
        if kind is not LossKind.NOT_MEASURED
    ]
    if nothing[0].is_stopped and LossKind.FAILED in kinds:
        starts = count(sum(one.starts for one in nothing), "start")
        reason = _because(kinds[LossKind.FAILED][1])
        told = [f"its {starts} failed alike{reason}, and the rest of its {count(total, 'launch')} was not started"]
    return f"{name} gave nothing on {where}: {', '.join(told)}"


def _of(number: int, total: int) -> str:
    """Return `all 20 launches`, or `3 of 20 launches`."""
    if total == 1:
        return "its launch"
    return f"all {total} launches" if number == total else f"{number} of {total} launches"


def _launches(one: SubjectAccount) -> int:
    return sum(lost.launches for lost in one.lost if lost.kind is not LossKind.NOT_MEASURED)


def _lost_launches(one: SubjectAccount) -> str:
    kinds = [lost for lost in one.lost if lost.kind is not LossKind.NOT_MEASURED]
    told = "; ".join(f"{lost.launches} {lost.kind.value}{_because(lost.reason, is_inside=True)}" for lost in kinds)
    return f"lost {_launches(one)} of {count(one.planned, 'launch')} ({told})"


def _starts(one: SubjectAccount) -> int:
    return one.failed_starts


def _failed_starts(one: SubjectAccount) -> str:
    return f"failed {one.failed_starts} of {count(one.starts, 'start')}{_because(one.failed_start_reason)}"


def _killed(one: SubjectAccount) -> int:
    return one.killed_starts


def _killed_starts(one: SubjectAccount) -> str:
    return f"lost {one.killed_starts} of {count(one.starts, 'start')} as the run itself was killed, or had no more disk"


def _tests(one: SubjectAccount) -> int:
    """Return the tests of the measurer that failed; a workload has one a launch, which is lost with it."""
    return one.failed_tests if one.subject == "" else 0


def _failed_tests(one: SubjectAccount) -> str:
    return (
        f"could not measure {one.failed_tests} of {count(one.tests, 'result')}, in "
        f"{count(one.failed_test_launches, 'launch')}{_because(one.failed_test_reason)}"
    )


def _lost_jobs(one: SubjectAccount) -> int:
    return one.jobs.lost if one.jobs is not None else 0


def _jobs_lost(one: SubjectAccount) -> str:
    if one.jobs is None:
        return ""
    told = [(trouble, trouble.lost_jobs) for trouble in one.jobs.troubles if trouble.lost_jobs]
    return f"lost {one.jobs.lost} of {count(one.jobs.jobs, 'job')} for good{_troubles(told)}"


def _retried(one: SubjectAccount) -> int:
    """Return the jobs that were tried again with success: of those that were lost the loss is told."""
    return max(0, one.jobs.retried - one.jobs.lost) if one.jobs is not None else 0


def _retried_jobs(one: SubjectAccount) -> str:
    if one.jobs is None:
        return ""
    told = [(trouble, trouble.attempts - trouble.lost_jobs) for trouble in one.jobs.troubles]
    return (
        f"tried {_retried(one)} of {count(one.jobs.jobs, 'job')} again{_troubles([one for one in told if one[1] > 0])}"
    )


def _troubles(told: Sequence[tuple[JobTrouble, int]]) -> str:
    """Return ` (12 on n2: No space left on device; jobs 7, 17, ...)`, of the two most frequent troubles."""
    if not told:
        return ""
    named = [f"{number} on {one.node or 'no node'}: {_short(one.reason)}" for one, number in told[:2]]
    jobs = list(dict.fromkeys(str(job) for one, _ in told[:2] for job in one.jobs))
    more = ", ..." if len(jobs) > MOST_LINES else ""
    return f" ({'; '.join(named)}; jobs {', '.join(jobs[:MOST_LINES])}{more})"


def _left_out(name: str, one: SubjectAccount) -> Iterator[str]:
    """Yield which nodes of a farm were given nothing more, and who did the work instead."""
    jobs = one.jobs
    if jobs is None or not jobs.left_out:
        return
    nodes = "; ".join(f"{node.node} ({_short(node.reason)})" for node in jobs.left_out)
    did = [f"{number} on {node}" for node, number in sorted(jobs.done_on.items(), key=lambda item: -item[1])]
    yield f"{name} on {one.fabric} went on without {nodes}" + (f"; jobs done: {enumeration(did[:4])}" if did else "")


def _because(reason: str, *, is_inside: bool = False) -> str:
    """Return a reason in brackets, or behind a colon where brackets stand around it."""
    if not reason:
        return ""
    return f": {_short(reason)}" if is_inside else f" ({_short(reason)})"


def _short(reason: str) -> str:
    """Return a reason on one line that has room beside others."""
    text = " ".join(reason.split())
    return text if len(text) <= MOST_REASON else f"{text[: MOST_REASON - 3]}..."


_KINDS: tuple[tuple[_Gravity, Callable[[SubjectAccount], int], Callable[[SubjectAccount], str]], ...] = (
    (_Gravity.LAUNCHES, _launches, _lost_launches),
    (_Gravity.JOBS, _lost_jobs, _jobs_lost),
    (_Gravity.TESTS, _tests, _failed_tests),
    (_Gravity.STARTS, _starts, _failed_starts),
    (_Gravity.STARTS, _killed, _killed_starts),
    (_Gravity.JOB_STARTS, _retried, _retried_jobs),
)
"""Of what is lost in part: how many, and in words."""
