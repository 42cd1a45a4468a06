"""Each export in the hands of the program that it is for: of the reader's own parser, not of what we think that it takes.

`tools/readers` installs the readers, apart from the environment of the tests; each test says so where its reader is not there.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fabricbench.exchange.placing import write_folder
from fabricbench.model import Layer, Pattern
from support.exported_run import NO_NOISE, exported, exported_run
from support.synthetic_run import SyntheticCell, write_synthetic_run

pytestmark = pytest.mark.slow

READERS = Path(__file__).resolve().parents[3] / ".readers"
COMPARE = Path("/usr/share/benchmark/compare.py")
REFRAME_CHECK = Path(__file__).with_name("reframe_check.py")
CRATE_VALIDATOR = Path(__file__).with_name("crate_validator.py")


def there(program: Path | str, of: str) -> str:
    """The path of a reader; the test is skipped where it is not installed."""
    found = shutil.which(str(program))
    if found is None:
        pytest.skip(f"{program} is not there: {of} has it")
    return found


def python() -> str:
    return there(READERS / "bin/python", "tools/readers")


def run(*command: str | Path, cwd: Path | None = None, stdin: str = "", **variables: str) -> tuple[int, str, str]:
    done = subprocess.run(
        list(map(str, command)),
        input=stdin,
        cwd=cwd,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def told(code: str, *arguments: Path) -> Any:
    """What a few lines in the readers' Python print as JSON."""
    status, out, err = run(python(), "-c", code, *arguments)
    assert status == 0, err
    return json.loads(out)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in every format, a folder each; its second block was refuted on one fabric."""
    place = tmp_path_factory.mktemp("exports")
    stored = exported_run(place / "run")
    for name in (
        "csv",
        "parquet",
        "benchstat",
        "google-benchmark",
        "openmetrics",
        "junit",
        "osu",
        "reframe",
        "ro-crate",
    ):
        write_folder(exported(stored, name).files, place / name)
    return place


PANDAS = """
import json, sys, pandas
csv, parquet = pandas.read_csv(sys.argv[1]), pandas.read_parquet(sys.argv[2])
same, as_parquet = (frame.astype(object).where(frame.notna(), "") for frame in (csv, parquet))
pandas.testing.assert_frame_equal(same, as_parquet)
counted = csv[csv.is_valid & (csv.pattern == "pingpong")]
print(json.dumps([counted.groupby("fabric").value.median().to_dict(), str(pandas.to_datetime(csv.started).dtype)]))
"""


def test_pandas_finds_the_same_in_csv_and_parquet(folder: Path):
    medians, type_of_time = told(PANDAS, folder / "csv/launches.csv", folder / "parquet/launches.parquet")
    assert medians == {"slow": 78_000.0, "fast": 21_000.0}
    assert type_of_time.startswith("datetime64")


def test_benchstat_sets_fabrics_side_by_side_and_knows_every_unit(folder: Path):
    benchstat = there(READERS / "bin/benchstat", "tools/readers")
    status, out, err = run(benchstat, "-format", "csv", "-col", "fabric", folder / "benchstat/launches.txt")
    assert (status, [line for line in err.splitlines() if "need >=" not in line]) == (0, [])
    rows = [line.split(",") for line in out.splitlines() if line.startswith(("Pingpong", "Stream", "Alltoall"))]
    assert [(row[0].split("/")[0], float(row[1]), float(row[3])) for row in rows] == [
        ("Pingpong", 78e-6, 21e-6),
        ("Stream", 1e8, 1e9),
        ("Alltoall", 45e-6, 12e-6),
    ]


def test_compare_py_takes_no_launch_that_counts_nowhere_for_a_time(folder: Path):
    if not COMPARE.exists():
        pytest.skip(f"{COMPARE} is not there: Debian's libbenchmark-tools has it")
    file = folder / "google-benchmark/launches.json"
    status, out, err = run(python(), COMPARE, "--no-color", "filters", file, "fabric:slow", "fabric:fast")
    assert status == 0, err
    rows = [line.split() for line in out.splitlines() if line.startswith("pingpong/") and "_pvalue" not in line]
    assert [row[-4:-2] for row in rows] == [["52000", "21000"]]


def test_promtool_takes_the_gauges_and_minds_bits_alone(folder: Path):
    promtool = there("promtool", "Debian's prometheus")
    _, out, err = run(promtool, "check", "metrics", stdin=(folder / "openmetrics/fabricbench.prom").read_text())
    assert (out + err).splitlines() == [
        'fabricbench_throughput_bits_per_second use base unit "bytes" instead of "bits"'
    ]


SCHEMA = """
import json, sys, xmlschema
print(json.dumps([f"{one.path}: {one.reason}" for one in xmlschema.XMLSchema(sys.argv[1]).iter_errors(sys.argv[2])]))
"""


def test_junit_is_valid_by_the_schema(folder: Path):
    schema = READERS / "junit.xsd"
    if not schema.exists():
        pytest.skip(f"{schema} is not there: tools/readers has it")
    assert told(SCHEMA, schema, folder / "junit/launches.xml") == []


EXTRA_P = """
import json, sys
from extrap.fileio.file_reader.jsonlines_file_reader import read_jsonlines_file
from extrap.modelers.model_generator import ModelGenerator
found = {}
for path in sys.argv[1:]:
    models = ModelGenerator(read_jsonlines_file(path))
    models.model_all()
    found |= {str(key[0].name): str(model.hypothesis.function) for key, model in models.models.items()}
print(json.dumps(found))
"""


def test_extra_p_reads_every_file_and_finds_how_a_time_grows(tmp_path: Path):
    sizes = [2**power for power in range(6, 18, 2)]
    cells = [
        *(SyntheticCell(Layer.TCP, Pattern.PINGPONG, size, {"a": 1e4 + 2.0 * size}, samples=2) for size in sizes),
        SyntheticCell(Layer.MPI, Pattern.STREAM, 4096, {"a": 1e8}, samples=2),
    ]
    stored = write_synthetic_run(tmp_path / "run", cells=cells, blocks=1, noise=NO_NOISE)
    write_folder(exported(stored, "extra-p").files, tmp_path / "extra-p")
    files = sorted((tmp_path / "extra-p").iterdir())
    assert [path.name for path in files] == ["mpi-stream.jsonl", "tcp-pingpong.jsonl"]
    found = told(EXTRA_P, *files)
    model = found["a->tcp->pingpong->receive=blocking/ranks=2/origin=emulated"]
    assert [round(float(part), 6) for part in model.removesuffix(" * p^(1)").split(" + ")] == [10_000.0, 2.0]


LOGS = """
import json, sys, pandas
frames = [pandas.read_csv(path, sep="|") for path in sys.argv[1:]]
print(json.dumps([json.loads(frame.to_json(orient="records")) for frame in frames]))
"""


def test_reframe_finds_the_latency_in_the_layout_of_osu_and_logs_it_as_we_do(folder: Path, tmp_path: Path):
    reframe = there(READERS / "bin/reframe", "tools/readers")
    arguments = ("-c", REFRAME_CHECK, "-r", "--prefix", tmp_path, "--report-file", tmp_path / "report.json")
    text = str(folder / "osu/b00-slow.txt")
    status, out, err = run(python(), reframe, *arguments, cwd=tmp_path, TMPDIR=str(tmp_path), OSU_TEXT=text)
    assert status == 0, out + err
    (theirs,) = tmp_path.glob("perflogs/*/*/*.log")
    (of_reframe,), ours = told(LOGS, theirs, folder / "reframe/synthetic/slow/fabricbench_pingpong.log")
    assert (of_reframe["result"], of_reframe["latency_value"]) == ("pass", 26.0)
    of_a_test = {"result", "job_completion_time", "descr", "environ", "name", "num_tasks", "partition", "system"}
    assert of_a_test <= of_reframe.keys() & ours[0].keys()
    assert [(one["result"], one["round_trip_time_value"]) for one in ours] == [("pass", 52_000.0), ("pass", 104_000.0)]
    assert {name: ours[0][f"round_trip_time_{name}"] for name in ("ref", "lower_thres", "upper_thres")} == {
        name: of_reframe[f"latency_{name}"] for name in ("ref", "lower_thres", "upper_thres")
    }


WITHOUT_AUTHORS = {
    "process-run-crate-0.5_3.2": "a program has an address",
    "process-run-crate-0.5_5.1": "a program is named by its address",
    "process-run-crate-0.5_8.6": "somebody did it",
    "ro-crate-1.1_22.2": "somebody is the author",
    "ro-crate-1.1_22.3": "somebody publishes it",
}
"""What the profiles recommend and a run does not know: whoever publishes the crate adds it."""


def test_the_validator_of_crates_misses_nothing_but_who_publishes_it(folder: Path):
    status, out, err = run(python(), CRATE_VALIDATOR, folder / "ro-crate")
    assert status == 0, err
    found = json.loads(out.splitlines()[-1])
    assert [one for one in found if one["check"] not in WITHOUT_AUTHORS] == []
    assert "required" not in {one["severity"] for one in found}
