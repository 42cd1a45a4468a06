"""nccl-tests: times out of place and in place, blocks of buffers, and rows whose bandwidths prove them.

`nccl-all-reduce.txt` is what version 2.17.1 printed on two nodes of four GH200 each (documentation of CSCS), and
`nccl-alltoall.txt` what 2.18.3 did on two of eight RTX 6000 (a public log); hosts were renamed. The layout of 2019 is by the source
of that version.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.exchange.samples import noted, read, sample

from fabricbench.errors import UsageError
from fabricbench.exchange.storing import import_run
from fabricbench.model import Layer
from fabricbench.record.import_notes import ImportNoteKind
from fabricbench.record.store import Run

ALL_REDUCE, ALLTOALL = sample("nccl-all-reduce.txt"), sample("nccl-alltoall.txt")
TITLES = ("# Collective test starting: all_reduce_perf\n", "# Collective test starting: alltoall_perf\n")

OF_2019 = """# nThread 1 nGpus 2 minBytes 1048576 maxBytes 2097152 step: 2(factor) warmup iters: 5 iters: 20 validation: 1
#
# Using devices
#   Rank  0 Pid   2711 on         n1 device  0 [0x06] Tesla V100-SXM2-16GB
#   Rank  1 Pid   2711 on         n1 device  1 [0x07] Tesla V100-SXM2-16GB
#
#                                                     out-of-place                       in-place
#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error
#        (B)    (elements)                     (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
     1048576        262144   float     sum    50.00   20.97   20.97  2e-07    51.00   20.56   20.56  2e-07
     2097152        524288   float     sum    80.00   26.21   26.21  2e-07    81.00   25.89   25.89  2e-07
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 23.4075
"""


def values(text: str, place: str = "") -> dict[int | None, float]:
    return {
        one.message_bytes: one.values[0] for one in read(text).cells if dict(one.parameters).get("place", "") == place
    }


def test_an_all_reduce_is_its_time_out_of_place_and_in_place():
    assert len(values(ALL_REDUCE)) == len(values(ALL_REDUCE, "in")) == 25
    assert (values(ALL_REDUCE)[8], values(ALL_REDUCE, "in")[8]) == (17_930.0, 17_720.0)
    assert (values(ALL_REDUCE)[67_108_864], values(ALL_REDUCE, "in")[67_108_864]) == (1_090_500.0, 1_083_500.0)
    found = read(ALL_REDUCE)
    assert {(one.pattern.value, one.layer, one.ranks) for one in found.cells} == {("allreduce", Layer.MPI, 8)}
    assert dict(found.cells[0].parameters) == {"datatype": "float"}
    assert [one.printed_step for one in found.cells[-2:]] == pytest.approx([100.0, 100.0])
    assert found.notes == ()


def test_the_size_of_an_all_to_all_is_a_block_of_its_buffer():
    # 16 ranks: 1,024 B are 16 blocks of 64 B.
    assert next(iter(values(ALLTOALL))) == 64
    assert values(ALLTOALL)[536_870_912] == 224_292_000.0
    assert values(ALLTOALL, "in")[536_870_912] == 211_843_000.0
    assert [note.words for note in read(ALLTOALL).notes if note.kind is ImportNoteKind.READ_AS] == [
        "line 25: took 'N/A of the results in place' for right: nobody checked the results"
    ]
    assert (read(ALLTOALL).version, read(ALLTOALL).cells[0].parameters) == ("2.18.3", ())


def test_a_row_with_wrong_values_is_no_result():
    text = ALL_REDUCE.replace("107.69      0", "107.69   1024")
    assert 67_108_864 not in values(text)
    assert 67_108_864 in values(text, "in")
    assert noted(text) == [(ImportNoteKind.DAMAGED, 40)]


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("1090.5   61.54  107.69", "1080.5   61.54  107.69", "its algbw is not that of its size and its time"),
        ("1090.5   61.54  107.69", "1090.5   61.54  106.69", "busbw is not that of its size, its time and 8 ranks"),
        ("67108864      16777216", "67108864      16777116", "its size is not that of its elements"),
        ("1090.5   61.54", "1.0905   61.54", "which is not printed as any version does"),
    ],
)
def test_a_row_whose_numbers_contradict_each_other_is_no_result(old: str, new: str, why: str):
    text = ALL_REDUCE.replace(old, new)
    assert len(values(text)) == 24
    assert why in read(text).notes[0].why


def test_bandwidths_that_deny_the_number_of_ranks_are_believed_rather_than_the_head():
    lines = ALL_REDUCE.splitlines(keepends=True)
    with pytest.raises(UsageError, match="not those of the 7 ranks that the head lists"):
        read("".join(line for line in lines if "Rank  7" not in line))


def test_a_test_that_is_not_told_is_found_by_its_columns_or_its_command_and_left_out_where_two_fit():
    assert len(read(ALL_REDUCE.replace(TITLES[0], "")).cells) == 50
    with pytest.raises(UsageError, match="its rows may be of all_gather or alltoall"):
        read(ALLTOALL.replace(TITLES[1], ""))
    assert len(read("mpirun -np 16 ./build/alltoall_perf -b 1k\n" + ALLTOALL.replace(TITLES[1], "")).cells) == 48
    with pytest.raises(UsageError, match="left out hypercube: tests of which there is no pattern here"):
        read(ALLTOALL.replace("alltoall_perf", "hypercube_perf"))


def test_the_columns_of_older_versions_are_read_and_results_that_failed_are_none():
    assert values(OF_2019) == {1_048_576: 50_000.0, 2_097_152: 80_000.0}
    with pytest.raises(UsageError, match="its rows do not tell which are wrong"):
        read(OF_2019.replace("0 OK", "3 FAILED"))


def test_a_time_far_above_those_of_larger_sizes_is_told():
    text = ALL_REDUCE.replace("17.65", "17165")
    assert [(note.kind, note.line) for note in read(text).notes] == [(ImportNoteKind.READ_AS, 19)]


def test_a_text_that_was_cut_says_so():
    assert noted(ALL_REDUCE[: ALL_REDUCE.index("# Out")]) == [(ImportNoteKind.CUT, None)]


def test_its_results_are_stored_as_those_of_nccl(tmp_path: Path):
    (tmp_path / "a.txt").write_text(ALL_REDUCE)
    import_run(tmp_path / "run", {"ib": [tmp_path / "a.txt"]})
    assert set(Run.open(tmp_path / "run").cells()["variant"]) == {
        "8 ranks,by=nccl,datatype=float",
        "8 ranks,by=nccl,datatype=float,place=in",
    }
