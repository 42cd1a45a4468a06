"""How long asking, checking and refusing a testbed takes whose nodes are many and some of them broken: simulated nodes.

    python -m benchmarks.scale.thousand_nodes [--nodes 1000] [--one-by-one]

Nodes are answers of a program that stands for a site's fan-out: each comes after a delay of its own, drawn from 0.3 to 3 s. Ten of
them hang, ten cannot be reached, ten have another version. `--one-by-one` asks each by a command of its own, 32 at a time, as where
a testbed has no `fan_out`. Ends with 1 where a broken node is not named.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from fabricbench import __version__
from fabricbench.campaign.preflight import look_at_nodes
from fabricbench.campaign.venue import Standing
from fabricbench.native import builds_of, native_file
from fabricbench.testbed.doctor import find_mpi
from fabricbench.testbed.model import Fabric, LauncherKind, Node, Testbed

BROKEN = 10
"""Of each kind."""

SITE = """import heapq, json, os, random, sys, time
folder, nodes = sys.argv[1], sys.argv[2].split(",")
is_one = len(nodes) == 1
end = time.monotonic()
waiting = []
for node in nodes:
    told = json.load(open(os.path.join(folder, node)))
    if told["does"] == "hang":
        waiting.append((end + 3600.0, node, None))
    elif told["does"] == "refuse":
        print(f"ssh: connect to host {node} port 22: No route to host", file=sys.stderr)
        if is_one:
            sys.exit(255)
    else:
        waiting.append((end + random.Random(node).uniform(0.3, 3.0), node, told["line"]))
heapq.heapify(waiting)
while waiting:
    when, node, line = heapq.heappop(waiting)
    time.sleep(max(0.0, when - time.monotonic()))
    print(line if is_one else f"{node}: {line}", flush=True)
"""


def answer(name: str, number: int, version: str) -> str:
    """Return what a node's doctor prints."""
    probe = str(native_file("fabricbench-probe"))
    host = f"{number // 250}.{number % 250 + 1}"
    interfaces = [
        {"name": f"eth{k}", "mtu": 1500, "state": "up", "addresses": [f"10.{k + 1}.{host}/16"]} for k in range(2)
    ]
    facts = {
        "host": name,
        "version": version,
        "programs": {probe: f"fabricbench-probe {version}"},
        "builds": builds_of([probe]),
        "architecture": os.uname().machine,
        "interfaces": interfaces,
        "load": 0.1,
        "processors": 64,
    }
    inventory = {"mpi.version": find_mpi().version} | {f"fact.{k}": "a value as long as most" for k in range(300)}
    return json.dumps({"inventory": inventory, "node": facts})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--one-by-one", action="store_true")
    options = parser.parse_args()
    names = [f"n{number:04}" for number in range(options.nodes)]
    broken = random.Random(1).sample(names, 3 * BROKEN)
    hanging, refusing, older = (broken[kind * BROKEN :][:BROKEN] for kind in range(3))
    with TemporaryDirectory() as folder:
        (Path(folder) / "site.py").write_text(SITE)
        for number, name in enumerate(names):
            does = "hang" if name in hanging else "refuse" if name in refusing else "answer"
            line = answer(name, number, "0.0.9" if name in older else __version__)
            (Path(folder) / name).write_text(json.dumps({"does": does, "line": line}))
        site = (sys.executable, "-S", f"{folder}/site.py", folder)
        testbed = Testbed(
            name="simulated",
            launcher=LauncherKind.SSH,
            nodes=tuple(Node(name=name) for name in names),
            fabrics=tuple(Fabric(name=f"fabric{k}", interface=f"eth{k}") for k in range(2)),
            reach=(*site, "{node}", "{program}"),
            fan_out=None if options.one_by_one else (*site, "{nodes}", "{program}"),
        )
        begin, used = time.monotonic(), time.process_time()
        found, _ = look_at_nodes(Standing(given=testbed), None, lambda _: None)
        seconds, processor = time.monotonic() - begin, time.process_time() - used
    named = {finding.node for finding in found.findings}
    print(f"{options.nodes} nodes: {seconds:.1f} s, of which {processor:.1f} s of our own processor")
    missing = [name for name in broken if name not in named]
    print(f"broken and named: {len(broken) - len(missing)} of {len(broken)}; others named: {len(named - {*broken})}")
    sys.exit(1 if missing or named - {*broken} else 0)


if __name__ == "__main__":
    main()
