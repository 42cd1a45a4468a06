"""Measure, explain, compare and predict cluster interconnects, and choose one with evidence."""

from __future__ import annotations

__version__ = "0.1.0"
