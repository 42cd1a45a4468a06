"""A slow and a fast network for four ranks, each with a processor, as estimates of workloads are given them."""

from __future__ import annotations

from fabricbench.workload.pace import Pace

SLOW, FAST = Pace(1e8, 4), Pace(1e9, 4)
