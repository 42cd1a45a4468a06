"""LinkTest: pairs one by one as a matrix of round trips, pairs at once as their mean, both proven by what is printed beside them.

The text is by the source of version 1.1.
"""

from __future__ import annotations

import re
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

SERIAL = """timings[000] [first sync]                   t=  0.000012s


----------------------------------------------------------
linktest: Number of MPI-Task:                 4
linktest: Current Rank MPI-Task:              0
linktest: Message length:                131072 Bytes
linktest: Message length:              128.0000 KBytes
linktest: Number of Iteration:               60
linktest: Number of Iter. (Warmup):          16
linktest: alltoall:                  0
linktest: sleeptime:                 0 us
linktest: collectpnum:               32
linktest: mixing pe order:           0
linktest: serial test:               1
----------------------------------------------------------
task[000000] on n1 (0,0,0,0) mem=   12.3456 MB
task[000001] on n2 (0,0,0,1) mem=   12.3456 MB
task[000002] on n3 (0,0,0,2) mem=   12.3456 MB
task[000003] on n4 (0,0,0,3) mem=   12.3456 MB


Starting Test of all connections:
--------------------------------
 Serial   PingPong for step     1:
      0->     1:    30.50000us (4098.36 MB/s) (l=0)
      1->     0:    30.75000us (4065.04 MB/s) (l=1)
      2->     3:    30.12500us (4149.38 MB/s) (l=2)
      3->     2:    30.25000us (4132.23 MB/s) (l=3)
  avg=    30.406us (4111.00 MB/s) min=    30.125us (4149.38 MB/s) max=    30.750us (4065.04 MB/s)
 Serial   PingPong for step     2:
      0->     2:    31.00000us (4032.26 MB/s) (l=0)
      1->     3:    33.00000us (3787.88 MB/s) (l=1)
      2->     0:    31.25000us (4000.00 MB/s) (l=2)
      3->     1:    32.50000us (3846.15 MB/s) (l=3)
  avg=    31.938us (3913.89 MB/s) min=    31.000us (4032.26 MB/s) max=    33.000us (3787.88 MB/s)
 Serial   PingPong for step     3:
      0->     3:    30.62500us (4081.63 MB/s) (l=0)
      1->     2:    31.50000us (3968.25 MB/s) (l=1)
      2->     1:    30.87500us (4048.58 MB/s) (l=2)
      3->     0:    30.50000us (4098.36 MB/s) (l=3)
  avg=    30.875us (4048.58 MB/s) min=    30.500us (4098.36 MB/s) max=    31.500us (3968.25 MB/s)
timings[000] [work]                         t=  0.123456s


RESULT: Min Time:                     30.12500000us (4149.38 MB/s) [iter  1 ]
RESULT: Max Time:                     33.00000000us (3787.88 MB/s) [iter  1 ]
RESULT: Avg Time:                     31.07291667us (4022.80 MB/s) [iter  1 ]
     0: PINGPONG      1  <->       3:  1st:    33.0000us (3787.88 MB/s)    2nd:    32.5000us (3846.15 MB/s)
RESULT: Min Time Stest:               32.50000000us (3846.15 MB/s) [iter  1 ]
"""
AT_ONCE = re.sub(r" *\d+-> .*\n| Serial.*\n", "", SERIAL)
"""What is printed of pairs that are measured at once."""


def said(text: str) -> str:
    """What is said of a text, whether anything of it is read or not."""
    try:
        return "; ".join(note.words for note in read(text).notes)
    except UsageError as error:
        return str(error)


def test_each_pair_alone_is_twice_its_half_round_trip_in_each_direction():
    (one,) = read(SERIAL).cells
    assert (one.pattern.value, one.message_bytes, one.ranks, one.layer) == ("pairs", 131072, 4, Layer.MPI)
    assert one.hosts == ("n1", "n2", "n3", "n4")
    # 0->1 30.5 us, 1->0 30.75 us.
    both = [value for pair, value in zip(one.pairs, one.values, strict=True) if pair == (0, 1)]
    assert both == [61_000.0, 61_500.0]
    assert (len(one.values), one.parameters) == (12, ())
    assert one.printed_step == pytest.approx(0.02)
    assert read(SERIAL).notes == ()


def test_of_pairs_at_once_the_mean_is_read_and_says_so():
    (one,) = read(AT_ONCE).cells
    assert (one.values, one.pairs) == ((pytest.approx(62_145.83334),), ())
    assert dict(one.parameters) == {"schedule": "rounds", "statistic": "mean"}


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("31.50000us", "31.70000us", "its rate is not that of the length of messages and its time"),
        ("31.50000us (3968.25", "31.75000us (3937.01", "Avg Time is not that of its pairs"),
        ("     1->     2", "     1->     1", "there is no such pair of 4 ranks"),
        ("30.12500us (", "30.1250us (", "is printed with 5 decimals"),
        (": Message", ": Mesage", "no line above it tells the length of messages"),
    ],
)
def test_a_pair_that_contradicts_what_is_printed_beside_it_is_named(old: str, new: str, why: str):
    assert why in said(SERIAL.replace(old, new))


def test_pairs_that_are_missing_are_counted_and_a_text_that_was_cut_says_so():
    lost = SERIAL.replace("      1->     2", "      1->     9")
    assert (len(read(lost).cells[0].values), [kind for kind, _ in noted(lost)]) == (
        11,
        [ImportNoteKind.CUT, ImportNoteKind.DAMAGED],
    )
    with pytest.raises(UsageError, match="its results do not follow its last iteration"):
        read(SERIAL[: SERIAL.index("RESULT: Avg Time:")])


def test_iterations_are_launches_and_reports_show_the_map(tmp_path: Path):
    again = SERIAL[SERIAL.index(" Serial") :].replace("[iter  1 ]", "[iter  2 ]")
    again = again.replace("0->     2", "@").replace("1->     3", "0->     2").replace("@", "1->     3")
    (tmp_path / "a.txt").write_text(SERIAL + again)
    import_run(tmp_path / "run", {"ib": [tmp_path / "a.txt"]})
    (one,) = MAPS.of(analyse([Run.open(tmp_path / "run")]))
    assert (one.hosts, one.launches) == (("n1", "n2", "n3", "n4"), 2)
    # Both directions of a pair: 30.5 and 30.75 us, halved.
    assert one.matrix[0][1] == one.matrix[1][0] == pytest.approx(61_250.0)
