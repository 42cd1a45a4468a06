"""A pattern of two ranks or of many and an operation of MPI are a file and a line each: those of examples/extending, for real.

`tools/test-native` builds the measurer with them, under sanitizers (native/tests/extending).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from support.extended import EXAMPLES, ROOT, line_of, name_of

SCRIPT = ROOT / "tests" / "support" / "extended.py"
BUILT = ROOT / "build" / "native-tests" / "native" / "tests" / "extending" / "extended"
RANKS = 4
TIME_LIMIT_S = 300

CAMPAIGN = """
[campaign]
name = "extended"
blocks = 2
unfit = "leave out"

[[experiment]]
layers = ["udp", "tcp", "mpi"]
pattern = "shift"
message_bytes = [1024]
maximum_seconds = "120ms"
minimum_samples = 3
warmup_samples = 1

[[experiment]]
layers = ["tcp", "mpi"]
pattern = "request"
message_bytes = [1024]
maximum_seconds = "50ms"
minimum_samples = 3
warmup_samples = 1

[[experiment]]
layers = ["mpi"]
pattern = "neighbor-alltoallv"
message_bytes = [64]
parameters = { mode = ["blocking", "nonblocking", "persistent"] }
maximum_seconds = "200ms"
minimum_samples = 3
warmup_samples = 1
"""

TESTBED = """
[testbed]
name = "here"
launcher = "local"
nodes = ["localhost"]

[[fabric]]
name = "loopback"
interface = "lo"
subnet = "127.0.0.0/8"
mtu = 65536
"""


def extended(*arguments: str | Path, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, SCRIPT, *arguments],
        env={**os.environ, "COLUMNS": "200", **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=TIME_LIMIT_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """The extended table, in both languages."""
    extended("write", tmp_path / "extended")
    return tmp_path / "extended"


@pytest.fixture
def asked(tmp_path: Path) -> tuple[str, ...]:
    """Campaign and testbed as the command line names them."""
    (tmp_path / "campaign.toml").write_text(CAMPAIGN)
    (tmp_path / "here.toml").write_text(TESTBED)
    return (str(tmp_path / "campaign.toml"), "--testbed", str(tmp_path / "here.toml"))


@pytest.fixture
def built(written: Path) -> Path:
    """The measurer with the examples, built from the table as it is now."""
    if not (BUILT / "bin" / "fabricbench-probe").exists():
        pytest.skip("the measurer with the examples is not built: tools/test-native builds it")
    for text in (one for one in (written / "native").rglob("*.*") if one.is_file()):
        if (BUILT / text.relative_to(written)).read_text() != text.read_text():
            pytest.skip(f"the measurer with the examples has another {text.name}: tools/test-native builds it anew")
    return BUILT


def test_each_example_adds_one_line_and_stands_in_its_recipe(written: Path):
    table = (written / "patterns.py").read_text().splitlines()
    added = set(table) - set((ROOT / "src/fabricbench/patterns.py").read_text().splitlines())
    assert added == {line_of(example) for example in EXAMPLES}
    recipes = (ROOT / "CONTRIBUTING.md").read_text()
    for example in EXAMPLES:
        assert f"```cpp\n{example.read_text()}```\n" in recipes
        assert f"```python\n{line_of(example)}\n```\n" in recipes


def test_a_line_of_the_table_is_listed_and_planned(written: Path, asked: tuple[str, ...]):
    for example in EXAMPLES:
        assert extended("run", written, "list", name_of(example)).startswith(f"{name_of(example)}: ")
    plan = extended("run", written, "plan", *asked, "--format", "json")
    assert all(f'"pattern": "{name_of(example)}"' in plan for example in EXAMPLES)


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_all_are_measured_on_ranks_of_this_machine_and_reported(built: Path, asked: tuple[str, ...], tmp_path: Path):
    run = tmp_path / "run"
    sanitizers = {"ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0", "UBSAN_OPTIONS": "halt_on_error=1"}
    extended(
        *("run", built, "run", *asked, "--output", run),
        FABRICBENCH_BIN=str(built / "bin"),
        **sanitizers,
    )
    extended("run", built, "verify", run)
    cells = pl.concat([pl.read_parquet(path) for path in run.glob("launches/*/cells.parquet")], how="diagonal_relaxed")
    failed = cells.filter(pl.col("status") != "done")
    # Four sanitized ranks on few processors: a call may be over before the last rank has a processor to begin it on.
    late = pl.col("reason").str.contains("did all ranks begin within|shifted by")
    assert failed.filter(~late).select("layer", "pattern", "reason").rows() == []
    cells = cells.filter(pl.col("status") == "done")
    assert set(cells["pattern"].cast(pl.String)) == {name_of(example) for example in EXAMPLES}
    assert cells["verified"].min() > 0
    assert cells["corrupted"].sum() == 0
    assert cells["measured"].min() >= 1
    channels = pl.concat([pl.read_parquet(path) for path in run.glob("launches/*/channels.parquet")])
    shifts = {(round_, rank, (rank + round_ + 1) % RANKS) for round_ in range(RANKS - 1) for rank in range(RANKS)}
    assert set(channels.select("round", "source", "destination").rows()) == shifts
    report = extended("run", built, "report", run, "--format", "text")
    assert all(name_of(example) in report for example in EXAMPLES)
