"""The official counts of operations: what a program of NPB divides by its time to get the Mop/s that it prints.

Source: NAS-95-020 and the official programs (3.4). fabricbench-npb has the same counts in C++; a test compares the two.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import MappingProxyType

CG_STEPS = 25
"""Steps of conjugate gradients in one iteration of CG."""

CG_ENTRIES = MappingProxyType({"S": 7, "W": 8, "A": 11, "B": 13, "C": 15, "D": 21})
"""Entries of the random vectors that CG's matrix is made of, by class."""


def official_operations(kernel: str, problem_class: str, size: str, iterations: int) -> float | None:
    """Return the operations that an official program counts, from what it prints of its size (`36 x 36 x 36`, `1400`).

    None for a kernel, a class or a size that is not known here.
    """
    try:
        edges = [int(edge) for edge in size.split(" x ")]
    except ValueError:
        return None
    if kernel == "cg":
        entries = CG_ENTRIES.get(problem_class)
        return None if entries is None else _of_cg(edges[0], iterations, entries)
    count = COUNTS.get(kernel)
    return None if count is None else count(edges, iterations)


def _of_cg(rows: int, iterations: int, entries: int) -> float:
    per_row = entries * (entries + 1)
    return 2.0 * iterations * rows * (3 + per_row + CG_STEPS * (5 + per_row) + 3)


def _of_ft(edges: list[int], iterations: int) -> float:
    points = math.prod(edges)
    logarithm = math.log(points)
    return points * (14.8157 + 7.19641 * logarithm + (5.23518 + 7.21113 * logarithm) * iterations)


def _cubic(cubic: float, square: float, linear: float, constant: float) -> Callable[[list[int], int], float]:
    """Return a count that is so many times the iterations, by powers of the edge; of unequal edges the mean counts."""

    def count(edges: list[int], iterations: int) -> float:
        n = sum(edges) / len(edges)
        return iterations * (math.prod(edges) * cubic + n * (n * square + linear) + constant)

    return count


COUNTS: MappingProxyType[str, Callable[[list[int], int], float]] = MappingProxyType(
    {
        "ep": lambda edges, _: float(edges[0]),  # it prints the numbers that it draws
        "is": lambda edges, iterations: float(edges[0] * iterations),
        "mg": lambda edges, iterations: 58.0 * iterations * math.prod(edges),
        "ft": _of_ft,
        "lu": _cubic(1984.77, -10923.3, 27770.9, -144010),
        "sp": _cubic(881.174, -4683.91, 11484.5, -19272.4),
        "bt": _cubic(3478.8, -17655.7, 28023.7, 0),
    }
)
"""By kernel, of the edges of the grid (or the one number that is printed for a size) and the iterations."""
