"""The fabrics of a report: what they are, where their numbers come from, whether their path is proven."""

from __future__ import annotations

from fabricbench.analysis.findings import FabricFacts, Origin, Proof
from fabricbench.analysis.findings.plot import NODES
from fabricbench.analysis.measured import Side
from fabricbench.testbed.model import mpi_of


def fabric_facts(side: Side, letter: str) -> FabricFacts:
    """Return a side's fabric as reports describe it."""
    fabric, origin = side.fabric, _foreign_origin(side)
    measured = {key.layer for key in side.cells}
    return FabricFacts(
        name=side.name,
        letter=letter,
        description=fabric.description,
        line_rate_bit_s=fabric.wire.line_rate_bit_s if fabric.wire else None,
        mtu=None if origin else fabric.mtu,
        is_emulated=fabric.is_emulated,
        scale=fabric.scale,
        built_from=fabric.built_from,
        layers=tuple(layer for layer in fabric.layers if layer in measured) if origin else fabric.layers,
        price_per_node=fabric.price_per_node,
        currency=fabric.currency,
        origin=origin,
        proof=_proof(side),
        mpi=_mpi(side),
        nodes="" if side.factors else side.traits.get(NODES, ""),
    )


def _mpi(side: Side) -> str:
    """Return the MPI that a side was measured with, where its testbed names some: `openmpi: Open MPI 5.0.11`."""
    testbed = side.run.manifest.testbed
    mpi = mpi_of(testbed.mpis, side.fabric)
    libraries = {launch.summary.facts.conditions.get("mpi", "") for launch in side.launches} - {""}
    return "" if mpi is None else ": ".join((mpi.name, *[" and ".join(sorted(libraries))] * bool(libraries)))


def _foreign_origin(side: Side) -> Origin | None:
    """Return where a side's numbers come from, if from elsewhere than measurements here."""
    found = {launch.origin for launch in side.launches}
    return next((origin for origin in (Origin.IMPORTED, Origin.PREDICTED, Origin.SIMULATED) if origin in found), None)


def _proof(side: Side) -> Proof:
    """Return what is known of the path of a side's launches that count; refuted where none is left."""
    found = {launch.proof for launch in side.launches}
    if not found:
        return Proof.REFUTED
    return Proof.UNKNOWN if Proof.UNKNOWN in found else Proof.PROVEN
