"""Facts of the inventory read as words, and names that people look up stay as they are."""

from __future__ import annotations

import pytest

from fabricbench.report.inventory_words import fact_words
from fabricbench.report.tables import inventory_table
from support.example_findings import example_findings


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("cpu.cache_bytes.L2", "2097152", ("processor: cache L2", "2 MiB")),
        ("cpu.has_smt", "no", ("processor: SMT", "no")),
        ("memory_bytes", "25325268992", ("memory", "23.6 GiB")),
        ("limits.locked_memory_bytes", "unlimited", ("limit: locked memory", "unlimited")),
        ("net.fe0.speed_bit_s", "10000000000.0", ("interface fe0: speed", "10.0 Gbit/s")),
        ("net.fe0.offloads.gro-hw", "no", ("interface fe0: offloads gro-hw", "no")),
        ("kernel.mitigations.spectre_v2", "Not affected", ("kernel: mitigations spectre_v2", "Not affected")),
        ("sysctl.net.core.rmem_max", "4194304", ("sysctl: net.core.rmem_max", "4194304")),
        ("advice.warning.cpu.usable", "one processor only", ("advice: warning cpu usable", "one processor only")),
        ("load", "0.00", ("load", "0.00")),
        ("python", "3.11.7", ("Python", "3.11.7")),
    ],
)
def test_a_fact_is_told_in_words_and_with_its_unit(key: str, value: str, words: tuple[str, str]):
    assert fact_words(key, value) == words


def test_no_row_of_the_inventory_shows_a_key_but_those_of_the_kernel():
    for name, *_ in inventory_table(example_findings()).rows:
        assert "_" not in name or name.startswith(("sysctl: ", "kernel: mitigations "))
