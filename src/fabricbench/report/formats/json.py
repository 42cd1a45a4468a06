"""All findings as JSON, for programs; `Findings.model_validate_json` reads it back."""

from __future__ import annotations

from fabricbench.analysis.findings import Findings


def render(findings: Findings) -> bytes:
    """Return the findings as indented JSON."""
    return (findings.model_dump_json(indent=2) + "\n").encode()
