"""The programs with sanitizers in them, as tools/test-native --sanitized builds them, and what the sanitizers report.

A report goes to a file beside the test's own: what a rank or a switch prints may end anywhere. Only that of undefined behaviour
goes to stderr; like each of the others it ends the program.
"""

from __future__ import annotations

import subprocess
from enum import StrEnum
from pathlib import Path

import pytest

from fabricbench.native import FOLDER_VARIABLE

ROOT = Path(__file__).parents[2]
LEAKS_OF_OTHERS = ROOT / "native" / "tests" / "programs" / "leaks.supp"
USAGE_CODE = 2


class Build(StrEnum):
    """A folder below build/."""

    ADDRESSES = "native-tests"
    """All programs: wrong addresses, leaks, undefined behaviour."""
    THREADS = "native-threads"
    """The switch and the measurer: data races."""


class Sanitized:
    """The programs of a build, used by everything that this process starts; `reports` are what they reported since."""

    def __init__(self, build: Build, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        programs = ROOT / "build" / build / "bin"
        self._faulty = programs / "faulty"
        if not self._faulty.exists():
            pytest.skip(f"there are no programs in {programs}: tools/test-native --sanitized builds them")
        self._folder = folder / "sanitizers"
        self._folder.mkdir()
        monkeypatch.setenv(FOLDER_VARIABLE, str(programs))
        log = f"log_path={self._folder}/report:log_exe_name=1"
        # The library that lets ranks sleep comes first (LD_PRELOAD), and has nothing that sanitizers replace.
        monkeypatch.setenv("ASAN_OPTIONS", f"{log}:verify_asan_link_order=0:detect_stack_use_after_return=1")
        monkeypatch.setenv("UBSAN_OPTIONS", "print_stacktrace=1")
        monkeypatch.setenv("LSAN_OPTIONS", f"suppressions={LEAKS_OF_OTHERS}:print_suppressions=0")
        monkeypatch.setenv("TSAN_OPTIONS", f"{log}:halt_on_error=1")

    def starting(self) -> tuple[str, ...]:
        """Return what goes before a program: without it, older ThreadSanitizers do not start where vm.mmap_rnd_bits exceeds 28."""
        for before in ((), ("setarch", "-R")):
            done = subprocess.run([*before, self._faulty], capture_output=True, text=True, timeout=20, check=False)
            if done.returncode == USAGE_CODE:
                return before
        pytest.skip(f"sanitized programs do not start here: {done.stderr[-300:]}")

    @property
    def reports(self) -> list[str]:
        """What was reported so far; that Clang's found no program to name a line of the source is no report."""
        texts = [path.read_text(errors="replace").splitlines(keepends=True) for path in sorted(self._folder.iterdir())]
        left = ["".join(line for line in lines if not line.endswith("external symbolizer!\n")) for lines in texts]
        return [text for text in left if text]
