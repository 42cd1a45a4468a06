"""The names of a launch's files."""

from __future__ import annotations

from fabricbench.launch.guard import LEFT_FILE
from fabricbench.record.integrity import HASHED
from fabricbench.record.launch_files import OF_A_LAUNCH, OF_PROGRAMS_ALONE
from fabricbench.workload.counted import AROUND, BEGUN


def test_programs_that_run_alone_name_their_files_as_the_table_does():
    assert set(OF_PROGRAMS_ALONE) == {AROUND, BEGUN, LEFT_FILE}


def test_every_file_that_is_hashed_is_one_of_a_launch():
    assert set(HASHED) < OF_A_LAUNCH
