"""Which runs of a list are looked for: by fabric, campaign, host, date and state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from fabricbench.errors import UsageError
from fabricbench.record.run_state import State

if TYPE_CHECKING:
    from fabricbench.record.past_run import PastRun

DAY = len("2026-11-12")


@dataclass(frozen=True)
class RunSearch:
    """What is looked for: each group of patterns is met by any of its own, and all groups must be. Patterns are a shell's.

    Of a run that is damaged only what it still tells can be met.
    """

    fabrics: tuple[str, ...] = ()
    campaigns: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    """The first moment that is too late."""
    states: tuple[State, ...] = ()

    def matches(self, run: PastRun) -> bool:
        """Tell whether a run is looked for."""
        named = (
            is_any_of(self.fabrics, run.fabrics)
            and is_any_of(self.campaigns, [run.campaign] if run.campaign is not None else [])
            and is_any_of(self.hosts, run.hosts)
        )
        return named and self._is_within(run.created) and (not self.states or run.state in self.states)

    def _is_within(self, created: datetime | None) -> bool:
        if self.since is None and self.until is None:
            return True
        if created is None:
            return False
        moment = created.timestamp()
        is_late = self.until is not None and moment >= self.until.timestamp()
        return not is_late and (self.since is None or moment >= self.since.timestamp())


def is_any_of(patterns: Sequence[str], names: Iterable[str]) -> bool:
    """Tell whether one of the names meets one of the patterns; any do where there is no pattern."""
    return not patterns or any(fnmatchcase(name, pattern) for name in names for pattern in patterns)


def moment_of(text: str, option: str, *, is_end: bool = False) -> datetime:
    """Return the moment that an option was given, in UTC unless it tells another zone; UsageError names the option.

    Of a day it is the beginning, or the end where it `is_end`.
    """
    try:
        moment = datetime.fromisoformat(text)
        moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return moment + timedelta(days=1) if is_end and len(text) <= DAY else moment
    except (ValueError, OverflowError):
        raise UsageError(
            f"{option}: {text!r} is no date", hint=f"write {option} 2026-11-12, or 2026-11-12T22:00 (UTC)"
        ) from None
