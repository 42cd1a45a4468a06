"""Limits of what is decoded, made small for a test."""

from __future__ import annotations

import pytest

from fabricbench.record import decoding


def set_limits(monkeypatch: pytest.MonkeyPatch, **limits: int) -> None:
    """Set constants of `decoding` by name; files are decoded in this process, since the child has constants of its own."""
    monkeypatch.setattr(decoding.DECODER, "check_content", decoding.check_content)
    for name, limit in limits.items():
        monkeypatch.setattr(decoding, name, limit)
