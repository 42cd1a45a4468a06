"""Stands for the measurer in tests of what is around it: `fake_probe.py PLAN BEHAVIOUR_FILE RANKS`.

The behaviour file holds a word for each start to come; the first is taken off. Without one it measures well.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any, TextIO


def header(plan: dict[str, Any], ranks: int) -> dict[str, Any]:
    fabric = plan["fabric"]
    rank = {"host": "fake", "pid": 1, "cpus": [0], "interface": fabric["interface"]}
    clock = {"name": "fake", "resolution_ns": 1.0, "overhead_ns": 20.0, "loop_floor_ns": 20.0}
    return {
        "type": "header",
        "schema": "fabricbench/record/1",
        "launch_id": plan["launch_id"],
        "fabric": fabric["name"],
        "probe_version": "fake",
        "mpi_library": "none",
        "started_unix_ns": time.time_ns(),
        "ranks": [{"rank": number, **rank} for number in range(ranks)],
        "clock": clock,
    }


def cell_lines(probe: dict[str, Any], interface: str | None, other: str | None) -> list[dict[str, Any]]:
    size, samples = probe["message_bytes"], 30
    is_pingpong = probe["pattern"] == "pingpong"
    moved = size * samples * probe["messages_per_sample"]
    carried = {"sent": moved + 5000, "received": moved + 5000}
    is_networked = interface is not None and probe["layer"] != "memory"
    way = other if other is not None else interface
    cell = {
        "type": "cell",
        "id": probe["id"],
        **{key: probe[key] for key in ("layer", "pattern", "message_bytes", "receive", "ranks", "messages_per_sample")},
        "metric": "round_trip_time" if is_pingpong else "throughput",
        "bytes_per_sample": (2 if is_pingpong else probe["messages_per_sample"]) * size,
        "parameters": probe["parameters"],
    }
    times = [100_000 + 37 * number % 1000 for number in range(samples)]
    end = {
        "type": "cell_end",
        "cell": probe["id"],
        "stop": "count",
        "warmup": 0,
        "measured": samples,
        "seconds": sum(times) * 1e-9,
    }
    begun = time.time_ns()
    end |= {"begin_unix_ns": begun, "end_unix_ns": begun + 3_000_000}
    end["interfaces"] = {str(interface): {"sent": 10, "received": 10}} if interface is not None else {}
    if is_networked:
        end["interfaces"][str(way)] = carried
    return [
        cell,
        {"type": "samples", "cell": probe["id"], "phase": "measured", "first_index": 0, "time_ns": times},
        end,
    ]


def main() -> int:
    plan_path, behaviour_path = Path(sys.argv[1]), Path(sys.argv[2])
    plan = json.loads(plan_path.read_text())
    words = behaviour_path.read_text().splitlines() if behaviour_path.exists() else []
    word = words[0] if words else "well"
    if words:
        behaviour_path.write_text("\n".join(words[1:]))
    if word.startswith("no start"):
        sys.stderr.write(f"fake mpiexec[{time.time_ns()}]: cannot open /dev/fabric\n")
        return int(word.removeprefix("no start") or 7)
    if word == "full disk":
        sys.stderr.write("fabricbench-probe: records.jsonl: No space left on device\n")
        return 1
    if word == "leaves a process":  # as the guard writes it
        left = [{"pid": 17, "command": "sudo sleep 300", "user": "root"}]
        (plan_path.parent / "left-behind.json").write_text(json.dumps(left))
    if word == "stands still":
        if not os.fork():
            time.sleep(1.8)
            os.kill(os.getppid(), signal.SIGCONT)
            os._exit(0)
        os.kill(os.getpid(), signal.SIGSTOP)
    with (plan_path.parent / plan["output"]).open("w") as record:
        code = measure(plan, word, record)
    if word.startswith("dies at the end"):
        sys.stderr.write("BAD TERMINATION\n=   PID 1 RUNNING AT n2\nsegmentation fault in MPI_Finalize\n")
        return int(word.removeprefix("dies at the end"))
    if word == "hangs at the end":
        time.sleep(600)
    return code


def measure(plan: dict[str, Any], word: str, record: TextIO) -> int:
    def write(line: dict[str, Any]) -> None:
        record.write(json.dumps(line) + "\n")
        record.flush()

    write(header(plan, int(sys.argv[3])))
    failed = 0
    if word == "hang":
        hang()
    for number, probe in enumerate(plan["probes"]):
        if word == "dies midway" and number == len(plan["probes"]) - 1:
            record.write('{"type":"cell","id":')
            sys.stderr.write("rank 1 on node b was lost\n")
            return 9
        if word == "slow":
            time.sleep(0.6)
        if word == "no permission" and probe["layer"] == "frame":
            write(refusal(probe))
            failed += 1
        else:
            if word == "another size":
                probe |= {"message_bytes": probe["message_bytes"] + 1}
            for line in cell_lines(probe, plan["fabric"]["interface"], "eth9" if word == "wrong way" else None):
                write(line)
    cells = len(plan["probes"]) - failed
    write({"type": "footer", "finished_unix_ns": time.time_ns(), "cells": cells, "failed": failed})
    return 0


def hang() -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    sys.stderr.write("waiting for a peer that never comes\n")
    sys.stderr.flush()
    time.sleep(600)


def refusal(probe: dict[str, Any]) -> dict[str, Any]:
    asked = {key: probe[key] for key in ("layer", "pattern", "message_bytes")}
    reason = {"code": "permission", "reason": "socket(AF_PACKET) was refused"}
    return {"type": "cell_failed", "cell": probe["id"], **asked, **reason}


if __name__ == "__main__":
    sys.exit(main())
