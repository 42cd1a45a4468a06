"""What is started: tokens, where, and with what added to the environment. Never a shell string."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Command:
    """A program as tokens; `environment` is added to that of the caller."""

    tokens: tuple[str, ...]
    directory: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return a line that a shell would take, for people to read and to try."""
        added = " ".join(f"{name}={shlex.quote(value)}" for name, value in self.environment.items())
        return f"{added} {shlex.join(self.tokens)}".strip()
