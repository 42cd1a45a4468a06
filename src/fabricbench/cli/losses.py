"""What a command says first where a run lost anything, and how `run` and `resume` end then."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fabricbench.analysis.findings import UnequalStarts
from fabricbench.analysis.lost_launches import unequal_starts
from fabricbench.analysis.sides import NothingMeasured
from fabricbench.cli.output import say
from fabricbench.errors import RunIncomplete
from fabricbench.record.run_account import RunAccount
from fabricbench.report.first_screen import LOST
from fabricbench.report.losses import first_losses


def unequal_of(accounts: Sequence[RunAccount]) -> tuple[UnequalStarts, ...]:
    """Return where starts were lost more often on one fabric than chance makes."""
    if not any(one.lost or one.failed_starts for account in accounts for one in account.subjects):
        return ()
    return unequal_starts(accounts)


def say_losses(accounts: Sequence[RunAccount], names: Sequence[str]) -> None:
    """Say on stderr what was lost, the gravest first; nothing where nothing was."""
    for line in lines_of_losses(accounts, names):
        say(line)


def lines_of_losses(accounts: Sequence[RunAccount], names: Sequence[str]) -> list[str]:
    """Return a line for each of the gravest losses of runs with these names."""
    return [f"{LOST}: {line}" for line in first_losses(accounts, names, unequal_of(accounts))]


@contextmanager
def losses_said() -> Iterator[None]:
    """Say what runs lost also where that is all of them, so that what analyses them inside ends with NothingMeasured."""
    try:
        yield
    except NothingMeasured as error:
        say_losses(error.accounts, error.names)
        raise


def results_lost(account: RunAccount, directory: Path, *, quoted: str = "") -> RunIncomplete:
    """Return the error of a run that is over and lost results: what, why, and what to do; `quoted` is the end of a log."""
    lines = lines_of_losses((account,), (str(directory),))
    path = shlex.quote(str(directory))
    again = f"`fabricbench resume {path}` starts what failed again" if account.can_be_resumed else ""
    stays = (
        "what is invalid, wrong or without a figure stays so, also after `resume`: correct what its reason names, an expression of "
        "the campaign say, and measure it by a run of its own"
        if account.has_lost_what_stays
        else ""
    )
    told = f"`fabricbench show {path} --summary --format text` tells all; what was measured is kept"
    return RunIncomplete(
        "\n".join(filter(None, ("\n  ".join(lines), quoted))),
        hint="; ".join(filter(None, ("mend what the reasons say", again, stays, told))),
    )
