"""Training data in the layouts of trainers: what is learned, from which runs, and what is not."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections import Counter
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.eval.cases import key, said
from tests.eval.decided_runs import accept, lines, make_run
from tests.screens import on_one_line
from tests.tables import mistakes, one_sentence
from trajudge.eval.accept.settings import TrainingConfig
from trajudge.eval.accept.training import JudgedRun, choose_runs
from trajudge.trajectories.model import ImageRef, Observation, Step, Trajectory, TrajectoryKey

ROOT = Path(__file__).parents[2]
LAYOUTS = ("trl-messages", "trl-prompt-completion", "trl-preference", "trl-kto")
CLICK = "<think>\nI look.\n</think>\n<action>\nclick('1')\n</action>"
OTHER = CLICK.replace("'1'", "'9'")
STOP = "<action>\nstop()\n</action>"


def png(colour: int) -> bytes:
    from PIL import Image

    file = BytesIO()
    Image.new("RGB", (8, 6), (colour, 0, 0)).save(file, "png")
    return file.getvalue()


def run_of(
    task: int, *, agent: str = "good", action: str = "click('1')", host: str = "shop", **page: Any
) -> Trajectory:
    place = TrajectoryKey(**{**key(task).model_dump(), "agent": agent})
    seen = Observation(url=f"http://{host}/", axtree="<image> of a mug", **page)
    steps = (
        Step(index=0, observation=seen, reasoning="I look.", action=action),
        Step(index=1, observation=Observation(page_error="no such element"), action="stop()"),
    )
    return Trajectory(key=place, raw_task_id=place.task_id, goal=f"Buy mug {task}", steps=steps)


def judged(folder: Path, runs: list[Trajectory]) -> Path:
    """A run in which the judge accepts the agents whose name begins with "good"."""
    scores = {run.key: 0.9 if run.key.agent.startswith("good") else 0.1 for run in runs}
    judgments = [
        said(0, score > 0.5, score=score).model_copy(update={"key": place})
        for place, score in scores.items()
    ]
    folder.mkdir()
    return make_run(folder, runs, judgments)


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """Three tasks, each solved by one agent and failed by another, on hosts of their own."""
    good = [run_of(task) for task in range(3)]
    bad = [run_of(task, agent="bad", action="click('9')", host="shop.test:81") for task in range(3)]
    return judged(tmp_path / "run", good + bad)


def export(run: Path, layout: str, out: Path, *options: object) -> Path:
    words = ["--judge", "judge", "--threshold", 0.8, "--run", run, "--out", out]
    assert accept(*words, "--format", layout, *options) == 0
    return out / layout


def rows(folder: Path, split: str = "train") -> list[dict[str, Any]]:
    from datasets import load_dataset

    loaded = load_dataset(str(folder), split=split, cache_dir=str(folder / "cache"))
    found: list[dict[str, Any]] = loaded.to_list()
    return found


@pytest.mark.slow
def test_trainers_learn_what_the_agent_wrote(pairs: Path, tmp_path: Path, packages: Path) -> None:
    """TRL, LLaMA-Factory, Axolotl and verl read their layouts; a step of each of TRL's trainers."""
    for layout in (*LAYOUTS, "llamafactory", "axolotl", "verl"):
        export(pairs, layout, tmp_path / "out")
    ran = subprocess.run(
        [sys.executable, "-m", "tests.eval.trainer_loads", packages, tmp_path / "out"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-2000:]
    found = json.loads(ran.stdout.splitlines()[-1])
    assert found["trl-messages"] == found["axolotl"] == [[CLICK, STOP]] * 3
    assert found["trl-prompt-completion"] == [[CLICK], [STOP]] * 3
    assert found["trl-preference"] == [[CLICK, OTHER]] * 3
    labelled = [[True, [CLICK]], [True, [STOP]], [False, [OTHER]], [False, [STOP]]]
    assert sorted(found["trl-kto"]) == sorted(labelled * 3)
    answers = [[turn["content"] for turn in row["response"]] for row in found["llamafactory"]]
    assert answers == [[STOP]] * 3
    assert found["llamafactory"][0]["prompt"][1]["content"] == CLICK
    assert [row["extra_info"]["task_id"] for row in found["verl"]] == [
        key(task).task_id for task in range(3)
    ]
    assert {row["extra_info"]["split"] for row in found["verl"]} == {"train"}
    assert [turn["role"] for turn in found["verl"][0]["raw_prompt"]] == ["system", "user"]


def test_screenshots_are_those_that_were_recorded(tmp_path: Path) -> None:
    pictures = [png(0), png(200)]
    made = [
        run_of(task, screenshot=ImageRef(data=content)) for task, content in enumerate(pictures)
    ]
    run = judged(tmp_path / "run", made)
    out = tmp_path / "out"
    for layout in ("hf", "trl-prompt-completion", "verl"):
        folder = export(run, layout, out, "--with-screenshots")
        shown = [row["images"][0]["bytes"] for row in rows(folder) if row["images"]]
        assert shown == pictures, layout
        assert not (folder / "images").exists()
    (first, second, *_) = lines(
        export(run, "llamafactory", out, "--with-screenshots") / "train.jsonl"
    )
    assert (out / "llamafactory" / second["images"][0]).read_bytes() == pictures[1]
    page = first["messages"][1]["content"]
    assert page.count("<image>") == len(first["images"]) == 1, "a page's own words are no picture"
    row = lines(export(run, "axolotl", out, "--with-screenshots") / "train.jsonl")[0]
    assert (out / "axolotl" / row["messages"][1]["content"][0]["path"]).is_file()


def seen_in_pictures(task: int, *, agent: str = "good", recorded: int = 2) -> Trajectory:
    """A run whose pages are known by their screenshots alone."""
    made = run_of(task, agent=agent)
    refs = [ImageRef(data=png(task)) if n < recorded else None for n in range(2)]
    steps = [
        step.model_copy(update={"observation": Observation(screenshot=ref)})
        for step, ref in zip(made.steps, refs, strict=True)
    ]
    return made.model_copy(update={"steps": tuple(steps)})


def test_a_screenshot_alone_is_a_page_where_it_goes_along(tmp_path: Path) -> None:
    partly = seen_in_pictures(2, recorded=1)
    failure = seen_in_pictures(0, agent="bad")
    run = judged(tmp_path / "run", [seen_in_pictures(0), run_of(1), partly, failure])
    out = tmp_path / "out"
    folder = export(run, "trl-kto", out, "--with-screenshots")
    assert sorted((row["trajudge"]["task_id"], row["label"]) for row in rows(folder)) == sorted(
        2 * [(key(0).task_id, True), (key(0).task_id, False), (key(1).task_id, True)]
    )
    (kept_out,) = [x for x in lines(out / "rejected.jsonl") if x["kind"] == "no observation"]
    assert "1 of 2 steps with an action have no observation" in kept_out["reason"]
    assert "error or screenshot)" in kept_out["reason"]
    export(run, "hf", out)
    first, _ = (x for x in lines(out / "rejected.jsonl") if x["kind"] == "no observation")
    assert first["key"]["task_id"] == key(0).task_id
    assert "take their screenshots along with --format NAME --with-screenshots" in first["reason"]


def test_what_goes_to_openai_has_its_types(tmp_path: Path) -> None:
    """A row of more images than an example may have is left out."""
    from openai.types.chat import ChatCompletionMessageParam
    from pydantic import TypeAdapter

    seen = Observation(url="http://shop/", screenshot=ImageRef(data=png(9)))
    short = run_of(0, screenshot=ImageRef(data=png(7)))
    steps = tuple(Step(index=n, observation=seen, action=f"click('{n}')") for n in range(11))
    long = short.model_copy(update={"key": run_of(1).key, "steps": steps})
    most = long.model_copy(update={"key": run_of(2).key, "steps": steps[:10]})
    run = judged(tmp_path / "run", [short, long, most])
    folder = export(run, "openai-sft", tmp_path / "out", "--with-screenshots")
    row, _ = lines(folder / "train.jsonl")
    assert list(row) == ["messages"]
    for message in row["messages"]:
        TypeAdapter(ChatCompletionMessageParam).validate_python(
            {name: value for name, value in message.items() if name != "weight"}
        )
    url = row["messages"][1]["content"][0]["image_url"]["url"]
    assert base64.b64decode(url.partition(",")[2]) == png(7)
    assert [m["weight"] for m in row["messages"] if m["role"] == "assistant"] == [1, 1]
    assert lines(folder / "train-provenance.jsonl")[0]["task_id"] == short.key.task_id
    training = json.loads((tmp_path / "out" / "acceptance.json").read_text())["training"]
    assert training["left_out"] == {"more images than the trainer takes": 1}
    assert (
        len(lines(export(run, "openai-sft", tmp_path / "out", "--per", "step") / "train.jsonl"))
        == 23
    )


def test_a_step_reads_no_page_of_an_earlier_one(pairs: Path, tmp_path: Path) -> None:
    second = rows(export(pairs, "trl-messages", tmp_path / "out", "--per", "step"))[1]
    roles = [turn["role"] for turn in second["messages"]]
    assert roles == ["system", "user", "assistant", "user", "assistant"]
    assert second["messages"][1]["content"] == "Goal: Buy mug 0\n\nStep 1\nURL: http://shop/"
    assert second["trajudge"]["step"] == 1
    assert second["trajudge"]["credit"] == "outcome"


def test_a_pair_differs_in_its_action_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another page or another thought is nothing to prefer."""
    other_page = run_of(0, agent="bad", action="click('9')", page_error="slow")
    thought = run_of(1, agent="bad")
    same = thought.model_copy(
        update={
            "steps": (thought.steps[0].model_copy(update={"reasoning": "Hm."}), thought.steps[1])
        }
    )
    run = judged(tmp_path / "run", [run_of(0), other_page, run_of(1), same, run_of(2)])
    out = tmp_path / "out"
    export(run, "trl-preference", out)
    assert not (out / "trl-preference" / "train.parquet").exists()
    left_out = json.loads((out / "acceptance.json").read_text())["training"]["left_out"]
    screen = on_one_line(capsys.readouterr().out)
    assert "rows in trl-preference/: none" in screen
    assert "no row of training data (no partner of the same task: 1, the pages differ" in screen
    assert left_out == {
        "no partner of the same task": 1,
        "the pages differ before the actions do": 2,
    }


def test_runs_between_the_thresholds_are_no_failures(pairs: Path, tmp_path: Path) -> None:
    for threshold, labels in ((0.1, {True}), (0.11, {True, False})):  # the failures have 0.1
        out = tmp_path / str(threshold)
        folder = export(pairs, "trl-kto", out, "--rejected-below", threshold)
        assert {row["label"] for row in rows(folder)} == labels


def made_runs(rng: np.random.Generator) -> list[JudgedRun]:
    return [
        JudgedRun(
            TrajectoryKey(benchmark="b", agent=f"a{n}", task_id=str(task)), 1.0, True, bytes([n])
        )
        for task in range(20)
        for n in range(int(rng.integers(1, 8)))
    ]


def test_the_draws_depend_on_the_keys_and_the_seed() -> None:
    rng = np.random.default_rng(0)
    runs = made_runs(rng)
    config = TrainingConfig(format="hf", per_task=2, test_share=0.25)
    first = choose_runs(runs, config)
    shuffled = [runs[place] for place in rng.permutation(len(runs))]
    assert dict(choose_runs(shuffled, config).runs) == dict(first.runs)
    other = choose_runs(runs, config.model_copy(update={"seed": 1}))
    assert other.runs.keys() != first.runs.keys()
    tasks: dict[str, set[str]] = {"train": set(), "test": set()}
    kept: dict[str, int] = {}
    for place, (_, file) in first.runs.items():
        tasks[file].add(place.task_id)
        kept[place.task_id] = kept.get(place.task_id, 0) + 1
    assert len(tasks["test"]) == 5
    assert not tasks["test"] & tasks["train"]
    assert max(kept.values()) == 2
    assert len(kept) == 20
    assert first.left_out["above the cap per task"] == len(runs) - len(first.runs)


def test_a_task_is_left_to_learn_from_however_large_the_share_of_the_test() -> None:
    config = TrainingConfig(format="hf", test_share=0.99)
    runs = [run for run in made_runs(np.random.default_rng(0)) if run.key.task_id in ("1", "2")]
    assert {file for _, file in choose_runs(runs, config).runs.values()} == {"train", "test"}


def test_accepted_and_rejected_runs_of_a_task_are_capped_apart(
    capsys: pytest.CaptureFixture[str],
) -> None:
    drawn = made_runs(np.random.default_rng(0))
    runs = [run._replace(success=n % 2 == 0) for n, run in enumerate(drawn)]
    kept = choose_runs(runs, TrainingConfig(format="trl-kto", per_task=1)).runs
    counts = Counter((key.task_id, run.success) for key, (run, _) in kept.items())
    assert set(counts.values()) == {1}
    assert max(Counter(task for task, _ in counts).values()) == 2
    with pytest.raises(SystemExit):
        accept("--help-all")
    assert "at most N accepted and N rejected runs of a task" in capsys.readouterr().out


def test_a_duplicate_counts_once() -> None:
    run = JudgedRun(TrajectoryKey(benchmark="b", agent="a", task_id="1"), 1.0, True, b"same")
    again = run._replace(key=run.key.model_copy(update={"agent": "b"}))
    chosen = choose_runs([again, run], TrainingConfig(format="hf"))
    assert list(chosen.runs) == [run.key]
    assert chosen.left_out == {"duplicate": 1}


def test_runs_that_are_left_out_are_counted_on_the_screen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again = [run_of(0, agent=name) for name in ("good", "good-2", "good-3")]
    run = judged(tmp_path / "run", [*again, run_of(1)])
    export(run, "trl-messages", tmp_path / "out")
    screen = on_one_line(capsys.readouterr().out)
    assert "left out of the training data (duplicate: 2)" in screen
    assert "rows in trl-messages/: 2 in train" in screen


@pytest.mark.parametrize(
    ("runs_of_a_task", "share", "told"),
    [
        (
            (20, 2, 2, 2, 2, 2), 0.3,
            "--test-share 0.3: 13.3 % of the rows are in test, for whole tasks are drawn, and the "
            "6 tasks are few or of unequal size (another --seed draws others)",
        ),
        ((4, 4, 4, 4), 0.25, None),
        ((1, 1, 1), 0.3, None),
        (
            (3,), 0.5,
            "--test-share 0.5: 0 % of the rows are in test, for all rows are of one task, which "
            "is not divided",
        ),
        ((3,), 0, None),
    ],
)  # fmt: skip
def test_a_test_share_that_came_out_otherwise_is_told(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    runs_of_a_task: tuple[int, ...],
    share: float,
    told: str | None,
) -> None:
    runs = [
        run_of(task, agent=f"good-{n}", action=f"click('{n}')")
        for task, count in enumerate(runs_of_a_task)
        for n in range(count)
    ]
    run = judged(tmp_path / "run", runs)
    export(run, "trl-messages", tmp_path / "out", "--test-share", share)
    screen = " ".join(capsys.readouterr().out.split())
    assert (told in screen) if told else ("--test-share" not in screen)


def test_held_out_tasks_are_not_learned(pairs: Path, tmp_path: Path) -> None:
    tasks = tmp_path / "tasks.txt"
    tasks.write_text(
        f"# evaluated on\n{key(1).benchmark}/{key(1).task_id}\n{key(2).task_id}  # too\n"
    )
    folder = export(pairs, "trl-kto", tmp_path / "out", "--held-out", tasks)
    assert {row["trajudge"]["task_id"] for row in rows(folder)} == {key(0).task_id}
    counts = json.loads((tmp_path / "out" / "acceptance.json").read_text())["counts"]
    assert counts["held-out task"] == 4


def test_held_out_tasks_that_match_no_run_are_named(
    pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks = tmp_path / "tasks.txt"
    tasks.write_text(f"{key(1).task_id}\nwebarena.typo\nother/{key(2).task_id}\n")
    export(pairs, "trl-kto", tmp_path / "out", "--held-out", tasks)
    told = on_one_line(capsys.readouterr().out)
    names = f"webarena.typo, other/{key(2).task_id}"
    assert f"2 of 3 held-out tasks match no run: {names}" in told
    tasks.write_text(f"{key(1).task_id}\n")
    export(pairs, "trl-kto", tmp_path / "all", "--held-out", tasks)
    assert "match no run" not in capsys.readouterr().out


def test_the_same_input_gives_the_same_bytes(pairs: Path, tmp_path: Path) -> None:
    for layout in ("trl-kto", "llamafactory"):
        one, two = (export(pairs, layout, tmp_path / name).parent for name in ("one", "two"))
        written = [
            {file.relative_to(out): file.read_bytes() for file in out.rglob("*") if file.is_file()}
            for out in (one, two)
        ]
        assert written[0] == written[1]
        assert {Path("accepted.jsonl"), Path("rejected.jsonl")} <= written[0].keys()


def test_a_file_of_an_earlier_call_does_not_stay(pairs: Path, tmp_path: Path) -> None:
    folder = export(pairs, "hf", tmp_path / "out", "--test-share", 0.3)
    assert len(rows(folder, "test")) == 1
    export(pairs, "hf", tmp_path / "out")
    assert not (folder / "test.parquet").exists()


def test_the_card_says_who_accepted_and_how_sure_that_is(pairs: Path, tmp_path: Path) -> None:
    card = (export(pairs, "hf", tmp_path / "out") / "README.md").read_text(encoding="utf-8")
    assert "the share of true successes is not known" in card
    assert "| agents (runs) | good (3) |" in card


@pytest.mark.parametrize(
    ("layout", "files"),
    [
        ("hf", {"train.parquet"}),
        ("llamafactory", {"train.jsonl", "dataset_info.json"}),
        ("axolotl", {"train.jsonl", "axolotl.yml"}),
    ],
)
def test_a_layout_has_the_file_of_its_trainer(
    pairs: Path, tmp_path: Path, layout: str, files: set[str]
) -> None:
    folder = export(pairs, layout, tmp_path / "out")
    assert {file.name for file in folder.iterdir()} == files | {"README.md"}


@mistakes(
    """
    --format trl-kto --per trajectory => a row of --format trl-kto is a step
    --per-task 2 => give --format, too
    --with-screenshots => give --format, too
    --format hf --test-share 1 => --test-share
    --format trl-kto --rejected-below 0.9 => above the threshold
    --held-out none => --held-out none: cannot be read
    """
)
def test_a_mistake_is_one_sentence(
    pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], sentence: str
) -> None:
    given = ["--judge", "judge", "--threshold", 0.8, "--run", pairs, "--out", tmp_path / "out"]
    assert accept(*given, *words) == 2
    one_sentence(capsys, sentence)
    assert not (tmp_path / "out" / "accepted.jsonl").exists()
