"""What all tests can use: golden files, with one flag to write them anew, the program, and its wheel."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from fabricbench.native import native_programs
from support.calling import Call, call_of

REPOSITORY = Path(__file__).parents[1]
WHEEL_SECONDS = 420

settings.register_profile("repeatable", derandomize=True)
settings.register_profile("explore", max_examples=3000, deadline=None)
settings.load_profile("repeatable")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden files instead of comparing with them")


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep what `runs` remembers of the tests' folders out of the user's own cache."""
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))


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


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built as `pip wheel .` builds it, in the environment of the tests."""
    folder = tmp_path_factory.mktemp("wheel")
    build = ("-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(folder), str(REPOSITORY))
    done = subprocess.run(
        [sys.executable, *build],
        capture_output=True,
        text=True,
        timeout=WHEEL_SECONDS,
        check=False,
        env={**os.environ, "PATH": f"{os.environ['PATH']}:{Path(sys.executable).parent}"},
    )
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("fabricbench-*.whl")
    return built


@pytest.fixture
def fabricbench(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """Call the program in this process, as wide as it is in a pipe whatever terminal the tests are started from."""
    monkeypatch.delenv("COLUMNS", raising=False)
    return call_of(capsys, monkeypatch)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs every program where only those of a first run are built."""
    if any(program.name == "fabricbench-npb" for program in native_programs()):
        return
    for item in items:
        if item.get_closest_marker("complete"):
            item.add_marker(
                pytest.mark.skip(reason="what a first run needs is built, and no more: `make all` builds the rest")
            )


def pytest_sessionstart() -> None:
    """Hear SIGINT, and let what the tests start hear it, also where a shell started them in the background without."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
