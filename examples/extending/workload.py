"""A workload of one's own: how many random pairs a second the ranks draw together, by EP of fabricbench-npb."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Annotated, Literal

from fabricbench.native import native_file
from fabricbench.record.workload_cells import Failed, FigureOfMerit, WorkloadResult
from fabricbench.workload import counted
from fabricbench.workload.adapter import Output, Place, result_of_external
from fabricbench.workload.pace import Pace
from fabricbench.workload.parameters import Argument, ParametricStart, declared

RATE = FigureOfMerit(name="pairs", unit="Mop/s", better="higher")


class RandomPairsStart(ParametricStart):
    """One launch: a size, so many ranks."""

    kind: Literal["random-pairs"] = "random-pairs"
    size: Annotated[Literal["S", "W"], Argument("class of the problem")] = "S"

    @property
    def figure(self) -> FigureOfMerit:
        """What fabrics are compared by."""
        return RATE

    def expected_seconds(self, pace: Pace) -> float:
        """Return the same for every fabric: it hardly talks."""
        del pace
        return 10.0

    def tokens(self, place: Place) -> list[str]:
        """Return what each rank runs, behind what counts the interfaces around it."""
        program = [str(native_file("fabricbench-npb")), "ep", "--class", self.size]
        return counted.wrapped(program, place.directory / counted.AROUND)

    def parse(self, output: Output) -> WorkloadResult | None:
        """Return the rate that it printed, if its result is right."""
        if not output.stdout.exists():
            return None
        text = output.stdout.read_text()
        rate = re.search(r"^ +rate +(\S+) Mop/s", text, re.MULTILINE)
        failed = None if "verification  successful" in text else Failed("it does not verify")
        value = float(rate[1]) if rate else None
        figures = (RATE.found(value),) if value is not None and failed is None else ()
        return replace(
            result_of_external("random-pairs", self.ranks, output, RATE, value, failed=failed), figures=figures
        )


RANDOM_PAIRS = declared(RandomPairsStart, "random numbers a second")
