"""What the command is told and says before it judges: options, config, selection."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.screens import on_one_line
from tests.tables import mistakes
from trajudge.eval.judge import main
from trajudge.eval.runs.plan import select
from trajudge.eval.runs.settings import DataConfig, RunRequest
from trajudge.eval.store.table import KeyColumns
from trajudge.trajectories import store
from trajudge.trajectories.model import Observation, Step, Trajectory, TrajectoryKey
from trajudge.util import settings
from trajudge.util.errors import UserError


def parse(words: list[str]) -> RunRequest:
    return settings.parse(RunRequest, "trajudge judge", words)


def config(tmp_path: Path, text: str) -> list[str]:
    file = tmp_path / "run.yaml"
    file.write_text(text)
    return ["--config", str(file)]


def test_a_config_file_takes_the_names_of_the_options(tmp_path: Path) -> None:
    asked = parse(
        config(
            tmp_path,
            "model: gpt-4o\nmax-cost: 2.5\nmax_tokens: 300\nstrict: true\nyes: false\n"
            "benchmark: [webarena, workarena]\nexport: [agentrewardbench, out]\nrpm:\n",
        )
    )
    calls, data = asked.calls, asked.data
    assert (asked.models, calls.max_cost, calls.max_tokens) == (("gpt-4o",), 2.5, 300)
    assert (data.strict, calls.yes, calls.rpm) == (True, False, None)
    assert data.benchmark == ("webarena", "workarena")
    assert asked.run.export == ("agentrewardbench", Path("out"))


def test_the_command_line_wins(tmp_path: Path) -> None:
    file = config(tmp_path, "model: gpt-4o\nbenchmark: [webarena]\nseed: 3\n")
    asked = parse([*file, "--model=claude-x", "--benchmark", "shop"])
    assert (asked.models, asked.data.benchmark) == (("claude-x",), ("shop",))
    assert asked.calls.seed == 3
    assert parse([*file, "--seed", "4"]).calls.seed == 4


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("help-all: true\n", "no option 'help-all'"),
        ("modell: gpt-4o\n", "no option 'modell', did you mean 'model'"),
        ("strict: maybe\n", "--strict maybe: must be true or false"),
        ("limit: -3\n", "--limit -3: must be at least 1"),
        ("- model\n", "no mapping of options"),
        ("model: [\n", "not YAML"),
        ("seed: 1\nmodel: x\nseed: 2\n", "line 3: 'seed' is given twice: remove one"),
        ("seed: [1, 2]\n", "--seed takes one value, not 2"),
        ("max-cost: 1\nmax_cost: 2\n", "'max_cost' is given twice"),
        ("extra-body:\n  a: 1\n  a: 2\n", "line 3: 'a' is given twice"),
    ],
)
def test_a_bad_config_file_is_named_with_the_mend(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(UserError, match=rf"run\.yaml[:,] .*{sentence}"):
        parse(config(tmp_path, text))


def test_only_options_have_two_spellings(tmp_path: Path) -> None:
    text = "extra-body:\n  top-k: 1\n  top_k: 2\n"
    body = parse(config(tmp_path, text)).calls.extra_body
    assert json.loads(body or "") == {"top-k": 1, "top_k": 2}


def test_a_missing_config_file_is_named() -> None:
    with pytest.raises(UserError, match=r"absent\.yaml: No such file"):
        parse(["--config", "absent.yaml"])


@mistakes(
    """
    --limit 0 => --limit 0: must be at least 1
    --limit few => --limit few: must be a whole number
    --samples 10001 => --samples 10001: must be at most 10000
    --limit 9223372036854775808 => --limit 9223372036854775808: must be at most 9223372036854775807
    --max-cost -1 => --max-cost -1: must be at least 0
    --max-cost nan => --max-cost nan: must be a number
    --max-failures few => neither a count nor a share such as 5%
    --max-failures 200% => neither a count nor a share such as 5%
    --rpm 0 => --rpm 0: must be more than 0
    --timeout 0 => --timeout 0: must be more than 0
    --split train => --split train: use 'dev', 'test' or 'all'
    --model => --model: expected one argument
    --mod gpt-4o => unrecognized arguments: --mod gpt-4o, did you mean '--model'? see
    --lmit=3 => unrecognized arguments: --lmit=3, did you mean '--limit'? see  trajudge judge --help
    --sparkle red => unrecognized arguments: --sparkle red: see  trajudge judge --help
    """
)
def test_values_that_make_no_sense_are_one_sentence(words: list[str], sentence: str) -> None:
    with pytest.raises(UserError) as mistake:
        parse(words)
    assert sentence in str(mistake.value)
    assert "\n" not in str(mistake.value)


@pytest.mark.parametrize(("width", "word"), [("100", "--help"), ("80", "--help-all")])
def test_the_help_gives_the_exit_code_of_a_stop_at_the_limit(
    width: str, word: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    with pytest.raises(SystemExit):
        parse([word])
    codes = on_one_line(capsys.readouterr().out).partition("exit codes: ")[2]
    assert "1 stopped at --max-cost or more failed judgments than --max-failures, 2" in codes


def test_failures_are_a_count_or_a_share() -> None:
    assert parse(["--max-failures", "3"]).run.max_failures == 3
    assert parse(["--max-failures", "5%"]).run.max_failures == 0.05


@mistakes(
    """
    --stratified => --limit
    --export csv out => --export csv: use 'agentrewardbench'
    --script f --adapter openai => --adapter scripted
    """
)
def test_options_that_contradict_each_other(words: list[str], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        parse(words)


KEYS = [
    TrajectoryKey(benchmark=benchmark, agent=agent, task_id=f"{benchmark}.{task}")
    for benchmark, tasks in (("webarena", 30), ("workarena", 10))
    for agent in ("a", "b")
    for task in range(tasks)
]
SPLITS = {(k.benchmark, k.task_id): "dev" if k.task_id.endswith("0") else "test" for k in KEYS}


def chosen(data: DataConfig, seed: int = 0) -> list[TrajectoryKey]:
    keys, rng = KeyColumns.of(KEYS), np.random.default_rng(seed)
    kept, _ = select(keys, data, data.split or "all", SPLITS, rng)
    return [*kept]


def test_no_filter_keeps_everything_in_order() -> None:
    assert chosen(DataConfig()) == KEYS


def test_data_are_joined_by_and() -> None:
    kept = chosen(DataConfig(benchmark=("webarena",), agent=("b",), split="dev"))
    assert [key.task_id for key in kept] == ["webarena.0", "webarena.10", "webarena.20"]


def test_a_repeated_key_counts_once() -> None:
    rng = np.random.default_rng(0)
    kept, _ = select(KeyColumns.of(KEYS + KEYS), DataConfig(), "all", {}, rng)
    assert [*kept] == KEYS


@given(limit=st.integers(1, 100), seed=st.integers(0, 5))
def test_a_stratified_limit_is_exact_and_proportional(limit: int, seed: int) -> None:
    kept = chosen(DataConfig(limit=limit, stratified=True), seed)
    assert len(kept) == min(limit, len(KEYS)) == len(set(kept))
    assert kept == sorted(kept, key=KEYS.index)
    counts = Counter((key.benchmark, key.agent) for key in kept)
    for (benchmark, _), count in counts.items():
        share = (30 if benchmark == "webarena" else 10) * min(limit, 80) / 80
        assert abs(count - share) <= 1


def test_the_same_seed_draws_the_same_trajectories() -> None:
    data = DataConfig(limit=13, stratified=True)
    assert chosen(data, 4) == chosen(data, 4) != chosen(data, 5)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (DataConfig(benchmark=("webarna",)), "--benchmark webarna.*did you mean 'webarena'"),
        (DataConfig(benchmark=("nothing",)), "no such benchmark: it has "),
        (DataConfig(agent=("zzzz",)), "--agent zzzz: the data has no such agent: it has a, b"),
        (DataConfig(task=("webarena.99",)), "--task webarena.99.*did you mean"),
        (DataConfig(task=("webarena.1",), split="dev"), "no trajectory is left of 80"),
    ],
)
def test_what_the_data_does_not_have_is_named(data: DataConfig, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        chosen(data)


@pytest.mark.parametrize(("agent", "labelled"), [("Operator", True), ("runs", False)])
def test_labels_of_other_agents_are_said(
    agent: str, *, labelled: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Online-Mind2Web's labels name agents, its trajectories do not: their folder has to."""
    key = TrajectoryKey(benchmark="online-mind2web", agent=agent, task_id="t1")
    step = Step(index=0, observation=Observation(url="https://a.example/"))
    store.write(tmp_path / "runs", [Trajectory(key=key, raw_task_id="t1", goal="?", steps=(step,))])
    labels = tmp_path / "human_label.json"
    labels.write_text(json.dumps([{"task_id": "t1", "Operator_human_label": "1"}]))
    words = ["--judge", "heuristic", "--data", f"trajudge:{tmp_path / 'runs'}"]
    words += ["--annotations", f"online-mind2web:{labels}", "--out", str(tmp_path / "run")]
    assert main(words) == 0
    said = capsys.readouterr().err
    sentence = (
        "none of its 1 labels belongs to a trajectory that is judged: a label is of agent "
        "'Operator' on 'online-mind2web', task 't1'; a trajectory of agent 'runs'"
    )
    assert (sentence in said) is not labelled
