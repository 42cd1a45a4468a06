"""JUnit's XML, for CI: a suite for each fabric, a case for each test; a case is in error where launches of it gave no result.

A run judges nothing, so no case fails: `fabricbench check --format junit` is the gate. Planned launches that are not done yet are a
case that was skipped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from statistics import median

from fabricbench import __version__
from fabricbench.exchange.exported import (
    Export,
    ExportedFile,
    Exporter,
    Fact,
    Result,
    labels_of,
    name_of,
    values_of,
    without,
)
from fabricbench.exchange.junit import Case, Suite, TestOutcome, document
from fabricbench.quantity import count

SUFFIX = ".xml"


def files(export: Export) -> Iterable[ExportedFile]:
    """Yield the document."""
    fabrics = dict.fromkeys(one.fabric for one in export.results)
    content = document([_suite(export, fabric) for fabric in fabrics])
    yield ExportedFile(f"launches{SUFFIX}", content)


def _suite(export: Export, fabric: str) -> Suite:
    manifest = export.run.manifest
    told = {"fabricbench": __version__, "campaign": manifest.campaign_name, "testbed": manifest.testbed.name}
    told |= {f"version.{name}": version for name, version in export.versions.items()}
    if (note := export.note_of_date) is not None:
        told["date"] = note
    tests = [results for results in export.tests.values() if results[0].fabric == fabric]
    cases = [*map(_case, tests), *_not_done(export, fabric)]
    return Suite(
        fabric, cases, told, manifest.created, manifest.testbed.nodes_of(manifest.testbed.fabric(fabric))[0].name
    )


def _not_done(export: Export, fabric: str) -> Iterator[Case]:
    missing = sum(launch.fabric == fabric for launch in export.run.missing)
    if missing:
        message = f"{count(missing, 'launch')} of the plan not done"
        yield Case(f"fabricbench.{fabric}", "launches", outcome=TestOutcome.SKIPPED, message=message)


def _case(results: Sequence[Result]) -> Case:
    one, labels = results[0], labels_of(results)
    values, bad = values_of(results), Counter(each.why_bad for each in results if not each.is_good)
    properties = {"fabric": one.fabric, "origin": one.origin.value, "unit": one.unit, "launches": str(len(values))}
    if values:
        properties |= {"median": repr(median(values)), "minimum": repr(min(values)), "maximum": repr(max(values))}
    told = "; ".join(f"{count(number, 'launch')}: {reason}" for reason, number in bad.items())
    found = f"median {median(values):.6g} {one.unit} of {count(len(values), 'launch')} ({one.origin})" if values else ""
    return Case(
        classname=f"fabricbench.{one.fabric}.{one.layer}.{one.pattern}",
        name=f"{name_of(without(labels, 'layer', 'pattern'))} {one.metric}",
        seconds=sum(each.seconds for each in results),
        properties=labels | properties,
        outcome=TestOutcome.ERROR if bad else None,
        kind="no result" if bad else "",
        message=f"{sum(bad.values())} of {count(len(results), 'launch')} gave no result that counts: {told}",
        text=found,
    )


EXPORTER = Exporter(
    name="junit",
    title="CI services (Jenkins, GitLab, GitHub): which tests gave results",
    suffix=SUFFIX,
    files=files,
    marks_bad=True,
    cannot_hold=(Fact.LAUNCH, Fact.SPREAD, Fact.LOSSES, Fact.MACHINES),
    remarks=("values are only text of a case: JUnit has verdicts, no measurements",),
)
