"""The words of the example findings: warnings, method and inventory."""

from __future__ import annotations

from fabricbench.analysis.findings import Caution, Severity

WARNINGS = (
    Caution(
        severity=Severity.INVALID,
        subject="launch b03-myrinet",
        text="2.1 % of its bytes went over ctl0 and not over myrinet: the launch is left out of every number.",
    ),
    Caution(
        severity=Severity.WARNING,
        subject="fast-ethernet: udp stream",
        text="0.64 % of the datagrams were lost at the switch's port buffer; throughput counts what arrived.",
    ),
    Caution(
        severity=Severity.NOTE,
        subject="inventory",
        text="The CPU frequency governor cannot be read on n0 to n3; a changing clock rate widens the intervals.",
    ),
)
LATE_TEXT = (
    "the switch was late by 3.1 ms, about 67 times a round trip of 64 B: do not use the sizes of small messages."
)
FEW_TEXT = "6 launches are too few for an interval of p99.9."
BUSY_WARNINGS = (
    Caution(
        severity=Severity.INVALID,
        subject="myrinet: mpi stream",
        text="up to 949 % of the line rate: impossible, do not use these rates.",
    ),
    Caution(severity=Severity.INVALID, subject="fast-ethernet and myrinet", text=LATE_TEXT),
    Caution(severity=Severity.WARNING, subject="fast-ethernet and myrinet: tcp ping-pong", text=FEW_TEXT),
    *(
        Caution(
            severity=Severity.WARNING,
            subject=f"myrinet: mpi {operation}",
            text=f"launches of {operation} scatter by {30 + number} % between blocks: more blocks, or a quieter host.",
        )
        for number, operation in enumerate(
            ("allreduce", "alltoall", "bcast", "reduce", "gather", "scatter", "barrier", "scan")
        )
    ),
    Caution(severity=Severity.NOTE, subject="inventory", text="The CPU frequency governor cannot be read on n0 to n3."),
)
METHOD = (
    (
        "Each fabric is measured in every block, in random order with a recorded seed, so that slow drifts of the machine fall on "
        "all fabrics alike. A launch, one start of the measurer over the nodes, is the unit of replication (Hoefler and Belli, "
        "SC'15; Hunold and Carpen-Amarie, 2015)."
    ),
    (
        "A cell's value is the median over launches of the launch medians, with a nonparametric interval from order statistics. "
        "Every sample is kept and no outlier is dropped."
    ),
    (
        "Two fabrics are compared by the ratio of their medians, paired by block; p-values are corrected by the Benjamini-Hochberg "
        "procedure. A ratio whose whole interval lies within the margin is called equivalent."
    ),
)
INVENTORY = {
    "cpu": "Intel Xeon Platinum 8481C, 2 cores",
    "kernel": "Linux 6.18.0 x86_64",
    "mpi": "MPICH 5.0.2 (ch4:ofi)",
    "interface fas0": "veth, MTU 1500, tso off, gso off, gro off",
    "interface myr1": "veth, MTU 9000, tso off, gso off, gro off",
    "governor": "unknown",
}
