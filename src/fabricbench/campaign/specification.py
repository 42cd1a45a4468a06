"""A campaign: which experiments are to be run, and in how many blocks. Read from TOML that people write, or taken from `presets`.

    [campaign]
    name = "latency of two networks"
    blocks = 12

    [[experiment]]
    layers = ["udp", "tcp", "mpi"]
    pattern = "pingpong"
    message_bytes = ["8B", "64B", "1KiB"]

Beside or instead of experiments it may hold kernels and applications, `[[workload]]` (`workload.adapter`), `[[condition]]` varies
more than the fabric (`condition`), and `[decision]` says what all this is measured for (`record.decision_table`). What a campaign
does not say, `plan` decides; what a fabric cannot carry, `cells` knows; what a pattern is and may be told, `fabricbench.patterns`:
parameters are checked against that table, and a list of values becomes a cell each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StrictBool, field_validator, model_validator

from fabricbench.campaign.condition import Condition, check_conditions
from fabricbench.configuration import did_you_mean, read_table, text_or_number, validated
from fabricbench.model import Layer, Model, Pattern, Receive
from fabricbench.pattern_facts import LAYER_PARAMETERS, STAGES, Family, Parameter, chosen_parameters
from fabricbench.patterns import PATTERNS
from fabricbench.quantity import Bytes, Seconds, Share, enumeration, parse_seconds
from fabricbench.record.decision_table import DecisionTable, Weight
from fabricbench.record.manifest import MOST_BLOCKS
from fabricbench.record.probe_plan import Stopping
from fabricbench.record.setup import Value
from fabricbench.workload.adapter import WorkloadTable
from fabricbench.workload.farm import FarmTable
from fabricbench.workload.npb_adapter import NpbTable
from fabricbench.workload.registry import AnyTable, of_kind

Sweep = Mapping[str, Value | tuple[Value, ...]]
"""What people write: a value, or a list of values that each get a cell."""


def _read_values(value: Any) -> Any:
    for one in value if isinstance(value, list | tuple) else (value,):
        text_or_number(one)
    return value


Values = Annotated[Value | tuple[Value, ...], BeforeValidator(_read_values)]

OF_ANY_PATTERN = {"door": "a way into the layer", "memory": "a kind of memory that messages lie in"}
"""Parameters that every pattern has, and what they name; the measurer knows which doors there are."""

MEMORY_KINDS = ("plain", "huge")
"""Those that are built; the measurer knows `cuda` and `rocm` by name."""


def check_parameters(pattern: Pattern, parameters: Sweep, layers: Iterable[Layer] = ()) -> None:
    """Raise ValueError for a parameter that neither the pattern nor a layer has, or a value that it cannot take."""
    known = dict(PATTERNS[pattern].parameters)
    for layer in layers:
        known |= chosen_parameters(layer)
    for name, values in parameters.items():
        if name in OF_ANY_PATTERN:
            _check_names(name, values)
            continue
        if name == STAGES:
            raise ValueError(
                f"parameters: {STAGES} is no parameter to choose; write `stages = true` into the experiment"
            )
        if name not in known:
            there = f"it has {', '.join(known)}" if known else "it has none"
            raise ValueError(f"parameters: {pattern} has no {name!r}; {there}{did_you_mean(name, list(known))}")
        if values == ():
            raise ValueError(f"parameters.{name}: found an empty list, needed at least one value")
        for value in as_list(values):
            _check_value(name, known[name], value)


def _check_names(parameter: str, values: Value | tuple[Value, ...]) -> None:
    if values == () or not all(isinstance(value, str) and value for value in as_list(values)):
        what = OF_ANY_PATTERN[parameter]
        raise ValueError(f"parameters.{parameter}: found {values!r}, needed the name of {what}, or several")
    if parameter != "memory":
        return
    for value in as_list(values):
        if value not in MEMORY_KINDS:
            raise ValueError(
                f"parameters.memory: found {value!r}, needed one of {', '.join(MEMORY_KINDS)}"
                f"{did_you_mean(str(value), list(MEMORY_KINDS))}"
            )


def _check_value(name: str, parameter: Parameter, value: Value) -> None:
    if parameter.words:
        if value not in parameter.words:
            raise ValueError(
                f"parameters.{name}: found {value!r}, needed one of {', '.join(parameter.words)}"
                f"{did_you_mean(str(value), list(parameter.words))}"
            )
        return
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    is_fit = is_number and (isinstance(parameter.default, float) or isinstance(value, int))
    if not is_fit or not parameter.least <= float(value) <= parameter.most:
        kind = "a number" if isinstance(parameter.default, float) else "a whole number"
        raise ValueError(
            f"parameters.{name}: found {value!r}, needed {kind} from {parameter.least:g} to {parameter.most:g} "
            f"({parameter.summary})"
        )


def as_list(values: Value | tuple[Value, ...]) -> tuple[Value, ...]:
    """Return a value or a list of them as a list."""
    return values if isinstance(values, tuple) else (values,)


def spread(parameters: Sweep) -> Iterator[dict[str, Value]]:
    """Yield every combination of the values given."""
    names = list(parameters)
    for values in product(*(as_list(parameters[name]) for name in names)):
        yield dict(zip(names, values, strict=True))


FEWEST_BLOCKS = 2
"""One block has no replication: nothing can be said about how far a repetition would differ."""

NEVER_NARROW_ENOUGH = 1e-9
"""A relative width that no cell of a real network reaches."""

IN_PAIRS = frozenset(pattern for pattern, facts in PATTERNS.items() if facts.needs_even_ranks)
"""Patterns that set one half of the ranks against the other: with an odd number somebody would be left standing."""

USUAL_MINIMUM_SECONDS = 0.1
"""No cell ends on the width of its interval before this: what slows a machine down comes and goes within tens of milliseconds, and
120 of 126 ping-pongs had ended after 35 ms (median), most of them before the other regime came."""

ALL: Literal["all"] = "all"


def _read_ranks(value: Any) -> Any:
    """Check what people write for ranks, in one message where a union of types would give three."""
    numbers = list(value) if isinstance(value, list | tuple) else [value]
    if value is None or value == ALL or (numbers and all(type(one) is int and one >= 0 for one in numbers)):
        return value
    raise ValueError(f'found {value!r}, needed "{ALL}", how many ranks, or their numbers such as [0, 2, 3]')


Ranks = Annotated[Literal["all"] | int | tuple[int, ...], BeforeValidator(_read_ranks)]
"""Who takes part: one rank on every host, the first so many of these, or those numbered, the leading one first."""


def _read_seconds(value: Any) -> Any:
    return None if value is None else parse_seconds(value)


OptionalSeconds = Annotated[float | None, BeforeValidator(_read_seconds)]


class Congestor(Model):
    """What other ranks do while a cell is measured once more: a flood pattern of their own.

    `layer` is the cell's own if not given, `ranks` are places of their own that the plan chooses (`members`); lists of sizes and of
    parameter values give a congested cell each. One that is `idle` sends nothing: the control of the others.
    """

    pattern: Pattern
    layer: Layer | None = None
    message_bytes: tuple[Bytes, ...] = Field(min_length=1)
    ranks: Ranks = ALL
    parameters: dict[str, Values] = {}
    idle: bool = False

    @field_validator("message_bytes", mode="before")
    @classmethod
    def _one_size_is_a_list_of_one(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str | int) else value

    @model_validator(mode="after")
    def _is_a_flood(self) -> Congestor:
        floods = [name for name, facts in PATTERNS.items() if facts.family is Family.FLOOD]
        if self.pattern not in floods:
            raise ValueError(f"pattern: {self.pattern} does not fill a network; needed one of {', '.join(floods)}")
        if self.layer is Layer.MEMORY:
            raise ValueError("layer: memory has one rank alone and congests no network")
        _check_ranks(self.pattern, self.ranks)
        if isinstance(self.ranks, tuple) and 0 in self.ranks:
            raise ValueError("ranks: rank 0 directs the launch and cannot congest it")
        check_parameters(self.pattern, self.parameters, Layer if self.layer is None else (self.layer,))
        return self


class Experiment(Model):
    """A pattern over some layers at some message sizes, and how well each cell is to be measured.

    `receive` applies where a layer leaves a choice (the sockets); empty means the testbed's default. A cell ends once the
    interval of its median is within `relative_width` on either side, though not before `minimum_seconds` (USUAL_MINIMUM_SECONDS
    if not given), or after `maximum_seconds`, even where that is shorter. `ranks` are two for patterns of two, else all that the
    testbed has. A list of values for a parameter gives a cell each. With a `congestor` each cell is measured twice, alone and
    beside it. With `stages` each is measured once more while its messages are stamped on their way, which takes time of its own:
    the stamped cell is one of its own and enters no comparison of fabrics but that of their stages.
    """

    layers: tuple[Layer, ...] = Field(min_length=1)
    pattern: Pattern
    message_bytes: tuple[Bytes, ...] = ()
    receive: tuple[Receive, ...] = ()
    ranks: Ranks | None = None
    parameters: dict[str, Values] = {}
    congestor: Congestor | None = None
    stages: bool = False
    minimum_seconds: OptionalSeconds = Field(default=None, ge=0)
    maximum_seconds: Seconds = Field(default=0.5, gt=0)
    relative_width: Share = Field(default=0.02, gt=0, lt=1)
    minimum_samples: int = Field(default=20, ge=1)
    maximum_samples: int = Field(default=100_000, ge=1)
    warmup_samples: int = Field(default=10, ge=0)
    verify_messages: int = Field(default=2, ge=0)

    @model_validator(mode="after")
    def _is_no_workload(self) -> Experiment:
        if PATTERNS[self.pattern].family is Family.WORKLOAD:
            raise ValueError(f"pattern: {self.pattern} is a workload; it has a table of its own, [[{self.pattern}]]")
        return self

    @model_validator(mode="after")
    def _samples_are_ordered(self) -> Experiment:
        if self.minimum_samples > self.maximum_samples:
            raise ValueError(f"minimum_samples {self.minimum_samples} is above maximum_samples {self.maximum_samples}")
        return self

    @model_validator(mode="after")
    def _sizes_fit_the_pattern(self) -> Experiment:
        facts = PATTERNS[self.pattern]
        if facts.has_size and not self.message_bytes:
            raise ValueError("message_bytes: missing, it is required")
        if not facts.has_size and self.message_bytes:
            raise ValueError(f"message_bytes: {self.pattern} has no size to choose; leave it out")
        return self

    @model_validator(mode="after")
    def _ranks_fit_the_pattern(self) -> Experiment:
        _check_ranks(self.pattern, self.ranks)
        return self

    @model_validator(mode="after")
    def _parameters_are_of_the_pattern(self) -> Experiment:
        known = PATTERNS[self.pattern].parameters
        for name in self.parameters.keys() & known.keys():
            others = [layer for layer in self.layers if not known[name].is_of(layer)]
            if others:
                raise ValueError(
                    f"parameters: {name} is none of {', '.join(others)}; it is what {known[name].layers_text} can do"
                )
        check_parameters(self.pattern, self.parameters, self.layers)
        return self

    @model_validator(mode="after")
    def _stages_can_be_told(self) -> Experiment:
        if self.stages:
            _check_stages(self)
        return self

    @property
    def stopping(self) -> Stopping:
        """The stopping rule of each cell.

        With a congestor every cell has its whole time, the isolated one too: queues come and go, and tails are compared.
        """
        return Stopping(
            minimum_samples=self.minimum_samples,
            maximum_samples=self.maximum_samples,
            minimum_seconds=min(
                USUAL_MINIMUM_SECONDS if self.minimum_seconds is None else self.minimum_seconds, self.maximum_seconds
            ),
            maximum_seconds=self.maximum_seconds,
            relative_width=self.relative_width if self.congestor is None else NEVER_NARROW_ENOUGH,
        )


STAGED_LAYERS = tuple(layer for layer, known in LAYER_PARAMETERS.items() if STAGES in known)
"""The layers whose paths note the stages of their messages."""

STAGED_DOORS = {Layer.FRAME: "packet"}
"""Of layers with several doors the one whose messages are stamped, which a cell gets unasked."""

STAGED_PATTERNS = (Pattern.PINGPONG, Pattern.PACED, Pattern.BURST)
"""Those with one message under way at a time, or several at once that one answer ends."""

MOST_STAGED_SAMPLES = 2_000
"""Of a stamped cell: a row of each is kept on both ranks, and medians of more tell nothing more."""


def _check_stages(experiment: Experiment) -> None:
    """Raise ValueError for an experiment whose messages have no stages that can be told apart."""
    others = [layer for layer in experiment.layers if layer not in STAGED_LAYERS]
    if others:
        raise ValueError(
            f"stages: found layers {', '.join(others)}, needed {enumeration(STAGED_LAYERS, 'or')}; leave the others out"
        )
    if experiment.pattern not in STAGED_PATTERNS:
        raise ValueError(f"stages: found pattern {experiment.pattern}, needed {enumeration(STAGED_PATTERNS, 'or')}")
    for layer in experiment.layers:
        for door in as_list(experiment.parameters.get("door", ())):
            if (staged := STAGED_DOORS.get(layer, door)) != door:
                raise ValueError(
                    f"stages: found door {door} into layer {layer}, needed {staged}, whose messages alone are stamped; "
                    "leave door out"
                )
    if experiment.congestor is not None:
        raise ValueError(
            "stages: found a congestor, whose frames would be taken for the cell's; leave one of the two out"
        )
    if experiment.parameters.get("round_trips", 1) != 1:
        raise ValueError("stages: found round_trips, needed one at a time; leave it out")


def _check_ranks(pattern: Pattern, ranks: str | int | tuple[int, ...] | None) -> None:
    """Raise ValueError where a pattern is not for so many ranks, or one is named twice."""
    if ranks is None or isinstance(ranks, str):
        return
    number = ranks if isinstance(ranks, int) else len(ranks)
    if isinstance(ranks, tuple) and len(set(ranks)) < number:
        raise ValueError(f"ranks: found {list(ranks)}, needed each rank once")
    why = why_not_ranks(pattern, number)
    if why is not None:
        raise ValueError(f"ranks: {why}, found {number}")


def why_not_ranks(pattern: Pattern, number: int) -> str | None:
    """Return why a pattern is not for so many ranks; None if it is."""
    facts = PATTERNS[pattern]
    least = max(facts.least_ranks, 2)
    if number < least or (facts.most_ranks is not None and number > facts.most_ranks):
        return f"{pattern} is for {least if facts.most_ranks == least else f'{least} or more'} ranks"
    if pattern in IN_PAIRS and number % 2:
        return f"{pattern} sets one half of its ranks against the other and needs an even number"
    return None


MOST_PAUSE_SECONDS = 60.0
"""Longer ones would set the halves of a block apart; other days tell more (`resume --blocks`)."""


def _read_pause(value: Any) -> Any:
    """Read `0 to 2s`, or `1s` for a pause that is always the same."""
    if not isinstance(value, str):
        return value
    least, _, most = value.partition(" to ")
    return parse_seconds(least), parse_seconds(most or least)


def _is_pause(value: tuple[float, float]) -> tuple[float, float]:
    if not 0.0 <= value[0] <= value[1] <= MOST_PAUSE_SECONDS:
        raise ValueError(f"must be as `0 to 2s`, the shorter first, at most {MOST_PAUSE_SECONDS:g} s")
    return value


Pause = Annotated[tuple[float, float], BeforeValidator(_read_pause), AfterValidator(_is_pause)]
"""The shortest and the longest pause before a launch, seconds."""


class CampaignTable(Model):
    """What a campaign says beside its experiments.

    `unfit` says what happens to a layer or a size that a fabric of the testbed cannot carry: `refuse` it, or `leave out`, as the
    presets do because they are made for any fabric. `margin` is the smallest difference between fabrics that matters. `pause`: how
    long nothing is measured before a launch, drawn for each, so that launches resemble the one before less. `hardware_counters`:
    whether the measurer's ranks count events of their processors as well, which makes messages to receivers that sleep slower.
    """

    name: str = Field(min_length=1)
    description: str = ""
    blocks: int = Field(default=6, ge=FEWEST_BLOCKS, le=MOST_BLOCKS)
    unfit: Literal["refuse", "leave out"] = "refuse"
    margin: Share = Field(default=0.02, gt=0, lt=1)
    pause: Pause = (0.0, 0.0)
    hardware_counters: StrictBool = False


class Campaign(CampaignTable):
    """Experiments and workloads, how many blocks repeat them, how they weigh in a decision, and what varies beside the fabric."""

    blocks: int = Field(default=6, ge=1, le=MOST_BLOCKS)
    """Of a campaign that compares nothing, as the check of a testbed, one may be enough; a file's has more."""
    experiments: tuple[Experiment, ...] = ()
    workloads: tuple[AnyTable, ...] = ()
    decision: DecisionTable | None = None
    conditions: tuple[Condition, ...] = ()
    notes: tuple[str, ...] = ()
    """What whoever made it left out, and why: the plan says so."""

    @model_validator(mode="before")
    @classmethod
    def _earlier_campaigns_had_kernels(cls, data: Any) -> Any:
        if not isinstance(data, Mapping) or "npb" not in data:
            return data
        kernels = [{"kind": "npb", **one} for one in data["npb"] or ()]
        rest = {name: value for name, value in data.items() if name != "npb"}
        return {**rest, "workloads": (*kernels, *rest.get("workloads", ()))}

    @model_validator(mode="after")
    def _asks_for_something(self) -> Campaign:
        if not self.experiments and not self.workloads:
            raise ValueError("experiments: missing, a campaign needs one, or workloads")
        return self

    @model_validator(mode="after")
    def _weighs_what_it_measures(self) -> Campaign:
        _check_weights(self.decision, self.experiments, self.workloads)
        return self


class CampaignFile(Model):
    """A campaign file: one `[campaign]`, an `[[experiment]]` or `[[workload]]` for each, perhaps `[decision]` and `[[condition]]`.

    `[[npb]]`, `[[hpl]]`, `[[hpcg]]`, `[[farm]]` and `[[shared-data]]` are workloads of that kind.
    """

    campaign: CampaignTable
    experiment: tuple[Experiment, ...] = ()
    npb: tuple[NpbTable, ...] = ()
    hpl: tuple[Annotated[WorkloadTable, of_kind("hpl")], ...] = ()
    hpcg: tuple[Annotated[WorkloadTable, of_kind("hpcg")], ...] = ()
    farm: tuple[FarmTable, ...] = ()
    shared_data: tuple[Annotated[WorkloadTable, of_kind("shared-data")], ...] = Field(default=(), alias="shared-data")
    workload: tuple[AnyTable, ...] = ()
    decision: DecisionTable | None = None
    condition: tuple[Condition, ...] = ()

    @field_validator("condition")
    @classmethod
    def _conditions_are_told_apart(cls, value: tuple[Condition, ...]) -> tuple[Condition, ...]:
        check_conditions(value)
        return value

    @model_validator(mode="after")
    def _asks_for_something(self) -> CampaignFile:
        if not self.experiment and not self.workloads:
            raise ValueError("experiment: missing, it is required (or [[workload]])")
        return self

    @model_validator(mode="after")
    def _weighs_what_it_measures(self) -> CampaignFile:
        _check_weights(self.decision, self.experiment, self.workloads)
        return self

    @property
    def workloads(self) -> tuple[WorkloadTable, ...]:
        """All of them."""
        return (*self.npb, *self.hpl, *self.hpcg, *self.farm, *self.shared_data, *self.workload)


def _check_weights(
    decision: DecisionTable | None, experiments: tuple[Experiment, ...], workloads: tuple[WorkloadTable, ...]
) -> None:
    """Raise ValueError where a weight is for something that the campaign does not measure: a slip that a run would be wasted on."""
    for number, one in enumerate(decision.weight if decision is not None else (), start=1):
        if not _is_asked_for(one, experiments, workloads):
            raise ValueError(f"decision.weight[{number}]: {one.what} is not measured by this campaign")


def _is_asked_for(one: Weight, experiments: tuple[Experiment, ...], workloads: tuple[WorkloadTable, ...]) -> bool:
    if one.kernel is not None:
        return any(isinstance(table, NpbTable) and table.has(*one.kernel) for table in workloads)
    if one.workload is not None:
        return any(one.workload in table.names for table in workloads)
    return any(
        one.layer in experiment.layers
        and one.pattern is experiment.pattern
        and (one.message_bytes is None or one.message_bytes in experiment.message_bytes)
        for experiment in experiments
    )


def read_campaign(path: Path) -> Campaign:
    """Read a campaign file; UsageError lists what is wrong with it. Without a name it is called after its file."""
    return campaign_of(read_table(path), str(path))


def campaign_of(data: dict[str, Any], source: str) -> Campaign:
    """Return the campaign that a file's content describes; UsageError lists what is wrong, `source` says where."""
    table = data.get("campaign", {})
    if isinstance(table, dict):
        data = {**data, "campaign": {"name": Path(source).stem, **table}}
    file = validated(data, CampaignFile, source, {"folder": Path(source).parent})
    return Campaign(
        **file.campaign.model_dump(),
        experiments=file.experiment,
        workloads=file.workloads,
        decision=file.decision,
        conditions=file.condition,
    )
