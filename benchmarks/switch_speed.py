"""How many frames can the emulated switch forward? Two programs in turn, A B A B, under a load that neither can carry.

    python -m benchmarks.switch_speed SWITCH_A SWITCH_B [--pairs 10] [--seconds 1.5] [--bytes 22]

Two nodes send UDP to a third as fast as they can, one of them a tenth of the time: an asymmetric load. What counts is frames
sent for each second of processor time that the switch's thread got, so that other work on the machine matters little; and
B over A within each pair. That holds where `busy` is near 1, for a switch that waits for frames spends time too. A `SWITCH`
is the path of a `fabricbench-switch`. Needs a C compiler, ip, ethtool and tc.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from benchmarks.lab_truth import go_before_other_sessions

from support.switch_rig import SwitchRig, address_of

FLOOD = r"""
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
int main(int argc, char** argv) {
  (void)argc;
  static char payload[2000];
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9)};
  inet_pton(AF_INET, argv[1], &to.sin_addr);
  struct iovec part = {payload, (size_t)atoi(argv[2])};
  struct mmsghdr messages[32];
  memset(messages, 0, sizeof messages);
  for (int i = 0; i < 32; ++i) messages[i].msg_hdr = (struct msghdr){&to, sizeof to, &part, 1, 0, 0, 0};
  const int pause_us = atoi(argv[3]), fd = socket(AF_INET, SOCK_DGRAM, 0);
  for (;;) {
    sendmmsg(fd, messages, 32, 0);
    if (pause_us) usleep(pause_us);
  }
}
"""
LISTEN = (
    "import socket, time; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('', 9));"
    "print('bound', flush=True); time.sleep(900)"
)


def processor_seconds(pid: int) -> float:
    """Return the processor time that the process's first thread, the one that forwards, has had."""
    nanoseconds = Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]
    return int(nanoseconds) * 1e-9


def measure(program: Path, flood: Path, seconds: float, payload_bytes: int) -> dict[str, float]:
    cpus = sorted(os.sched_getaffinity(0))
    fabric = {"line_rate_bit_s": 10e9, "delay_ns": 1_000, "cpu": cpus[-1], "port_buffer_bytes": 1 << 20}
    with (
        tempfile.TemporaryDirectory() as folder,
        patch("support.switch_rig.native_file", return_value=program),
        SwitchRig(Path(folder), 3, is_shaped=False, **fabric) as rig,
    ):
        listener = rig.start_in_node(0, sys.executable, "-c", LISTEN)
        assert listener.stdout is not None
        listener.stdout.readline()
        on_the_nodes = ("taskset", "--cpu-list", ",".join(map(str, cpus[:-1] or cpus)))
        for node, pause_us in ((1, 0), (2, 1000)):
            rig.start_in_node(node, *on_the_nodes, str(flood), address_of(0), str(payload_bytes), str(pause_us))
        time.sleep(0.5)
        before, used = rig.status()["ports"], processor_seconds(rig.switch.pid)
        time.sleep(seconds)
        after, used = rig.status()["ports"], processor_seconds(rig.switch.pid) - used

        def during(field: str) -> int:
            return sum(new.get(field, 0) - old.get(field, 0) for new, old in zip(after, before, strict=True))

        found = {field: during(f"{field}_frames") for field in ("sent", "dropped", "ring_lost", "out_of_order")}
        return found | {"per_s": found["sent"] / used, "busy": used / seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("switches", nargs=2, type=Path)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--bytes", type=int, default=22, help="of UDP payload; 22 make a frame of 64 bytes")
    arguments = parser.parse_args()
    if not go_before_other_sessions():
        print(
            "this may not go before other sessions: on a busy machine the senders may not fill the switch",
            file=sys.stderr,
        )
    with tempfile.TemporaryDirectory() as folder:
        source, flood = Path(folder) / "flood.c", Path(folder) / "flood"
        source.write_text(FLOOD)
        subprocess.run(["cc", "-O2", "-o", str(flood), str(source)], check=True)
        print("| pair | A, frames/s | B, frames/s | B over A | A, B busy | A, B lost in the ring | A, B out of order |")
        print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
        found: list[tuple[float, float]] = []
        for pair in range(arguments.pairs):
            both = [measure(one.resolve(), flood, arguments.seconds, arguments.bytes) for one in arguments.switches]
            first, second = (one["per_s"] for one in both)
            found.append((first, second))
            shown = [", ".join(f"{one[field]:.2g}" for one in both) for field in ("busy", "ring_lost", "out_of_order")]
            print(
                f"| {pair + 1} | {first:,.0f} | {second:,.0f} | {second / first:.3f} | {' | '.join(shown)} |",
                flush=True,
            )
    ratios = [second / first for first, second in found]
    medians = [statistics.median(column) for column in zip(*found, strict=True)]
    print(f"\nmedians: A {medians[0]:,.0f}, B {medians[1]:,.0f} frames/s, B over A {statistics.median(ratios):.3f}")


if __name__ == "__main__":
    main()
