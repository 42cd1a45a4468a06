"""What the first screen says of kernels: which gains most by the faster network, and which nothing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from fabricbench.analysis.findings import Comparison, Headline, KernelFindings, Sensitivity, is_basic
from fabricbench.analysis.wording import spoken
from fabricbench.model import Layer, Pattern


def with_kernels(headline: Headline, kernels: KernelFindings | None, cells: Sequence[Comparison]) -> Headline:
    """Return the headline with the effects on kernels; where nothing else was compared, the answer is theirs."""
    if kernels is None or not kernels.sensitivities:
        return headline
    told = kernel_effects(kernels.sensitivities)
    has_layers = any(is_basic(one) and one.layer is not Layer.MEMORY for one in cells if one.pattern is not Pattern.NPB)
    if has_layers:
        return headline.model_copy(update={"effects": (*headline.effects, *told)})
    return headline.model_copy(
        update={"sentence": _sentence(kernels.sensitivities), "detail": "", "effects": (*headline.effects, *told)}
    )


def kernel_effects(sensitivities: Sequence[Sensitivity]) -> tuple[str, ...]:
    """Return a line for each kernel: `IS.W on 4 ranks: myrinet 3.10 times shorter (3.05 to 3.14)`."""
    return tuple(f"{one.kernel}: {_effect(one)}" for one in sensitivities)


def _effect(one: Sensitivity) -> str:
    bounds = "" if one.low is None or one.high is None else f" ({one.low:.2f} to {one.high:.2f})"
    if one.is_equivalent:
        return f"equivalent, {one.slower} / {one.faster} ratio {one.ratio:.3f}{bounds}"
    if not one.is_decided:
        return f"not enough data, {one.slower} / {one.faster} ratio {one.ratio:.3f}{bounds}"
    if one.ratio >= 1:
        return f"{one.faster} {one.ratio:.2f} times shorter{bounds}"
    turned = "" if one.low is None or one.high is None else f" ({1 / one.high:.2f} to {1 / one.low:.2f})"
    return f"{one.slower} {1 / one.ratio:.2f} times shorter{turned}"


def _sentence(sensitivities: Sequence[Sensitivity]) -> str:
    """Return the answer for the first pair of fabrics: who gains most, who least."""
    first = sensitivities[0]
    group = [one for one in sensitivities if (one.slower, one.faster) == (first.slower, first.faster)]
    if len(group) == 1 or not first.is_decided:
        return f"{first.kernel}: {_effect(first)}."
    most, *others = _by_order(group)
    gain, close = ("gains", "") if len(most) == 1 else ("gain", " (too close to tell which more)")
    end = f", {_names(others[-1])} the least ({_ratios(others[-1], 2)} times)" if others else ""
    return f"{_names(most)} {gain} most by {first.faster}, {_ratios(most, 1)} times shorter than on {first.slower}{close}{end}."


def _by_order(group: Sequence[Sensitivity]) -> list[list[Sensitivity]]:
    """Return the kernels, the one that gains most first, in one list with the next where their order is not settled."""
    ordered = [[group[0]]]
    for before, one in pairwise(group):
        if before.may_be_behind:
            ordered[-1].append(one)
        else:
            ordered.append([one])
    return ordered


def _names(kernels: Sequence[Sensitivity]) -> str:
    return spoken([one.kernel.benchmark for one in kernels])


def _ratios(kernels: Sequence[Sensitivity], decimals: int) -> str:
    return spoken([f"{one.ratio:.{decimals}f}" for one in kernels])
