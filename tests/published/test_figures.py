from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fabricbench.model import Layer
from fabricbench.published import PublishedQuantity, published_figures, studies
from fabricbench.published.figures import _sources
from fabricbench.published.without_counterpart import WITHOUT_COUNTERPART


def test_there_are_five_studies_with_their_sources():
    assert [study.key for study in studies()] == [
        "salamon-mink-nist",
        "korkhov-2000",
        "abramov-2002",
        "pisarczyk-2006",
        "xu-2024",
    ]
    assert all(study.author in study.citation and str(study.year) in study.citation for study in studies())


@pytest.mark.parametrize(
    ("fabric", "layer", "quantity", "value", "unit"),
    [
        ("fast-ethernet", Layer.TCP, PublishedQuantity.THROUGHPUT, 94.85e6, "bit/s"),
        ("atm-oc3", Layer.TCP, PublishedQuantity.THROUGHPUT, 133.88e6, "bit/s"),
        ("myrinet", None, PublishedQuantity.LINE_RATE, 1.28e9, "bit/s"),
        ("sci", Layer.MPI, PublishedQuantity.THROUGHPUT, 276 * 8e6, "bit/s"),
        ("sci", Layer.MPI, PublishedQuantity.LATENCY, 3500, "ns"),
        ("gigabit-ethernet", Layer.MPI, PublishedQuantity.LATENCY, 43_000, "ns"),
        ("roce-100g", Layer.MPI, PublishedQuantity.AHEAD, 4.2, "%"),
        ("myrinet", Layer.MPI, PublishedQuantity.RUN_TIME, 6.71, "s"),
    ],
)
def test_a_published_figure_is_found_in_our_units(
    fabric: str, layer: Layer | None, quantity: PublishedQuantity, value: float, unit: str
):
    found = published_figures(fabric, layer, quantity)
    assert any(figure.value == pytest.approx(value) and figure.unit == unit for figure in found)


def test_each_figure_names_its_condition_and_its_source():
    figures = published_figures()
    assert len(figures) > 50
    citations = {study.citation for study in studies()}
    for figure in figures:
        assert figure.condition
        assert figure.citation in citations
        assert figure.as_published.split()[0].replace(".", "").isdigit()


def test_the_crossover_of_fast_ethernet_and_atm_is_at_16_kib():
    (crossover,) = published_figures(quantity=PublishedQuantity.CROSSOVER)
    assert (crossover.value, crossover.unit, crossover.layer) == (16384, "B", Layer.TCP)
    assert crossover.between == ("fast-ethernet", "atm-oc3")


def test_a_study_is_named_by_its_authors_and_its_year():
    names = [study.name for study in studies()]
    assert "Salamon and Mink, 1999" in names
    assert "Abramov and others, 2002" in names
    assert "Xu, 2024" in names


def test_a_condition_says_which_end_of_a_range_a_figure_is():
    found = published_figures("fast-ethernet", Layer.FRAME, PublishedQuantity.SWITCH_ADDED_LATENCY)
    assert [one.condition_words.rpartition(", ")[2] for one in found] == ["lowest", "highest"]


def test_every_number_is_the_one_in_the_facts_that_were_read_from_the_studies():
    told = json.loads((Path(__file__).parent / "published_results.json").read_text())["studies"]
    numbers = {(key, path): number for key in told for path, number in leaves(told[key])}
    assert len(numbers) > 200
    for one in studies():
        assert {path: numbers.pop((one.key, path)) for path, _ in leaves(one.facts)} == dict(leaves(one.facts))
    assert not numbers


def leaves(facts: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield what stands in nested facts, each with its path."""
    if isinstance(facts, dict | list):
        for key, value in facts.items() if isinstance(facts, dict) else enumerate(facts):
            yield from leaves(value, (*path, key))
    else:
        yield path, facts


SETUP = {"year", "cluster", "setup", "method", "nodes", "cpus", "ranks"}
"""Numbers that say on what a study measured."""
TOLD_BY_OTHERS = {
    "tcp_percent_of_line_rate",
    "hpl_performance_RoCE_ahead_percent",
    "ATM_faster_than_FE_percent",
    "link_MB_s_up_to",
}
"""What follows from figures that are shown, or is shown in words with them."""
IN_TABLES = {"npb", "linpack_flops_per_hz", "speech", "3dmd"}
"""Whose figures `published_kernels`, `published_flops_per_hertz`, `published_farms` and `published_loads` give."""


def test_every_result_stands_beside_ours_or_is_listed_with_the_reason_why_it_cannot():
    shown = {(source.study, source.path) for source in _sources()}
    beside_nothing = {
        (one.key, path)
        for one in studies()
        for path, number in leaves(one.facts)
        if isinstance(number, int | float)
        and (one.key, path) not in shown
        and not {*map(str, path)} & (SETUP | TOLD_BY_OTHERS | IN_TABLES)
    }
    listed = {place: reason for place, reason in WITHOUT_COUNTERPART.items() if reason}
    found = {place for place in listed for study, path in beside_nothing if place == (study, path[: len(place[1])])}
    assert found == set(listed)
    assert not {
        (study, path)
        for study, path in beside_nothing
        if not any(study == key and path[: len(of)] == of for key, of in listed)
    }
