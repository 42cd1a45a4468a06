"""The labels of rows and panels, from keys as the analysis makes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fabricbench.chapters.operations import COEFFICIENTS, collectives
from fabricbench.chapters.topologies import TOPOLOGIES, topologies
from fabricbench.model import Layer, Pattern
from fabricbench.report.drawing.figure import Figure
from fabricbench.report.words import group_words
from support.cell_keys import cell_key
from support.chapter_rows import with_rows
from support.example_findings import example_findings


def values_of(spec: Any, name: str) -> Iterator[str]:
    """Every value of that name in a specification."""
    if isinstance(spec, dict):
        for field, value in spec.items():
            if field == name and isinstance(value, str):
                yield value
            yield from values_of(value, name)
    elif isinstance(spec, list | tuple):
        for one in spec:
            yield from values_of(one, name)


def labels_of(figure: Figure | None) -> set[str]:
    assert figure is not None
    return {label for panel in figure.panels for label in values_of(panel.spec, "label")}


def test_a_heat_map_names_a_mode_without_its_parameter_and_ranks_only_where_they_differ():
    findings = example_findings()
    labels = labels_of(collectives(findings))
    assert {"allreduce", "allreduce, nonblocking"} <= labels
    assert not any("ranks" in label or "mode=" in label for label in labels)
    more = COEFFICIENTS.of(findings)[0].model_copy(update={"key": cell_key(Layer.MPI, Pattern.BARRIER, 0, 8)})
    labels = labels_of(collectives(with_rows(findings, coefficients=[*COEFFICIENTS.of(findings), more])))
    assert {"allreduce, 4 ranks, nonblocking", "barrier, 8 ranks"} <= labels


def test_a_row_of_patterns_has_its_parameters_without_a_comma_too_many():
    findings = example_findings()
    one = next(one for one in TOPOLOGIES.of(findings) if one.key.pattern is Pattern.INCAST and one.flows == 1)
    key = cell_key(Layer.TCP, Pattern.INCAST, 65536, 4, depth=16, timeout=18)
    labels = labels_of(topologies(with_rows(findings, topologies=[one.model_copy(update={"key": key})])))
    assert labels == {"incast 64 KiB, depth=16, timeout=18"}


@pytest.mark.parametrize(("ranks", "words"), [(4, "tcp incast, 4 ranks, flows=16")])
def test_a_group_of_cells_is_named_by_each_part_of_its_setup(ranks: int, words: str):
    assert group_words(cell_key(Layer.TCP, Pattern.INCAST, 64, ranks, flows=16)) == words
