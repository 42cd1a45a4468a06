"""Shell scripts that stand in for a program, or that ranks are started by."""

from __future__ import annotations

from pathlib import Path


def script(path: Path, commands: str) -> Path:
    """Write a shell script that may be run; its path."""
    path.write_text(f"#!/bin/sh\n{commands}\n", encoding="utf-8")
    path.chmod(0o755)
    return path
