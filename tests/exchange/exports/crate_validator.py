"""Validates a crate without a network, and prints what is wrong with it as JSON; the readers' Python runs it, not pytest.

The contexts that the crate names are served from what the library of RO-Crate carries. The one of workflow runs is empty here: the
crate uses no term of it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import rocrate
from requests import Response
from rocrate_validator import models, services
from rocrate_validator.utils import http

HELD = (Path(rocrate.__file__).parent / "data/ro-crate.jsonld").read_bytes()


def served(url: str, *_: object, **__: object) -> Response:
    response = Response()
    response.status_code, response.url = 200, url
    response.headers["Content-Type"] = "application/ld+json"
    response._content = HELD if "/ro/crate/" in url else b'{"@context": {}}'
    return response


http.HttpRequester.__getattr__ = lambda *_: served
found = services.validate(
    models.ValidationSettings(
        rocrate_uri=sys.argv[1],
        profile_identifier="process-run-crate",
        requirement_severity=models.Severity.RECOMMENDED,
    )
)
issues = [
    {"severity": one.severity.name.lower(), "check": one.check.identifier, "told": one.message}
    for one in found.get_issues()
]
sys.stdout.write(json.dumps(issues) + "\n")
