"""Which nodes answer: asked twice, all at once, over whatever reaches them."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricbench.launch import machines
from fabricbench.launch.library import mpich
from fabricbench.launch.mpi import MpiStarter
from fabricbench.launch.ssh import SshLauncher
from fabricbench.launch.starter import hydra
from fabricbench.testbed.model import Fabric, LauncherKind, Node, Testbed
from support.scripts import script

REACHES = """echo "$1" >> {folder}/asked
case "$1" in
off) echo "connect to host off port 22: No route to host" >&2; exit 255;;
hung) sleep 60;;
shy) [ -e {folder}/shy ] || {{ touch {folder}/shy; exit 255; }};;
esac
shift; exec "$@"
"""


@pytest.mark.slow
def test_nodes_that_do_not_answer_twice_are_named_with_what_was_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    way = script(tmp_path / "way", REACHES.format(folder=tmp_path))
    monkeypatch.setattr(machines, "ANSWER_SECONDS", 1.0)
    testbed = Testbed(
        name="t",
        launcher=LauncherKind.SSH,
        nodes=tuple(Node(name=name) for name in ("well", "off", "shy", "hung")),
        fabrics=(Fabric(name="net", interface="eth0"),),
        reach=(str(way), "{node}", "{program}"),
    )
    launcher = SshLauncher(MpiStarter("mpiexec", hydra, "5.0", mpich, "5.0"), testbed)
    failed = launcher.failed_nodes()
    assert failed == {
        "off": "connect to host off port 22: No route to host",
        "hung": "there was no answer within 1 s",
    }
    asked = (tmp_path / "asked").read_text().split()
    assert {name: asked.count(name) for name in asked} == {"well": 1, "off": 2, "shy": 2, "hung": 2}


TOGETHER = """echo "$1" >> {folder}/together
for node in $(echo "$1" | tr , ' '); do [ "$node" = off ] || echo "$node: $3"; done
"""


def test_by_a_fan_out_all_are_asked_at_once_and_only_the_silent_alone(tmp_path: Path):
    way = script(tmp_path / "way", REACHES.format(folder=tmp_path))
    fan = script(tmp_path / "fan", TOGETHER.format(folder=tmp_path))
    testbed = Testbed(
        name="t",
        launcher=LauncherKind.SSH,
        nodes=tuple(Node(name=name) for name in ("well", "off", "good")),
        fabrics=(Fabric(name="net", interface="eth0"),),
        reach=(str(way), "{node}", "{program}"),
        fan_out=(str(fan), "{nodes}", "{program}"),
    )
    launcher = SshLauncher(MpiStarter("mpiexec", hydra, "5.0", mpich, "5.0"), testbed)
    assert launcher.failed_nodes() == {"off": "connect to host off port 22: No route to host"}
    assert (tmp_path / "together").read_text().split() == ["well,off,good"]
    assert (tmp_path / "asked").read_text().split() == ["off", "off"]
