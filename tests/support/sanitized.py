"""The programs with sanitizers in them, as tools/test-native builds them, and what the sanitizers report.

A report goes to a file beside the test's own: what a rank or a switch prints may end anywhere. Only that of undefined behaviour
goes to stderr; like each of the others it ends the program.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricbench.native import FOLDER_VARIABLE

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "build" / "native-tests" / "bin"
LEAKS_OF_OTHERS = ROOT / "native" / "tests" / "programs" / "leaks.supp"


class Sanitized:
    """The programs, used by everything that this process starts; `reports` are what they reported since."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        if not (PROGRAMS / "faulty").exists():
            pytest.skip(f"there are no programs in {PROGRAMS}: tools/test-native builds them")
        self._folder = folder / "sanitizers"
        self._folder.mkdir()
        monkeypatch.setenv(FOLDER_VARIABLE, str(PROGRAMS))
        log = f"log_path={self._folder}/report:log_exe_name=1"
        # The library that lets ranks sleep comes first (LD_PRELOAD), and has nothing that sanitizers replace.
        monkeypatch.setenv("ASAN_OPTIONS", f"{log}:verify_asan_link_order=0:detect_stack_use_after_return=1")
        monkeypatch.setenv("UBSAN_OPTIONS", "print_stacktrace=1")
        monkeypatch.setenv("LSAN_OPTIONS", f"suppressions={LEAKS_OF_OTHERS}:print_suppressions=0")

    @property
    def reports(self) -> list[str]:
        """What was reported so far."""
        return [path.read_text(errors="replace") for path in sorted(self._folder.iterdir())]
