"""What `fabricbench list` tells of kinds of workload, of applications and of MPIs, which takes longer to load than patterns do."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from textwrap import fill
from typing import Any

from fabricbench.cli.list_keys import keys_of
from fabricbench.cli.output import entry, hanging, text_width
from fabricbench.configuration import did_you_mean
from fabricbench.errors import UsageError
from fabricbench.launch.building import all_builds
from fabricbench.launch.mpi import find_starter
from fabricbench.model import Layer, Pattern
from fabricbench.native import native_file, native_programs
from fabricbench.workload.application import shipped
from fabricbench.workload.command import shipped_table
from fabricbench.workload.registry import WORKLOADS


def lines(name: str) -> Iterator[str]:
    """Return the text about all workloads, all MPIs, or one kind of workload or application; UsageError where it is none."""
    match name:
        case "workloads":
            return _workloads()
        case "mpis":
            return _mpis()
    return _workload_detail(_workload(name))


def data(name: str) -> dict[str, Any]:
    """Return all workloads, all MPIs, or one kind of workload or application, as JSON shows it; UsageError where it is none."""
    match name:
        case "workloads":
            return {"workloads": _workload_data(), "applications": _application_data()}
        case "mpis":
            return {"mpis": _mpi_data()}
    return _workload(name)


def _workload(name: str) -> dict[str, Any]:
    if name in WORKLOADS:
        kind = WORKLOADS[name]
        return {"kind": name, "summary": kind.summary, "keys": dict(keys_of(kind.table))}
    if name in shipped():
        return next(one for one in _application_data() if one["name"] == name)
    known = [*map(str, [*Layer, *Pattern]), *WORKLOADS, *shipped(), "workloads", "mpis"]
    raise UsageError(
        f"there is no layer, pattern, operation, kind of workload or application {name!r}{did_you_mean(name, known)}",
        hint="`fabricbench list` names them all",
    )


def _workload_detail(one: dict[str, Any]) -> Iterator[str]:
    if "kind" in one:
        yield f"{one['kind']}: {one['summary']}"
        yield ""
        yield entry("asked for", f'[[workload]] kind = "{one["kind"]}" of a campaign, with these keys')
        for key, text in one["keys"].items():
            yield entry("key", f"{key}: {text}")
        yield entry("units", 'sizes, times and rates are written with theirs ("25MiB", "2ms", "100 Tflop/s")')
        yield entry("more", "docs/workloads.md tells what each is")
        return
    yield f"{one['name']}: {one['description']} ({one['licence']})"
    yield ""
    yield entry("asked for", f'[[workload]] kind = "command", application = "{one["name"]}" of a campaign')
    yield entry("here", one["program"] if not one["lacking"] else f"not: {', '.join(one['lacking'])} is missing")
    yield entry("to get it", one["get"])
    for name, value in one["parameters"].items():
        yield entry("parameter", f"{name}: default {value}")
    for figure in one["figures"]:
        yield entry("figure", figure)


def _workloads() -> Iterator[str]:
    yield "Workloads: [[workload]] of a campaign, each with its kind and the keys of that kind"
    kinds = _workload_data()
    widest = max(len(one["kind"]) for one in kinds)
    for one in kinds:
        yield hanging(f"  {one['kind']:{widest}}  ", one["summary"])
        yield fill(
            f"keys: {', '.join(one['keys'])}",
            text_width(),
            initial_indent=" " * (widest + 4),
            subsequent_indent=" " * (widest + 4),
        )
    yield ""
    yield 'Applications that come with fabricbench: kind = "command", application = "NAME"'
    applications = _application_data()
    widest = max(len(one["name"]) for one in applications)
    for one in applications:
        yield hanging(f"  {one['name']:{widest}}  ", f"{one['description']} ({one['licence']})")
        state = f"not here: {', '.join(one['lacking'])}; {one['get']}" if one["lacking"] else f"here: {one['program']}"
        yield fill(
            f"{state}; parameters: {', '.join(f'{name}={value}' for name, value in one['parameters'].items())}",
            text_width(),
            initial_indent=" " * (widest + 4),
            subsequent_indent=" " * (widest + 4),
        )


def _application_data() -> list[dict[str, Any]]:
    return [
        {
            "name": one.name,
            "description": one.description,
            "licence": one.licence,
            "program": shutil.which(one.first_program),
            "needs": list(one.wanted({name: values[0] for name, values in one.parameters.items()})),
            "lacking": [
                each.what for each in one.lacking({name: values[0] for name, values in one.parameters.items()})
            ],
            "get": one.get,
            "parameters": {name: values[0] for name, values in one.parameters.items()},
            "figures": [f"{figure.name}, {figure.unit}, better {figure.better}" for figure in one.figure],
        }
        for one in map(shipped_table, shipped())
    ]


def _workload_data() -> list[dict[str, Any]]:
    return [
        {
            "kind": one.name,
            "summary": one.summary,
            "keys": [field.alias or name for name, field in one.table.model_fields.items() if name != "kind"],
        }
        for one in WORKLOADS.values()
    ]


def _mpis() -> Iterator[str]:
    yield "MPIs that fabricbench is built with, by `make`, `pip install` or `fabricbench build`"
    for one in _mpi_data():
        state = "" if one["is_current"] else "; from other sources: build it again"
        yield f"  {one['mpi'] or 'without [[mpi]]'}: {one['library']}, {one['mpicxx']}{state}"
        yield fill(
            f"{', '.join(one['programs'])} in {one['folder']}",
            text_width(),
            initial_indent="    ",
            subsequent_indent="    ",
        )


def _mpi_data() -> list[dict[str, Any]]:
    usual = find_starter()
    first = {
        "mpi": "",
        "library": usual.mpi,
        "mpicxx": usual.installation.mpicxx,
        "folder": str(native_file("build_info.json").parent),
        "programs": [path.name for path in native_programs()],
        "is_current": True,
    }
    others = [
        {
            "mpi": one.mpi,
            "library": one.library,
            "mpicxx": one.mpicxx,
            "folder": str(one.folder),
            "programs": [path.name for path in one.programs],
            "is_current": one.is_current,
        }
        for one in all_builds()
    ]
    return [first, *others]
