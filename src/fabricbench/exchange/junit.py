"""A JUnit document: suites of cases, each with its outcome, as CI services read it.

Valid by the schema of Jenkins' xunit plugin, the strictest there is: a suite's `time` has three decimals, and a case has no
properties but lines of its text. What XML 1.0 forbids is replaced. GitLab shows names and messages alone: what matters belongs
there. (https://github.com/jenkinsci/xunit-plugin, junit-10.xsd)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from xml.etree.ElementTree import Element, SubElement, indent, tostring

NOT_IN_XML = re.compile(r"[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]")


class TestOutcome(StrEnum):
    """How a case ended that did not pass: judged and failed, could not be judged, or there was nothing to judge it by."""

    FAILURE = "failure"
    SKIPPED = "skipped"
    ERROR = "error"


@dataclass(frozen=True)
class Case:
    """One test. Without an outcome it passed; `kind` and `message` say what is wrong, `text` and `properties` what was found."""

    classname: str
    name: str
    seconds: float = 0.0
    properties: Mapping[str, str] = field(default_factory=dict)
    outcome: TestOutcome | None = None
    kind: str = ""
    message: str = ""
    text: str = ""


@dataclass(frozen=True)
class Suite:
    """The cases of one subject; `created` is when they were measured, None where they were on several days."""

    name: str
    cases: Sequence[Case]
    properties: Mapping[str, str] = field(default_factory=dict)
    created: datetime | None = None
    host: str = ""


def document(suites: Sequence[Suite]) -> bytes:
    """Return suites as a document of JUnit's."""
    root = Element("testsuites", name="fabricbench")
    for suite in suites:
        element = SubElement(root, "testsuite", name=_text(suite.name))
        if suite.created is not None:
            element.set("timestamp", f"{suite.created:%Y-%m-%dT%H:%M:%S}")  # the schema has no zone
        if suite.host:
            element.set("hostname", _text(suite.host))
        element.set("tests", str(len(suite.cases)))
        for name, outcome in (
            ("failures", TestOutcome.FAILURE),
            ("errors", TestOutcome.ERROR),
            ("skipped", TestOutcome.SKIPPED),
        ):
            element.set(name, str(sum(case.outcome is outcome for case in suite.cases)))
        element.set("time", f"{sum(case.seconds for case in suite.cases):.3f}")
        _add_properties(element, suite.properties)
        for case in suite.cases:
            _add_case(element, case)
    indent(root)
    text: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _add_case(suite: Element, case: Case) -> None:
    element = SubElement(suite, "testcase", classname=_text(case.classname), name=_text(case.name))
    element.set("time", f"{case.seconds:.6f}")
    if case.outcome is not None:
        outcome = SubElement(element, case.outcome.value)
        if case.kind:
            outcome.set("type", _text(case.kind))
        outcome.set("message", _text(case.message))
    told = [case.text, *(f"{name}: {text}" for name, text in case.properties.items())]
    if any(told):
        SubElement(element, "system-out").text = _text("\n".join(filter(None, told)))


def _add_properties(element: Element, told: Mapping[str, str]) -> None:
    if not told:
        return
    properties = SubElement(element, "properties")
    for name, text in told.items():
        SubElement(properties, "property", name=_text(name), value=_text(text))


def _text(text: str) -> str:
    """Return a text without what XML 1.0 forbids: the escape of a terminal's colours, say."""
    return NOT_IN_XML.sub("?", text)
