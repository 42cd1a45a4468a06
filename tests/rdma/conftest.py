"""The guests of the session, in which all verbs run."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from support.uml import Guest, NoGuestError, start_guest


@contextmanager
def _started(number: int) -> Iterator[Guest]:
    try:
        started = start_guest(number)
    except NoGuestError as reason:
        pytest.skip(str(reason))
    try:
        yield started
    finally:
        started.end()
        shutil.rmtree(started.folder, ignore_errors=True)


@pytest.fixture(scope="session")
def guest() -> Iterator[Guest]:
    """A User-Mode Linux guest with four soft-RoCE hosts; nothing is shaped, nothing is lost."""
    with _started(0) as started:
        yield started


@pytest.fixture(scope="module")
def second_guest() -> Iterator[Guest]:
    """Another one, on another processor: for what is not timed and takes long."""
    with _started(1) as started:
        yield started
