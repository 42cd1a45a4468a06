from __future__ import annotations

import json
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest

from fabricbench.errors import UsageError
from fabricbench.record.manifest import MANIFEST, read_manifest, write_manifest
from fabricbench.record.past_runs import State, past_runs
from support.processes import FABRICBENCH
from support.synthetic_run import ladder_cells, write_synthetic_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("results")
    cells = ladder_cells({"slow": 1e8, "fast": 1e9}, sizes=(64,), samples=5)
    for number, (name, missing) in enumerate([("old", []), ("deep/new", ["b01-slow"]), ("hurt", [])]):
        path = top / name
        path.mkdir(parents=True)
        write_synthetic_run(path, cells=cells, blocks=2, missing=missing, unproven=["fast"] if name == "old" else [])
        manifest = read_manifest(path)
        write_manifest(path, manifest.model_copy(update={"created": manifest.created + timedelta(days=number)}))
    (top / "hurt" / MANIFEST).write_text("{")
    (top / "site").mkdir()
    (top / "site" / MANIFEST).write_text("{}")  # a web page's, say
    return top


def test_runs_are_listed_newest_first_with_what_is_there_of_them(folder: Path):
    found = past_runs(folder)
    assert [Path(run.path).name for run in found] == ["new", "old", "hurt"]
    assert [run.state for run in found] == [State.INCOMPLETE, State.COMPLETE, State.DAMAGED]
    assert [(run.blocks_done, run.blocks_planned) for run in found] == [(1, 2), (2, 2), (None, None)]
    assert set(found[0].fabrics) == {"slow", "fast"}
    assert found[2].reason is not None


def test_fabrics_whose_path_nobody_proved_are_told(folder: Path):
    new, old, _ = past_runs(folder)
    assert (new.unproven, old.unproven) == ((), ("fast",))


def test_a_folder_that_is_not_there_is_told(tmp_path: Path):
    with pytest.raises(UsageError, match="there is no folder"):
        past_runs(tmp_path / "nowhere")


def test_the_command_lists_them_for_people_and_for_programs(folder: Path):
    def told(*arguments: str) -> str:
        command = [FABRICBENCH, "runs", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60, cwd=folder).stdout

    assert [line.split()[0] for line in told().splitlines()[2:5]] == ["deep/new", "old", "hurt"]
    assert told().splitlines()[3].endswith("complete, path unproven: fast")
    assert [run["state"] for run in json.loads(told("--format", "json"))] == ["incomplete", "complete", "damaged"]
    assert told("site").startswith("no runs in ")
