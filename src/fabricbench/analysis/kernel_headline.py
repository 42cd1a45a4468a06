"""What the first screen says of kernels: which gains most by the faster network, and which nothing."""

from __future__ import annotations

from collections.abc import Sequence

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
    most, least = group[0], group[-1]
    if len(group) == 1 or not most.is_decided:
        return f"{most.kernel}: {_effect(most)}."
    leaders = _leaders(group)
    names, ratios = spoken([one.kernel.benchmark for one in leaders]), spoken([f"{one.ratio:.1f}" for one in leaders])
    gains = "gains" if len(leaders) == 1 else "gain"
    close = "" if len(leaders) == 1 else " (too close to tell which more)"
    end = "" if least in leaders else f", {least.kernel.benchmark} the least ({least.ratio:.2f} times)"
    return f"{names} {gains} most by {most.faster}, {ratios} times shorter than on {most.slower}{close}{end}."


def _leaders(group: Sequence[Sensitivity]) -> list[Sensitivity]:
    """Return the kernels that may gain most: the first, and those after it whose order is not settled."""
    leaders = [group[0]]
    for one in group[1:]:
        if not leaders[-1].may_be_behind or not one.is_decided:
            break
        leaders.append(one)
    return leaders
