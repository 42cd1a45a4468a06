"""RO-Crate 1.1 with the profile Process Run Crate 0.5: the whole run, which program made which launch of it when, ready for a DOI.

Beside the run lie the launches as CSV, CodeMeta of fabricbench and a CITATION.cff of it. The metadata says what the run knows. Who
measured it, and under what licence it may be used, it does not know, and nothing is made up: whoever publishes the crate adds it.
(https://www.researchobject.org/ro-crate/specification/1.1/, https://www.researchobject.org/workflow-run-crate/profiles/process_run_crate/)
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from importlib.metadata import metadata
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fabricbench.exchange.exported import Export, ExportedFile, Exporter, iso_time
from fabricbench.exchange.exports.tidy_csv import launch_table
from fabricbench.quantity import count
from fabricbench.record.atomic import TEMPORARY
from fabricbench.record.integrity import LAUNCHES
from fabricbench.record.lock import LOCK
from fabricbench.record.provenance import MARKS
from fabricbench.record.store import StoredLaunch

SUFFIX = ".zip"

METADATA = "ro-crate-metadata.json"
RUN, CSV, CODEMETA, CITATION = "run", "launches.csv", "codemeta.json", "CITATION.cff"
CRATE, PROFILE = "https://w3id.org/ro/crate/1.1", "https://w3id.org/ro/wfrun/process/0.5"
CONTEXT = ["https://w3id.org/ro/crate/1.1/context", "https://w3id.org/ro/terms/workflow-run/context"]
COMPLETED, FAILED = "http://schema.org/CompletedActionStatus", "http://schema.org/FailedActionStatus"
PACKAGE = "fabricbench"
LICENCE = "#licence"

MEDIA = {
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".csv": "text/csv",
    ".parquet": "application/vnd.apache.parquet",
    ".cff": "application/yaml",
}
DESCRIBED = {
    CSV: "a row for each launch and test: its value, unit, spread and origin",
    CODEMETA: "CodeMeta of fabricbench",
    CITATION: "how to cite fabricbench",
    f"{RUN}/manifest.json": "campaign, testbed, seed, versions and what the machines were",
    f"{RUN}/plan.json": "every launch in its order",
    f"{RUN}/journal.jsonl": "what happened, with the hashes of what was written",
}
Entity = dict[str, Any]


def files(export: Export) -> Iterable[ExportedFile]:
    """Yield the metadata, what is made for the crate, and every file of the run."""
    made = [
        ExportedFile(CSV, launch_table(export).write_csv().encode()),
        ExportedFile(CODEMETA, _json(codemeta())),
        ExportedFile(CITATION, citation().encode()),
    ]
    parts = [*made, *_files_of(export.run.path)]
    graph = list(_graph(export, [part.name for part in parts]))
    yield ExportedFile(METADATA, _json({"@context": CONTEXT, "@graph": graph}))
    yield from parts


def _json(document: Entity) -> bytes:
    return (json.dumps(document, indent=2) + "\n").encode()


def _files_of(directory: Path) -> Iterator[ExportedFile]:
    """Yield the files of a run directory; links, temporary files and the lock are none of its data."""
    for path in sorted(directory.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.name != LOCK and not path.match(TEMPORARY):
            yield ExportedFile(f"{RUN}/{path.relative_to(directory).as_posix()}", path)


def _graph(export: Export, names: list[str]) -> Iterator[Entity]:
    manifest = export.run.manifest
    fabrics = ", ".join(fabric.name for fabric in manifest.testbed.fabrics)
    marks = [origin.value for origin in export.origins if origin in MARKS]
    launches = export.run.launches
    actions = {launch.launch_id: f"#launch-{quote(launch.launch_id)}" for launch in launches}
    yield {"@id": METADATA, "@type": "CreativeWork", "conformsTo": _ref(CRATE), "about": _ref("./")}
    yield {
        "@id": "./",
        "@type": "Dataset",
        "name": f"fabricbench run: {manifest.campaign_name} on {manifest.testbed.name}",
        "description": f"{count(len(launches), 'launch')} over {fabrics}"
        + (f" ({', '.join(marks)} numbers)" if marks else ""),
        "datePublished": datetime.now(UTC).date().isoformat(),
        "dateCreated": manifest.created.isoformat(),
        "license": _ref(LICENCE),
        "conformsTo": _ref(PROFILE),
        "hasPart": [_ref(quote(name)) for name in names],
        "mentions": _refs(actions.values()),
        "keywords": ", ".join(["network benchmark", "interconnect", *marks]),
    }
    yield {"@id": PROFILE, "@type": "CreativeWork", "name": "Process Run Crate", "version": "0.5"}
    text = "No licence is stated yet: whoever publishes this dataset states its terms here."
    yield {"@id": LICENCE, "@type": "CreativeWork", "name": "no licence stated", "description": text}
    for name in names:
        yield _file(name)
    programs = dict.fromkeys(launch.summary.header.probe_version for launch in launches if launch.summary.header)
    yield {
        "@id": "#fabricbench",
        "@type": "SoftwareApplication",
        "name": PACKAGE,
        "softwareVersion": manifest.versions.get(PACKAGE, "unknown"),
        "description": "planned the launches, started them and stored what they measured",
    }
    for program in programs:
        named = {"name": program or "unknown", "softwareVersion": program or "unknown"}
        yield {"@id": _program(program), "@type": "SoftwareApplication", **named}
    for launch in launches:
        yield _action(export, launch, actions[launch.launch_id], names)


def _file(name: str) -> Entity:
    file: Entity = {"@id": quote(name), "@type": "File", "name": name}
    suffix = Path(name).suffix
    if name in DESCRIBED:
        file["description"] = DESCRIBED[name]
    return file | {"encodingFormat": MEDIA.get(suffix, "text/plain")}


def _program(name: str) -> str:
    return f"#measurer-{quote(name, safe='')}"


def _action(export: Export, launch: StoredLaunch, identity: str, names: list[str]) -> Entity:
    """Return what made a launch's files, when and from what; one that is invalid has failed, and says why."""
    header, footer = launch.summary.header, launch.summary.footer
    folder = f"{RUN}/{LAUNCHES}/{launch.launch_id}/"
    results = [one for one in export.results if one.launch_id == launch.launch_id]
    bad = Counter(one.why_bad for one in results if not one.is_good)
    told = "; ".join(f"{count(number, 'result')}: {reason}" for reason, number in bad.items())
    counted = f"block {launch.block}, {count(sum(one.is_good for one in results), 'result')} that count"
    action: Entity = {
        "@id": identity,
        "@type": "CreateAction",
        "name": f"launch {launch.launch_id} on {launch.fabric} ({launch.origin}, path {launch.proof})",
        "description": "; ".join(filter(None, (counted, told))),
        "instrument": _refs(["#fabricbench", *([_program(header.probe_version)] if header else [])]),
        "object": _refs(quote(name) for name in (f"{RUN}/manifest.json", f"{RUN}/plan.json") if name in names),
        "result": _refs(quote(name) for name in names if name.startswith(folder)),
        "actionStatus": COMPLETED if launch.is_valid else FAILED,
    }
    if header and header.started_unix_ns:
        action["startTime"] = iso_time(header.started_unix_ns)
    if footer and footer.finished_unix_ns:
        action["endTime"] = iso_time(footer.finished_unix_ns)
    if told and not launch.is_valid:
        action["error"] = told
    return action


def _ref(identity: str) -> dict[str, str]:
    return {"@id": identity}


def _refs(identities: Iterable[str]) -> Any:
    """Return references, one alone without a list around it, as RO-Crate asks for."""
    found = list(map(_ref, identities))
    return found[0] if len(found) == 1 else found


def codemeta() -> Entity:
    """Return fabricbench as CodeMeta 3.0 describes software: what its package says of itself."""
    told = metadata(PACKAGE)
    licence = told["License-Expression"]
    return {
        "@context": "https://w3id.org/codemeta/3.0",
        "@type": "SoftwareSourceCode",
        "name": told["Name"],
        "version": told["Version"],
        "description": told["Summary"],
        "license": f"https://spdx.org/licenses/{licence}",
        "programmingLanguage": ["Python", "C++"],
        "runtimePlatform": f"Python {told['Requires-Python']}",
        "operatingSystem": "Linux",
        "softwareRequirements": [one for one in told.get_all("Requires-Dist") or [] if ";" not in one],
    }


def citation() -> str:
    """Return how to cite fabricbench, as CITATION.cff 1.2.0; its strings are JSON's, which YAML reads."""
    told = metadata(PACKAGE)
    lines = {
        "cff-version": "1.2.0",
        "message": "If you use this data, please cite it with its DOI, and the software that measured it as below.",
        "type": "software",
        "title": told["Name"],
        "abstract": told["Summary"],
        "version": told["Version"],
        "license": told["License-Expression"],
    }
    text = "".join(f"{name}: {json.dumps(value)}\n" for name, value in lines.items())
    return f'{text}authors:\n  - name: "The {told["Name"]} authors"\n'


EXPORTER = Exporter(
    name="ro-crate",
    title="archives that give a DOI, WorkflowHub, readers of RO-Crate: the run whole, with its provenance",
    suffix=SUFFIX,
    files=files,
    is_text=False,
    is_folder=True,
    marks_bad=True,
    remarks=(
        "who measured it and a licence are not known: add them to ro-crate-metadata.json before you publish it",
        "it holds the run as it is, with names of hosts, command lines and what the machines were",
    ),
)
