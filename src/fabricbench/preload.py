"""`LD_PRELOAD` is joined wherever others set it as well, in the order of `launch/starting.py`. Needs the standard library alone."""

from __future__ import annotations

PRELOAD = "LD_PRELOAD"


def joined(*libraries: object) -> str:
    """Return the value of the variable that preloads these in their order, of those that there are."""
    return ":".join(str(one) for one in libraries if one)
