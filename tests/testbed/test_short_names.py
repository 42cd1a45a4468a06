from __future__ import annotations

import pytest

from fabricbench.testbed.short_names import short_kernel, short_mpi, short_processor


@pytest.mark.parametrize(
    ("model", "short"),
    [
        ("Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz", "Xeon Gold 6148"),
        ("Intel(R) Core(TM) i7-8650U CPU @ 1.90GHz", "Core i7-8650U"),
        ("Intel(R) Xeon(R) Platinum 8480+", "Xeon Platinum 8480+"),
        ("AMD EPYC 7742 64-Core Processor", "EPYC 7742"),
        ("Processor", "Processor"),
        ("0xd0c", "0xd0c"),
    ],
)
def test_a_processor_is_called_by_its_model(model: str, short: str):
    assert short_processor(model) == short


def test_an_mpi_is_called_by_its_name_and_version():
    assert short_mpi("Open MPI v5.0.3, package: Open MPI root@host Distribution") == "Open MPI 5.0.3"
    assert short_mpi("fast: MPICH 4.2.1") == "fast: MPICH 4.2.1"


def test_a_kernel_is_called_by_its_numbers():
    assert short_kernel("6.1.0-18-amd64") == "Linux 6.1.0-18"
    assert short_kernel("5.14.0-427.el9.x86_64") == "Linux 5.14.0-427"
    assert short_kernel("next") == "Linux next"
