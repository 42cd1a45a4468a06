"""The pages of the example findings, each written once a process: a page takes seconds of processor and never differs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from fabricbench.analysis.findings import Findings
from fabricbench.report.html import render_html


@cache
def page_of(make: Callable[[], Findings]) -> str:
    """Return the dossier of what `make` returns."""
    return render_html(make())
