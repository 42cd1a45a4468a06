"""The gauges for Prometheus, read by its own parser."""

from __future__ import annotations

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from fabricbench.record.store import Run
from support.exported_run import exported, exported_run, text_of

TEST = {
    "fabric": "slow",
    "layer": "tcp",
    "pattern": "pingpong",
    "message_bytes": "64",
    "receive": "blocking",
    "ranks": "2",
    "origin": "emulated",
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return exported_run(tmp_path_factory.mktemp("folder") / "run")


def gauges(run: Run) -> dict[str, list[tuple[dict[str, str], float]]]:
    families = text_string_to_metric_families(text_of(exported(run, "openmetrics")))
    return {one.name: [(sample.labels, sample.value) for sample in one.samples] for one in families}


def test_a_gauge_is_in_base_units_and_says_which_launch_it_is(run: Run):
    found = gauges(run)["fabricbench_round_trip_time_seconds"]
    assert (TEST | {"stat": "median"}, 7.8e-05) in found
    assert (TEST | {"stat": "minimum"}, 5.2e-05) in found
    assert (TEST | {"stat": "maximum"}, 1.04e-04) in found
    assert gauges(run)["fabricbench_throughput_bits_per_second"][0][1] == 1e8


def test_launches_are_counted_and_so_are_those_that_count_nowhere(run: Run):
    assert (TEST, 2.0) in gauges(run)["fabricbench_launches"]
    assert gauges(run)["fabricbench_invalid_launches"] == [({"fabric": "slow"}, 0.0), ({"fabric": "fast"}, 1.0)]


def test_no_row_has_a_time_stamp_which_the_text_collector_refuses(run: Run):
    rows = [line for line in text_of(exported(run, "openmetrics")).splitlines() if not line.startswith("#")]
    assert all(len(line.rsplit("}", 1)[-1].split()) <= 2 for line in rows)
    assert {line.split("{")[0].split(" ")[0] for line in rows} >= {"fabricbench_measured_timestamp_seconds"}


def test_a_name_with_quotes_is_escaped():
    from fabricbench.exchange.exports.openmetrics import _labels

    text = f"# TYPE a gauge\na{_labels({'x': chr(34) + chr(92)})} 1\n# EOF\n"
    (family,) = text_string_to_metric_families(text)
    assert family.samples[0].labels == {"x": '"\\'}
