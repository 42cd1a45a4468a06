"""A campaign that takes moments: one ping-pong of 64 B over each layer."""

from __future__ import annotations

from collections.abc import Sequence


def tiny_campaign(layers: Sequence[str], blocks: int) -> str:
    """Return it as TOML."""
    asked = ", ".join(f'"{layer}"' for layer in layers)
    return f"""
[campaign]
name = "tiny"
blocks = {blocks}

[[experiment]]
layers = [{asked}]
pattern = "pingpong"
message_bytes = ["64B"]
maximum_seconds = "20ms"
"""
