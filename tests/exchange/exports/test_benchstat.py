"""The text for benchstat, by hand, and against the grammar that Go's benchfmt documents."""

from __future__ import annotations

import re
from pathlib import Path

from fabricbench import __version__
from support.exported_run import exported, exported_run, text_of

GOLDEN = f"""fabricbench: {__version__}
campaign: synthetic
testbed: synthetic
Unit bit/s better=higher
Unit op-sec better=lower
Unit rtt-sec better=lower

fabric: slow
origin: emulated
path: proven
# launch b00-slow, block 0
BenchmarkPingpong/layer=tcp/size=64/receive=blocking/ranks=2 5 5.2e-05 rtt-sec
BenchmarkStream/layer=mpi/size=4096/receive=blocking/ranks=2 5 100000000.0 bit/s
BenchmarkAlltoall/layer=mpi/size=1024/receive=blocking/ranks=4/mode=persistent 5 3e-05 op-sec

fabric: fast
origin: emulated
path: proven
# launch b00-fast, block 0
BenchmarkPingpong/layer=tcp/size=64/receive=blocking/ranks=2 5 2.1e-05 rtt-sec
BenchmarkStream/layer=mpi/size=4096/receive=blocking/ranks=2 5 1000000000.0 bit/s
BenchmarkAlltoall/layer=mpi/size=1024/receive=blocking/ranks=4/mode=persistent 5 1.2e-05 op-sec

fabric: slow
origin: emulated
path: proven
# launch b01-slow, block 1
BenchmarkPingpong/layer=tcp/size=64/receive=blocking/ranks=2 5 0.000104 rtt-sec
BenchmarkAlltoall/layer=mpi/size=1024/receive=blocking/ranks=4/mode=persistent 5 6e-05 op-sec
"""

CONFIGURATION = re.compile(r"[a-z][^\sA-Z:]*: \S.*")
"""A key begins with a small letter and has no blank and no capital; its value is the rest of the line."""
UNIT = re.compile(r"Unit \S+( [a-z]+=\S+)+")
RESULT = re.compile(r"Benchmark[^\sa-z]\S* [1-9]\d* \d+(\.\d+)?(e[+-]\d+)? [^\s\d]\S*")
"""A name without blanks whose first letter is no small one, iterations, then pairs of a number and a unit."""
IGNORED = re.compile(r"#.*|")
PROCESSORS = re.compile(r"-\d+$")


def test_it_reads_as_by_hand(tmp_path: Path):
    assert text_of(exported(exported_run(tmp_path / "run"), "benchstat")) == GOLDEN


def test_every_line_is_one_of_the_grammar(tmp_path: Path):
    run = exported_run(tmp_path / "run", unproven=["fast"])
    for line in text_of(exported(run, "benchstat")).splitlines():
        kinds = [kind for kind in (CONFIGURATION, UNIT, RESULT, IGNORED) if kind.fullmatch(line)]
        assert len(kinds) == 1, line
        assert not line.startswith("Benchmark") or not PROCESSORS.search(line.split()[0])
