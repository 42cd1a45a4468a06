"""The published task farm: speech recognition on the cluster of NIST, 1999."""

from __future__ import annotations

from fabricbench.model import Model
from fabricbench.published.studies import study

STUDY = "salamon-mink-nist"


class PublishedFarm(Model):
    """A farm as its study tells of it. `done` is made from the share that it gives (`success`), to the nearest job."""

    name: str
    source: str
    jobs: int
    done: int
    success: float
    nodes: int
    input_bytes: int
    cpu_seconds: float


def published_farm() -> PublishedFarm:
    """Return it."""
    of = study(STUDY)
    facts = of.fact("applications", "speech")
    return PublishedFarm(
        name="speech",
        source=of.citation,
        jobs=facts["jobs"],
        done=round(facts["jobs"] * facts["success_percent"] / 100),
        success=facts["success_percent"] / 100,
        nodes=facts["nodes"],
        input_bytes=facts["input_MB_per_job"] * 10**6,
        cpu_seconds=facts["cpu_seconds_total"],
    )
