"""Published figures of whole workloads, each with the workloads of ours that do the same kind of work; and Linpack per hertz.

No number stands here: each row is written from `studies.json`.
"""

from __future__ import annotations

from collections.abc import Iterator

from fabricbench.model import Model
from fabricbench.published.figures import OA_ON_ATM, OA_ON_ETHERNET
from fabricbench.published.kernels import FAST, SLOW, STUDY, published_kernels
from fabricbench.published.studies import study

NIST, XU, SKIF = "salamon-mink-nist", "xu-2024", "abramov-2002"


class PublishedLoad(Model):
    """A workload of a study. `names` begin the names of workloads of the same kind; `benchmark` is set of a kernel of NPB."""

    what: str
    names: tuple[str, ...]
    benchmark: str | None = None
    published: str
    condition: str
    source: str

    def is_of(self, name: str, benchmark: str | None) -> bool:
        """Whether a workload of this name, or this kernel of NPB, does the same kind of work."""
        if benchmark is not None:
            return benchmark == self.benchmark
        return any(name == one or name.startswith(f"{one}-") for one in self.names)


class PublishedFlopsPerHertz(Model):
    """What a processor does in Linpack for each cycle of its clock."""

    processor: str
    flops_per_hertz: float
    source: str


def published_loads() -> tuple[PublishedLoad, ...]:
    """Return all of them: the study of 2024, that of NIST, that of 2000."""
    return (*_xu(), *_nist(), *_korkhov())


def published_flops_per_hertz() -> tuple[PublishedFlopsPerHertz, ...]:
    """Return the table of the study of SKIF's nodes."""
    of = study(SKIF)
    return tuple(
        PublishedFlopsPerHertz(processor=name, flops_per_hertz=value, source=of.citation)
        for name, value in of.fact("linpack_flops_per_hz").items()
    )


def _xu() -> Iterator[PublishedLoad]:
    of = study(XU)
    method, results = of.fact("method"), of.fact("results")
    applications = method["applications"]
    sizes, local = spoken_numbers(method["hpl"]["N"]), "x".join(map(str, method["hpcg"]["local"]))

    def row(
        what: str, names: tuple[str, ...], words: str, condition: str, benchmark: str | None = None
    ) -> PublishedLoad:
        where = f"{condition}; {of.fact('cluster', 'nodes')} nodes"
        return PublishedLoad(
            what=what, names=names, benchmark=benchmark, published=words, condition=where, source=of.citation
        )

    def ahead(leader: str, field: str) -> str:
        low, high = results[field]
        return f"{leader} ahead by {low:g} to {high:g} %"

    hpl = ("hpl", "scalapack-lu", "hpcc")
    yield row("HPL", hpl, ahead("RoCE", "hpl_time_RoCE_ahead_percent"), f"N = {sizes}")
    yield row("HPCG", ("hpcg",), f"RoCE and InfiniBand {results['hpcg']}", f"{local} points on a rank")
    yield row("NPB IS", (), f"RoCE and InfiniBand {results['npb_is']}", "class not told", "IS")
    yield row("LAMMPS", ("lammps",), ahead("RoCE", "LAMMPS_RoCE_ahead_percent"), applications["LAMMPS"])
    yield row("Quantum ESPRESSO", ("qe",), ahead("InfiniBand", "QE_IB_ahead_percent"), applications["QE"])
    yield row("VASP", ("vasp",), ahead("RoCE", "VASP_RoCE_ahead_percent"), applications["VASP"])


def _nist() -> Iterator[PublishedLoad]:
    of = study(NIST)
    convolution, elliptic = (of.fact("applications", name) for name in ("optical-absorption", "3dmd"))
    times = convolution["time_s"]
    atm, ethernet = times[OA_ON_ATM], times[OA_ON_ETHERNET]
    yield PublishedLoad(
        what="OA (FFT, convolution)",
        names=("fft-convolution",),
        published=f"{atm} s with ATM, {ethernet} s with Fast Ethernet: {ethernet / atm:.2f} times shorter",
        condition="ATM on 8 nodes, Fast Ethernet on a number that is not told",
        source=of.citation,
    )
    yield PublishedLoad(
        what="3DMD (elliptic)",
        names=("elliptic",),
        published=f"ATM faster than Fast Ethernet by {elliptic['ATM_faster_than_FE_percent']:g} %",
        condition=f"messages of {elliptic['message_bytes_typical'] / 1000:g} KB and more",
        source=of.citation,
    )
    splash = of.fact("splash")
    for name, kernel in (("LU", "shared-lu"), ("Raytrace", "shared-raytrace")):
        yield PublishedLoad(
            what=f"SPLASH {name}",
            names=(kernel,),
            published=splash[name],
            condition=splash["substrate"],
            source=of.citation,
        )


def _korkhov() -> Iterator[PublishedLoad]:
    of = study(STUDY)
    for one in published_kernels():
        yield PublishedLoad(
            what=f"NPB {one.benchmark}, class A",
            names=(),
            benchmark=one.benchmark,
            published=f"{one.ratio:.2f} times shorter with {FAST} than with {SLOW}",
            condition="4 ranks on 4 nodes",
            source=of.citation,
        )


def spoken_numbers(numbers: list[int]) -> str:
    """Return `70,000 and 100,000`."""
    return " and ".join(f"{number:,}" for number in numbers)
