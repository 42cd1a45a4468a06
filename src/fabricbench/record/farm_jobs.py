"""What became of a farm's jobs, as launches and accounts keep it; `farm_lines` has the record that it is made from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum

from fabricbench.model import Model

MOST_NAMED = 5
"""Of jobs, where they are named one by one."""


class JobEnd(StrEnum):
    """How an attempt ended. `NODE` is the node's fault and no failure of the job: a full disk, say."""

    DONE = "done"
    EXIT_CODE = "exit_code"
    SIGNAL = "signal"
    LIMIT = "limit"
    NOT_STARTED = "not_started"
    OUTPUT = "output"
    INPUT = "input"
    NODE = "node"


class LeftOutNode(Model):
    """A node that was given nothing more, and why."""

    node: str
    reason: str


class JobTrouble(Model):
    """Attempts of jobs that failed alike on one node (empty: given to none). `reason` is the first one's, in words.

    `lost_jobs` of them ended their job for good; `jobs` are the first that were hit.
    """

    node: str
    ended: JobEnd
    exit_code: int | None = None
    signal: int | None = None
    reason: str
    attempts: int
    lost_jobs: int
    jobs: tuple[int, ...]


class FarmJobs(Model):
    """What became of a farm's jobs, in one launch or in several: how many of `jobs` were done, tried again, or lost for good.

    `troubles` are the failed attempts, alike ones together, those that lost most jobs first; `done_on` has how many jobs each node
    did. Both are empty in runs of earlier versions.
    """

    jobs: int
    done: int
    lost: int
    retried: int
    left_out: tuple[LeftOutNode, ...] = ()
    troubles: tuple[JobTrouble, ...] = ()
    done_on: dict[str, int] = {}

    @staticmethod
    def joined(several: Sequence[FarmJobs]) -> FarmJobs:
        """Return the jobs of several launches as one."""
        return FarmJobs(
            jobs=sum(one.jobs for one in several),
            done=sum(one.done for one in several),
            lost=sum(one.lost for one in several),
            retried=sum(one.retried for one in several),
            left_out=tuple({one.node: one for jobs in several for one in jobs.left_out}.values()),
            troubles=alike(one for jobs in several for one in jobs.troubles),
            done_on=dict(sum((Counter(jobs.done_on) for jobs in several), Counter[str]())),
        )


MOST_TROUBLES = 20
"""Kinds of failed attempts that are kept of a launch: jobs may fail in as many ways as there are jobs."""


def alike(troubles: Iterable[JobTrouble]) -> tuple[JobTrouble, ...]:
    """Return troubles of the same node and end as one, the gravest first."""
    found: dict[tuple[object, ...], JobTrouble] = {}
    for one in troubles:
        key = (one.node, one.ended, one.exit_code, one.signal)
        before = found.get(key)
        found[key] = (
            one
            if before is None
            else before.model_copy(
                update={
                    "attempts": before.attempts + one.attempts,
                    "lost_jobs": before.lost_jobs + one.lost_jobs,
                    "jobs": tuple(dict.fromkeys((*before.jobs, *one.jobs)))[:MOST_NAMED],
                }
            )
        )
    return tuple(sorted(found.values(), key=lambda one: (-one.lost_jobs, -one.attempts)))[:MOST_TROUBLES]
