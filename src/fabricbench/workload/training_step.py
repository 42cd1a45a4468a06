"""A step of distributed training as a workload: fabricbench-training-step, messages as of a known model beside a computing load.

It is judged by its rate in steps a second. A wrong result is no failed launch: it ran, and its cell says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from statistics import median
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, model_validator

from fabricbench.configuration import did_you_mean
from fabricbench.quantity import Bytes, Seconds, parse_bytes, parse_seconds
from fabricbench.record.kernel_lines import KernelRun
from fabricbench.record.workload_cells import FigureFound, FigureOfMerit
from fabricbench.workload.adapter import Place
from fabricbench.workload.kernel_program import KernelProgramStart
from fabricbench.workload.known_models import KNOWN_MODELS, KnownModel
from fabricbench.workload.pace import MESSAGE_SECONDS, Pace
from fabricbench.workload.parameters import Argument, Arrangement, InName, declared

RATE = FigureOfMerit(name="training", unit="step/s", better="higher")
TIME = FigureOfMerit(name="time of a step", unit="s", better="lower")
EXPOSED = FigureOfMerit(name="exposed communication", unit="%", better="lower")
SAMPLES = FigureOfMerit(name="samples", unit="sample/s", better="higher")

USUAL_FLOP_S = 100e12
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
LayerSeconds = Annotated[Seconds, BeforeValidator(parse_seconds), Field(ge=0, le=3600)]


class TrainingStepStart(KernelProgramStart):
    """One launch: a model, shared in one way among the ranks."""

    program: ClassVar[str] = "fabricbench-training-step"
    rate: ClassVar[FigureOfMerit] = RATE
    arrangement: ClassVar[Arrangement] = Arrangement(
        ("dp", "tp", "pp"), lambda ranks: (ranks, 1, 1), "data x tensor x pipeline", "2x2x1"
    )
    kind: Literal["training-step"] = "training-step"
    model: Annotated[ModelName, Argument("whose dimensions it has; docs/workloads.md has them all")] = "small"
    dp: Annotated[int, Field(ge=1), Argument("replicas, which share the data", short="grid")]
    tp: Annotated[int, Field(ge=1), Argument("ranks that share each tensor", short="grid")] = 1
    pp: Annotated[int, Field(ge=1), Argument("stages of a pipeline", short="grid")] = 1
    micro_batch: Annotated[MicroBatch, Argument("samples", short="batch", in_name=InName.UNUSUAL)] = 1
    micro_batches: Annotated[
        MicroBatch, Argument("of a step, on each replica", short="batches", in_name=InName.UNUSUAL)
    ] = 1
    bucket_bytes: Annotated[
        Bytes,
        BeforeValidator(parse_bytes),
        Field(ge=8, le=2**40),
        Argument("gradients that are reduced together", key="bucket", short="bucket", in_name=InName.UNUSUAL),
    ] = 25 * 2**20
    element_bytes: Annotated[
        Literal[2, 4, 8], Argument("of a gradient and an activation", short="element", in_name=InName.UNUSUAL)
    ] = 2
    accelerator_flop_s: Annotated[
        FlopS,
        Argument(
            "that each rank is taken to have; from it comes the computing",
            key="accelerator",
            short="accelerator",
            in_name=InName.UNUSUAL,
            words=lambda flop_s: f"{flop_s / 1e12:g}T",
        ),
    ] = USUAL_FLOP_S
    layer_seconds: Annotated[
        LayerSeconds | None,
        Argument(
            "in place of accelerator: a layer of a micro-batch, forward, on one rank",
            key="layer",
            short="layer",
            in_name=InName.UNUSUAL,
            words=lambda seconds: f"{1e3 * seconds:g}ms",
            instead_of="accelerator",
        ),
    ] = None
    scale: Annotated[
        int,
        Field(ge=1, le=MOST_SCALE),
        Argument("messages, buckets and computing are 1/scale of the model's, and as many", in_name=InName.UNUSUAL),
    ] = 1
    layers: Annotated[
        Annotated[int, Field(ge=1, le=MOST_LAYERS)] | None,
        Argument("in place of the model's", in_name=InName.UNUSUAL, is_listed=False),
    ] = None
    steps: Annotated[
        int, Field(ge=1, le=MOST_STEPS), Argument("that are timed", in_name=InName.UNUSUAL, is_listed=False)
    ] = 5
    experts: Annotated[
        bool, Argument("whether a model that has experts has them", in_name=InName.UNUSUAL, words=lambda _: "off")
    ] = True

    @model_validator(mode="after")
    def _can_be_shared_so(self) -> TrainingStepStart:
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


TRAINING_STEP = declared(
    TrainingStepStart,
    "a step of distributed training: buckets of gradients behind computing, activations, stages, experts",
)
