"""From a campaign and a testbed to the cells that are to be measured, each with the fabrics that carry it. Pure.

A cell keeps its id on every fabric and in every launch, so that a number means the same wherever it is read.
"""

from __future__ import annotations

from collections.abc import Iterator

from fabricbench.campaign.estimate import WINDOW_SECONDS
from fabricbench.campaign.limits import has_layer, largest_message_bytes, smallest_message_bytes
from fabricbench.campaign.specification import Campaign, Experiment
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Model, Pattern, Receive
from fabricbench.quantity import format_bytes
from fabricbench.record.probe_plan import PlanProbe
from fabricbench.testbed.model import Fabric, Testbed

USUAL_LINE_RATE_BIT_S = 1e9
"""Of a fabric whose wire is not known."""

LARGEST_WINDOW_BYTES = 4 * 1024 * 1024
WINDOW_MESSAGES = 1024
"""A layer that is limited by the cost of a message, not by the wire, ends its window by this."""


class PlannedCell(Model):
    """A probe and the fabrics that it is measured on."""

    probe: PlanProbe
    fabrics: tuple[str, ...]


class CellPlan(Model):
    """All cells by id, and in words what was left out and why."""

    cells: tuple[PlannedCell, ...]
    notes: tuple[str, ...]


def plan_cells(campaign: Campaign, testbed: Testbed) -> CellPlan:
    """Return the cells of a campaign on a testbed; UsageError where an explicit wish cannot be carried."""
    planner = _Planner(campaign, testbed)
    for number, experiment in enumerate(campaign.experiments, start=1):
        planner.add(number, experiment)
    planner.refuse_idle_fabrics()
    return CellPlan(cells=tuple(planner.cells), notes=(*planner.missing_layers(), *dict.fromkeys(planner.notes)))


class _Planner:
    """Collects cells and notes over the experiments of one campaign."""

    def __init__(self, campaign: Campaign, testbed: Testbed) -> None:
        self.campaign = campaign
        self.testbed = testbed
        self.cells: list[PlannedCell] = []
        self.notes: list[str] = []
        self._missing: dict[str, dict[Layer, None]] = {}
        self._measured_by: dict[object, int] = {}

    def add(self, number: int, experiment: Experiment) -> None:
        for layer in experiment.layers:
            fabrics = self._fabrics_with(layer, number)
            names = tuple(fabric.name for fabric in fabrics)
            sizes = [size for size in experiment.message_bytes if self._is_carried(size, layer, fabrics, number)]
            for probe in self._probes(experiment, layer, sizes if fabrics else []):
                self._refuse_twice(probe, number)
                numbered = probe.model_copy(update={"id": len(self.cells)})
                self.cells.append(PlannedCell(probe=numbered, fabrics=names))

    def missing_layers(self) -> list[str]:
        return [
            f"{fabric} does not have {', '.join(layers)}: left out there" for fabric, layers in self._missing.items()
        ]

    def refuse_idle_fabrics(self) -> None:
        for fabric in self.testbed.fabrics:
            if not any(fabric.name in cell.fabrics for cell in self.cells):
                raise UsageError(
                    f"fabric {fabric.name} carries nothing that campaign {self.campaign.name} measures",
                    hint="ask for a layer that it has, or leave it out of the testbed",
                )

    def _fabrics_with(self, layer: Layer, number: int) -> list[Fabric]:
        having = [fabric for fabric in self.testbed.fabrics if has_layer(fabric, layer)]
        lacking = [fabric for fabric in self.testbed.fabrics if fabric not in having]
        if lacking and self.campaign.unfit == "refuse":
            have = ", ".join(each for each in Layer if has_layer(lacking[0], each))
            raise UsageError(
                f"[[experiment]] number {number} asks for layer {layer}, which fabric {lacking[0].name} does not have "
                f"(it has {have})",
                hint='take the layer or the fabric out, or write unfit = "leave out" in [campaign]',
            )
        for fabric in lacking:
            self._missing.setdefault(fabric.name, {})[layer] = None
        return having

    def _is_carried(self, size: int, layer: Layer, fabrics: list[Fabric], number: int) -> bool:
        """Tell whether every one of the fabrics carries the size: what is compared must exist on all."""
        least = smallest_message_bytes(layer)
        if size < least:
            self._leave_out_or_refuse(
                f"{layer} messages of {format_bytes(size)}", f"the smallest is {least} B (token and sequence)", number
            )
            return False
        for fabric in fabrics:
            most = largest_message_bytes(layer, fabric)
            if size > most:
                self._leave_out_or_refuse(
                    f"{layer} messages of {format_bytes(size)}", f"{fabric.name} carries at most {most} B", number
                )
                return False
        return True

    def _leave_out_or_refuse(self, what: str, why: str, number: int) -> None:
        if self.campaign.unfit == "refuse":
            raise UsageError(
                f"[[experiment]] number {number}: {what} cannot be measured: {why}",
                hint='use other sizes, or write unfit = "leave out" in [campaign]',
            )
        self.notes.append(f"{what} are left out: {why}")

    def _refuse_twice(self, probe: PlanProbe, number: int) -> None:
        parameters = tuple(sorted(probe.parameters.items()))
        key = (probe.layer, probe.pattern, probe.receive, probe.message_bytes, parameters)
        first = self._measured_by.get(key)
        self._measured_by[key] = number
        if first is not None:
            what = f"{probe.layer} {probe.pattern} of {format_bytes(probe.message_bytes)}"
            raise UsageError(
                f"[[experiment]] number {number} measures {what} again, number {first} does already",
                hint="remove it from one of the two",
            )

    def _probes(self, experiment: Experiment, layer: Layer, sizes: list[int]) -> Iterator[PlanProbe]:
        for receive in self._receives(experiment, layer):
            for size in sizes:
                yield PlanProbe(
                    id=0,
                    layer=layer,
                    pattern=experiment.pattern,
                    message_bytes=size,
                    receive=receive,
                    ranks=(0,) if layer is Layer.MEMORY else (0, 1),
                    warmup_samples=experiment.warmup_samples,
                    verify_messages=experiment.verify_messages,
                    stopping=experiment.stopping,
                    parameters=experiment.parameters,
                )

    def _receives(self, experiment: Experiment, layer: Layer) -> tuple[Receive, ...]:
        if layer is Layer.MPI:
            return (Receive.LIBRARY,)
        if layer is Layer.MEMORY:
            return (Receive.BLOCKING,)  # one rank alone: nothing is received
        return experiment.receive or (Receive(self.testbed.default_receive),)


def window_messages(probe: PlanProbe, fabric: Fabric) -> int:
    """Return how many messages of a stream are one sample: as many as take `WINDOW_SECONDS` at the fabric's line rate."""
    if probe.pattern is not Pattern.STREAM or probe.layer is Layer.MEMORY:
        return 1
    line_rate = fabric.wire.line_rate_bit_s if fabric.wire is not None else USUAL_LINE_RATE_BIT_S
    window_bytes = min(line_rate / 8 * WINDOW_SECONDS, LARGEST_WINDOW_BYTES)
    return max(1, min(WINDOW_MESSAGES, int(window_bytes / max(1, probe.message_bytes))))
