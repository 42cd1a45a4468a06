"""The guest of the session, in which all verbs run."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from support.uml import Guest, NoGuestError, start_guest


@pytest.fixture(scope="session")
def guest() -> Iterator[Guest]:
    """A User-Mode Linux guest with four soft-RoCE hosts; nothing is shaped, nothing is lost."""
    try:
        started = start_guest()
    except NoGuestError as reason:
        pytest.skip(str(reason))
    try:
        yield started
    finally:
        started.end()
        shutil.rmtree(started.folder, ignore_errors=True)
