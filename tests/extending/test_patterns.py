"""A pattern of two ranks or of many and an operation of MPI are a file and a line each: those of examples/extending, for real.

`tools/test-native --sanitized` builds the measurer with them, under sanitizers (native/tests/extending, native/tests/programs).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fabricbench.native import build_info
from support.extended import EXAMPLES, ROOT, line_of, name_of
from support.measurer import LOOPBACK

SCRIPT = ROOT / "tests" / "support" / "extended.py"
BUILT = ROOT / "build" / "native-tests"
TABLE = BUILT / "native" / "tests" / "extending" / "extended"
RANKS = 4
TIME_LIMIT_S = 100
LATE = ("did all ranks begin within", "shifted by")
"""Why an operation may fail where a call is over before the last rank has a processor to begin it on."""

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
        pytest.skip("the measurer with the examples is not built: tools/test-native --sanitized builds it")
    for text in (one for one in (written / "native").rglob("*.*") if one.is_file()):
        if (TABLE / text.relative_to(written)).read_text() != text.read_text():
            pytest.skip(
                f"the measurer with the examples has another {text.name}: tools/test-native --sanitized builds it anew"
            )
    return BUILT


def test_each_example_adds_one_line_and_stands_in_its_recipe(written: Path):
    table = (written / "patterns.py").read_text().splitlines()
    added = set(table) - set((ROOT / "src/fabricbench/patterns.py").read_text().splitlines())
    assert added == {line_of(example) for example in EXAMPLES}
    recipes = (ROOT / "CONTRIBUTING.md").read_text()
    for example in EXAMPLES:
        assert f"```cpp\n{example.read_text()}```\n" in recipes
        assert f"```python\n{line_of(example)}\n```\n" in recipes


@pytest.mark.slow
def test_a_line_of_the_table_is_listed_and_planned(written: Path, asked: tuple[str, ...]):
    for example in EXAMPLES:
        assert extended("run", written, "list", name_of(example)).startswith(f"{name_of(example)}: ")
    plan = extended("run", written, "plan", *asked, "--format", "json")
    assert all(f'"pattern": "{name_of(example)}"' in plan for example in EXAMPLES)


@pytest.mark.mpi
@pytest.mark.slow
def test_all_are_measured_on_ranks_of_this_machine_under_sanitizers_and_read(built: Path, tmp_path: Path):
    """Few samples and no limit on silence: four sanitized ranks on few processors are slow."""
    patient = {"stopping": {"maximum_samples": 3, "maximum_seconds": 0.1}, "warmup_samples": 1, "verify_messages": 2}
    everyone = [*range(RANKS)]
    cells = [
        *({"layer": layer, "pattern": "request", "message_bytes": 1024} for layer in ("tcp", "mpi")),
        *({"layer": layer, "pattern": "shift", "message_bytes": 1024, "ranks": everyone} for layer in ("udp", "tcp")),
        {"layer": "mpi", "pattern": "shift", "message_bytes": 64, "ranks": everyone, "parameters": {"flows": 2}},
        *(
            {
                "layer": "mpi",
                "pattern": "neighbor-alltoallv",
                "message_bytes": 64,
                "ranks": everyone,
                "parameters": {"mode": mode},
            }
            for mode in ("blocking", "nonblocking", "persistent")
        ),
    ]
    plan = {
        "launch_id": "b00-loopback",
        "token": 0xFAB1,
        "fabric": LOOPBACK,
        "output": str(tmp_path / "records.jsonl"),
        "probes": [{"id": number, **patient, **cell} for number, cell in enumerate(cells)],
    }
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    done = subprocess.run(
        [build_info().mpiexec, "-n", str(RANKS), built / "bin" / "fabricbench-probe", tmp_path / "plan.json"],
        env={
            **os.environ,
            "LD_PRELOAD": str(built / "bin" / "libfabricbench-yield.so"),
            "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0",
            "UBSAN_OPTIONS": "halt_on_error=1",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=TIME_LIMIT_S,
    )
    assert done.returncode == 0, done.stderr
    assert "runtime error" not in done.stderr

    lines = [json.loads(line) for line in (tmp_path / "records.jsonl").read_text().splitlines()]
    failed = {line["reason"] for line in lines if line["type"] == "cell_failed"}
    assert {reason for reason in failed if not any(late in reason for late in LATE)} == set()
    ends = [line for line in lines if line["type"] == "cell_end"]
    assert min(end["verified"] for end in ends) > 0
    assert sum(end["corrupted"] for end in ends) == 0

    found = json.loads(extended("read", TABLE, tmp_path))
    assert found["damage"] == []
    assert {cell["pattern"] for cell in found["cells"]} == {name_of(example) for example in EXAMPLES}
    shifts = [[round_, rank, (rank + round_ + 1) % RANKS] for round_ in range(RANKS - 1) for rank in range(RANKS)]
    assert [cell["channels"] for cell in found["cells"] if cell["pattern"] == "shift"] == [shifts] * 3
