"""Where a run takes place: what people ask for with `--testbed`, the testbed that it is, and opening it for launching.

A venue is written down with the plan, so that a resumed run takes place in the same one: an own lab is built anew.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from fabricbench.errors import EnvironmentLacks, UsageError
from fabricbench.lab import Lab, lab_support, running_labs
from fabricbench.lab.fabric import EmulatedFabric
from fabricbench.lab.presets import PRESETS, parse_fabrics
from fabricbench.lab.topology import plan_lab
from fabricbench.launch.lab import LabLauncher
from fabricbench.launch.launcher import Launcher
from fabricbench.launch.local import LocalLauncher
from fabricbench.launch.mpi import find_starter
from fabricbench.launch.ssh import SshLauncher
from fabricbench.launch.waiting import yield_library
from fabricbench.model import Model
from fabricbench.native import native_file
from fabricbench.testbed.local import local_testbed
from fabricbench.testbed.model import Launcher as LauncherName
from fabricbench.testbed.model import Testbed
from fabricbench.testbed.reading import read_testbed

PROBE = "fabricbench-probe"
LAB_PREFIX = "lab:"
LOCAL = "local"
