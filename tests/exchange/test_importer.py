"""Who wrote a text is found out, also behind the tags of launchers, and what is needed is said where nobody knows it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fabricbench.errors import UsageError
from fabricbench.exchange import sources
from fabricbench.exchange.importer import read_text
from fabricbench.exchange.storing import import_run
from fabricbench.record.import_notes import ImportNoteKind
from support.calling import Call
from support.osu_texts import osu_text

TEXT = osu_text()


def tagged(tag: str) -> str:
    return "".join(f"{tag}{line}\n" for line in TEXT.splitlines())


@pytest.mark.parametrize(
    "tag",
    [
        "[1,0]<stdout>:",
        "[prterun-node7-4711@1,0]<stdout>: ",
        "Thu Nov 26 18:00:00 2026[1,0]<stdout>:",
        "Thu Nov 26 18:00:00 2026<stdout>: ",
        "0: ",
        " 00: ",
        "[0] ",
        "2026-11-26T18:00:00.1234567Z ",
    ],
)
@pytest.mark.parametrize("name", [None, "osu"])
def test_tags_of_launchers_are_taken_off_and_told(tag: str, name: str | None):
    _, found = read_text(tagged(tag), "a.txt", name)
    _, plain = read_text(TEXT, "a.txt")
    assert found.cells == plain.cells
    (note,) = found.notes
    assert (note.kind, note.text) == (ImportNoteKind.TAGGED, tag.strip())
    assert not plain.notes


def test_lines_that_the_launcher_itself_wrote_have_no_tag_and_are_told_where_they_stand_among_results():
    text = tagged("[1,0]<stdout>:") + "mpirun: something of its own\n[1,0]<stderr>:a warning of rank 0\n"
    _, found = read_text(text, "a.txt")
    assert [(note.kind, note.line) for note in found.notes[1:]] == [
        (ImportNoteKind.STRAY, 7),
        (ImportNoteKind.STRAY, 8),
    ]


@pytest.mark.parametrize("name", [None, "osu"])
def test_a_text_that_nobody_knows_is_told_by_what_was_seen_and_what_is_needed(name: str | None):
    with pytest.raises(UsageError) as raised:
        read_text("\n20 30\n", "a.txt", name)
    known = "OSU Micro-Benchmarks: no line" if name else "any of GPCNeT, "
    assert f"a.txt is not the output of {known}" in str(raised.value)
    assert "it begins with '20 30'" in str(raised.value)
    assert "--from" not in (raised.value.hint or "")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"# OSU MPI Latency Test v7.5\n\0\0", "is no text: a zero byte"),
        (b"\x7fELF\x02\x01\x01\0\0", "is no text: a zero byte"),
        (b"x" * 5000, "it begins with 'xxx"),
    ],
    ids=["empty", "blank", "zeros", "binary", "one line"],
)
def test_what_is_no_text_of_a_benchmark_is_refused_by_the_command(
    content: bytes, said: str, tmp_path: Path, fabricbench: Call
):
    (tmp_path / "a.txt").write_bytes(content)
    code, _, told = fabricbench("import", "--fabric", f"a={tmp_path / 'a.txt'}", "-o", tmp_path / "run")
    assert code == 2
    assert said in " ".join(told.split())
    assert not (tmp_path / "run").exists()


def test_a_huge_text_is_refused_before_all_of_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sources, "MOST_BYTES", 1000)
    (tmp_path / "a.txt").write_text(TEXT + "#" * 1000)
    with pytest.raises(UsageError, match=re.escape("has more than 1000 B, which no benchmark prints")):
        import_run(tmp_path / "run", {"a": [tmp_path / "a.txt"]})


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_line_ends_and_encodings_of_other_systems_are_read(encoding: str, tmp_path: Path):
    (tmp_path / "a.txt").write_bytes(TEXT.replace("\n", "\r\n").encode(encoding))
    content, text = sources.read_file(tmp_path / "a.txt")
    assert text == TEXT
    assert content == (tmp_path / "a.txt").read_bytes()


def test_where_no_result_is_left_every_reason_is_told_and_no_other_cause_is_guessed():
    with pytest.raises(UsageError) as raised:
        read_text(osu_text(values=(-1.5, 0.0)), "a.txt")
    assert str(raised.value) == (
        "a.txt: no result is in it; line 5: left out '2                       0.00': less than its last digit can tell; "
        "line 4: left out '1                      -1.50': its result is -1.50, and none is"
    )
    assert raised.value.hint is None
    with pytest.raises(UsageError) as raised:
        read_text("\n".join(TEXT.splitlines()[:3]), "a.txt")
    assert raised.value.hint == "did the program come to its first result?"


def test_a_table_with_decimal_commas_that_no_importer_reads_is_told_so():
    with pytest.raises(UsageError) as raised:
        read_text("       1 0,298156   0,00002559\n       2 0,625376   0,00002440\n", "np.out")
    assert "decimal comma" in (raised.value.hint or "")


def test_the_help_of_import_names_every_importer():
    from fabricbench.cli.import_ import FORMATS
    from fabricbench.exchange.importer import IMPORTERS

    assert ", ".join(one.NAME for one in IMPORTERS) == FORMATS
