"""Each measurement counts once, whatever stands around its numbers, and texts of other tools and lengths are told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fabricbench.analysis import analyse
from fabricbench.errors import UsageError
from fabricbench.exchange.import_options import ImportOptions
from fabricbench.exchange.importer import read_text
from fabricbench.exchange.storing import import_run
from fabricbench.record.import_notes import ImportNoteKind
from fabricbench.record.store import Run
from support.osu_texts import osu_text


def stored(folder: Path, fabrics: dict[str, list[str]], said: ImportOptions | None = None) -> tuple[Run, list[str]]:
    """Import one file for each text; what people were told comes with the run."""
    told: list[str] = []
    paths = {
        name: [folder / f"{name}-{number}.txt" for number, _ in enumerate(texts)] for name, texts in fabrics.items()
    }
    for name, texts in fabrics.items():
        for path, text in zip(paths[name], texts, strict=True):
            path.write_text(text)
    import_run(folder / "run", paths, said, tell=told.append)
    return Run.open(folder / "run"), told


def test_one_measurement_saved_with_other_remarks_counts_once_and_that_is_told(tmp_path: Path):
    copies = [osu_text(values=(20.27, 26.31), remark=f"launch {number}") for number in range(5)]
    run, told = stored(tmp_path, {"a": copies})
    assert [launch.launch_id for launch in run.launches] == ["b00-a"]
    assert told == [
        "a-1.txt: it holds the same numbers as a-0.txt: they count once (and so in 3 more)",
    ]
    (launch,) = run.launches
    assert {note.kind for note in launch.summary.facts.import_notes} == {ImportNoteKind.REPEATED}


def test_few_digits_agree_by_chance_and_stay_launches_of_their_own(tmp_path: Path):
    alike = [osu_text(values=(1.05, 1.06), remark=f"launch {number}") for number in range(4)]
    run, told = stored(tmp_path, {"a": alike})
    assert len(run.launches) == 4
    assert not told


def test_two_fabrics_with_the_same_digits_are_refused(tmp_path: Path):
    sizes = [2**power for power in range(12)]
    with pytest.raises(UsageError, match=r"a-0.txt of a and .*b-0.txt of b hold the same numbers"):
        stored(tmp_path, {"a": [osu_text(sizes=sizes)], "b": [osu_text(sizes=sizes, remark="another")]})
    assert not (tmp_path / "run").exists()


def test_among_many_texts_two_may_agree_by_chance(tmp_path: Path):
    values = [(20.0 + 0.1 * number, 26.0 + 0.1 * number) for number in range(8)]
    texts = {"a": [osu_text(values=one) for one in values], "b": [osu_text(values=values[3], remark="of b")]}
    run, told = stored(tmp_path, texts)
    assert len(run.launches) == 9
    assert not told


def test_the_versions_of_each_fabric_are_kept_and_a_difference_is_told_once(tmp_path: Path):
    old = [osu_text(values=(20.1 + number, 21.2), version="4.4.1", datatype="") for number in range(3)]
    new = [osu_text(values=(30.1 + number, 31.2)) for number in range(3)]
    run, told = stored(tmp_path, {"a": old, "b": new})
    differ = (
        "not measured with the same version on all fabrics (a by OSU Micro-Benchmarks 4.4.1; b by OSU Micro-Benchmarks 7.5): "
        "the tool may differ, not the network alone"
    )
    assert told == [differ]
    findings = analyse([run])
    assert [one.text for one in findings.warnings].count(differ) == 1
    assert [one.description for one in findings.fabrics] == [
        "imported: OSU Micro-Benchmarks 4.4.1",
        "imported: OSU Micro-Benchmarks 7.5",
    ]
    assert json.loads((tmp_path / "run/manifest.json").read_text())["versions"]["OSU Micro-Benchmarks"] == "4.4.1, 7.5"
    assert findings.cells  # other versions are compared


def test_reductions_of_other_datatypes_are_other_tests_and_that_is_told(tmp_path: Path):
    of_a = [osu_text("Allreduce Latency", values=(60.1 + number, 61.2), datatype="MPI_INT") for number in range(3)]
    of_b = [osu_text("Allreduce Latency", values=(70.1 + number, 71.2), datatype="MPI_FLOAT") for number in range(3)]
    run, told = stored(tmp_path, {"a": of_a, "b": of_b}, ImportOptions(ranks=4))
    differ = (
        "allreduce is of another datatype on each fabric (a MPI_INT; b MPI_FLOAT): another test, which is not compared"
    )
    assert told == [differ]
    findings = analyse([run])
    assert not findings.cells
    assert differ in {one.text for one in findings.warnings}
    facts = [launch.summary.facts.conditions for launch in run.launches if launch.block == 0]
    assert [text.partition(":")[0] for one in facts for text in one.values()] == [
        "OSU Micro-Benchmarks 7.5, MPI_INT",
        "OSU Micro-Benchmarks 7.5, MPI_FLOAT",
    ]


def test_a_datatype_that_one_side_does_not_tell_is_not_called_another_one(tmp_path: Path):
    of_a = [osu_text("Allreduce Latency", values=(60.1 + number, 61.2), datatype="MPI_INT") for number in range(3)]
    of_b = [osu_text("Allreduce Latency", values=(70.1 + number, 71.2), datatype="") for number in range(3)]
    run, told = stored(tmp_path, {"a": of_a, "b": of_b}, ImportOptions(ranks=4))
    assert told == [
        "allreduce is not known to be of one datatype (a MPI_INT; b not told): another test perhaps, which is not compared"
    ]
    assert analyse([run]).headline.sentence.startswith("Nothing can be compared: ")


def test_a_table_that_ends_before_others_do_is_told_and_in_the_report(tmp_path: Path):
    short = osu_text(values=(20.27, 20.31)) + "slurmstepd: error: *** JOB 4711 ON node7 CANCELLED AT 2026-01-01 ***\n"
    run, told = stored(tmp_path, {"a": [short], "b": [osu_text(values=(40.96, 39.77, 40.24))]})
    assert [text.partition(":")[0] for text in told] == ["a-0.txt, line 6", "a-0.txt"]
    assert told[1] == "a-0.txt: its results may not be whole: pingpong ends at 2 B, that of others at 4 B"
    assert set(told) <= {one.text for one in analyse([run]).warnings}


def test_a_run_that_was_imported_before_there_were_notes_still_opens(tmp_path: Path):
    run, _ = stored(tmp_path, {"a": [osu_text()]})
    (launch,) = run.launches
    text = launch.summary.model_dump_json(by_alias=True, exclude={"facts": {"import_notes"}})
    assert "import_notes" not in text
    assert type(launch.summary).model_validate_json(text).facts.import_notes == ()


RED, PLAIN, TITLE = "\x1b[1;31m", "\x1b(B\x1b[m\x0f", "\x1b]0;osu_latency\x07"


def test_what_steers_a_terminal_is_no_part_of_a_text_wherever_it_stands(tmp_path: Path):
    coloured = TITLE + "".join(f"{RED}{line[:3]}{PLAIN}{line[3:]}\x1b[0K\n" for line in osu_text().splitlines())
    (tmp_path / "coloured.txt").write_text(coloured)
    assert read_text(coloured, "coloured.txt") == read_text(osu_text(), "plain.txt")
    told: list[str] = []
    import_run(tmp_path / "run", {"ib": [tmp_path / "coloured.txt"]}, tell=told.append)
    assert Run.open(tmp_path / "run").launches[0].summary.cells == 3
    assert not told
    assert (tmp_path / "run/launches/b00-ib/texts/coloured.txt").read_text() == coloured


def test_a_coloured_line_is_quoted_as_it_is_seen(tmp_path: Path):
    (tmp_path / "one.txt").write_text(osu_text() + f"{RED}WARNING{PLAIN}: fork is unsafe\n")
    told: list[str] = []
    import_run(tmp_path / "run", {"ib": [tmp_path / "one.txt"]}, tell=told.append)
    (warning,) = told
    assert "'WARNING: fork is unsafe'" in warning
    (tmp_path / "other.txt").write_text(f"{RED}no{PLAIN} benchmark\n")
    with pytest.raises(UsageError, match="it begins with 'no benchmark'"):
        import_run(tmp_path / "other", {"ib": [tmp_path / "other.txt"]})
