"""A judge that is asked otherwise about the same runs: models of known habits get their rates."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.commands import robust as main
from tests.robustness import models
from tests.robustness.rates import Rates, Text, measured_judges, rates_of
from tests.screens import one_screen
from tests.tables import mistakes, one_sentence
from trajudge.eval.runs.plan import judge_options, make_model_handle
from trajudge.eval.runs.settings import JudgeConfig
from trajudge.judges.calls.settings import CallConfig
from trajudge.judges.model import Call, Judgment, Status, Usage
from trajudge.robustness.catalogue import catalogue, chosen
from trajudge.robustness.model import Channel, Relation
from trajudge.robustness.pairs import (
    CallChangeRun,
    PairRow,
    RunInFolder,
    call_change_pairs,
    call_change_runs,
    side_by_side,
    verdict_of,
    verdicts_of,
)
from trajudge.robustness.perturb import expanded, limited, suite
from trajudge.robustness.rates import all_rates
from trajudge.robustness.subjects import subjects
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util.errors import UserError

RUNS = 12
DRAWS = 5  # of drawn-again and drawn-warm
ASKINGS = [one for one in catalogue().values() if one.asking]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of which nothing is changed: the sources and the identity."""
    made = tmp_path_factory.mktemp("askings") / "attacked"
    names = ["identity", *(one.name for one in ASKINGS)]
    assert expanded(made, limited(subjects("sample"), RUNS), suite("core", names), 0) == []
    return made


def measured(
    text: Text,
    folder: Path,
    out: Path,
    *names: str,
    judges: Sequence[str] = ("simplified",),
    more: Sequence[str] = (),
) -> tuple[dict[str, dict[str, Any]], int]:
    """The judges by name as ``robustness.json`` has them, and how many requests were sent."""
    words = [word for name in names for word in ("--perturbation", name)]
    words += [word for judge in judges for word in ("--judge", judge)]
    judged, sent = measured_judges(folder, out, *words, *more, model=text)
    return {one["judge"]: one for one in judged}, sent


def flips(found: Rates, name: str) -> float:
    assert found[name]["flips"]["trials"] == RUNS, name
    share: float = found[name]["flips"]["estimate"]
    return share


def test_nothing_of_the_runs_is_changed(folder: Path) -> None:
    variants = [json.loads(line) for line in (folder / "variants.jsonl").read_text().splitlines()]
    assert {one["perturbation"] for one in variants} == {"identity"}
    assert {one.family for one in ASKINGS} == {"A", "F"}
    for one in ASKINGS:
        assert one.channels == {Channel.PROMPT}
        assert set(one.relations.values()) == {Relation.KEEP}


def test_who_knows_one_rendering_flips_under_every_other(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("steps-list", "steps-table", "steps-json", "question-order", "elision-end")
    judges, sent = measured(models.knows_one_rendering, folder, tmp_path, *names)
    (judge,) = judges.values()
    found = rates_of(judge)
    assert judge["judge"] == "simplified-axtree:gpt-4o"
    assert [flips(found, name) for name in names] == [1, 1, 1, 0, 0]
    assert found["steps-json"]["excess_flips"]["estimate"] == 1
    assert judge["overall"]["noise"]["estimate"] == 0
    assert judge["overall"]["consistency"]["estimate"] == 0
    assert found["elision-end"]["unseen"] == RUNS, "no run is too long: byte by byte the same"
    assert found["question-order"]["unseen"] == 0
    assert sent == RUNS * (2 + 4), "sources, identity and four other ways; the same way is free"
    printed = one_screen(capsys.readouterr().out, 100)
    assert "  asked in 5 ways: at most 100.0 % of verdicts flip (steps-list)" in printed
    (card,) = (tmp_path / "cards").iterdir()
    (line,) = [one for one in card.read_text().splitlines() if "steps-table" in one]
    assert line.startswith("| flips under steps-table | 100.0 % [")
    assert line.endswith(f"({RUNS} of {RUNS}) |")


def test_who_goes_by_the_first_step_flips_where_it_is_left_out(
    folder: Path, tmp_path: Path
) -> None:
    """In a window that some runs do not fit; the usual place keeps the first step, as the end
    does."""
    names, window = ("elision-start", "elision-end"), ("--context", "3000")
    model = models.goes_by_the_first_step
    judges, _ = measured(model, folder, tmp_path, *names, more=window)
    found = rates_of(judges["simplified-axtree:gpt-4o"])
    (run,) = (tmp_path / "runs").glob("*elision-start*")
    lines = [json.loads(one) for one in (run / "judgments.jsonl").read_text().splitlines()]
    elided = sum(one["calls"][0]["rung"] == "elided" for one in lines)
    assert elided > 3
    assert found["elision-start"]["flips"]["hits"] == elided
    assert found["elision-end"]["flips"]["hits"] == 0
    assert found["elision-end"]["unseen"] == RUNS - elided


def test_who_takes_the_first_word_flips_where_words_are_swapped(
    folder: Path, tmp_path: Path
) -> None:
    names = ("answer-words", "steps-list", "wording-terse")
    judges, _ = measured(models.takes_the_first_word, folder, tmp_path, *names)
    found = rates_of(judges["simplified-axtree:gpt-4o"])
    assert [flips(found, name) for name in names] == [1, 0, 0]


def test_who_knows_one_wording_flips_under_every_other(folder: Path, tmp_path: Path) -> None:
    names = ("wording-terse", "wording-formal", "answer-words")
    judges, _ = measured(models.knows_one_wording, folder, tmp_path, *names)
    judge = judges["simplified-axtree:gpt-4o"]
    assert [flips(rates_of(judge), name) for name in names] == [1, 1, 0]
    assert judge["overall"]["changes"] == 2, "the identity and the words; family F is no harmless"


def test_draws_that_differ_at_a_temperature_are_counted_each(folder: Path, tmp_path: Path) -> None:
    judges, sent = measured(models.WarmDraws(), folder, tmp_path, "drawn-warm", "drawn-again")
    found = rates_of(judges["simplified-axtree:gpt-4o"])
    warm, again = found["drawn-warm"]["flips"], found["drawn-again"]["flips"]
    assert (warm["hits"], warm["trials"]) == (RUNS, DRAWS * RUNS)
    assert (again["hits"], again["trials"]) == (0, (DRAWS - 1) * RUNS)
    assert sent == RUNS * (2 + DRAWS + DRAWS - 1), "the first draw at 0 is the clean verdict's"


def test_a_dated_name_is_held_against_the_model_it_stands_for(folder: Path, tmp_path: Path) -> None:
    words = ("--judge", "simplified", "--perturbation", "identity")
    two = ("--model", "gpt-4o-2024-08-06")
    (alias, dated), _ = measured_judges(folder, tmp_path, *words, *two, model=models.knows_one_name)
    assert alias["judge"] == "simplified-axtree:gpt-4o"
    assert flips(rates_of(alias), "model-version") == 1
    assert rates_of(alias)["model-version"]["to_failure"]["hits"] == RUNS
    assert "model-version" not in rates_of(dated), "it is no alias of the other"


def test_judges_without_the_option_are_not_asked(folder: Path, tmp_path: Path) -> None:
    judges, _ = measured(
        models.knows_one_rendering,
        folder,
        tmp_path,
        "steps-list",
        judges=("simplified", "heuristic"),
    )
    assert "steps-list" in rates_of(judges["simplified-axtree:gpt-4o"])
    assert "steps-list" not in rates_of(judges["heuristic"])


@mistakes(
    """
    --judge heuristic --perturbation steps-list => no judge takes steps=list
    --judge heuristic --perturbation drawn-warm => no judge asks a model
    --judge heuristic --perturbation ids+steps-list => name it alone
    --judge heuristic --perturbation model-version => compares two names of a model
    """
)
def test_what_no_judge_can_be_asked_is_said(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    sentence: str,
) -> None:
    assert main([*words, "--attacked", str(folder), "--out", str(tmp_path / "o")]) == 2
    one_sentence(capsys, sentence)


def test_it_changes_no_folder_of_runs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from tests.commands import perturb

    words = ["--data", "sample", "--perturbation", "steps-json", "--out", str(tmp_path / "o")]
    assert perturb(words) == 2
    assert "give it to  trajudge robust" in capsys.readouterr().err
    with pytest.raises(UserError, match="name it alone"):
        chosen(["steps-json+ids"])


def key(task: int, agent: str = "a") -> TrajectoryKey:
    return TrajectoryKey(benchmark="b", agent=agent, task_id=str(task))


def judgment(task: int, success: bool, request: str, sample: int = 0) -> Judgment:
    call = Call(
        stage="verdict",
        request=request,
        rung="full",
        finish="stop",
        usage=Usage(),
        cost=None,
        text="",
    )
    return Judgment(
        key=key(task), judge="j", sample=sample, status=Status.OK, success=success, calls=(call,)
    )


def test_draws_are_a_row_each_and_weigh_by_task() -> None:
    """Of task 0 two of four further draws flip, of task 1 none; its own draw is no second one."""
    own = {task: judgment(task, True, f"r{task}") for task in (0, 1)}
    drawn = [judgment(0, draw not in (2, 3), f"r0.{draw}", draw) for draw in range(1, 5)]
    drawn += [judgment(1, True, f"r1.{draw}", draw) for draw in range(1, 5)]
    clean = verdicts_of(own.values())
    rows = [PairRow(key(n), n, 1.0, clean[key(n)], verdict_of([own[n]])) for n in own]
    base = side_by_side("identity", Relation.KEEP, rows)
    run = RunInFolder(Path("x"), {}, {"j": [*own.values(), *drawn]})
    pairs = call_change_pairs(CallChangeRun(catalogue()["drawn-again"], "j", run), base, clean)
    assert pairs is not None
    assert (len(pairs.clean), pairs.cluster.tolist()) == (8, [0] * 4 + [1] * 4)
    (found,) = all_rates([pairs], {})
    assert (found.flips.hits, found.flips.trials) == (2, 8)
    assert np.array_equal(pairs.perturbed, [1, 0, 0, 1, 1, 1, 1, 1])


def run(name: str, judged: Sequence[Judgment], **manifest: Any) -> RunInFolder:
    base = {"judge": "j", "model": "m", "options": {"a": 1}, "parameters": {"temperature": 0.0}}
    return RunInFolder(Path(name), {**base, "samples": 1, **manifest}, {"j": judged})


CHANGED = judgment(0, True, "x").model_copy(update={"key": key(0, "a~identity")})
SOURCE = judgment(0, True, "x")


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        ({"options": {"a": 1, "steps": "json"}}, ["steps-json"]),
        ({"options": {"a": 2, "steps": "json"}}, []),
        ({"options": {"a": 1, "steps": "json"}, "model": "other"}, []),
        ({"options": {"a": 1, "steps": "json"}, "parameters": {"temperature": 1.0}}, []),
        ({"samples": 5}, ["drawn-again"]),
        ({"samples": 5, "parameters": {"temperature": 0.7}}, ["drawn-warm"]),
        ({"samples": 4, "parameters": {"temperature": 0.7}}, []),
        ({"model": "m-2024-08-06"}, ["model-version"]),
        ({"model": "m-20240806"}, ["model-version"]),
        ({"model": "m-mini"}, []),
        ({"model": "m-mini-2024-08-06"}, []),
        ({}, []),
    ],
)
def test_manifests_tell_how_a_judge_was_asked(
    manifest: dict[str, Any], expected: list[str]
) -> None:
    runs = [run("base", [SOURCE, CHANGED]), run("other", [SOURCE], **manifest)]
    assert [one.perturbation.name for one in call_change_runs(runs)] == expected
    assert [one.perturbation.name for one in call_change_runs(runs[::-1])] == expected


def test_a_run_on_changed_runs_is_a_judge_of_its_own() -> None:
    """A measurement of another judge, not of another way to ask the first."""
    both = [SOURCE, CHANGED]
    other = run("other", both, options={"a": 1, "steps": "json"})
    assert call_change_runs([run("base", both), other]) == []


def test_a_dry_run_tells_the_draws_of_one_judge_apart(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--judge", "simplified", "--model", "gpt-4o", "--attacked", str(folder), "--dry-run"]
    asked = ["--perturbation", "drawn-again", "--perturbation", "drawn-warm"]
    assert main([*given, *asked, "--out", str(tmp_path / "out")]) == 0
    heads = [line for line in capsys.readouterr().out.splitlines() if line.startswith("simpl")]
    assert [head.partition(", ")[2] for head in heads] == [
        "1 draw at temperature 0",
        "5 draws at temperature 0",
        "5 draws at temperature 0.7",
    ]


def test_members_of_a_panel_are_asked_for_tags_as_well() -> None:
    """Other wordings ask for tags, so that nothing but the wording is to differ."""
    config = JudgeConfig(judge="panel", model="gpt-4o", members="simplified,heuristic")
    calls = CallConfig(base_url="http://127.0.0.1:9/v1", context=9_000)
    forms = {}
    for structured in (None, False):
        asked = config.model_copy(update={"structured": structured})
        members = judge_options(asked, make_model_handle(asked, calls))["of"]["members"]
        forms[structured] = members[0]["options"]["structured"]
    assert forms == {None: True, False: False}
