"""The cases for CI, read by junitparser."""

from __future__ import annotations

import re

import pytest
from junitparser import Error, JUnitXml, Skipped

from fabricbench.record.store import Run
from support.exported_run import exported, exported_run, text_of


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return exported_run(tmp_path_factory.mktemp("folder") / "run", missing=["b01-slow"])


@pytest.fixture(scope="module")
def document(run: Run) -> JUnitXml:
    return JUnitXml.fromstring(text_of(exported(run, "junit")).encode())


def test_a_fabric_is_a_suite_that_counts_its_cases(document: JUnitXml):
    assert [(one.name, one.tests, one.failures, one.errors, one.skipped) for one in document] == [
        ("slow", 4, 0, 0, 1),
        ("fast", 3, 0, 3, 0),
    ]
    assert [suite.timestamp for suite in document] == ["2026-10-30T22:40:00"] * 2


def test_a_case_is_a_test_and_its_text_has_the_value(document: JUnitXml):
    case = next(iter(next(iter(document))))
    assert (case.classname, case.name) == (
        "fabricbench.slow.tcp.pingpong",
        "size=64/receive=blocking/ranks=2/origin=emulated round_trip_time",
    )
    told = case.system_out.splitlines()
    assert told[0] == "median 52000 ns of 1 launch (emulated)"
    assert {"layer: tcp", "size: 64", "fabric: slow", "origin: emulated", "median: 52000.0"} <= set(told)
    assert case.result == []


def test_a_launch_that_counts_nowhere_is_an_error_with_its_reason(document: JUnitXml):
    (_, fast) = document
    case = next(iter(fast))
    (error,) = case.result
    assert isinstance(error, Error)
    assert error.message == (
        "1 of 2 launches gave no result that counts: 1 launch: path refuted: the traffic went another way"
    )


def test_launches_that_are_not_done_are_skipped(document: JUnitXml):
    (slow, _) = document
    (skipped,) = (one for case in slow for one in case.result)
    assert isinstance(skipped, Skipped)
    assert skipped.message == "1 launch of the plan not done"


def test_what_xml_forbids_is_replaced():
    from fabricbench.exchange.junit import _text

    assert _text("\x1b[31mred\x00") == "?[31mred?"


def test_a_document_keeps_to_the_schema(run: Run):
    from xml.etree.ElementTree import fromstring

    root = fromstring(text_of(exported(run, "junit")))
    assert {child.tag for case in root.iter("testcase") for child in case} == {"error", "skipped", "system-out"}
    assert all(re.fullmatch(r"\d{1,3}\.\d{3}", suite.get("time", "")) for suite in root.iter("testsuite"))
