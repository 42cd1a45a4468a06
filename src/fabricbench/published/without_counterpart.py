"""Published results that no measurement of ours can stand beside, each with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

Place = tuple[str, tuple[str, ...]]
"""A study and where in its facts a result stands, with all below it."""

WITHOUT_COUNTERPART: Mapping[Place, str] = MappingProxyType(
    {
        (
            "salamon-mink-nist",
            ("anomaly", "near_bytes"),
        ): "made by the TCP of a kernel of its time, which no kernel of today has",
        (
            "salamon-mink-nist",
            ("applications", "optical-absorption", "time_s", "SGI Origin, 8 processors"),
        ): "one machine with shared memory and no network",
        (
            "salamon-mink-nist",
            ("applications", "optical-absorption", "scales_to_nodes"),
        ): "how the application of its time scaled, told without times",
        (
            "salamon-mink-nist",
            ("applications", "rc5"),
        ): "jobs that exchange nothing: the network has no part in their rate",
        ("pisarczyk-2006", ("timestamps",)): "the clock that it measured by",
    }
)
