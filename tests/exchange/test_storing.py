"""Imported results as a run that everything reads, told apart from what was measured."""

from __future__ import annotations

import errno
import math
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.exchange.samples import sample
from tests.exchange.test_osu import ALLTOALL, BANDWIDTH, LATENCY

from fabricbench.analysis import analyse
from fabricbench.cli.import_ import _fabrics
from fabricbench.errors import EnvironmentLacks, UsageError
from fabricbench.exchange import importer, storing
from fabricbench.exchange.import_options import ImportOptions
from fabricbench.exchange.imported import Imported, ImportedCell
from fabricbench.exchange.storing import import_run
from fabricbench.model import Layer, Pattern
from fabricbench.record import lock
from fabricbench.record.provenance import Origin, Proof
from fabricbench.record.run_writer import RunWriter
from fabricbench.record.store import Run
from fabricbench.record.verification import RunVerdict, verify
from support.calling import Call


def texts(folder: Path, text: str, *factors: float) -> list[Path]:
    """One file for each factor, by which the first number of the latencies is longer."""
    paths = []
    for index, factor in enumerate(factors):
        path = folder / f"{index}-{factor}.txt"
        path.write_text(text.replace("2.50", f"{2.5 * factor:.2f}").replace("10.25", f"{10.25 * factor:.2f}"))
        paths.append(path)
    return paths


def test_imported_launches_are_compared_and_say_what_they_are(tmp_path: Path):
    fabrics = {"ib": texts(tmp_path, LATENCY, 1.0, 1.1, 1.05), "eth": texts(tmp_path, LATENCY, 9.0, 9.5, 9.2)}
    import_run(tmp_path / "run", fabrics)
    run = Run.open(tmp_path / "run")
    assert {(one.origin, one.proof) for one in run.launches} == {(Origin.IMPORTED, Proof.UNKNOWN)}
    assert {
        one.summary.facts.conditions["imported from 0-1.0.txt"] for one in run.launches if one.launch_id == "b00-ib"
    } == {"OSU Micro-Benchmarks 7.4, MPI_CHAR: the mean of the iterations"}
    findings = analyse([run])
    (first, _) = findings.cells
    told = {warning.text for warning in findings.warnings}
    assert any(text.startswith("imported, not measured by fabricbench: OSU Micro-Benchmarks 7.4") for text in told)
    assert not any("is random" in text for text in told)
    assert first.value_a == pytest.approx(5000.0 * (1.1 * 1.05) ** (1 / 3), rel=1e-3)
    assert "by=osu" in first.variant
    assert (tmp_path / "run/launches/b00-ib/texts/0-1.0.txt").read_text() == LATENCY


def test_rates_keep_their_digits(tmp_path: Path):
    import_run(tmp_path / "run", {"ib": texts(tmp_path, BANDWIDTH, 1.0)})
    (value,) = Run.open(tmp_path / "run").launch_quantiles()["launch_value"]
    assert value == 8e8


def test_a_folder_is_one_launch(tmp_path: Path):
    folder = tmp_path / "first"
    folder.mkdir()
    (folder / "latency.txt").write_text(LATENCY)
    (folder / "bw.txt").write_text(BANDWIDTH)
    import_run(tmp_path / "run", {"ib": [folder]})
    (launch,) = Run.open(tmp_path / "run").launches
    assert launch.summary.cells == 3


def test_launches_have_the_tables_that_each_would_have_alone(tmp_path: Path):
    shorter = LATENCY[: LATENCY.rindex("4096")]
    paths = [*texts(tmp_path, LATENCY, 1.0, 1.1), *texts(tmp_path, shorter, 1.2), *texts(tmp_path, BANDWIDTH, 1.3)]
    import_run(tmp_path / "run", {"ib": paths})
    for block, path in enumerate(paths):
        import_run(tmp_path / f"alone-{block}", {"ib": [path]})
        for name in ("cells.parquet", "samples.parquet"):
            alone = (tmp_path / f"alone-{block}/launches/b00-ib" / name).read_bytes()
            assert (tmp_path / f"run/launches/b{block:02d}-ib" / name).read_bytes() == alone


def test_a_run_that_was_imported_is_whole(tmp_path: Path):
    import_run(tmp_path / "run", {"ib": texts(tmp_path, LATENCY, 1.0)})
    assert verify(tmp_path / "run").verdict is RunVerdict.WHOLE


def test_of_an_altered_import_the_texts_are_read_again_and_nothing_is_measured(tmp_path: Path, fabricbench: Call):
    import_run(tmp_path / "run", {"ib": texts(tmp_path, LATENCY, 1.0)})
    with (tmp_path / "run" / "launches" / "b00-ib" / "samples.parquet").open("ab") as file:
        file.write(b"x")
    code, _, err = fabricbench("verify", tmp_path / "run")
    assert (code, "`fabricbench import` reads the texts again" in err, "resume" in err) == (1, True, False)


@pytest.mark.parametrize(
    ("text", "said", "needed"),
    [
        (ALLTOALL, ImportOptions(), "does not tell the number of ranks of its alltoall"),
        ("hello\n", ImportOptions(), "no line in it begins a test of theirs; it begins with 'hello'"),
        (LATENCY, ImportOptions(importer="teleport"), "there is no importer 'teleport'"),
    ],
    ids=["ranks", "nobody's", "unknown importer"],
)
def test_what_is_not_told_is_asked_for_and_nothing_is_written(
    tmp_path: Path, text: str, said: ImportOptions, needed: str
):
    with pytest.raises(UsageError, match=needed):
        import_run(tmp_path / "run", {"ib": texts(tmp_path, text, 1.0)}, said)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("name", "hint"), [("IB", "write --fabric ib=PATH"), ("i b", "another name")])
def test_a_name_that_no_fabric_may_have_is_refused(tmp_path: Path, name: str, hint: str):
    with pytest.raises(UsageError, match="cannot be named") as raised:
        import_run(tmp_path / "run", {name: texts(tmp_path, LATENCY, 1.0)})
    assert hint in str(raised.value.hint)
    assert not (tmp_path / "run").exists()


def test_ranks_that_are_said_are_taken(tmp_path: Path):
    import_run(tmp_path / "run", {"ib": texts(tmp_path, ALLTOALL, 1.0)}, ImportOptions(ranks=4))
    assert Run.open(tmp_path / "run").cells()["ranks"].to_list() == [[0, 1, 2, 3]]


@pytest.mark.parametrize(
    ("text", "said", "refused"),
    [
        (
            LATENCY,
            ImportOptions(ranks=8),
            "--ranks 8: {} tells 2 of its pingpong, and no text leaves the number of ranks open",
        ),
        (LATENCY, ImportOptions(layer=Layer.TCP), "--layer tcp: {} tells mpi of its pingpong"),
        (LATENCY, ImportOptions(message_bytes=64), "--message-bytes 64: {} tells 1 of its pingpong"),
        (
            sample("hpl.txt"),
            ImportOptions(message_bytes=64),
            "--message-bytes 64: no text has a test with a message size",
        ),
    ],
)
def test_what_is_said_against_a_text_and_needed_by_none_is_refused(
    tmp_path: Path, text: str, said: ImportOptions, refused: str
):
    path = tmp_path / "one.txt"
    path.write_text(text)
    with pytest.raises(UsageError, match=re.escape(refused.format(path))):
        import_run(tmp_path / "run", {"ib": [path]}, said)
    assert not (tmp_path / "run").exists()


def test_what_a_text_tells_stands_where_something_else_is_said_of_others(tmp_path: Path):
    (tmp_path / "open.txt").write_text(ALLTOALL)
    (tmp_path / "told.txt").write_text(sample("imb-collectives.txt"))
    (tmp_path / "pair.txt").write_text(LATENCY)
    told: list[str] = []
    fabrics = {"ib": [tmp_path / name for name in ("open.txt", "told.txt", "pair.txt")]}
    import_run(tmp_path / "run", fabrics, ImportOptions(ranks=16), tell=told.append)
    (warning,) = [one for one in told if "--ranks" in one]
    assert warning.startswith("--ranks 16 stands for texts that leave the number of ranks open: ")
    assert f"{tmp_path / 'told.txt'} tells 4 of its " in warning
    assert "pair.txt" not in warning


def test_what_is_said_as_a_text_tells_it_is_no_contradiction(tmp_path: Path):
    (tmp_path / "one.txt").write_text(LATENCY)
    told: list[str] = []
    import_run(
        tmp_path / "run", {"ib": [tmp_path / "one.txt"]}, ImportOptions(ranks=2, layer=Layer.MPI), tell=told.append
    )
    assert not told


def test_a_text_with_the_name_of_a_file_of_ours_is_kept_as_it_is(tmp_path: Path):
    folder = tmp_path / "first"
    folder.mkdir()
    (folder / "launch.json").write_text(LATENCY)
    import_run(tmp_path / "run", {"ib": [folder]})
    assert (tmp_path / "run/launches/b00-ib/texts/launch.json").read_text() == LATENCY
    assert verify(tmp_path / "run").verdict is RunVerdict.WHOLE
    (launch,) = Run.open(tmp_path / "run").launches
    assert launch.summary.cells == 2


@pytest.mark.parametrize("given", ["ib=a.txt,", "ib=", "=a.txt", "ib", "ib=,a.txt"])
def test_a_path_that_is_left_out_is_not_the_present_folder(given: str):
    with pytest.raises(UsageError, match="is no NAME=PATH"):
        _fabrics([given])


@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, math.nan])
def test_a_number_that_is_no_time_is_refused_whichever_importer_read_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: float
):
    cell = ImportedCell(Pattern.PINGPONG, 8, (1.0, value), layer=Layer.TCP, ranks=2)
    imported = Imported(program="Any", version="1", statistic="the best", cells=(cell,))
    careless = SimpleNamespace(NAME="any", TITLE="Any", is_it=lambda _: True, read=lambda _: imported)
    monkeypatch.setattr(importer, "IMPORTERS", (careless,))
    with pytest.raises(UsageError, match="pingpong of 8 B is 1, "):
        import_run(tmp_path / "run", {"ib": texts(tmp_path, LATENCY, 1.0)})
    assert not (tmp_path / "run").exists()


def test_a_text_with_carriage_returns_is_read_as_one_without(tmp_path: Path):
    path = tmp_path / "dos.txt"
    path.write_bytes(LATENCY.replace("\n", "\r\n").encode())
    import_run(tmp_path / "run", {"ib": [path]})
    assert Run.open(tmp_path / "run").launches[0].summary.cells == 2


def test_a_folder_that_is_used_stays_as_it_is(tmp_path: Path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run/mine").write_text("x")
    with pytest.raises(UsageError, match="is not empty"):
        import_run(tmp_path / "run", {"ib": texts(tmp_path, LATENCY, 1.0)})
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["mine"]


def once_and_again(folder: Path) -> tuple[Path, Path]:
    one, copy = folder / "one.txt", folder / "copy.txt"
    one.write_text(LATENCY)
    copy.write_text(LATENCY)
    return one, copy


@pytest.mark.parametrize("second", ["ib", "eth"], ids=["in one fabric", "in two"])
def test_a_text_that_is_there_twice_is_refused_with_both_paths(tmp_path: Path, second: str):
    one, copy = once_and_again(tmp_path)
    fabrics = {"ib": [one], "eth": []}
    fabrics[second] = [*fabrics[second], copy]
    with pytest.raises(UsageError, match=f"{one} and {copy} are the same text") as raised:
        import_run(tmp_path / "run", fabrics)
    assert "# launch 2" in str(raised.value.hint)
    assert not (tmp_path / "run").exists()
    with pytest.raises(UsageError, match=f"{one} is given twice"):
        import_run(tmp_path / "run", {"ib": [one, one]})


def test_a_text_that_is_twice_in_the_folder_of_a_launch_is_refused(tmp_path: Path):
    (tmp_path / "first").mkdir()
    once_and_again(tmp_path / "first")
    with pytest.raises(UsageError, match="are the same text"):
        import_run(tmp_path / "run", {"ib": [tmp_path / "first"]})


def test_two_launches_that_printed_the_same_are_told_apart_by_a_line(tmp_path: Path):
    one, copy = once_and_again(tmp_path)
    copy.write_text(f"{LATENCY}# launch 2\n")
    import_run(tmp_path / "run", {"ib": [one, copy]})
    assert len(Run.open(tmp_path / "run").launches) == 2


def test_a_pipe_is_read_once_and_kept(tmp_path: Path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=(LATENCY,), daemon=True)
    writer.start()
    import_run(tmp_path / "run", {"ib": [path]})
    writer.join(10)
    assert (tmp_path / "run/launches/b00-ib/texts/pipe").read_text() == LATENCY
    assert verify(tmp_path / "run").verdict is RunVerdict.WHOLE


def altered(path: Path) -> None:
    path.write_text(path.read_text().replace("2.50", "2.40"))


@pytest.mark.parametrize(
    ("change", "said"), [(altered, "it was altered"), (Path.unlink, "it is gone")], ids=["altered", "gone"]
)
def test_a_kept_text_that_is_not_as_it_was_is_told_of(tmp_path: Path, change: Callable[[Path], None], said: str):
    import_run(tmp_path / "run", {"ib": texts(tmp_path, LATENCY, 1.0)})
    change(tmp_path / "run/launches/b00-ib/texts/0-1.0.txt")
    found = verify(tmp_path / "run")
    assert found.verdict is RunVerdict.ALTERED
    assert [one.path for one in found.altered] == ["launches/b00-ib/texts/0-1.0.txt"]
    assert found.altered[0].reason.startswith(said)


@pytest.mark.parametrize("is_there", [True, False])
def test_an_import_that_fails_while_it_writes_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_there: bool
):
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if is_there:
        (tmp_path / "runs/run").mkdir(parents=True)
    monkeypatch.setattr(RunWriter, "write_manifest", full)
    with pytest.raises(EnvironmentLacks, match="no space left") as raised:
        import_run(tmp_path / "runs/run", {"ib": texts(tmp_path, LATENCY, 1.0)})
    assert raised.value.hint == "free some space and repeat the command: nothing was imported"
    left = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.suffix != ".txt"]
    assert left == (["runs", "runs/run"] if is_there else [])


def test_a_disk_that_fills_beneath_another_layer_is_told_as_an_import_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "rename", full)  # of what each file of a launch is written by
    with pytest.raises(EnvironmentLacks, match="no space left") as raised:
        import_run(tmp_path / "run", {"ib": texts(tmp_path, LATENCY, 1.0)})
    assert "nothing was imported" in str(raised.value.hint)


def test_of_two_imports_into_one_folder_the_later_is_refused_and_takes_nothing_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    first, second = texts(tmp_path, LATENCY, 1.0, 2.0)
    find = storing._testbed

    def find_while_another_imports(*arguments: Any) -> Any:
        monkeypatch.setattr(storing, "_testbed", find)
        import_run(tmp_path / "run", {"ib": [first]})
        return find(*arguments)

    monkeypatch.setattr(storing, "_testbed", find_while_another_imports)
    with pytest.raises(UsageError, match="is not empty"):
        import_run(tmp_path / "run", {"ib": [second]})
    assert verify(tmp_path / "run").verdict is RunVerdict.WHOLE
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["journal.jsonl", "launches", "manifest.json"]


def test_an_import_into_a_folder_that_another_writes_is_refused_and_takes_nothing_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    first, second = texts(tmp_path, LATENCY, 1.0, 2.0)
    write, find = RunWriter.write_manifest, storing.check_empty

    def write_while_another_imports(*arguments: Any) -> None:
        monkeypatch.setattr(storing, "check_empty", lambda _: None)  # it had looked before there was anything
        with pytest.raises(UsageError, match="another fabricbench is running"):
            import_run(tmp_path / "run", {"ib": [second]})
        monkeypatch.setattr(storing, "check_empty", find)
        write(*arguments)

    monkeypatch.setattr(RunWriter, "write_manifest", write_while_another_imports)
    import_run(tmp_path / "run", {"ib": [first]})
    assert verify(tmp_path / "run").verdict is RunVerdict.WHOLE


def test_a_folder_that_is_removed_by_whoever_held_its_lock_is_not_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    take = lock.fcntl.flock

    def take_what_was_removed(file: Any, how: int) -> None:
        take(file, how)
        (tmp_path / lock.LOCK).unlink()

    monkeypatch.setattr(lock.fcntl, "flock", take_what_was_removed)
    with pytest.raises(UsageError, match="another fabricbench is running"), lock.locked(tmp_path):
        pass


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (LATENCY.replace("2.50", "1e16"), "2e\\+19 ns"),
        (LATENCY.replace("2.50", "1e-7"), "0.0002 ns"),
        (BANDWIDTH.replace("100.00", "1e-8"), "0.08 bit/s"),
        (BANDWIDTH.replace("100.00", "1e16"), "8e\\+22 bit/s"),
    ],
    ids=["long", "short", "slow", "fast"],
)
@pytest.mark.filterwarnings("error")
def test_a_number_that_no_run_can_hold_is_refused(tmp_path: Path, text: str, number: str):
    path = tmp_path / "text"
    path.write_text(text)
    with pytest.raises(UsageError, match=number) as raised:
        import_run(tmp_path / "run", {"ib": [path]})
    assert "a run holds from" in str(raised.value.hint)
    assert not (tmp_path / "run").exists()


def test_a_file_is_no_folder_for_a_run(tmp_path: Path):
    (path,) = texts(tmp_path, LATENCY, 1.0)
    with pytest.raises(UsageError, match="is no folder"):
        import_run(path, {"ib": [path]})
    with pytest.raises(UsageError, match="cannot be written: Not a directory"):
        import_run(path / "run", {"ib": [path]})


def test_what_is_no_file_in_a_folder_is_named(tmp_path: Path):
    folder = tmp_path / "first"
    folder.mkdir()
    (folder / "latency.txt").write_text(LATENCY)
    for number in range(6):
        (folder / f"sub{number}").mkdir()
    os.mkfifo(folder / "pipe")
    (folder / "zero").symlink_to("/dev/zero")
    told: list[str] = []
    import_run(tmp_path / "run", {"ib": [folder]}, tell=told.append)
    assert told == [f"{folder}: not read, for they are no files: pipe, sub0, sub1, sub2, sub3 and 3 more"]


@pytest.mark.parametrize("content", ["srun: error: node7: task 1: Exited with exit code 1\n", ""])
def test_a_file_of_a_folder_that_is_no_result_is_refused_with_what_to_do(content: str, tmp_path: Path):
    folder = tmp_path / "first"
    folder.mkdir()
    (folder / "latency.txt").write_text(LATENCY)
    (folder / "slurm.err").write_text(content)
    with pytest.raises(UsageError) as raised:
        import_run(tmp_path / "run", {"ib": [folder]})
    assert str(folder / "slurm.err") in str(raised.value)
    assert f"take slurm.err out of the folder {folder}" in (raised.value.hint or "")
    with pytest.raises(UsageError) as raised:
        import_run(tmp_path / "run", {"ib": [folder / "slurm.err"]})
    assert "out of the folder" not in (raised.value.hint or "")
