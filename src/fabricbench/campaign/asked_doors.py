"""Whether the measurer has the doors that a campaign asks for: said before a run, not in every cell of it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fabricbench.campaign.specification import Campaign, Sweep, as_list
from fabricbench.configuration import did_you_mean
from fabricbench.errors import EnvironmentLacks, UsageError
from fabricbench.model import Layer
from fabricbench.native import COMPLETE_IT


def refuse_unknown_doors(campaign: Campaign, doors: Mapping[str, tuple[str, ...]]) -> None:
    """Raise UsageError for a door that the measurer does not have into any layer of its experiment.

    EnvironmentLacks for a layer that it was built without. `doors` are those that it has, by layer; where it is not built there are
    none, and nothing is refused.
    """
    for number, experiment in enumerate(campaign.experiments, start=1):
        if missing := [layer for layer in experiment.layers if doors and not doors.get(layer)]:
            raise EnvironmentLacks(
                f"[[experiment]] number {number}: this measurer was built without layer {missing[0]}", hint=COMPLETE_IT
            )
        for layers, parameters in _asked(experiment.layers, experiment.parameters):
            _refuse(f"[[experiment]] number {number}: parameters.door", layers, parameters, doors)
        if experiment.congestor is not None:
            congestor = experiment.congestor
            through = experiment.layers if congestor.layer is None else (congestor.layer,)
            for layers, parameters in _asked(through, congestor.parameters):
                _refuse(f"[[experiment]] number {number}: congestor.parameters.door", layers, parameters, doors)


def _asked(layers: tuple[Layer, ...], parameters: Sweep) -> Iterator[tuple[tuple[Layer, ...], str]]:
    if "door" in parameters:
        yield from ((layers, str(door)) for door in as_list(parameters["door"]))


def _refuse(where: str, layers: tuple[Layer, ...], door: str, doors: Mapping[str, tuple[str, ...]]) -> None:
    for layer in layers:
        there = doors.get(layer, ())
        if there and door not in there:
            raise UsageError(
                f"{where}: found {door!r}, needed one of {', '.join(there)} for layer {layer}"
                f"{did_you_mean(door, list(there))}",
                hint="give each layer an [[experiment]] of its own where doors differ; `fabricbench list LAYER` names them",
            )
