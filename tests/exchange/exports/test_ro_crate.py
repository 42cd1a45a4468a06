"""The research object, opened by the library of RO-Crate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from rocrate.rocrate import ROCrate

from fabricbench.exchange.placing import write_folder, write_zip
from fabricbench.record.store import Run
from fabricbench.record.verification import verify
from support.exported_run import exported, exported_run

PROFILE = "https://w3id.org/ro/wfrun/process/0.5"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("crates")
    run = exported_run(place / "run")
    (run.path / ".half.tmp").write_text("left by a kill")
    (run.path / "link").symlink_to("manifest.json")
    found = exported(run, "ro-crate")
    write_folder(found.files, place / "crate")
    with (place / "crate.zip").open("wb") as stream:
        write_zip(found.files, stream)
    return place


@pytest.fixture(scope="module")
def graph(folder: Path) -> dict[str, Any]:
    document = json.loads((folder / "crate/ro-crate-metadata.json").read_text())
    return {entity["@id"]: entity for entity in document["@graph"]}


def test_the_library_finds_every_file_of_the_run(folder: Path):
    crate = ROCrate(folder / "crate")
    paths = {str(entity.id) for entity in crate.data_entities}
    there = {path.relative_to(folder / "crate").as_posix() for path in (folder / "crate").rglob("*") if path.is_file()}
    assert paths == there - {"ro-crate-metadata.json"}
    assert "run/launches/b00-slow/samples.parquet" in paths
    assert not any("link" in path or path.endswith(".tmp") for path in paths)


def test_the_run_within_is_a_run(folder: Path):
    run = Run.open(folder / "crate/run")
    assert len(run.launches) == 4
    assert verify(folder / "crate/run").verdict == verify(folder / "run").verdict


def test_each_launch_is_an_action_of_the_program_that_measured_it(graph: dict[str, Any]):
    assert graph["./"]["conformsTo"] == {"@id": PROFILE}
    action = graph["#launch-b00-slow"]
    assert action["@type"] == "CreateAction"
    assert (action["startTime"], action["endTime"]) == ("2026-10-30T22:40:00+00:00", "2026-10-30T22:40:15+00:00")
    assert action["actionStatus"] == "http://schema.org/CompletedActionStatus"
    assert {"@id": "run/launches/b00-slow/cells.parquet"} in action["result"]
    assert action["object"] == {"@id": "run/manifest.json"}
    assert all(reference["@id"] in graph for reference in (*action["instrument"], *action["result"]))
    assert len(graph["./"]["mentions"]) == 4


def test_a_refuted_launch_is_an_action_that_failed(graph: dict[str, Any]):
    action = graph["#launch-b01-fast"]
    assert action["actionStatus"] == "http://schema.org/FailedActionStatus"
    assert action["error"] == "3 results: path refuted: the traffic went another way"
    assert "error" not in graph["#launch-b01-slow"]
    assert (
        graph["#launch-b01-slow"]["description"] == "block 1, 2 results that count; 1 result: not measured: no answer"
    )


def test_the_dataset_says_what_it_is_and_makes_nothing_up(graph: dict[str, Any]):
    root = graph["./"]
    assert root["name"] == "fabricbench run: synthetic on synthetic"
    assert root["description"] == "4 launches over slow, fast (emulated numbers)"
    assert {"name", "description", "datePublished", "license"} <= root.keys()
    assert "author" not in root
    assert graph[root["license"]["@id"]]["name"] == "no licence stated"


def test_software_and_citation_are_described(folder: Path):
    codemeta = json.loads((folder / "crate/codemeta.json").read_text())
    assert (codemeta["name"], codemeta["license"]) == ("fabricbench", "https://spdx.org/licenses/BSD-3-Clause")
    citation = (folder / "crate/CITATION.cff").read_text().splitlines()
    assert citation[0] == 'cff-version: "1.2.0"'
    assert f'version: "{codemeta["version"]}"' in citation
    assert citation[-2:] == ["authors:", '  - name: "The fabricbench authors"']


def test_the_zip_holds_what_the_folder_holds(folder: Path):
    with ZipFile(folder / "crate.zip") as archive:
        names = archive.namelist()
        assert archive.testzip() is None
    assert set(names) == {
        path.relative_to(folder / "crate").as_posix() for path in (folder / "crate").rglob("*") if path.is_file()
    }
    assert ROCrate(folder / "crate.zip").root_dataset["name"] == "fabricbench run: synthetic on synthetic"


def test_a_folder_that_cannot_be_finished_leaves_nothing(tmp_path: Path):
    from fabricbench.errors import FabricbenchError
    from fabricbench.exchange.exported import ExportedFile

    files = [ExportedFile("a.txt", b"a"), ExportedFile("b.txt", tmp_path / "is not there")]
    with pytest.raises((FabricbenchError, OSError)):
        write_folder(files, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_would_lead_out_of_the_folder_is_written_nowhere(tmp_path: Path):
    from fabricbench.exchange.exported import ExportedFile

    with pytest.raises(ValueError, match="leads out of the export"):
        write_folder([ExportedFile("../x.txt", b"x")], tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
