"""What all tests can use: golden files, with one flag to write them anew."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from support.calling import Call, call_of


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden files instead of comparing with them")


@pytest.fixture
def check_golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with the file of that name in `golden/` beside the test, or write the file under --update-golden."""

    def check(name: str, text: str) -> None:
        path = Path(request.path).parent / "golden" / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.read_text(encoding="utf-8") == text, f"{name} differs; if that is meant: pytest --update-golden"

    return check


@pytest.fixture
def fabricbench(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """Call the program in this process."""
    return call_of(capsys, monkeypatch)


def pytest_sessionstart() -> None:
    """Hear SIGINT, and let what the tests start hear it, also where a shell started them in the background without."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
