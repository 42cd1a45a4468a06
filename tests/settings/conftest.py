"""What tests of settings share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.settings import Cluster


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    if os.geteuid() != 0:  # who is not root there goes through sudo: one that asks nobody
        sudo = tmp_path / "bin/sudo"
        sudo.parent.mkdir()
        sudo.write_text('#!/bin/sh\n[ "$2" = -l ] && exit 0\nshift\nexec "$@"\n')
        sudo.chmod(0o755)
        monkeypatch.setenv("PATH", f"{sudo.parent}:{os.environ['PATH']}")
    return Cluster(tmp_path / "nodes")
