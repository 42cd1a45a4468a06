"""GPCNeT: steps of rings, which are no round trips, means and 99th percentiles, and the impact factors that prove them.

Both samples are of a machine of 64 nodes, as its maker's documentation shows them; the verbose tables are by the source of 1.3.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.exchange.samples import noted, read, sample

from fabricbench.analysis import analyse
from fabricbench.errors import UsageError
from fabricbench.exchange.storing import import_run
from fabricbench.record.import_notes import ImportNoteKind
from fabricbench.record.store import Run
from fabricbench.report.terminal import render_terminal

NETWORK, LOAD = sample("gpcnet-network.txt"), sample("gpcnet-load.txt")

BAR = "+" + "-" * 33 + ("+" + "-" * 14) * 7 + "+"


def row(name: str, *fields: str) -> str:
    """A row of a table with the columns of a build that is verbose."""
    return f"| {name:>31} | {' | '.join(f'{one:>12}' for one in fields)} |\n{BAR}\n"


VERBOSE = f"""NetworkLoad Tests v1.3
  Test with 10 MPI ranks (10 nodes)
+{"-" * 138}+
| {"":57}Isolated Network Tests{"":57} |
{BAR}
{row("Name", "Min", "Max", "Avg", "Avg(Worst)", "99%", "99.9%", "Units")}\
{row("RR Two-sided Lat (8 B)", "1.2", "9.9", "2.0", "3.0", "4.0", "5.0", "usec")}\
{row("Alltoall (4096 B)", "1.2", "9.9", "2.0", "3.0", "1.5", "1.4", "MiB/s/rank")}"""


def values(text: str, column: str = "mean", *, beside: bool = False) -> dict[str, float]:
    return {
        one.workload: one.figure.value
        for one in read(text).loads
        if dict(one.parameters)["statistic"] == column and ("beside" in dict(one.parameters)) == beside
    }


def test_a_step_of_a_ring_is_not_doubled_and_a_bandwidth_is_one_ranks():
    assert values(NETWORK) == {
        "RR Two-sided Lat": pytest.approx(2.9e-6),
        "RR Get Lat": pytest.approx(4.4e-6),
        "RR Two-sided BW": 4086.5,
        "RR Put BW": 4910.4,
        "RR Two-sided BW+Sync": 3786.1,
        "Nat Two-sided BW": 4975.3,
        "Multiple Allreduce": pytest.approx(25.3e-6),
        "Multiple Alltoall": 2648.4,
    }
    assert values(NETWORK, "p99")["RR Two-sided BW+Sync"] == 485.1
    one = read(NETWORK).loads[0]
    assert (one.ranks, dict(one.parameters)) == (2048, {"bytes": 8, "nodes": 64, "statistic": "mean", "by": "gpcnet"})
    assert (one.figure.unit, one.figure.told_in, one.figure.kind.value) == ("s", "us", "network test")
    assert one.figure.printed_step == pytest.approx(1e-7)
    assert (read(NETWORK).version, read(NETWORK).notes) == ("1.3", ())


def test_values_beside_congestors_are_tests_of_their_own():
    assert values(LOAD)["RR Two-sided BW+Sync"] == 4061.4
    assert values(LOAD, beside=True)["RR Two-sided BW+Sync"] == 4057.7
    assert values(LOAD, "p99", beside=True)["Multiple Allreduce"] == pytest.approx(22.2e-6)
    assert (len(read(LOAD).loads), read(LOAD).notes) == (12, ())


def test_a_factor_that_is_not_the_ratio_of_its_values_denies_both():
    text = LOAD.replace("4057.7", "2057.7").replace("2820.6", "1820.6")
    assert "RR Two-sided BW+Sync" not in values(text) | values(text, "p99") | values(text, beside=True)
    assert [kind for kind, _ in noted(text)] == [ImportNoteKind.DAMAGED] * 2


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("       4086.5 |", "       40865 |", 19),
        ("2504.7", "4504.7", 19),
        ("131072 B) |       4086.5", "13107 B) |       4086.5", 19),
    ],
)
def test_a_row_that_is_damaged_or_has_a_worst_better_than_its_mean_is_no_result(old: str, new: str, line: int):
    text = NETWORK.replace(old, new)
    assert len(read(text).loads) == 14
    assert noted(text) == [(ImportNoteKind.DAMAGED, line)]


def test_tables_with_more_columns_are_read_and_congestors_named():
    assert values(VERBOSE) == {"RR Two-sided Lat": pytest.approx(2.0e-6)}
    assert values(VERBOSE, "p99") == {"RR Two-sided Lat": pytest.approx(4.0e-6)}
    assert noted(VERBOSE) == [(ImportNoteKind.CUT, 1), (ImportNoteKind.UNKNOWN_TEST, 10)]


def test_without_ranks_nothing_is_read():
    with pytest.raises(UsageError, match="no line below it tells its ranks and nodes"):
        read(NETWORK.replace("(64 nodes)", "(64"))


def test_it_is_compared_as_tests_of_the_network(tmp_path: Path):
    (tmp_path / "a.txt").write_text(NETWORK)
    (tmp_path / "b.txt").write_text(NETWORK.replace("2.9 ", "5.8 ").replace("4.4 ", "9.9 "))
    import_run(tmp_path / "run", {"ib": [tmp_path / "a.txt"], "eth": [tmp_path / "b.txt"]})
    text = render_terminal(analyse([Run.open(tmp_path / "run")]), 120, color=False)
    assert "RR Two-sided Lat" in text
