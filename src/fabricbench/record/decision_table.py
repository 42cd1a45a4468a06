"""`[decision]`: what the user weighs, and what the fabrics and their nodes cost. In a campaign, or in a file of its own.

    [decision]
    nodes = 16                          # for how many one buys; default: as many as the testbed has
    node_price = 2500                   # a node without a fabric
    network_share = "20%"               # of your jobs' time on the first fabric: what network tests stand for
    years = 4                           # with the price of electricity: what the power costs
    electricity_price_per_kwh = 0.30

    [[decision.weight]]
    npb = "IS.W"                        # or workload = "hpl", or of the network alone: layer, pattern, message_bytes
    share_of_time = "75%"               # of the machine's time on the first fabric; or of all: runs = 3

    [[decision.weight]]
    npb = "MG.W"
    share_of_time = "25%"

    [decision.price.myrinet]            # or `myrinet = 1200` under [decision.price]; else the testbed's own price
    per_node = 1200
    fixed = 4000
    power_per_node_watt = 12

It stands here because a run keeps it (within the campaign in its manifest) and the analysis reads it. What comes of it is
`analysis.decide`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from fabricbench.configuration import did_you_mean, read_table, validated
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Model, Pattern, Receive
from fabricbench.pattern_facts import Family
from fabricbench.patterns import PATTERNS
from fabricbench.quantity import Bytes, Share, format_bytes
from fabricbench.record.manifest import Manifest
from fabricbench.testbed.model import Fabric

USUAL_CURRENCY = "EUR"

KERNEL = re.compile(r"([A-Z]+)\.([A-Z])(?:\.([1-9]\d*))?")

Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


def _kernel(text: str | None) -> str | None:
    if text is not None and KERNEL.fullmatch(text.upper()) is None:
        raise ValueError(f'found {text!r}, needed a kernel and its class, "IS.W" say, or with its ranks, "IS.W.4"')
    return None if text is None else text.upper()


def _of_pattern(pattern: Pattern) -> str:
    return 'npb = "IS.W"' if pattern is Pattern.NPB else f'{pattern} = "hpl"'


class Counting(StrEnum):
    """How the tests of a decision count: by time, from which the cost of the same work follows, or in a geometric score alone."""

    EQUAL_TIME = "the same share of the time each"
    """Nobody said how."""
    SHARE_OF_TIME = "shares of the time"
    RUNS = "runs"
    """So many runs of each: their share of the time is what they take on the first fabric."""
    SCORE = "weights"
    """Of a geometric mean, which is no time: nothing is said of costs."""


SHARE_TOLERANCE = 0.005
"""By which shares of the time may miss 100 %: a third of it written as "33.3%"."""


class Weight(Model):
    """A test and how much it counts: a kernel (`npb`), another `workload` by its name, or the cells of a `layer` and a `pattern`.

    `share_of_time` is the share of the machine's time that such work takes on the first fabric, `runs` how many runs of it there
    are beside those of the others; `weight` is that in the geometric score.

    Without ranks a kernel is that on its most ranks, and so is a workload; where nodes failed, on those that have the most blocks.
    Where several cells fit (no size given, two ways of receiving), they share the weight equally; without a `variant` the plain
    cell is meant where there is one.
    """

    npb: Annotated[str | None, AfterValidator(_kernel)] = None
    workload: str | None = None
    layer: Layer | None = None
    pattern: Pattern | None = None
    message_bytes: Bytes | None = None
    receive: Receive | None = None
    variant: str | None = None
    share_of_time: Annotated[Share, Field(gt=0, le=1)] | None = None
    runs: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    weight: float | None = Field(default=None, gt=0, allow_inf_nan=False)

    @property
    def counting(self) -> Counting:
        """How it counts."""
        if self.share_of_time is not None:
            return Counting.SHARE_OF_TIME
        if self.runs is not None:
            return Counting.RUNS
        return Counting.EQUAL_TIME if self.weight is None else Counting.SCORE

    @property
    def amount(self) -> float:
        """How much it counts, relative to the others of the table."""
        return self.share_of_time or self.runs or self.weight or 1.0

    @model_validator(mode="after")
    def _counts_in_one_way(self) -> Weight:
        given = [name for name in ("share_of_time", "runs", "weight") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} are both given: write one of them")
        if self.runs is not None and self.layer is not None:
            raise ValueError("runs: a network test has none; write share_of_time, of the jobs that it stands for")
        return self

    @model_validator(mode="after")
    def _names_one_thing(self) -> Weight:
        # By value, not by what was written: a stored one has every key.
        cells = ("layer", "pattern", "message_bytes", "receive", "variant")
        given = [name for name in cells if getattr(self, name) is not None]
        works = [name for name in ("npb", "workload") if getattr(self, name) is not None]
        if works and (given or len(works) > 1):
            raise ValueError(f"{works[0]} and {', '.join((*works[1:], *given))} are both given: write a table for each")
        if not works and (self.layer is None or self.pattern is None):
            raise ValueError('needed npb = "IS.W", say, or workload = "hpl", or both layer and pattern')
        if self.pattern is not None and PATTERNS[self.pattern].family is Family.WORKLOAD:
            raise ValueError(f"pattern: {self.pattern} is a workload; write {_of_pattern(self.pattern)}, say")
        return self

    @property
    def kernel(self) -> tuple[str, str, int | None] | None:
        """The kernel's name, its class and its ranks (None: its most); None where it is no kernel."""
        found = KERNEL.fullmatch(self.npb) if self.npb is not None else None
        return None if found is None else (found[1], found[2], int(found[3]) if found[3] else None)

    def is_of(self, subject: str, workloads: Collection[str] = ()) -> bool:
        """Tell whether it is given to what launches of this name measure: that is all there is of a workload that left nothing.

        A launch is called after its workload, then its parameters, then its ranks: `ring.8`, `hpl-n800.4`, `is.W.4`. Of the
        names of the campaign's `workloads` the longest that fits is meant: `ring-big.4` is of `ring-big`, and not of `ring`.
        """
        if self.kernel is not None:
            benchmark, problem_class, ranks = self.kernel
            whole = f"{benchmark}.{problem_class}.{'' if ranks is None else ranks}"
            return subject.upper() == whole or (ranks is None and subject.upper().startswith(whole))
        if self.workload is None:
            return not subject  # the measurer's
        named = [name for name in (self.workload, *workloads) if subject.startswith((f"{name}.", f"{name}-"))]
        return max(named, key=len, default="") == self.workload

    @property
    def what(self) -> str:
        """What is weighed, as it was written: `IS.W`, `tcp pingpong 64 B`."""
        size = None if self.message_bytes is None else format_bytes(self.message_bytes)
        return " ".join(
            filter(None, (self.npb, self.workload, self.layer, self.pattern, size, self.receive, self.variant))
        )


class FabricPrice(Model):
    """What a fabric costs for each node and once (switches, licences), and the power it draws for each node, switches included."""

    per_node: Amount
    fixed: Amount = 0.0
    power_per_node_watt: Amount = 0.0


def _price(value: Any) -> Any:
    return {"per_node": value} if isinstance(value, int | float) and not isinstance(value, bool) else value


class DecisionTable(Model):
    """What the user weighs and what it costs. Without weights, what the first screen shows takes the same share of the time each.

    A kernel's time is that of whole work; of a round trip or a stream `network_share` tells how much of the users' jobs, by time on
    the first fabric, goes as they do. Without it network tests rank fabrics, and nothing is said of what they are worth in money.
    """

    weight: tuple[Weight, ...] = ()
    nodes: int | None = Field(default=None, ge=1)
    node_price: Amount | None = None
    node_power_watt: Amount = 0.0
    network_share: Annotated[Share, Field(gt=0, le=1)] | None = None
    years: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    electricity_price_per_kwh: Amount | None = None
    currency: str | None = None
    price: dict[str, Annotated[FabricPrice, BeforeValidator(_price)]] = {}

    @property
    def counting(self) -> Counting:
        """How all that is weighed counts."""
        return next(
            (one.counting for one in self.weight if one.counting is not Counting.EQUAL_TIME), Counting.EQUAL_TIME
        )

    @model_validator(mode="after")
    def _all_count_in_one_way(self) -> DecisionTable:
        # A `weight` that is not given is 1, as it has always been.
        ways = {one.counting for one in self.weight}
        if len(ways) > 1 and ways != {Counting.SCORE, Counting.EQUAL_TIME}:
            raise ValueError("decision.weight: needed share_of_time in every table, or runs in every table, or in none")
        total = sum(one.share_of_time or 0.0 for one in self.weight)
        if self.counting is Counting.SHARE_OF_TIME and abs(total - 1.0) > SHARE_TOLERANCE:
            raise ValueError(
                f"decision.weight: share_of_time adds up to {100 * total:.4g} %, needed 100 %: the shares are of the time of all "
                "that is weighed"
            )
        return self

    @model_validator(mode="after")
    def _energy_has_a_price_and_a_time(self) -> DecisionTable:
        if (self.years is None) != (self.electricity_price_per_kwh is None):
            raise ValueError("years and electricity_price_per_kwh go together: what the power costs follows from both")
        if self.node_power_watt and self.years is None:
            raise ValueError("node_power_watt: what it costs needs years and electricity_price_per_kwh")
        return self


class DecisionFile(Model):
    """A file that holds `[decision]`; what else a campaign file has may stand beside it and is not read."""

    decision: DecisionTable
    campaign: Any = None
    experiment: Any = None
    npb: Any = None
    workload: Any = None


def read_decision(path: Path) -> DecisionTable:
    """Return `[decision]` of a TOML file, a campaign's perhaps; UsageError lists what is wrong with it."""
    return validated(read_table(path), DecisionFile, str(path)).decision


def decision_of(manifest: Manifest) -> DecisionTable | None:
    """Return what the campaign of a run said of the decision; None where it said nothing."""
    stored = manifest.campaign.get("decision")
    return None if stored is None else validated(stored, DecisionTable, "[decision] in the run's manifest")


def prices_of(table: DecisionTable, fabrics: Sequence[Fabric]) -> tuple[dict[str, FabricPrice], str]:
    """Return the price of each fabric that has one, by its name without a condition, and the currency that all are in.

    A price in the table comes before the testbed's. What is bought is a fabric, in all its conditions: of prices that are given for
    these the dearest counts, which buys them all, and one for the fabric comes first. UsageError for a price of no fabric, and
    where currencies differ: nothing here knows what one is worth in another.
    """
    names = list(dict.fromkeys(name for fabric in fabrics for name in (fabric.name, fabric.network)))
    for name in table.price:
        if name not in names:
            raise UsageError(
                f"[decision.price] names {name!r}, which is no fabric here{did_you_mean(name, names)}",
                hint=f"the fabrics are {', '.join(names)}",
            )
    dearest_last = sorted(fabrics, key=lambda one: table.price[one.name].per_node if one.name in table.price else 0.0)
    of_conditions = {one.network: table.price[one.name] for one in dearest_last if one.name in table.price}
    prices = of_conditions | {one.network: table.price[one.network] for one in fabrics if one.network in table.price}
    currencies = {} if table.currency is None else {table.currency: "[decision]"}
    for fabric in fabrics:
        if fabric.network not in prices and fabric.price_per_node is not None:
            prices[fabric.network] = FabricPrice(
                per_node=fabric.price_per_node,
                fixed=fabric.price_fixed,
                power_per_node_watt=fabric.power_per_node_watt,
            )
            currencies.setdefault(fabric.currency, fabric.network)
    if len(currencies) > 1:
        found = ", ".join(f"{currency} ({where})" for currency, where in currencies.items())
        raise UsageError(
            f"the prices to be weighed are in different currencies: {found}",
            hint="give every price in one currency, in the testbed or under [decision.price]",
        )
    return prices, next(iter(currencies), USUAL_CURRENCY)
