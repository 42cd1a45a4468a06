from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import fabricbench
from support.synthetic_run import ladder_cells, write_synthetic_run


def test_every_public_name_is_there():
    for name in fabricbench.__all__:
        assert getattr(fabricbench, name) is not None
    assert set(fabricbench.__all__) <= set(dir(fabricbench))
    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        _ = fabricbench.lode


def test_a_run_is_loaded_from_a_path(tmp_path: Path):
    write_synthetic_run(tmp_path, cells=ladder_cells({"a": 1e8, "b": 1e9}, samples=20), blocks=2)
    run = fabricbench.load(str(tmp_path))
    assert run.manifest.campaign_name == "synthetic"
    assert run.cells()["fabric"].unique().sort().to_list() == ["a", "b"]


def test_importing_the_package_imports_neither_tables_nor_models():
    code = "import fabricbench, sys; print([m for m in ('polars', 'numpy', 'scipy', 'pydantic') if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60).stdout
    assert shown.strip() == "[]"
