"""`kind = "training-step"` as people write it, the known models, and what is read of what fabricbench-training-step left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.specification import Campaign
from fabricbench.errors import UsageError
from fabricbench.workload.adapter import Place, WorkloadResult
from fabricbench.workload.known_models import KNOWN_MODELS
from fabricbench.workload.training_step import TrainingStepStart
from support.applications import campaign, lab_of
from support.kernel_programs import parsed_by, starts_of
from support.paces import FAST, SLOW

HEADER = {
    "type": "kernel_header",
    "schema": "fabricbench/kernel-record/1",
    "program": "fabricbench-training-step",
    "program_version": "0.1.0",
    "kernel": "training-step",
    "problem": {"model": "small", "dp": 2, "tp": 1, "pp": 1},
    "rank_count": 2,
    "processor_levels": ["x86-64", "x86-64"],
    "started_unix_ns": 1,
}


def run_line(repetition: int, step_seconds: float, wrong: int = 0) -> dict[str, Any]:
    return {
        "type": "kernel_run",
        "repetition": repetition,
        "size": "2 data x 1 tensor x 1 pipeline",
        "iterations": 5,
        "seconds": 5 * step_seconds,
        "operations": 1e9,
        "operation_unit": "bytes handed to MPI",
        "mops_total": 1.0,
        "mops_per_process": 0.5,
        "verified": wrong == 0,
        "checks": [
            {"name": "wrong gradients", "found": wrong, "expected": 0.0, "tolerance": 0.0, "holds": wrong == 0},
        ],
        "values": {
            "steps_per_second": 1 / step_seconds,
            "step_seconds": step_seconds,
            "computing_seconds": step_seconds / 2,
            "exposed_of_step": 0.5,
            "gradient_bytes": 1e6,
        },
        "facts": {"scaled": "nothing"},
    }


def parsed(directory: Path, *runs: dict[str, Any]) -> WorkloadResult:
    return parsed_by(TrainingStepStart(dp=2, ranks=2), directory, HEADER, *runs)


def starts(nodes: int = 4, **keys: Any) -> list[TrainingStepStart]:
    return starts_of(TrainingStepStart, {"workload": [{"kind": "training-step", **keys}]}, nodes)


def options(start: TrainingStepStart, directory: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("FABRICBENCH_BIN", str(directory))
    (directory / start.program).touch()
    tokens = start.tokens(Place(directory, lab_of(4).fabrics[0]))
    return dict(zip(tokens[1::2], tokens[2::2], strict=False))


@pytest.mark.parametrize("name", KNOWN_MODELS)
def test_a_known_model_has_the_parameters_that_its_authors_publish(name: str):
    model = KNOWN_MODELS[name]
    assert model.parameters == pytest.approx(model.published, rel=0.02)
    assert model.source


def test_the_operations_of_a_large_model_are_the_six_per_parameter_and_token_that_are_published():
    """Brown et al., arXiv 2005.14165, table D.1: 3.14e23 for 300e9 tokens, attention left out."""
    model = KNOWN_MODELS["gpt3-175b"]
    a_token = 3 * model.layers * model.layer_operations / model.sequence
    attention = 3 * model.layers * 4 * model.sequence * model.hidden
    assert (a_token - attention) * 300e9 == pytest.approx(3.14e23, rel=0.01)


def test_the_documentation_has_every_known_model():
    text = (Path(__file__).parents[2] / "docs/workloads.md").read_text()
    assert all(f"`{name}`" in text for name in KNOWN_MODELS)


def test_all_nodes_are_replicas_unless_a_grid_is_asked_for():
    (one,) = starts(nodes=6)
    assert one.name == "training-step-modelsmall-grid6x1x1.6"
    assert one.parameters == {
        "workload": "training-step",
        "model": "small",
        "grid": "6x1x1",
        "figure": "training",
        "unit": "step/s",
    }
    assert one.native_programs == ("fabricbench-training-step",)


def test_of_lists_every_combination_is_a_launch_of_its_own_and_a_grid_too_large_is_left_out():
    found = starts(model=["gpt2-xl", "bert-large"], grid=["4x1x1", "1x2x2", "2x2x2"], scale=[1000, 100], micro_batch=2)
    assert len(found) == 8
    assert {(one.dp, one.tp, one.pp) for one in found} == {(4, 1, 1), (1, 2, 2)}
    assert len({one.name for one in found}) == 8


def test_the_program_is_told_the_dimensions_of_the_model_and_the_time_of_its_computing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (one,) = starts(model="gpt2-xl", grid="2x2x1", micro_batch=4, accelerator="50 Tflop/s", scale=1000, bucket="1MiB")
    told = options(one, tmp_path, monkeypatch)
    forward = 4 * 1024 * (2 * 12 * 1600**2 + 4 * 1024 * 1600) / 2 / 50e12  # of a layer: 4 samples on 2 ranks
    assert int(told["--layer-ns"]) == pytest.approx(forward * 1e9, abs=1)
    assert int(told["--head-ns"]) == pytest.approx(4 * 1024 * 2 * 50257 * 1600 / 2 / 50e12 * 1e9, abs=1)
    assert (
        told.items()
        >= {
            "--model": "gpt2-xl",
            "--dp": "2",
            "--tp": "2",
            "--pp": "1",
            "--layers": "48",
            "--layer-parameters": str(12 * 1600**2),
            "--embedding-parameters": str(50257 * 1600),
            "--head-parameters": "0",
            "--bucket-bytes": str(2**20),
            "--scale": "1000",
        }.items()
    )


def test_of_options_of_which_a_model_has_nothing_one_launch_is_planned_and_two_tables_are_refused():
    (one,) = starts(model="small", experts=[True, False], ranks=4)
    assert one.experts
    assert len(starts(model="mixtral-8x7b", experts=[True, False], scale=1000, ranks=4)) == 2
    tables = [{"kind": "training-step", "model": "small", "experts": experts, "ranks": 4} for experts in (True, False)]
    with pytest.raises(UsageError, match=r"number 2 \(training-step\) runs .* again, number 1 does already"):
        plan_run(campaign(*tables), lab_of(), seed=1)


def test_without_its_experts_a_model_has_one_feed_forward_part_in_each_layer():
    with_experts, without = starts(model="mixtral-8x7b", experts=[True, False], scale=1000, ranks=4)
    if with_experts.experts is False:
        with_experts, without = without, with_experts
    assert with_experts.shape.experts == 8
    assert without.shape.experts == 0
    assert without.shape.layer_parameters - with_experts.shape.layer_parameters == with_experts.shape.expert_parameters
    assert without.shape.parameters == pytest.approx(7.2e9, rel=0.02)  # Mistral 7B, which it is made from


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"model": "gpt2"}, "found 'gpt2', needed one of small, resnet-50, "),
        ({"grid": "2x2"}, "found '2x2', needed data x tensor x pipeline such as \"2x2x1\""),
        ({"grid": "2x2x1", "ranks": [4]}, "ranks = [...] says how many there are as well"),
        ({"grid": "3x2x1", "ranks": [4]}, '"3x2x1" is 6 ranks'),
        ({"grid": "1x1x8"}, "found 8 stages, needed at most 4, the layers of small"),
        ({"model": "resnet-50", "grid": "2x2x1"}, "needed Nx1x1: only the gradients of resnet-50 are known"),
        ({"accelerator": "fast"}, 'needed a rate such as "100 Tflop/s", in Gflop/s, Tflop/s, Pflop/s'),
        ({"accelerator": "100 Tflops"}, "found '100 Tflops', needed a rate such as"),
        ({"accelerator": 100}, 'found 100, needed a rate such as "100 Tflop/s"'),
        ({"accelerator": ["1 Tflop/s", 1e14]}, "found 100000000000000.0, needed a rate such as"),
        (
            {"accelerator": "1 Tflop/s", "layer": "1ms"},
            "layer: it stands in place of accelerator, which is there as well",
        ),
        ({"element_bytes": 3}, "element_bytes"),
        ({"scale": 0}, "greater than or equal to 1"),
        ({"seconds": 60}, "seconds"),
    ],
)
def test_what_it_cannot_be_told_is_refused_in_words(keys: dict[str, Any], said: str):
    with pytest.raises(UsageError) as refused:
        starts(**keys)
    assert said in str(refused.value)


def test_a_campaign_that_was_stored_has_its_accelerators_again():
    asked = campaign({"kind": "training-step", "accelerator": ["1 Tflop/s", "0.05 Gflop/s"]})
    assert Campaign.model_validate_json(asked.model_dump_json(by_alias=True)) == asked


def test_the_median_rate_of_its_runs_is_what_it_is_judged_by(tmp_path: Path):
    found = parsed(tmp_path, *(run_line(i, seconds) for i, seconds in enumerate((0.5, 0.1, 0.2))))
    assert [(one.name, one.unit, one.value) for one in found.figures] == [
        ("training", "step/s", 5.0),
        ("time of a step", "s", 0.2),
        ("exposed communication", "%", 50.0),
    ]
    assert found.values["computing_seconds"] == 0.1
    assert found.values["gradient_bytes"] == 1e6
    assert found.fixed == {"instruction set": "x86-64", "scaled": "nothing"}


def test_a_wrong_gradient_is_a_failed_cell_with_its_reason(tmp_path: Path):
    found = parsed(tmp_path, run_line(0, 0.1), run_line(1, 0.1, wrong=3))
    assert found.figures == ()
    assert found.failed is not None
    assert "repetition 1 gave a wrong result: wrong gradients is 3" in found.failed.reason


def test_a_limit_grows_with_the_work_and_with_a_slower_network():
    small, large = (TrainingStepStart(model=name, dp=4, ranks=4, scale=100) for name in ("bert-large", "gpt2-xl"))
    assert small.expected_seconds(SLOW) < large.expected_seconds(SLOW)
    assert large.expected_seconds(FAST) < large.expected_seconds(SLOW)
    stages = TrainingStepStart(model="gpt2-xl", dp=1, pp=4, ranks=4, micro_batches=8, scale=100)
    more = stages.model_copy(update={"micro_batches": 16})
    assert stages.expected_seconds(SLOW) < more.expected_seconds(SLOW)
