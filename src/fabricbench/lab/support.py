"""Says whether this machine allows a lab, and how: by trying the first steps of one, in a process of its own."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from shutil import which
from typing import Literal

from fabricbench.errors import EnvironmentLacks
from fabricbench.interpreter import python
from fabricbench.model import Model

_PROGRAMS = ("nsenter", "setpriv", "taskset", "env", "sleep")
"""What entering a node needs: util-linux and coreutils, which every Debian has."""
_TRIAL_TIMEOUT_S = 20


class Support(Model):
    """How a lab can be had here, and the reason in words; `none` where it cannot."""

    mode: Literal["root", "user-namespace", "none"]
    reason: str


@cache
def lab_support() -> Support:
    """Return how a lab can be had on this machine. Tries it: about half a second, once a process."""
    missing = [program for program in _PROGRAMS if which(program) is None]
    if missing:
        return Support(
            mode="none", reason=f"programs are missing: {', '.join(missing)} (packages util-linux and coreutils)"
        )
    refusals = []
    if os.geteuid() == 0:
        refusal = _try("root")
        if refusal is None:
            return Support(mode="root", reason="root may make namespaces here")
        refusals.append(f"as root: {refusal}")
    refusal = _try("user-namespace")
    if refusal is None:
        return Support(mode="user-namespace", reason="an ordinary user may make namespaces here")
    refusals.append(f"in a user namespace: {refusal}")
    return Support(mode="none", reason="; ".join(refusals))


def needed_support() -> Support:
    """Return how a lab can be had; EnvironmentLacks, with the reason, where it cannot."""
    support = lab_support()
    if support.mode == "none":
        raise EnvironmentLacks(
            f"no lab can be had on this machine: {support.reason}",
            hint="run as root, or allow user namespaces (kernel.unprivileged_userns_clone=1, in a container --cap-add SYS_ADMIN)",
        )
    return support


def _try(mode: str) -> str | None:
    command = python("fabricbench.lab.namespaces", mode)
    try:
        trial = subprocess.run(
            command,
            cwd="/",
            capture_output=True,
            text=True,
            timeout=_TRIAL_TIMEOUT_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return "the trial did not end"
    if trial.returncode == 0:
        return None
    lines = trial.stderr.strip().splitlines()
    return lines[-1] if lines else f"the trial ended with {trial.returncode}"
