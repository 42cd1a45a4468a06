"""A command of the program in this process, which is faster than a process of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from fabricbench import cli

Call = Callable[..., tuple[int, str, str]]
"""Takes the arguments; exit code, stdout, stderr."""


def call_of(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """Return what calls `fabricbench` with arguments."""

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["fabricbench", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        streams = capsys.readouterr()
        return int(end.value.code or 0), streams.out, streams.err

    return call
