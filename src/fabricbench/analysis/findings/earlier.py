"""Findings as earlier versions wrote them, as today's have them.

Kernels of NPB, applications and farms had models of their own, beside the rows of all workloads that repeated them. Some chapters'
rows were fields of the findings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fabricbench.analysis.findings.cells import WorkloadName
from fabricbench.analysis.findings.loads import WORKLOADS

OF_KERNELS = ("calls", "bytes_sent", "mops_total", "mops_per_process", "of_reference")
"""What only rows of kernels told."""

FIELDS = ("topologies", "congestions", "operations", "coefficients", "start_ups", "one_ways", "maps", "decision")
"""What chapters found and findings had beside `chapters`; a decision alone was no list."""

Row = Mapping[str, Any]


def as_today(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return findings of any version as today's model reads them; those of today as they are."""
    rest = {name: value for name, value in data.items() if name not in ("kernels", "applications", *FIELDS)}
    chapters = dict(rest.get("chapters") or {})
    for name in FIELDS:
        if found := data.get(name):
            chapters[name] = tuple(found) if isinstance(found, list | tuple) else (found,)
    if kernels := data.get("kernels"):
        chapters[WORKLOADS] = tuple(_with_rates(chapters.get(WORKLOADS, ()), kernels["results"]))
    if applications := data.get("applications"):
        further = [one for one in applications["results"] if not one["is_primary"]]
        explaining = [one for one in applications["ratios"] if one["verdict"] is None]
        chapters["workload-figures"] = tuple(map(_figure, further))
        chapters["workload-figure-ratios"] = tuple(map(_figure_ratio, explaining))
    if farms := chapters.get("farms"):
        chapters["farms"] = tuple(_renamed(one, {"farm": "load"}) if "farm" in one else one for one in farms)
    return {**rest, "chapters": chapters} if chapters else rest


def _with_rates(rows: Iterable[Row], kernels: Iterable[Row]) -> Iterable[Row]:
    known = {(_load(one["kernel"]), one["fabric"]): one for one in kernels}
    for row in rows:
        kernel = known.get((row["load"], row["fabric"]), {})
        yield {**row, **{name: kernel[name] for name in OF_KERNELS if kernel.get(name) is not None}}


def _load(kernel: Row) -> str:
    parameters = {"benchmark": kernel["benchmark"], "class": kernel["problem_class"], "program": kernel["program"]}
    return str(WorkloadName(ranks=kernel["ranks"], parameters=tuple(parameters.items())))


def _figure(one: Row) -> Row:
    kept = {name: value for name, value in one.items() if name not in ("is_primary", "communication_share")}
    return {"load": str(WorkloadName.model_validate(one["application"])), **_renamed(kept, {"application": "workload"})}


def _figure_ratio(one: Row) -> Row:
    kept = {name: value for name, value in one.items() if name not in ("verdict", "low", "high")}
    times = {"value": one["times"], "low": one["low"], "high": one["high"]}
    load = str(WorkloadName.model_validate(one["application"]))
    return {"load": load, **_renamed(kept, {"application": "workload"}), "times": times}


def _renamed(row: Row, names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in row.items()}
