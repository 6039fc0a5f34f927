"""``trajudge env generate``: cases on file, a summary beside them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.commands import command
from tests.llm_server import LlmServer, always
from tests.samples import examples, repeats
from tests.tables import mistakes
from trajudge.environments import generation
from trajudge.environments.apps import APPS, load_app
from trajudge.environments.checks.shortest import shortest
from trajudge.environments.generation import check_place
from trajudge.environments.model.axes import instance, open_state
from trajudge.environments.model.binding import bind
from trajudge.environments.model.case import read_cases
from trajudge.environments.model.config import Config
from trajudge.environments.verify import RunEvidence, expected
from trajudge.util.errors import UserError

main = command("env generate")


def run(tmp_path: Path, *options: str) -> tuple[int, Path]:
    out = tmp_path / "cases.jsonl"
    return main([*options, "--save", str(out)]), out


def test_cases_are_written_with_a_summary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tmp_path = tmp_path / "with a blank"
    tmp_path.mkdir()
    code, out = run(tmp_path, "--domain", "consumer-transactions", "--level", "2", "--count", "9")
    assert code == 0
    cases = read_cases(out)
    assert [case.level for case in cases] == [2] * 9
    counted = json.loads((tmp_path / "cases.summary.json").read_text())
    assert counted["accepted"] == 9
    assert counted["levels"] == {"2": 9}
    tried = sum(entry["tried"] for entry in counted["scenarios"].values())
    rejected = sum(entry["count"] for entry in counted["rejects"])
    assert tried == counted["tried"] == 9 + rejected + counted["other_difficulty"]
    shown = capsys.readouterr().out
    assert f"9 cases of {tried:,} configurations tried" in shown
    assert f"  trajudge env validate --cases '{out}'" in shown, "it can be copied into a shell"


def test_twenty_cases_are_written_where_no_number_is_given(tmp_path: Path) -> None:
    code, out = run(tmp_path, "--scenario", "price", "--app", "shop")
    assert (code, len(read_cases(out))) == (0, 20)


def test_no_case_holds_its_answer(tmp_path: Path) -> None:
    _, out = run(tmp_path, "--scenario", "price", "--app", "shop", "--count", "10")
    shop, lines = load_app("shop"), out.read_text().splitlines()
    for case, line in zip(read_cases(out), lines, strict=True):
        scenario, config = shop.scenario("price"), case.config
        state = open_state(shop, config)
        places = instance("shop", "price", tuple(scenario.slots), config.instance, config.seed)
        bound = bind(scenario, places, state)
        (answer,) = expected(RunEvidence(scenario, bound, state.dump(), state, lambda *_: ""))
        assert answer not in line
        known = {"config", "goal", "domain", "vector", "level", "shortest", "fewest"}
        assert set(json.loads(line)) == known


@pytest.mark.slow
@pytest.mark.sampled
def test_the_same_options_give_the_same_bytes_with_any_workers(
    tmp_path: Path,
) -> None:
    made = []
    for hash_seed, workers in (("1", "1"), ("2", "2")):
        out = tmp_path / hash_seed / "cases.jsonl"
        command = [sys.executable, "-m", "trajudge.eval.cli", "env", "generate", "--noise"]
        command += ["--count", str(examples(7)), "--workers", workers]
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        subprocess.run(
            [*command, "--save", str(out)], env=environment, check=True, capture_output=True
        )
        made.append([path.read_bytes() for path in sorted(out.parent.iterdir())])
    assert made[0] == made[1]
    assert len(made[0]) == 3  # cases, their tasks, what was counted


@pytest.mark.slow
def test_a_vector_that_nothing_has_names_the_nearest_there_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out = run(tmp_path, "--app", "shop", "--scenario", "price", "--vector", "3,3,3,3,3,3,3")
    assert code == 1
    assert not out.exists(), "an earlier file is not replaced by none"
    said = capsys.readouterr().err
    assert said.startswith("0 cases have the vector 3,3,3,3,3,3,3; the nearest that were found: ")
    assert "(shop price)" in said


@pytest.mark.slow
def test_a_vector_that_was_found_can_be_asked_for(tmp_path: Path) -> None:
    _, out = run(tmp_path, "--app", "shop", "--count", "5")
    vector = read_cases(out)[0].vector
    code, out = run(
        tmp_path, "--app", "shop", "--count", "3", "--vector", ",".join(map(str, vector))
    )
    assert code == 0
    assert [case.vector for case in read_cases(out)] == [vector] * 3


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        ("", "is a folder: name a file"),
        ("file/cases.jsonl", "file is a file, not a folder"),
        ("/dev/stdout", "--save /dev/stdout: is a device or a pipe, and other files stand beside"),
    ],
)
def test_a_place_that_takes_no_cases_is_refused_before_the_work(
    place: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert main(["--app", "shop", "--count", "1", "--save", str(tmp_path / place)]) == 2
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert captured.out == ""


def test_files_may_be_written_below_dev_but_not_beside_a_stream(tmp_path: Path) -> None:
    """By hand: /dev/shm is memory for files; a stream that goes to a file is one for the system."""
    if (memory := Path("/dev/shm")).is_dir():
        check_place(memory / "cases.jsonl")
    check_place(tmp_path / "dev" / "cases.jsonl")
    with (tmp_path / "file").open("w") as file, pytest.raises(UserError, match="is a device"):
        check_place(Path(f"/dev/fd/{file.fileno()}"))


@pytest.mark.slow
def test_the_vector_that_a_mistaken_one_is_told_exists(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "--vector", "3,1")[0] == 2
    example = capsys.readouterr().err.split()[-1]
    assert example in (Path(__file__).parents[2] / "docs/environments.md").read_text()
    assert run(tmp_path, "--app", "console", "--count", "1", "--vector", example)[0] == 0


@mistakes(
    """
    --app bank => --app bank
    --app= => --app is empty: give a value
    --domain banking => --domain banking
    --scenario haggle => 'haggle': choose from price, cheapest,
    --scenario cheapst => is called 'cheapst', did you mean 'cheapest'?
    --vector 1,2,3 => seven numbers
    --vector 1,1,1,1,1,1,4 => seven numbers
    --count 0 => --count 0: must be at least 1
    --count 1000000000000 => must be at most 10000
    --seed -1 => --seed -1: must be at least 0
    --level 4 => --level
    --level 1 --vector 1,1,1,1,1,1,1 => exclude each other
    --app shop --domain tool-use => exclude each other
    --model gpt-4o --base-url nowhere => nowhere
    """
)
def test_a_mistake_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], sentence: str
) -> None:
    code, out = run(tmp_path, *words)
    error = capsys.readouterr().err
    assert code == 2
    assert error.startswith("error: ")
    assert sentence in error
    assert error.count("\n") == 1
    assert not out.exists()


@pytest.mark.slow
@pytest.mark.sampled
def test_every_application_gives_cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generation, "shortest", partial(shortest, budget=1))  # not the matter here
    code, out = run(tmp_path, "--count", str(repeats(1, 3) * len(APPS)))
    assert code == 0
    assert {Config.model_validate(case.config).app for case in read_cases(out)} == set(APPS)


REPLY = {
    "scenarios": [
        {
            "id": "price",
            "goals": [
                "Please look up what the {product[name]} costs.",
                "What would I pay for {product[name]}, namely $3?",
            ],
        }
    ]
}


@pytest.mark.slow
def test_a_model_words_goals_over_http_and_never_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with LlmServer(text=f"Here you are:\n```json\n{json.dumps(REPLY)}\n```") as server:
        options = (
            "--app", "shop", "--count", "12", "--model", "wordsmith", "--base-url", server.url,
            "--cache", str(tmp_path / "cache.sqlite"),
        )  # fmt: skip
        code, out = run(tmp_path, *options)
        first = out.read_bytes()
        assert run(tmp_path, *options)[0] == code == 0
        assert server.stats.requests == 1, "the second run was answered from the cache"
        sent = server.seen[0].body
    assert out.read_bytes() == first
    assert "{product[name]}" in str(sent)
    goals = [case.goal for case in read_cases(out)]
    assert {case.config.scenario for case in read_cases(out)} == {"price"}
    assert any(goal.startswith("Please look up what the ") for goal in goals)
    counted = json.loads((tmp_path / "cases.summary.json").read_text())
    (dropped,) = counted["dropped_proposals"]
    assert dropped["reason"] == "a number that the scenario does not state: 3"
    assert "a number that the scenario does not state" in capsys.readouterr().err


@pytest.mark.parametrize("fault", ["refusal", "content-policy", "empty", "length"])
def test_a_model_that_gives_nothing_leaves_the_templates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], fault: str
) -> None:
    with LlmServer(script=always(fault)) as server:
        code, out = run(
            tmp_path, "--app", "shop", "--count", "4", "--model", "wordsmith",
            "--base-url", server.url, "--cache", str(tmp_path / "cache.sqlite"),
        )  # fmt: skip
    assert code == 0
    assert len(read_cases(out)) == 4
    assert "dropped of shop: " in capsys.readouterr().err
