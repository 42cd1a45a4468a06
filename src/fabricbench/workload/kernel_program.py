"""What workloads share that are programs of ours on the frame of kernels (`native/kernel/frame`) and are judged by a rate.

Such a program takes its parameters as options of the same names, writes its record into the launch's directory, and ends with one
exit code for what is verified and another for a wrong result, which is no failed launch: it ran, and its cell says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import ClassVar

from fabricbench.model import Metric
from fabricbench.native import native_file
from fabricbench.record.kernel_lines import KernelRecord, KernelRun, read_kernel_record
from fabricbench.record.launch_files import KERNEL_RECORDS
from fabricbench.record.workload_cells import (
    OF_FIGURE,
    FigureFound,
    FigureOfMerit,
    WorkloadResult,
    result_of_kernel,
)
from fabricbench.workload.adapter import Output, Place
from fabricbench.workload.parameters import ParametricStart

VERIFIED, WRONG = 0, 1
"""Exit codes after which a record is whole."""

TIME = FigureOfMerit(name="time", unit="s", better="lower")


class KernelProgramStart(ParametricStart):
    """One launch of a program on the frame of kernels, judged by a rate."""

    program: ClassVar[str]
    rate: ClassVar[FigureOfMerit]
    kept: ClassVar[tuple[str, ...]] = ()
    """Values of its runs that its cell keeps, the largest of each."""

    def rate_of(self, run: KernelRun) -> float:
        """Return the rate of a run in the unit of `rate`: what programs call `gflops`."""
        return run.values.get("gflops") or 0.0

    def figures(self, runs: list[KernelRun]) -> Iterator[FigureFound]:
        """Yield the medians over its runs, all of them verified: the rate first, and the time."""
        yield self.rate.found(median(map(self.rate_of, runs)))
        yield TIME.found(median(run.seconds for run in runs))

    def facts(self, runs: list[KernelRun]) -> Iterator[tuple[str, float]]:
        """Yield further values of its runs that its cell keeps."""
        for name in self.kept:
            yield name, max(run.values.get(name) or 0.0 for run in runs)

    @property
    def figure(self) -> FigureOfMerit:
        """Its rate."""
        return self.rate

    def tokens(self, place: Place) -> list[str]:
        """Return its tokens: the record goes into the launch's directory."""
        record = place.directory / KERNEL_RECORDS
        options = {**self.options(place), "ranks": self.ranks, "repeat": self.repetitions, "output": record}
        words = (word for name, value in options.items() for word in (f"--{name}", str(value)))
        return [str(native_file(self.program, place.build)), *words, *place.interface_options]

    def canonical_form(self, place: Place) -> object:
        """Return what its program is told: an option of which the model has nothing changes nothing."""
        return self.program, self.ranks, self.repetitions, dict(self.options(place))

    def is_success(self, exit_code: int | None) -> bool:
        """Tell whether it ran to its end, whatever its result."""
        return exit_code in (VERIFIED, WRONG)

    def outputs(self, output: Output) -> tuple[Path, ...]:
        """Return its record."""
        return (output.directory / KERNEL_RECORDS,)

    def parse(self, output: Output) -> WorkloadResult | None:
        """Return its record: its figures, and of a wrong result the reason."""
        path = output.directory / KERNEL_RECORDS
        return self._result(read_kernel_record(path)) if path.exists() else None

    @property
    def native_programs(self) -> tuple[str, ...]:
        """The one that it is."""
        return (self.program,)

    def _result(self, kernel: KernelRecord) -> WorkloadResult:
        result = result_of_kernel(kernel)
        runs = kernel.runs if result.seconds and result.failed is None else []
        figures = list(self.figures(runs)) if runs else []
        return replace(
            result,
            metric=Metric.WORK_RATE,
            rate=figures[0].value if figures else None,
            # Of a rate this is how long the program ran: one sample, however often it was repeated.
            seconds=(sum(result.seconds),) if result.seconds else (),
            bytes_of_sample=result.bytes_of_sample * len(result.seconds),
            values={
                **result.values,
                **{f"{OF_FIGURE}{figure.name}": figure.value for figure in figures[1:]},
                **dict(self.facts(runs) if runs else ()),
            },
            figures=tuple(figures),
        )
