"""A real browser for the tests of pages: Chromium without a window, driven by its command line alone."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
LIMIT_S = 100
VIRTUAL_MS = 60_000
"""How long the page believes to have had for drawing; real time is far shorter."""
CONSOLE = re.compile(r":CONSOLE[:(]\d+.*?\] ?(.*)")


@dataclass(frozen=True)
class Browser:
    """A Chromium program and a profile folder of the test's own."""

    program: str
    profile: Path

    def open(
        self,
        page: Path,
        *,
        width: int,
        height: int = 900,
        screenshot: Path | None = None,
        is_dark: bool = False,
        virtual_ms: int | None = VIRTUAL_MS,
    ) -> Seen:
        """Load a page from disk, let it draw, and return what the browser made of it; in real time without `virtual_ms`."""
        wanted = [f"--screenshot={screenshot}"] if screenshot else ["--dump-dom"]
        scheme = [f"--blink-settings=preferredColorScheme={0 if is_dark else 1}"]
        fixed = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr"]
        size = [f"--window-size={width},{height}"]
        pace = [] if virtual_ms is None else [f"--virtual-time-budget={virtual_ms}"]
        command = [
            self.program,
            *fixed,
            *size,
            *pace,
            *scheme,
            f"--user-data-dir={self.profile}",
            *wanted,
            page.as_uri(),
        ]
        ended = subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT_S)
        return Seen(dom=ended.stdout, console=CONSOLE.findall(ended.stderr))


@dataclass(frozen=True)
class Seen:
    """The page after its scripts ran, and what it wrote to the console."""

    dom: str
    console: list[str]

    def attribute(self, name: str) -> str:
        """Return a data attribute of the root element."""
        found = re.search(rf'<html[^>]* data-{name}="([^"]*)"', self.dom)
        assert found, f"the page did not set data-{name}: {self.dom[:200]}"
        return found.group(1)


def find_browser(profile: Path) -> Browser:
    """Return the machine's Chromium; skips the test where there is none."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip(f"no browser here: none of {', '.join(NAMES)} is on PATH (Debian: apt-get install chromium)")
    return Browser(program, profile)
