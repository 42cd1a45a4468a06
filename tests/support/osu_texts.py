"""Texts as OSU Micro-Benchmarks print them: `%-10d%18.2f` a row, the lines of the head as each version has them."""

from __future__ import annotations

from collections.abc import Sequence

COLUMNS = {"Latency": "Latency (us)", "Bandwidth": "Bandwidth (MB/s)", "Bi-Directional Bandwidth": "Bandwidth (MB/s)"}


def osu_text(
    title: str = "Latency",
    *,
    values: Sequence[float] = (20.27, 20.31, 20.05),
    sizes: Sequence[int] = (),
    version: str = "7.5",
    datatype: str = "MPI_CHAR",
    remark: str = "",
) -> str:
    """Return one table; sizes are powers of two from 1 on, values go on rising where there are more sizes than values."""
    sizes = sizes or [2**power for power in range(len(values))]
    printed = [*values, *(values[-1] + 1.5 * number for number in range(1, len(sizes)))][: len(sizes)]
    column = COLUMNS.get(title, "Avg Latency(us)")
    if version >= "7" and column == "Latency (us)":
        column = "Avg Latency(us)"
    return "\n".join(
        [
            f"# OSU MPI {title} Test v{version}",
            *([f"# Datatype: {datatype}."] if datatype else []),
            f"# Size{column:>22}",
            *(f"{size:<10d}{value:18.2f}" for size, value in zip(sizes, printed, strict=True)),
            *([f"# {remark}"] if remark else []),
            "",
        ]
    )
