from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.screens import on_one_line
from tests.tables import mistakes
from trajudge.eval.runs.settings import RunRequest
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
        ("seed: 1\nmodel: x\nseed: 2\n", "line 3: 'seed' comes twice: leave one out"),
        ("seed: [1, 2]\n", "--seed takes one value, not 2"),
        ("max-cost: 1\nmax_cost: 2\n", "'max_cost' comes twice"),
        ("extra-body:\n  a: 1\n  a: 2\n", "line 3: 'a' comes twice"),
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
