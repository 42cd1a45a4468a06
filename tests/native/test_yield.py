"""What the library preloaded into MPI ranks does where programs wait without saying so."""

from __future__ import annotations

import os
import subprocess
import sys

from fabricbench.native import native_file

# Two processes share a processor: one always busy, one that looks at a descriptor on which nothing ever comes.
SPIN = """
print("spinning", flush=True)
while True: pass
"""
LOOK = """
import resource, select, sys
pipe = select.epoll()
before = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
for _ in range(600): pipe.poll(0)
print(resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw - before)
"""
MOST_LOOKS_AT_ONCE = 32


def times_displaced(environment: dict[str, str]) -> int:
    processor = str(min(os.sched_getaffinity(0)))
    pinned = ["taskset", "--cpu-list", processor, sys.executable, "-I", "-S", "-c"]
    with subprocess.Popen([*pinned, SPIN], stdout=subprocess.PIPE, text=True) as busy:
        try:
            assert busy.stdout is not None
            assert busy.stdout.readline() == "spinning\n"
            tokens = [*pinned, LOOK]
            done = subprocess.run(
                tokens, env={**os.environ, **environment}, check=True, capture_output=True, text=True, timeout=60
            )
        finally:
            busy.kill()
    return int(done.stdout)


def test_who_looks_again_and_again_in_vain_gives_the_processor_away() -> None:
    yielding = times_displaced({"LD_PRELOAD": str(native_file("libfabricbench-yield.so"))})
    assert yielding > MOST_LOOKS_AT_ONCE
    assert times_displaced({}) < MOST_LOOKS_AT_ONCE
