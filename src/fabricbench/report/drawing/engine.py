"""The engine that draws figures as pictures, kept from what ends the process: too little address space, and text that is no XML."""

from __future__ import annotations

import resource
from typing import Any

import vl_convert

from fabricbench.errors import EnvironmentLacks
from fabricbench.printable import printable

ENGINE_BYTES = 72 * 2**30
"""Address space, of which it uses little: with a limit of 64 GiB it died of a trap, with 70 it drew (vl-convert 1.9)."""


def can_draw() -> bool:
    """Tell whether this process may have the address space that drawing takes."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return limit == resource.RLIM_INFINITY or limit >= ENGINE_BYTES


def check_can_draw() -> None:
    """Raise EnvironmentLacks where it may not."""
    if not can_draw():
        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        raise EnvironmentLacks(
            f"drawing pictures takes {ENGINE_BYTES // 2**30} GiB of address space, and this process may have {limit / 2**30:.3g}",
            hint="raise the limit (`ulimit -v unlimited`), or write html, whose figures the browser draws",
        )


def drawn_svg(spec: dict[str, Any]) -> str:
    """Return what a Vega-Lite specification draws, as SVG."""
    return str(vl_convert.vegalite_to_svg(_printable(spec)))


def drawn_png(spec: dict[str, Any], scale: float) -> bytes:
    """Return it as PNG, `scale` of its pixels for each of the specification's."""
    return bytes(vl_convert.vegalite_to_png(_printable(spec), scale=scale))


def drawn_width(spec: dict[str, Any]) -> float:
    """Return how wide it would be drawn, with all that stands beside its panels."""
    return float(vl_convert.vegalite_to_scenegraph(_printable(spec))["width"])


def _printable(part: Any) -> Any:
    """Return a specification with its texts as they are shown: names are anybody's, and one with an ESC ends the process."""
    if isinstance(part, str):
        return printable(part)
    if isinstance(part, dict):
        return {name: _printable(value) for name, value in part.items()}
    return [_printable(value) for value in part] if isinstance(part, list | tuple) else part
