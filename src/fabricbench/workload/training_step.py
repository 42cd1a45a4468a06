"""A step of distributed training as a workload: fabricbench-training-step, messages as of a known model beside a computing load.

[[workload]]
kind = "training-step"
model = ["gpt2-xl", "bert-large"]  # default "small"; docs/workloads.md has them all; all of these but steps may be lists
grid = ["4x1x1", "2x2x1"]    # data x tensor x pipeline; default: all ranks are data
ranks = [4]                  # in place of grid; default "all": one on each node
micro_batch = 1              # samples; default 1
micro_batches = 8            # of a step, on each replica; default 1
bucket = "25MiB"             # of gradients that are reduced together (default)
element_bytes = 2            # of a gradient and an activation: 2 (default), 4 or 8
accelerator = "100 Tflop/s"  # that each rank is taken to have (default); from it comes the computing
layer = "2ms"                # in place of accelerator: a layer of a micro-batch, forward, on one rank
scale = 1000                 # messages, buckets and computing are 1/1000 of the model's, and as many; default 1
experts = false              # default true: a model that has experts has them
layers = 8                   # in place of the model's
steps = 10                   # that are timed; default 5
repetitions = 1              # runs in one start

It is judged by its rate in steps a second. A wrong result is no failed launch: it ran, and its cell says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from statistics import median
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, model_validator

from fabricbench.configuration import did_you_mean
from fabricbench.quantity import Bytes, Seconds, parse_bytes, parse_seconds
from fabricbench.record.kernel_lines import KernelRun
from fabricbench.record.workload_cells import Figure, FigureFound
from fabricbench.workload.adapter import Kind, LeftOut, Place, Ranks, Seats, Start, WorkloadTable, seated
from fabricbench.workload.kernel_program import EACH_ONCE, ONE_OR_MORE, KernelProgramStart
from fabricbench.workload.known_models import KNOWN_MODELS, KnownModel
from fabricbench.workload.pace import MESSAGE_SECONDS, Pace

RATE = Figure(name="training", unit="step/s", better="higher")
TIME = Figure(name="time of a step", unit="s", better="lower")
EXPOSED = Figure(name="exposed communication", unit="%", better="lower")
SAMPLES = Figure(name="samples", unit="sample/s", better="higher")

USUAL_MODEL, USUAL_STEPS, USUAL_BUCKET_BYTES, USUAL_FLOP_S = "small", 5, 25 * 2**20, 100e12
MOST_LAYERS, MOST_MICRO_BATCH, MOST_SCALE, MOST_STEPS = 10_000, 10_000, 1_000_000_000, 1_000_000
NS = 1e9

SUM_BYTES_S = 1e9
"""That a processor adds up."""

_FLOP_S = {"Gflop/s": 1e9, "Tflop/s": 1e12, "Pflop/s": 1e15}


def _read_flop_s(value: Any, info: ValidationInfo) -> Any:
    """Return flop/s. A bare number is what a stored campaign has; in a file that people write its unit is anybody's guess."""
    is_written_by_people = "folder" in (info.context or {})  # which only who reads a campaign file tells
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?) ?(\S+)\s*", value) if isinstance(value, str) else None
    if found is not None and found[2] in _FLOP_S:
        return float(found[1]) * _FLOP_S[found[2]]
    if isinstance(value, str) or is_written_by_people:
        raise ValueError(f'found {value!r}, needed a rate such as "100 Tflop/s", in {", ".join(_FLOP_S)}')
    return value


def _is_known(name: str) -> str:
    if name not in KNOWN_MODELS:
        known = list(KNOWN_MODELS)
        raise ValueError(f"found {name!r}, needed one of {', '.join(known)}{did_you_mean(name, known)}")
    return name


ModelName = Annotated[str, AfterValidator(_is_known)]
FlopS = Annotated[float, BeforeValidator(_read_flop_s), Field(gt=0, allow_inf_nan=False)]
MicroBatch = Annotated[int, Field(ge=1, le=MOST_MICRO_BATCH)]
BucketBytes = Annotated[Bytes, BeforeValidator(parse_bytes), Field(ge=8, le=2**40)]
Scale = Annotated[int, Field(ge=1, le=MOST_SCALE)]
ElementBytes = Literal[2, 4, 8]
LayerSeconds = Annotated[Seconds, BeforeValidator(parse_seconds), Field(ge=0, le=3600)]


class TrainingStepStart(KernelProgramStart):
    """One launch: a model, shared in one way among the ranks."""

    program: ClassVar[str] = "fabricbench-training-step"
    rate: ClassVar[Figure] = RATE
    kind: Literal["training-step"] = "training-step"
    model: ModelName = USUAL_MODEL
    dp: int = Field(ge=1)
    tp: int = Field(default=1, ge=1)
    pp: int = Field(default=1, ge=1)
    micro_batch: MicroBatch = 1
    micro_batches: MicroBatch = 1
    bucket_bytes: int = Field(default=USUAL_BUCKET_BYTES, ge=8, le=2**40)
    element_bytes: ElementBytes = 2
    accelerator_flop_s: float = Field(default=USUAL_FLOP_S, gt=0)
    layer_seconds: float | None = Field(default=None, ge=0, le=3600)
    scale: Scale = 1
    experts: bool = True
    layers: int | None = Field(default=None, ge=1, le=MOST_LAYERS)
    steps: int = Field(default=USUAL_STEPS, ge=1, le=MOST_STEPS)

    @model_validator(mode="after")
    def _can_be_shared_so(self) -> TrainingStepStart:
        if self.dp * self.tp * self.pp != self.ranks:
            raise ValueError(
                f"ranks: found {self.ranks}, needed {self.dp} x {self.tp} x {self.pp} = {self.dp * self.tp * self.pp}"
            )
        if self.pp > self.shape.layers:
            raise ValueError(
                f"grid: found {self.pp} stages, needed at most {self.shape.layers}, the layers of {self.model}"
            )
        if self.shape.hidden == 0 and self.tp * self.pp > 1:
            raise ValueError(
                f"grid: found {self.dp}x{self.tp}x{self.pp}, needed Nx1x1: only the gradients of {self.model} are known"
            )
        return self

    @property
    def shape(self) -> KnownModel:
        """The model as it is run: with so many layers, and with one expert for all tokens where there are to be none."""
        known = KNOWN_MODELS[self.model]
        known = known if self.layers is None else replace(known, layers=self.layers)
        if self.experts or not known.experts:
            return known
        operations = 2.0 * known.sequence * known.expert_parameters * (known.experts_per_token - 1)
        return replace(
            known,
            layer_parameters=known.layer_parameters + known.expert_parameters,
            layer_operations=known.layer_operations - operations,
            experts=0,
            expert_parameters=0,
            experts_per_token=0,
        )

    @property
    def values(self) -> dict[str, str | int | float]:
        """What tells its cell apart besides the ranks; what is at its default is left out, but for the model and the grid."""
        values: dict[str, str | int | float] = {"model": self.model, "grid": f"{self.dp}x{self.tp}x{self.pp}"}
        told: dict[str, tuple[str, str | int | float]] = {
            "micro_batch": ("batch", self.micro_batch),
            "micro_batches": ("batches", self.micro_batches),
            "bucket_bytes": ("bucket", self.bucket_bytes),
            "element_bytes": ("element", self.element_bytes),
            "accelerator_flop_s": ("accelerator", f"{self.accelerator_flop_s / 1e12:g}T"),
            "layer_seconds": ("layer", f"{1e3 * (self.layer_seconds or 0):g}ms"),
            "scale": ("scale", self.scale),
            "layers": ("layers", self.layers or 0),
            "steps": ("steps", self.steps),
        }
        for name, (short, value) in told.items():
            if getattr(self, name) != type(self).model_fields[name].default:
                values[short] = value
        if not self.experts:
            values["experts"] = "off"
        return values

    @property
    def layer_ns(self) -> int:
        """Of a layer of a micro-batch forward, on one rank and before it is scaled."""
        if self.layer_seconds is not None:
            return round(self.layer_seconds * NS)
        return self._ns(self.shape.layer_operations)

    @property
    def head_ns(self) -> int:
        """Likewise, of what comes after the last layer; none where the time of a layer was told."""
        return 0 if self.layer_seconds is not None else self._ns(self.shape.head_operations)

    def _ns(self, operations: float) -> int:
        return round(operations * self.micro_batch / self.tp / self.accelerator_flop_s * NS)

    def options(self, place: Place) -> Mapping[str, object]:
        """Return the model's dimensions, the grid and the load."""
        del place
        shape = self.shape
        return {
            "model": self.model,
            "dp": self.dp,
            "tp": self.tp,
            "pp": self.pp,
            "layers": shape.layers,
            "hidden": shape.hidden,
            "sequence": shape.sequence,
            "layer-parameters": shape.layer_parameters,
            "expert-parameters": shape.expert_parameters,
            "experts": shape.experts,
            **({"experts-per-token": shape.experts_per_token} if shape.experts else {}),
            "embedding-parameters": shape.embedding_parameters,
            "head-parameters": shape.head_parameters,
            "micro-batch": self.micro_batch,
            "micro-batches": self.micro_batches,
            "bucket-bytes": self.bucket_bytes,
            "element-bytes": self.element_bytes,
            "layer-ns": self.layer_ns,
            "head-ns": self.head_ns,
            "scale": self.scale,
            "steps": self.steps,
        }

    def figures(self, runs: list[KernelRun]) -> Iterator[FigureFound]:
        """Yield the medians over its runs; samples only of a model that is not scaled."""
        for figure, name, factor in (
            (RATE, "steps_per_second", 1.0),
            (TIME, "step_seconds", 1.0),
            (EXPOSED, "exposed_of_step", 100.0),
            (SAMPLES, "samples_per_second", 1.0),
        ):
            found = [value for run in runs if (value := run.values.get(name)) is not None]
            if found:
                yield figure.found(factor * median(found))

    def facts(self, runs: list[KernelRun]) -> Iterator[tuple[str, float]]:
        """Yield the seconds of a step by its parts, and the bytes by kind."""
        names = ("computing_seconds", "communication_seconds", "exposed_seconds", "overlapped_of_communication")
        kinds = ("gradient_bytes", "tensor_bytes", "pipeline_bytes", "expert_bytes")
        for name in (*names, *kinds):
            found = [value for run in runs if (value := run.values.get(name)) is not None]
            if found:
                yield name, median(found)

    def expected_seconds(self, pace: Pace) -> float:
        """Return how long all its repetitions take: its steps with nothing hidden, then their computing and their traffic alone."""
        shape, scale = self.shape, self.scale
        rounds = 4 * shape.layers / self.pp * self.micro_batches
        computing = 3 * self.micro_batches * (self.layer_ns * shape.layers + self.head_ns) / NS / scale
        gradients = shape.parameters / self.tp / self.pp
        activations = self.micro_batch * shape.sequence * shape.hidden
        sent = 2 * gradients * (self.dp > 1) + 2 * rounds * activations * (self.tp > 1)
        sent += 2 * self.micro_batches * activations * (self.pp > 1)
        sent += rounds * activations * shape.experts_per_token / self.tp * (self.dp > 1)
        bytes_moved = self.element_bytes * sent / scale
        talking = bytes_moved * 8 / pace.line_rate_bit_s + bytes_moved / SUM_BYTES_S * self.ranks / pace.computing
        buckets = gradients * self.element_bytes / self.bucket_bytes + 1
        messages = 2 * self.ranks * (buckets + rounds) + 4 * self.micro_batches * self.pp
        step = computing + talking + messages * MESSAGE_SECONDS
        return self.repetitions * (2 * self.steps + 1) * step


def _read_grid(value: Any) -> tuple[int, int, int]:
    if isinstance(value, str) and (found := re.fullmatch(r"([1-9]\d{0,5})x([1-9]\d{0,5})x([1-9]\d{0,5})", value)):
        return int(found[1]), int(found[2]), int(found[3])
    if isinstance(value, list | tuple) and len(value) == 3 and all(type(one) is int and one > 0 for one in value):
        return value[0], value[1], value[2]
    raise ValueError(f'found {value!r}, needed data x tensor x pipeline such as "2x2x1"')


def _read_grids(value: Any) -> Any:
    if value is None:
        return None
    grids = tuple(map(_read_grid, value if isinstance(value, list | tuple) else (value,)))
    if not grids:
        raise ValueError('found nothing, needed at least one such as "4x1x1"')
    return tuple(dict.fromkeys(grids))


class TrainingStepTable(WorkloadTable):
    """What people write: of lists every combination is a launch of its own in every block on every fabric."""

    kind: Literal["training-step"] = "training-step"
    model: Annotated[tuple[ModelName, ...], ONE_OR_MORE, EACH_ONCE] = (USUAL_MODEL,)
    grid: Annotated[tuple[tuple[int, int, int], ...] | None, BeforeValidator(_read_grids)] = None
    ranks: Ranks = "all"
    micro_batch: Annotated[tuple[MicroBatch, ...], ONE_OR_MORE, EACH_ONCE] = (1,)
    micro_batches: Annotated[tuple[MicroBatch, ...], ONE_OR_MORE, EACH_ONCE] = (1,)
    bucket: Annotated[tuple[BucketBytes, ...], ONE_OR_MORE, EACH_ONCE] = (USUAL_BUCKET_BYTES,)
    element_bytes: Annotated[tuple[ElementBytes, ...], ONE_OR_MORE, EACH_ONCE] = (2,)
    accelerator: Annotated[tuple[FlopS, ...], ONE_OR_MORE, EACH_ONCE] = (USUAL_FLOP_S,)
    layer: Annotated[tuple[LayerSeconds, ...], ONE_OR_MORE, EACH_ONCE] | None = None
    scale: Annotated[tuple[Scale, ...], ONE_OR_MORE, EACH_ONCE] = (1,)
    experts: Annotated[tuple[bool, ...], ONE_OR_MORE, EACH_ONCE] = (True,)
    layers: int | None = Field(default=None, ge=1, le=MOST_LAYERS)
    steps: int = Field(default=USUAL_STEPS, ge=1, le=MOST_STEPS)
    repetitions: int = Field(default=1, ge=1, le=1000)

    @model_validator(mode="after")
    def _is_told_each_thing_once(self) -> TrainingStepTable:
        if self.grid is not None and self.ranks != "all":
            dp, tp, pp = self.grid[0]
            raise ValueError(
                "grid: ranks = [...] says how many there are as well; needed one of them: "
                f'"{dp}x{tp}x{pp}" is {dp * tp * pp} ranks'
            )
        if self.layer is not None and self.accelerator != (USUAL_FLOP_S,):
            raise ValueError("layer: accelerator says how long computing takes as well; needed one of them")
        for dp, tp, pp in self.grid or ((1, 1, 1),):
            for model in self.model:
                TrainingStepStart(model=model, dp=dp, tp=tp, pp=pp, ranks=dp * tp * pp, layers=self.layers)
        return self

    def plan(self, seats: Seats) -> Iterator[Start | LeftOut]:
        """Yield a start for each grid that the testbed seats and each combination of parameters."""
        asked = self.ranks if self.grid is None else tuple(dp * tp * pp for dp, tp, pp in self.grid)
        counts, left_out = seated("training-step", asked, seats, lambda _: True, "any number")
        yield from left_out
        grids = (
            [(count, 1, 1) for count in counts]
            if self.grid is None
            else [(dp, tp, pp) for dp, tp, pp in self.grid if dp * tp * pp in counts]
        )
        every = product(
            grids,
            self.model,
            self.micro_batch,
            self.micro_batches,
            self.bucket,
            self.element_bytes,
            self.accelerator,
            self.layer or (None,),
            self.scale,
            self.experts,
        )
        for (dp, tp, pp), model, batch, batches, bucket, element, flop_s, layer, scale, experts in every:
            yield TrainingStepStart(
                model=model,
                dp=dp,
                tp=tp,
                pp=pp,
                ranks=dp * tp * pp,
                micro_batch=batch,
                micro_batches=batches,
                bucket_bytes=bucket,
                element_bytes=element,
                accelerator_flop_s=flop_s,
                layer_seconds=layer,
                scale=scale,
                experts=experts,
                layers=self.layers,
                steps=self.steps,
                repetitions=self.repetitions,
            )


TRAINING_STEP = Kind(
    "training-step",
    "a step of distributed training: buckets of gradients behind computing, activations, stages, experts",
    TrainingStepTable,
    TrainingStepStart,
)
