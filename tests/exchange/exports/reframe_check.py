"""A test of ReFrame that takes a text in the layout of OSU for the output of its program; ReFrame loads it, not pytest."""

from __future__ import annotations

import os

import reframe
from reframe.utility import sanity


@reframe.simple_test
class OsuLayout(reframe.RunOnlyRegressionTest):
    """The ping-pong of 64 bytes."""

    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "cat"
    executable_opts = [os.environ["OSU_TEXT"]]
    local = True

    @sanity_function  # noqa: F821 - ReFrame has it in the body of a test
    def has_passed(self) -> object:
        return sanity.assert_found(r"^64\s.*Pass", self.stdout)

    @performance_function("us")  # noqa: F821
    def latency(self) -> object:
        return sanity.extractsingle(r"^64\s+(\S+)", self.stdout, 1, float)
