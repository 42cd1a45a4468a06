"""mpiGraph: the matrix of what arrived, as a map of the network; proven by the largest and the mean that are printed of it.

The text is by the source of version 1.5.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.exchange.samples import noted, read

from fabricbench.analysis import analyse
from fabricbench.chapters.network_map import MAPS
from fabricbench.errors import UsageError
from fabricbench.exchange.storing import import_run
from fabricbench.model import Layer
from fabricbench.record.import_notes import ImportNoteKind
from fabricbench.record.store import Run
from fabricbench.record.verification import RunVerdict, verify

MIB = 8 * 2**20
"""Bits of a megabyte of its."""

MATRIX = """START mpiGraph v1.5
MsgSize\t16384
Times\t100
Window\t50
Procs\t4

1 of 4 (25.0%)
2 of 4 (50.0%)
3 of 4 (75.0%)
Gathering results

Send max\t1126.590000
Send avg\t1114.341314

Send\tn1:0\tn2:1\tn3:2\tn4:3\t
n1:0 to\t0.000\t1122.128\t1102.110\t1112.055\t
n2:1 to\t1123.530\t0.000\t1120.980\t1107.465\t
n3:2 to\t1099.815\t1117.920\t0.000\t1126.590\t
n4:3 to\t1109.760\t1105.808\t1124.805\t0.000\t

Recv max\t1104.500000
Recv avg\t1092.491403

Recv\tn1:0\tn2:1\tn3:2\tn4:3\t
n1:0 from\t0.000\t1100.125\t1080.500\t1090.250\t
n2:1 from\t1101.500\t0.000\t1099.000\t1085.750\t
n3:2 from\t1078.250\t1096.000\t0.000\t1104.500\t
n4:3 from\t1088.000\t1084.125\t1102.750\t0.000\t
END mpiGraph
"""


def test_what_arrived_is_a_value_of_each_pair_and_direction():
    (one,) = read(MATRIX).cells
    assert (one.pattern.value, one.message_bytes, one.ranks, one.layer) == ("pairs-stream", 16384, 4, Layer.MPI)
    # The row of n1 says what n1 received from n2: 1,100.125 x 2^20 B/s.
    assert (one.pairs[0], one.values[0]) == ((1, 0), 1100.125 * MIB)
    assert (one.pairs[-1], one.values[-1]) == ((2, 3), 1102.75 * MIB)
    assert len(one.values) == 12
    assert one.printed_step == pytest.approx(0.001 * MIB)
    assert (one.hosts, dict(one.parameters)) == (("n1", "n2", "n3", "n4"), {"schedule": "shifts", "window": 50})
    assert (read(MATRIX).version, read(MATRIX).notes) == ("1.5", ())


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("1101.500", "1001.500", "have not the largest and the mean that are printed of them"),
        ("1104.500\t\n", "\n", "line 27 has 3 values of 4 ranks"),
        ("n3:2 from", "n4:2 from", "its rows are not those of the ranks that its columns name"),
        ("Recv max", "Recv mx", "it does not tell Recv max"),
        ("1085.750", "nan", "which is no number"),
        ("Procs\t4", "Procs\t5", "its columns are not those of ranks 0 to 4"),
    ],
)
def test_a_matrix_that_is_damaged_or_not_whole_is_no_result(old: str, new: str, why: str):
    with pytest.raises(UsageError, match=why):
        read(MATRIX.replace(old, new))


def test_a_text_without_its_end_says_so():
    assert noted(MATRIX.replace("END mpiGraph", "")) == [(ImportNoteKind.CUT, 1)]


def test_reports_show_it_as_a_map_from_host_to_host(tmp_path: Path):
    (tmp_path / "a.txt").write_text(MATRIX)
    import_run(tmp_path / "run", {"ib": [tmp_path / "a.txt"]})
    assert verify(tmp_path / "run").verdict is RunVerdict.WHOLE
    (one,) = MAPS.of(analyse([Run.open(tmp_path / "run")]))
    assert (one.hosts, one.schedule, one.launches) == (("n1", "n2", "n3", "n4"), "shifts", 1)
    assert one.matrix[0][1:] == pytest.approx((1101.5 * MIB, 1078.25 * MIB, 1088.0 * MIB), rel=1e-9)


def test_two_matrices_of_one_launch_must_be_of_the_same_hosts(tmp_path: Path):
    folder = tmp_path / "first"
    folder.mkdir()
    (folder / "a.txt").write_text(MATRIX)
    (folder / "b.txt").write_text(MATRIX.replace("n4:3", "n5:3").replace("16384", "4096"))
    with pytest.raises(UsageError, match="are of one launch, and tell of other hosts"):
        import_run(tmp_path / "run", {"ib": [folder]})
