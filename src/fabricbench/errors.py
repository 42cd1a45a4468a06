"""Every error that fabricbench raises on purpose, and the exit code that each becomes.

    FabricbenchError
    ├── GateFailed            1    `check`: a regression beyond the allowed one
    ├── UsageError            2    arguments, campaign, testbed or run directory are wrong
    │   └── DamagedFile       2    a file of a run is not as it was written (record/integrity.py)
    ├── EnvironmentLacks      3    a permission, program, device or namespace is missing, or nodes are not as the testbed says
    ├── RunIncomplete         4    results are lost: launches or tests failed, are invalid or never ran
    ├── Inconclusive          5    `check`: not enough data to say either way
    └── Interrupted         130    Ctrl-C

A message says what failed, what was found, what is needed and what to do. Only `cli` turns one into an exit. Any other exception
is a bug of ours and ends with `UNEXPECTED` and its traceback.
"""

from __future__ import annotations

from typing import ClassVar

UNEXPECTED = 70
"""EX_SOFTWARE of sysexits.h: Python's own, 1, would say that a gate was not passed."""


class FabricbenchError(Exception):
    """Root of the tree: `exit_code` is the process's, `hint` says what to do about it."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def exit_codes() -> dict[int, str]:
    """Return what each exit code says, ascending: the first sentence of its error's docstring, 0 and `UNEXPECTED`."""
    told = {error.exit_code: str(error.__doc__).split("\n", 1)[0] for error in FabricbenchError.__subclasses__()}
    told[UNEXPECTED] = "A bug of fabricbench: an error that nobody expected, with its traceback."
    return dict(sorted({0: "Done; what was asked for is there.", **told}.items()))


class GateFailed(FabricbenchError):  # noqa: N818 - the tree reads as sentences
    """A gate was asked for and what was measured does not pass it."""

    exit_code = 1


class UsageError(FabricbenchError):
    """Something that the user wrote cannot be used: arguments, a campaign, a testbed, a run directory."""

    exit_code = 2


class EnvironmentLacks(FabricbenchError):  # noqa: N818
    """This machine or a node lacks something (a permission, a program, an MPI, a namespace), or is not as the testbed says."""

    exit_code = 3


class RunIncomplete(FabricbenchError):  # noqa: N818
    """A run ended without results that were asked for: invalid, failed or never measured; all that was measured is kept."""

    exit_code = 4


class Inconclusive(FabricbenchError):  # noqa: N818
    """A gate was asked for and the data cannot decide it."""

    exit_code = 5


class Interrupted(FabricbenchError):  # noqa: N818
    """The user interrupted; everything measured so far is kept."""

    exit_code = 130
