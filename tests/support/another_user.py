"""Another user without privileges, who can be had where tests run as root."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

NOBODY = 65534

BECOME = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
"""What a command of that user's begins with."""


def need_another_user(program: str | Path) -> None:
    """Skip a test where there is none, or who may not start this program: a folder of `mktemp -d` is closed to others."""
    if shutil.which(BECOME[0]) is None:
        pytest.skip("root cannot become another user: setpriv (util-linux) is missing")
    if subprocess.run([*BECOME, "test", "-x", str(program)], check=False).returncode:
        pytest.skip(f"another user may not start {program}: it, or a folder above it, is closed to others")
