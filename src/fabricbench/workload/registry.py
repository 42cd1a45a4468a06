"""The kinds of workload, one line each, and how what was written of one (a campaign, a plan) finds its model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, SerializeAsAny, ValidationInfo

from fabricbench.configuration import did_you_mean
from fabricbench.workload.adapter import Workload, WorkloadStart, WorkloadTable
from fabricbench.workload.command import COMMAND
from fabricbench.workload.elliptic import ELLIPTIC
from fabricbench.workload.farm import FARM
from fabricbench.workload.fft_convolution import FFT_CONVOLUTION
from fabricbench.workload.hpcg import HPCG
from fabricbench.workload.hpl import HPL
from fabricbench.workload.npb_adapter import NPB
from fabricbench.workload.shared_data import SHARED_DATA
from fabricbench.workload.shared_lu import SHARED_LU
from fabricbench.workload.shared_raytrace import SHARED_RAYTRACE
from fabricbench.workload.training_step import TRAINING_STEP

WORKLOADS: dict[str, Workload] = {
    kind.name: kind
    for kind in (
        NPB,
        HPL,
        HPCG,
        FFT_CONVOLUTION,
        ELLIPTIC,
        SHARED_LU,
        SHARED_RAYTRACE,
        TRAINING_STEP,
        FARM,
        SHARED_DATA,
        COMMAND,
    )
}
"""By the `kind` that campaigns name."""


def _workload_of(data: Mapping[str, Any]) -> Workload:
    kind = data.get("kind")
    if kind is None:
        raise ValueError(f'kind: missing, it is required; write kind = "{next(iter(WORKLOADS))}", say')
    if not isinstance(kind, str) or kind not in WORKLOADS:
        known = list(WORKLOADS)
        raise ValueError(f"kind: found {kind!r}, needed one of {', '.join(known)}{did_you_mean(str(kind), known)}")
    return WORKLOADS[kind]


def _table(value: Any, info: ValidationInfo) -> Any:
    if not isinstance(value, Mapping):
        return value
    return _workload_of(value).table.model_validate(value, context=info.context)


def of_kind(kind: str) -> BeforeValidator:
    """Return what reads tables that need not say of which kind they are, for the name of their list does: `[[hpl]]`."""

    def read(value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, Mapping):
            return value
        return WORKLOADS[kind].table.model_validate(value, context=info.context)

    return BeforeValidator(read)


def _start(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    known = {"kind": NPB.name, **value}  # until there were other workloads, a plan had nothing but kernels of NPB
    return _workload_of(known).start.model_validate(known)


AnyTable = Annotated[SerializeAsAny[WorkloadTable], BeforeValidator(_table)]
"""A table of whichever kind it names."""

AnyStart = Annotated[SerializeAsAny[WorkloadStart], BeforeValidator(_start)]
"""A start of whichever kind it names."""
