"""Are stages what they are said to be? Measures how many messages are complete, what stamping takes, and where planted delays show.

    python benchmarks/stages.py [--blocks 6] [--delay 20us] [--layers frame ip udp tcp mpi]

Runs in a lab of its own and prints Markdown tables; docs/stages.md has what came out, and how. Delays are planted in an
application and before the call that sends, for every second message (by a preloaded library that takes its time), and in the
switch (a fabric whose switch takes longer to forward, launch by launch); not over tcp, whose messages have no number.
"""

from __future__ import annotations

import argparse
import itertools
import os
import platform
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fabricbench.analysis import analyse
from fabricbench.analysis.findings import CellKey, Findings
from fabricbench.analysis.findings.stages import Stage, StagedCell
from fabricbench.analysis.sides import read_sides
from fabricbench.analysis.stages import both_ways, stages_of_launch
from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.run import start_run
from fabricbench.campaign.specification import Campaign, Experiment
from fabricbench.campaign.venue import OwnLab
from fabricbench.chapters.chapter import rows_of
from fabricbench.lab import parse_fabrics
from fabricbench.model import Layer, Pattern, Receive
from fabricbench.native import FOLDER_VARIABLE, native_file
from fabricbench.quantity import parse_seconds
from fabricbench.record.launch import scan_stages
from fabricbench.record.store import Run
from fabricbench.report.words import cell_words

FABRIC = "gigabit-ethernet:mtu=1500"
SIZES = (64, 1024, 8192)
SIZES_OF = {Layer.FRAME: (64, 1024), Layer.MPI: (64, 1024, 8192, 32768)}
"""Of layers that take others."""
COMPLETE, WITHIN, COST_NS, PLACED = 0.999, 0.998, 1_500.0, 0.95
"""What must hold: of all messages, of the complete ones, of a round trip of 64 B over udp, and of the trials of a planted delay."""
MESSAGES_OF_A_TRIAL = 40
"""In a row, every second one of them planted."""

PLANTED = {"application": Stage.APPLICATION, "call": Stage.LIBRARY}
PLANT = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
enum { MPI_BYTES = 64 };
// Takes its time for every second message, where PLANT says: after the stamp that ends the receiving of a message, or before
// the call that sends one. Datagrams have their number behind the token (a raw socket's header is received in a place apart);
// messages of MPI (MPICH) are counted from where stamps begin.
static __thread int has_received;
static long now(void) {
  struct timespec t;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000L + t.tv_nsec;
}
static void take_time(const char* where) {
  static const char* plant; static long delay;
  if (!plant) { plant = getenv("PLANT"); delay = atol(getenv("PLANT_NS")); if (!plant) plant = ""; }
  if (strcmp(plant, where)) return;
  const long end = now() + delay;
  while (now() < end) {}
}
static int is_stamped(int s) {
  int on = 0, type = 0;
  socklen_t n = sizeof on;
  return getsockopt(s, SOL_SOCKET, SO_TYPE, &type, &n) == 0 && type != SOCK_STREAM &&
         getsockopt(s, SOL_SOCKET, SO_TIMESTAMPING, &on, &n) == 0 && on != 0;
}
static int is_planted(const void* message) { unsigned number; memcpy(&number, (const char*)message + 4, 4); return number % 2; }
ssize_t recvmsg(int s, struct msghdr* m, int f) {
  const ssize_t r = syscall(SYS_recvmsg, s, m, f);
  if (r >= 8 && !(f & MSG_ERRQUEUE) && is_stamped(s)) has_received = is_planted(m->msg_iov[m->msg_iovlen - 1].iov_base);
  return r;
}
int clock_gettime(clockid_t c, struct timespec* t) {
  const int r = (int)syscall(SYS_clock_gettime, c, t);
  if (c == CLOCK_REALTIME && has_received) { has_received = 0; take_time("application"); }
  return r;
}
ssize_t sendto(int s, const void* b, size_t n, int f, const struct sockaddr* to, socklen_t l) {
  if (n >= 8 && is_stamped(s) && is_planted(b)) take_time("call");
  return syscall(SYS_sendto, s, b, n, f, to, l);
}
static int is_counted;
static unsigned number_sent, number_received;
int setsockopt(int s, int level, int name, const void* value, socklen_t size) {
  if (level == SOL_SOCKET && name == SO_TIMESTAMPING) {
    is_counted = *(const int*)value != 0;
    number_sent = number_received = 0;
  }
  return (int)syscall(SYS_setsockopt, s, level, name, value, size);
}
int PMPI_Send(const void*, int, int, int, int, int);
int PMPI_Recv(void*, int, int, int, int, int, void*);
int MPI_Send(const void* b, int n, int type, int to, int tag, int with) {
  if (is_counted && n == MPI_BYTES && number_sent++ % 2) take_time("call");
  return PMPI_Send(b, n, type, to, tag, with);
}
int MPI_Recv(void* b, int n, int type, int from, int tag, int with, void* status) {
  const int r = PMPI_Recv(b, n, type, from, tag, with, status);
  if (is_counted && n == MPI_BYTES) has_received = number_received++ % 2;
  return r;
}
ssize_t send(int s, const void* b, size_t n, int f) { return sendto(s, b, n, f, 0, 0); }
"""


def experiment(layer: Layer, sizes: tuple[int, ...], receives: tuple[Receive, ...]) -> Experiment:
    return Experiment(
        layers=(layer,),
        pattern=Pattern.PINGPONG,
        message_bytes=sizes,
        receive=receives,
        stages=True,
        minimum_seconds=0.2,
        maximum_seconds=0.4,
        warmup_samples=20,
    )


def campaign(*experiments: Experiment, blocks: int) -> Campaign:
    return Campaign(name="stages", blocks=blocks, experiments=experiments)


def measure(folder: Path, asked: Campaign, fabrics: str, seed: int = 1) -> Findings:
    venue = OwnLab(nodes=2, fabrics=tuple(parse_fabrics(fabrics)))
    start_run(folder, asked, venue, plan_run(asked, venue.testbed(), seed=seed), notify=lambda _: None)
    return analyse([Run.open(folder)])


@contextmanager
def planted(folder: Path, where: str, delay_ns: int) -> Iterator[None]:
    """Have the measurer start with the library that takes its time."""
    library, programs = folder / "plant.so", folder / f"bin-{where}"
    (folder / "plant.c").write_text(PLANT)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, folder / "plant.c", "-ldl"], check=True)
    probe = native_file("fabricbench-probe")
    shutil.rmtree(programs, ignore_errors=True)
    programs.mkdir()
    for program in probe.parent.iterdir():
        (programs / program.name).symlink_to(program)
    own = programs / probe.name
    own.unlink()
    own.write_text(
        f'#!/bin/sh\nexport PLANT={where} PLANT_NS={delay_ns} LD_PRELOAD="$LD_PRELOAD {library}"\nexec {probe} "$@"\n'
    )
    own.chmod(0o755)
    before = os.environ.get(FOLDER_VARIABLE)
    os.environ[FOLDER_VARIABLE] = str(programs)
    try:
        yield
    finally:
        os.environ.pop(FOLDER_VARIABLE)
        if before is not None:
            os.environ[FOLDER_VARIABLE] = before


Values = Mapping[Stage, NDArray[np.float64]]


def stages_in(rows: pl.DataFrame, key: CellKey) -> Values:
    """Return what each stage took of each message, both ways, by the first of its names."""
    found = stages_of_launch(rows, key)
    return {} if found is None else {parts[0]: values for parts, values in both_ways(found).items()}


def named(control: Values, planted: Values) -> tuple[Stage, dict[Stage, float]]:
    """Return the stage that a delay is found in, and how much the lower quartile of each grew, which a busy host moves least.

    Of those that grew by more than a microsecond and a quarter of what grew most, the one that grew most surely: in the greatest
    share of pairs of a planted message and another.
    """
    grew = {
        stage: float(np.quantile(planted[stage], 0.25) - np.quantile(values, 0.25)) for stage, values in control.items()
    }
    enough = max(1_000.0, 0.25 * max(grew.values()))
    sure = {
        stage: float(np.mean(planted[stage][:, np.newaxis] > control[stage][np.newaxis, :]))
        for stage, growth in grew.items()
        if growth >= min(enough, max(grew.values()))
    }
    return max(sure, key=lambda stage: sure[stage]), grew


Trial = tuple[Stage, dict[Stage, float]]


def trials_of(folder: Path) -> Iterator[Trial]:
    """Yield what is found of so many messages in a row, the planted ones against those between them."""
    run = Run.open(folder)
    (side,) = read_sides([run])
    (key,) = side.stamped
    for launch in run.launches:
        rows = scan_stages(launch.directory).collect()
        numbers = rows.filter("leads")["number"].sort()
        for at in range(0, len(numbers) - MESSAGES_OF_A_TRIAL, MESSAGES_OF_A_TRIAL):
            window = rows.filter(pl.col("number").is_between(numbers[at], numbers[at + MESSAGES_OF_A_TRIAL - 1]))
            is_planted = pl.col("number") % 2 == 1
            control, planted = stages_in(window.filter(~is_planted), key), stages_in(window.filter(is_planted), key)
            if control and planted:
                yield named(control, planted)


def switch_trials(folder: Path) -> Iterator[Trial]:
    """Yield what is found of a launch of the slower switch, against that of the other beside it."""
    run = Run.open(folder)
    (key,) = read_sides([run])[0].stamped
    of_block: dict[int, dict[str, Values]] = {}
    for launch in run.launches:
        rows = scan_stages(launch.directory).collect()
        of_block.setdefault(launch.block, {})[launch.fabric] = stages_in(rows, key)
    yield from (named(one["a"], one["b"]) for one in of_block.values() if len(one) == 2)


def tell_of_messages(findings: Findings) -> bool:
    print("| test | messages | complete | within 2 % | without stamps, us | stamping takes, us |")
    print("| --- | --- | --- | --- | --- | --- |")
    holds = True
    for row in rows_of(findings, "stage-cells", StagedCell):
        assert row.cost is not None
        assert row.plain is not None
        complete = row.complete / row.messages
        holds &= complete >= COMPLETE and row.within >= WITHIN
        if row.key.layer is Layer.UDP and row.key.message_bytes == SIZES[0]:
            holds &= row.cost.value <= COST_NS
        print(
            f"| {cell_words(row.key)} | {row.messages:,} | {100 * complete:.2f} % | {100 * row.within:.2f} % | "
            f"{row.plain.value / 1e3:.1f} | {row.cost.value / 1e3:+.2f} |"
        )
    return holds


def tell_of_plants(folder: Path, layers: Iterable[Layer], blocks: int, delay_ns: int) -> bool:
    print(
        "\n| layer, planted in a round trip | trials | placed right | found, us (median) |\n| --- | --- | --- | --- |"
    )
    holds = True
    for layer, (where, stage) in itertools.product(layers, {**PLANTED, "switch": Stage.SWITCH}.items()):
        receives = () if layer is Layer.MPI else (Receive.BLOCKING,)
        asked = campaign(experiment(layer, SIZES[:1], receives), blocks=blocks)
        here = folder / f"{layer}-{where}"
        if where == "switch":
            measure(here, asked, f"a={FABRIC},latency=1us,b={FABRIC},latency={1000 + delay_ns}ns")
            found = list(switch_trials(here))
        else:
            with planted(folder, where, delay_ns):
                measure(here, asked, FABRIC)
            found = list(trials_of(here))
        right = sum(name is stage for name, _ in found)
        holds &= bool(found) and right >= PLACED * len(found)
        # The peer alone keeps a message before it answers; a call and a switch are passed on both ways.
        both = delay_ns if where == "application" else 2 * delay_ns
        size = statistics.median(grew[stage] for _, grew in found) / 1e3 if found else float("nan")
        print(
            f"| {layer}: {both / 1e3:g} us in {where} (stage {stage}) | {len(found)} | {right} | {size:.2f} |",
            flush=True,
        )
    return holds


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--blocks", type=int, default=6)
    options.add_argument("--delay", type=parse_seconds, default=20e-6)
    options.add_argument(
        "--layers", type=Layer, nargs="+", default=[Layer.FRAME, Layer.IP, Layer.UDP, Layer.TCP, Layer.MPI]
    )
    given = options.parse_args()
    print(f"{platform.release()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}\n")
    with tempfile.TemporaryDirectory(prefix="fabricbench-stages-") as name:
        folder = Path(name)
        each = [
            experiment(one, SIZES_OF.get(one, SIZES), () if one is Layer.MPI else (Receive.BLOCKING, Receive.POLLING))
            for one in given.layers
        ]
        holds = tell_of_messages(measure(folder / "messages", campaign(*each, blocks=given.blocks), FABRIC))
        numbered = [one for one in given.layers if one is not Layer.TCP]
        holds &= tell_of_plants(folder, numbered, 2, round(given.delay * 1e9))
    print(f"\nload {os.getloadavg()[0]:.1f}; {'all holds' if holds else 'something does not hold'}")
    raise SystemExit(not holds)


if __name__ == "__main__":
    main()
