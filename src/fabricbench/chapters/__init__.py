"""The chapters of a report, each a file of this folder and a line here; `chapter` says what one is.

`find_all` is what the analysis asks of them; the formats of `report` loop over `CHAPTERS`.
"""

from __future__ import annotations

from typing import Any

from fabricbench.analysis.findings import Findings
from fabricbench.analysis.material import Material
from fabricbench.analysis.wording import percent
from fabricbench.chapters import (
    anomalies,
    by_size,
    conditions,
    congestion,
    costs,
    decision,
    factors,
    guidelines,
    loggops,
    network_map,
    one_way,
    operations,
    pacing,
    rdma,
    stages,
    switches,
    topologies,
    trend,
    what_if,
    workloads,
)
from fabricbench.chapters.chapter import Chapter
from fabricbench.model import Model

CHAPTERS: tuple[Chapter, ...] = (
    workloads.CHAPTER,
    decision.CHAPTER,
    factors.CHAPTER,
    conditions.CHAPTER,
    by_size.CHAPTER,
    anomalies.CHAPTER,
    pacing.CHAPTER,
    loggops.CHAPTER,
    stages.CHAPTER,
    costs.CHAPTER,
    switches.CHAPTER,
    what_if.CHAPTER,
    topologies.CHAPTER,
    congestion.CHAPTER,
    rdma.CHAPTER,
    operations.CHAPTER,
    guidelines.CHAPTER,
    one_way.CHAPTER,
    trend.CHAPTER,
    network_map.CHAPTER,
)
"""In the order in which every format shows them."""

METHOD_OF_ALL, METHOD_OF_ONE = "How everything is measured, compared and judged", "How everything is measured"
"""Of several fabrics, and of one, which is compared with nothing."""


def find_all(material: Material, *, is_measured: bool = True) -> tuple[dict[str, tuple[Any, ...]], list[str]]:
    """Return what the chapters found, and the paragraphs of the method on it.

    `is_measured`: any of it was measured by fabricbench, not by another program.
    ValueError if two chapters find something under one name: one would hide the other.
    """
    rows: dict[str, tuple[Any, ...]] = {}
    paragraphs: list[str] = []
    for chapter in CHAPTERS:
        found = chapter.find(material)
        for name, value in found.items():
            if name in rows:
                raise ValueError(f"the chapter {chapter.name} finds {name!r}, as another does")
            if value:
                rows[name] = (value,) if isinstance(value, Model) else tuple(value)
        if is_measured or not chapter.is_of_measuring:
            paragraphs += chapter.methods_of(found)
    return rows, paragraphs


def method_parts(findings: Findings) -> list[tuple[str, list[str]]]:
    """Return the paragraphs of a report's method in parts, each under its heading: those of every report, then each chapter's."""
    facts = {
        "level": percent(findings.confidence),
        "error": percent(1.0 - findings.confidence),
        "margin": percent(findings.margin),
    }
    titles = {
        " ".join(text.split()).format(**facts): one.title
        for one in CHAPTERS
        for text in (one.method, *one.methods.values())
        if text
    }
    first = METHOD_OF_ONE if len(findings.fabrics) == 1 else METHOD_OF_ALL
    parts: dict[str, list[str]] = {first: []}
    for paragraph in findings.method:
        parts.setdefault(titles.get(paragraph, first), []).append(paragraph)
    return list(parts.items())
