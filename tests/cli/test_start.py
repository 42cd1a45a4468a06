from __future__ import annotations

import ast
import hashlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Protocol

import pytest

from fabricbench import cli
from fabricbench.campaign.presets import PRESETS
from fabricbench.cli.arguments import CampaignArgument
from fabricbench.cli.commands import COMMANDS, command
from fabricbench.errors import exit_codes
from fabricbench.native import native_file
from support.processes import FABRICBENCH

HEAVY = ("scipy", "numpy", "polars", "pyroute2", "matplotlib", "jinja2")
"""What only some commands need, and what takes longer to import than the rest together."""


class Fabricbench(Protocol):
    """Runs a command as a shell does."""

    def __call__(
        self, *arguments: str, stdout: int | IO[str] = ..., **environment: str
    ) -> subprocess.CompletedProcess[str]: ...


@pytest.fixture
def fabricbench() -> Fabricbench:
    def call(
        *arguments: str, stdout: int | IO[str] = subprocess.PIPE, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [FABRICBENCH, *arguments],
            env={**os.environ, **environment},
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )

    return call


def test_the_command_line_starts_without_what_only_some_commands_need():
    script = f"import sys, fabricbench.cli; print(*({{*{HEAVY}}} & {{*sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == []


@pytest.mark.parametrize(("loading", "code", "said"), [("typer", -2, ""), ("after", 1, "KeyboardInterrupt")])
def test_ctrl_c_while_the_program_loads_leaves_no_traceback(loading: str, code: int, said: str):
    script = f"""
import os, signal, sys
class Press:
    def find_spec(self, name, *_):
        if name == {loading!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Press())
import fabricbench.cli
try:
    os.kill(os.getpid(), signal.SIGINT)
except KeyboardInterrupt:
    sys.exit("KeyboardInterrupt")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr.strip()) == (code, said)


def test_ctrl_c_while_the_program_cleans_up_leaves_no_traceback():
    script = """
import atexit, os, signal, sys
atexit.register(os.kill, os.getpid(), signal.SIGINT)
sys.argv = ["fabricbench", "list"]
from fabricbench.entry import main
main()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")


def test_ctrl_c_while_a_command_loads_what_it_needs_waits_for_that_to_be_whole(tmp_path: Path):
    """In the middle of an import it was lost, or became an error of a library: pydantic's, that it cannot build a schema."""
    (tmp_path / "needed.py").write_text(
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(0.1)\nis_whole = True\n"
    )
    script = f"""
import sys, time
import fabricbench.cli
sys.path.insert(0, {str(tmp_path)!r})
try:
    import needed
    time.sleep(30)
except KeyboardInterrupt:
    sys.exit(f"KeyboardInterrupt, {{sys.modules['needed'].is_whole}}")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr.strip()) == (1, "KeyboardInterrupt, True")


def test_ctrl_c_that_nothing_below_takes_is_an_interruption(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    def press() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "app", press)
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert (end.value.code, capsys.readouterr().err) == (130, "fabricbench: interrupted\n")


def test_an_error_that_nobody_expected_ends_with_a_code_of_its_own_and_its_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    def fail() -> None:
        raise LookupError("a bug")

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(SystemExit) as end:
        cli.main()
    said = capsys.readouterr().err
    assert (end.value.code, "Traceback" in said, "LookupError: a bug" in said) == (70, True, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "said"),
    [("[" * 3000 + "]" * 3000, "nested too deep"), ("1" * 5000, "is not valid TOML: Exceeds the limit")],
)
def test_toml_that_python_cannot_read_is_a_usage_error(tmp_path: Path, fabricbench: Fabricbench, value: str, said: str):
    (tmp_path / "c.toml").write_text(f"x = {value}\n")
    done = fabricbench("plan", str(tmp_path / "c.toml"), "--testbed", "local")
    assert (done.returncode, said in done.stderr, "Traceback" in done.stderr) == (2, True, False)


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_disk_that_is_full_is_told_and_not_traced(fabricbench: Fabricbench, unbuffered: str):
    with Path("/dev/full").open("w") as full:
        done = fabricbench("version", stdout=full, PYTHONUNBUFFERED=unbuffered)
    assert (done.returncode, "No space left" in done.stderr, "Traceback" in done.stderr) == (3, True, False)


def test_the_version_is_told_by_the_command_and_by_the_option(fabricbench: Fabricbench):
    told = fabricbench("--version")
    assert (told.returncode, told.stdout) == (0, fabricbench("version").stdout)
    build = hashlib.sha256(native_file("fabricbench-probe").read_bytes()).hexdigest()
    assert f"fabricbench-probe: build {build[:12]}" in told.stdout
    assert told.stdout.startswith("fabricbench 0.")


@pytest.mark.slow
def test_native_programs_are_looked_for_only_where_the_variable_says(fabricbench: Fabricbench, tmp_path: Path):
    done = fabricbench("plan", "quick", "--testbed", "local", FABRICBENCH_BIN=str(tmp_path))
    assert done.returncode == 3
    assert f"looked in {tmp_path}\n" in done.stderr
    assert "correct FABRICBENCH_BIN" in done.stderr


def test_the_overview_says_of_a_command_how_its_own_help_begins():
    assert {name: " ".join((command(name).help or "").partition("\n\n")[0].split()) for name in COMMANDS} == COMMANDS


def test_the_help_of_every_command_has_an_example():
    def helps(of: Any, name: str) -> Iterator[tuple[str, str]]:
        yield name, f"{of.help}\n{of.epilog}"
        for each, inner in getattr(of, "commands", {}).items():
            yield from helps(inner, f"{name} {each}")

    found = {name: text for each in COMMANDS for name, text in helps(command(each), each)}
    assert len(found) > 15
    assert [name for name, text in found.items() if "Example" not in text] == []


DEFERRED = {
    "__init__.py": 1,  # runs leave hardly ever anything to be restored
    "completion.py": 8,  # each word that is completed needs a part of its own
    "list.py": 2,  # patterns are listed much faster than workloads
    "plan.py": 1,  # a plan that is no job starts faster without it
    "run.py": 4,  # what is to be measured begins without the report
    "runs.py": 3,  # a list takes a quarter of the time without verdicts
}


def test_a_command_imports_what_it_needs_at_its_top():
    found = {}
    for path in Path(cli.__file__).parent.glob("*.py"):
        tree = ast.parse(path.read_text())
        inside = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
        if len(inside) > (top := sum(isinstance(node, ast.Import | ast.ImportFrom) for node in tree.body)):
            found[path.name] = len(inside) - top
    assert found == DEFERRED


def test_the_exit_codes_are_told_by_the_help_and_by_one_page(fabricbench: Fabricbench):
    page = (Path(__file__).parents[2] / "docs" / "exit-codes.md").read_text()
    rows = [line.strip("|").split("|") for line in page.splitlines() if re.match(r"\| \d", line)]
    assert {int(code): meaning.strip() for code, meaning in rows} == exit_codes()
    help_ = " ".join(fabricbench("--help", COLUMNS="400", NO_COLOR="1").stdout.split())
    assert [meaning for meaning in exit_codes().values() if meaning not in help_] == []


def test_every_preset_is_named_by_the_help_and_by_the_page_of_campaigns():
    page = (Path(__file__).parents[2] / "docs" / "campaigns.md").read_text()
    told = CampaignArgument.__metadata__[0].help
    assert told.split(", or ")[0].split(", ") == list(PRESETS)
    assert [name for name in PRESETS if f"\n| `{name}` | " not in page] == []
