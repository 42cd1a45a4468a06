"""Nothing builds the benchmarks in C++ but who runs them: they follow the measurer's headers all the same."""

import subprocess
from pathlib import Path

import nlohmann_json  # type: ignore[import-untyped]
import pytest

from fabricbench.native import build_info

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "benchmarks").rglob("*.cpp"))


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_a_benchmark_compiles(source: Path) -> None:
    include = Path(nlohmann_json.__path__[0]) / "include"
    options = ["-std=c++20", "-fsyntax-only", f"-I{ROOT / 'native'}", f"-I{include}"]
    done = subprocess.run(
        [build_info().mpicxx, *options, str(source)], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
