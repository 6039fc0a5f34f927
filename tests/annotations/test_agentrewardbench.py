"""AgentRewardBench's annotations: rows in, labels out, the paper's Table 6 as the witness."""

from __future__ import annotations

import csv
import subprocess
import sys
from collections import Counter, defaultdict
from importlib import metadata
from pathlib import Path

import pytest

from tests.annotations.files import refuses_pipes_and_endless_files
from trajudge.annotations import Label, Role, open_annotations, primary_labels
from trajudge.annotations.agentrewardbench import BENCHMARKS, benchmark_of
from trajudge.annotations.sources.agentrewardbench import (
    detect,
    load,
    load_splits,
    write_annotations,
)
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util.errors import UserError

HEADER = (
    "annotator_name,benchmark,task_id,model_name,exp_name,trajectory_success,"
    "trajectory_side_effect,trajectory_optimality,trajectory_looping"
)
GOOD = "A,webarena,webarena.1,agent,exp,Successful,No,4. Completely Optimal,Yes"


def csv_file(folder: Path, *rows: str, header: str = HEADER) -> Path:
    path = folder / "annotations.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def test_a_row_becomes_an_annotation(tmp_path: Path) -> None:
    (annotation,) = load(csv_file(tmp_path, GOOD))
    assert annotation == Label(
        key=TrajectoryKey(benchmark="webarena", agent="agent", task_id="webarena.1"),
        raw_task_id="webarena.1",
        annotator="A",
        role=Role.PRIMARY,
        success=True,
        side_effect=False,
        repetition=True,
        optimality=4,
    )


def test_a_table_is_known_by_its_columns_and_ending(tmp_path: Path) -> None:
    columns = csv_file(tmp_path, header="annotator_name, trajectory_success")
    assert detect(columns.rename(tmp_path / "two.csv"))
    path = csv_file(tmp_path, GOOD)
    for name, is_known in (("mine.csv", True), ("mine.txt", False)):
        path = path.rename(tmp_path / name)
        assert detect(path) is is_known


@pytest.mark.parametrize(
    ("attempt", "role", "what"),
    [
        (0, Role.ADJUDICATED, "adjudicated labels"),
        (1, Role.PRIMARY, r"a further attempt \(webarena/agent/webarena\.1#1\)"),
    ],
)
def test_labels_that_the_format_cannot_hold_are_refused(
    tmp_path: Path, attempt: int, role: Role, what: str
) -> None:
    (label,) = load(csv_file(tmp_path, GOOD))
    key = label.key.model_copy(update={"attempt": attempt})
    other = label.model_copy(update={"key": key, "role": role})
    with pytest.raises(UserError, match=f"has no place for {what}: export in our own format"):
        write_annotations(tmp_path / "out.csv", [label, other])


def test_the_first_row_of_a_trajectory_is_primary_even_if_a_variant_comes_later(
    tmp_path: Path,
) -> None:
    rows = (
        "A,visualwebarena,visualwebarena.7,agent,e,Successful,No,2. Suboptimal,No",
        " B ,visualwebarena,visualwebarena.resized.7,agent,e,Unsuccessful,Yes,Unsure,No",
    )
    first, second = load(csv_file(tmp_path, *rows))
    assert first.key == second.key
    assert (first.role, second.role) == (Role.PRIMARY, Role.SECONDARY)
    assert (second.annotator, second.raw_task_id) == ("B", "visualwebarena.resized.7")
    assert primary_labels([first, second]) == {first.key: first}


def test_unsure_is_none_for_its_own_label_only(tmp_path: Path) -> None:
    row = "A,webarena,webarena.1,agent,exp,Unsure,Yes,Unsure,No"
    (annotation,) = load(csv_file(tmp_path, row))
    assert (annotation.success, annotation.optimality) == (None, None)
    assert (annotation.side_effect, annotation.repetition) == (True, False)


def test_splits_are_joined_on_the_canonical_task_id(tmp_path: Path) -> None:
    (tmp_path / "splits.csv").write_text(
        "task_id,benchmark,split\nassistantbench.validation.3,assistantbench,dev\n"
    )
    row = (
        "A,assistantbench,assistantbench.improved.validation.3,agent,e,"
        "Successful,No,4. Completely Optimal,No"
    )
    csv_file(tmp_path, row, GOOD)
    assert [a.split for a in open_annotations(str(tmp_path))] == ["dev", None]


@pytest.mark.parametrize(
    ("row", "column", "value"),
    [
        (GOOD.replace("Successful", "Maybe"), "trajectory_success", "'Maybe'"),
        (GOOD.replace("4. Completely Optimal", "5"), "trajectory_optimality", "'5'"),
        (GOOD.rsplit(",", 1)[0], "trajectory_looping", "''"),
        (GOOD.replace("webarena.1", ""), "task_id", "empty"),
    ],
)
def test_a_bad_value_is_named_with_its_file_and_line(
    tmp_path: Path, row: str, column: str, value: str
) -> None:
    path = csv_file(tmp_path, GOOD, row)
    with pytest.raises(UserError) as caught:
        load(path)
    message = str(caught.value)
    assert f"{path}, line 3" in message
    assert column in message
    assert value in message


def test_a_bad_split_is_named(tmp_path: Path) -> None:
    path = tmp_path / "splits.csv"
    path.write_text("task_id,benchmark,split\nwebarena.1,webarena,train\n")
    with pytest.raises(UserError, match=r"splits.csv, line 2: split is 'train'"):
        load_splits(path)


def test_a_missing_column_file_or_encoding_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        load(tmp_path)
    path = csv_file(tmp_path, GOOD, header=HEADER.replace("annotator_name", "who"))
    with pytest.raises(UserError, match="'annotator_name' is missing"):
        load(path)
    path.write_text("Task;Success?\n")  # of a spreadsheet of the user's
    with pytest.raises(UserError, match=r"has 'Task', 'Success\?': .* --annotations table:"):
        load(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="is UTF-16: save it as UTF-8"):
        load(path)


def test_level_two_of_workarena_is_its_own_benchmark() -> None:
    def of(benchmark: str, task_id: str) -> str:
        return benchmark_of(TrajectoryKey(benchmark=benchmark, agent="a", task_id=task_id))

    assert of("workarena", "workarena.servicenow.order-l2") == "workarena++"
    assert of("workarena", "workarena.servicenow.order") == "workarena"
    assert of("webarena", "webarena.l2") == "webarena"


@pytest.fixture(scope="module")
def real(real_data: Path) -> list[Label]:
    return open_annotations(f"agentrewardbench:{real_data / 'agentrewardbench'}")


@pytest.mark.real_data
def test_the_real_file_has_1302_trajectories_and_106_second_opinions(
    real: list[Label],
) -> None:
    assert Counter(a.role for a in real) == {Role.PRIMARY: 1302, Role.SECONDARY: 106}
    assert len(primary_labels(real)) == 1302
    splits = Counter((a.split, a.success) for a in primary_labels(real).values())
    assert splits["test", True] == 295
    assert splits["test", False] == 811
    assert sum(n for (split, _), n in splits.items() if split == "dev") == 196


@pytest.mark.real_data
def test_positives_of_the_test_split_by_benchmark(real: list[Label]) -> None:
    test = [a for a in primary_labels(real).values() if a.split == "test"]
    total = Counter(benchmark_of(a.key) for a in test)
    positives = Counter(benchmark_of(a.key) for a in test if a.success)
    assert {b: (positives[b], total[b]) for b in BENCHMARKS} == {
        "assistantbench": (8, 108),
        "visualwebarena": (79, 276),
        "webarena": (119, 310),
        "workarena": (37, 64),
        "workarena++": (52, 348),
    }


AGENTS = {
    "GenericAgent-anthropic_claude-3.7-sonnet": "Claude 3.7 S.",
    "GenericAgent-gpt-4o-2024-11-20": "GPT-4o",
    "GenericAgent-meta-llama_Llama-3.3-70B-Instruct": "Llama 3.3",
    "GenericAgent-Qwen_Qwen2.5-VL-72B-Instruct": "Qwen2.5-VL",
}


@pytest.mark.real_data
def test_every_expert_cell_of_table_6(real: list[Label], real_data: Path) -> None:
    cells = defaultdict(list)
    for annotation in primary_labels(real).values():
        if annotation.split == "test" and annotation.success is not None:
            agent = AGENTS[annotation.key.agent]
            cells[BENCHMARKS[benchmark_of(annotation.key)], agent].append(annotation.success)
            cells["Overall", agent].append(annotation.success)
    path = real_data.parent / "tables" / "agentrewardbench_table6_success_rates.csv"
    if not path.is_file():
        pytest.skip("the paper's tables do not lie beside the real data")
    with path.open(newline="") as file:
        table = {(row["benchmark"], row["agent"]): row["expert"] for row in csv.DictReader(file)}
    rates = {cell: f"{100 * sum(v) / len(v):.1f}" for cell, v in cells.items()}
    assert len(table) == 23
    assert rates == table


def test_the_installed_package_is_not_imported() -> None:
    code = (
        "import sys; from trajudge.annotations import open_annotations\n"
        "try: open_annotations('agentrewardbench')\n"
        "except Exception as error: assert 'pip install' in str(error)\n"
        "sys.exit('agent_reward_bench' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_installed_package_is_read() -> None:
    try:
        metadata.distribution("agent-reward-bench")
    except metadata.PackageNotFoundError:
        with pytest.raises(UserError, match="pip install --no-deps agent-reward-bench"):
            open_annotations("agentrewardbench")
        return
    found = open_annotations("agentrewardbench")
    assert Counter(a.role for a in found) == {Role.PRIMARY: 1302, Role.SECONDARY: 106}
    assert {a.split for a in found} == {"dev", "test"}


def test_pipes_links_out_and_endless_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    table = tmp_path / "set" / "annotations.csv"
    refuses_pipes_and_endless_files(table, load, "256 MiB")
    (tmp_path / "outside.csv").write_text("a\n")
    table.symlink_to(tmp_path / "outside.csv")
    with pytest.raises(UserError, match="leads out"):
        load(tmp_path / "set")
    with pytest.raises(UserError, match="the column"):  # named itself, so followed
        load(table)
