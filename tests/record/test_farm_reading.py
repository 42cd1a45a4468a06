"""A farm's record: read whole, cut short, contradicting itself; and how much time was lost to staging."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fabricbench.record.farm_lines import FarmRecord, parse_farm_record, read_farm_record

FIXTURE = Path(__file__).parents[2] / "schema/fixtures/farm_record.jsonl"


def lines() -> list[bytes]:
    return FIXTURE.read_bytes().splitlines(keepends=True)


def of(changed: dict[int, dict[str, object]]) -> FarmRecord:
    """The fixture with keys of some lines changed."""
    read = [json.loads(line) for line in lines()]
    for number, keys in changed.items():
        read[number] |= keys
    return parse_farm_record(f"{json.dumps(one)}\n".encode() for one in read)


def test_the_fixture_is_read_and_tells_what_became_of_each_job():
    record = read_farm_record(FIXTURE)
    assert record.damage == []
    assert [one.job for one in record.done] == [0, 1, 2]
    assert [(one.job, one.attempt, one.exit_code) for one in record.lost] == [(3, 2, 3)]
    assert record.jobs_done == "3 of 4 (not 3)"
    assert record.reasons[0] == ("it ended with exit code 3; stderr ends: no such word", 2)


def test_time_lost_to_staging_is_that_of_free_slots_while_jobs_wait():
    """Free slots that a job waits for: 2, 1, 1, 2, 1, 1, 0, 0, 1, 0 in each of 10 s; of two slots until 6 s, then one."""
    assert read_farm_record(FIXTURE).staging_share == pytest.approx(9 / 16)


def test_slots_of_a_worker_that_was_left_out_are_not_lost_to_staging():
    """One of two workers fails at once; the other runs 20 jobs of 1 s without a pause."""
    header, done, failed, footer = (json.loads(lines()[number]) for number in (0, 1, 5, -1))
    at = {"given_s": 0.0, "staged_s": 0.0, "ended_s": 0.0}
    jobs = [
        done | {"job": job, "given_s": float(job), "staged_s": float(job), "run_seconds": 1.0, "ended_s": job + 1.0}
        for job in range(20)
    ]
    told = [
        header | {"jobs": 20},
        failed | at | {"job": 0},
        *({**one, "rank": 1, "node": "n1"} for one in jobs),
        footer | {"attempts": 21, "done": 20, "lost": 0, "seconds": 20.0},
    ]
    record = parse_farm_record(f"{json.dumps(one)}\n".encode() for one in told)
    assert record.damage == []
    assert record.staging_share == 0.0


def test_free_slots_at_the_end_are_not_lost_to_staging():
    header, first, *_, footer = lines()
    alone = [
        json.loads(header) | {"jobs": 1},
        json.loads(first) | {"staged_s": 0.5, "given_s": 0.0, "run_seconds": 1.5, "ended_s": 2.0},
        json.loads(footer) | {"attempts": 1, "done": 1, "lost": 0, "seconds": 4.0},
    ]
    record = parse_farm_record(f"{json.dumps(one)}\n".encode() for one in alone)
    assert record.damage == []
    assert record.staging_share == pytest.approx(0.5 / 8), "one job waits for half a second, of two slots over 4 s"


def test_a_farm_that_was_cut_short_says_how_many_jobs_were_done():
    for end, done in ((2, 1), (5, 3), (len(lines()) - 1, 3)):
        record = parse_farm_record(lines()[:end])
        assert record.damage[0].reason == f"the farm was cut short: {done} of 4 jobs were done"
        assert len(record.done) == done


def test_half_a_line_costs_that_line_only():
    record = parse_farm_record([*lines()[:3], lines()[3][:50]])
    assert len(record.attempts) == 2
    assert record.damage[1].reason == "the file ends in the middle of this line"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({8: {"attempts": 9}}, "the footer counts 9 attempts, 7 were read"),
        ({8: {"done": 4}}, "the footer counts 4 jobs done and 1 lost, 3 and 1 were read"),
        ({3: {"job": 0}}, "job 0 ends 2 times"),
        ({3: {"is_last": False}}, "job 2 has no end, as 1 job in all"),
    ],
)
def test_what_contradicts_the_footer_is_damage(changed: dict[int, dict[str, object]], reason: str):
    assert reason in [one.reason for one in of(changed).damage]


def test_other_inputs_or_outputs_of_a_job_are_other_work():
    same, other_in, other_out = (of({}), of({1: {"input_digest": "0"}}), of({1: {"output_digest": "0"}}))
    assert same.digest_of_inputs() == other_out.digest_of_inputs() != other_in.digest_of_inputs()
    assert of({7: {"input_digest": "0"}}).digest_of_inputs() != same.digest_of_inputs(), "of a job that failed as well"
    assert same.digest_of_outputs() == other_in.digest_of_outputs() != other_out.digest_of_outputs()


def test_an_attempt_on_another_node_is_the_same_work():
    assert of({1: {"node": "n2"}}).digest_of_outputs() == of({}).digest_of_outputs()
