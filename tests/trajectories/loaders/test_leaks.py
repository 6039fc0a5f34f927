"""What a format says of right and wrong never reaches a judge: marks in each of its ``LEAKS``."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatch
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.judges.judge_prompts import KINDS as JUDGES
from tests.judges.judge_prompts import prompts
from tests.judges.runs import StagedAsk, png, texts
from tests.trajectories.loaders import made, made_logs
from tests.trajectories.loaders.cua_made import OPINIONS
from tests.trajectories.loaders.mutated_files import MADE
from tests.trajectories.loaders.released.answer_lines import answer_line
from tests.trajectories.loaders.released.toolcall_runs import RUN, written
from trajudge.trajectories.loaders import KINDS, loader, open_source
from trajudge.trajectories.model import Loaded, Step, Trajectory

# Where the names of a loader that gives no file stand.
PLACES = {
    "cuaverifierbench": ("trajectories/*.parquet",),
    "inspect": ("*.eval",),
    "messages": ("*.json", "*.jsonl"),
}
# A float of single precision holds it exactly.
NUMBER = 15_243_421


def mark(number: int) -> str:
    """A text of 40 characters that stands nowhere else."""
    return f"LEAK{number:02}".ljust(40, "Q")


def leaks(kind: str) -> list[str]:
    """The loader's leaks, each ``FILE`` or ``FILE:PATH``."""
    names = list(loader(kind).LEAKS)
    if kind in PLACES:
        names = [f"{place}:{name}" for place in PLACES[kind] for name in names]
    if kind == "cuaverifierbench":
        told = [name for name in OPINIONS.names if name not in ("task_id", "annotator")]
        names += [f"annotations/*.parquet:{name}" for name in told]
    return names


def plant(root: Path, leak: str, text: str) -> int:
    """Put the text into every place of a leak; how many there were."""
    pattern, _, path = leak.partition(":")
    files = [
        file
        for file in sorted(root.rglob("*"))
        if file.is_file() and fnmatch(str(file.relative_to(root)), f"*{pattern.replace('**/', '')}")
    ]
    if not files and "*" not in pattern:
        files = [root / pattern]
    for file in files:
        if not path:
            file.write_text(text)
        elif file.suffix == ".parquet":
            _in_table(file, path, text)
        elif file.suffix == ".eval":
            _in_archive(file, path, text)
        elif file.suffix == ".html":
            # Behind the goal, which goes on to the next field of the task.
            goal = f"intent: {made_logs.TASK['intent']}\n"
            content = file.read_text()
            assert goal in content
            file.write_text(content.replace(goal, f"{goal}{path}: {text}\n", 1))
        elif file.suffix == ".jsonl":
            lines = [json.loads(line) for line in file.read_text().splitlines()]
            file.write_text("".join(json.dumps(_put(one, path, text)) + "\n" for one in lines))
        elif file.suffix == ".json":
            file.write_text(json.dumps(_put(json.loads(file.read_text()), path, text)))
    return len(files)


def _put(value: Any, path: str, text: str) -> Any:
    """The value with the text at a path such as ``history[*].result.judgement``."""
    head, _, rest = path.removeprefix("[*].").partition(".")
    name, is_list = head.removesuffix("[*]"), head.endswith("[*]")
    if not isinstance(value, dict):
        return value
    if not rest:
        return {**value, name: text}
    inner = value.get(name, [] if is_list else {})
    if is_list and isinstance(inner, list):
        return {**value, name: [_put(one, rest, text) for one in inner]}
    return {**value, name: inner if is_list else _put(inner, rest, text)}


def _in_table(file: Path, column: str, text: str) -> None:
    """A column of numbers gets a number that stands nowhere else."""
    table = pq.read_table(file)
    rows = table.to_pylist()
    for row in rows:
        row[column] = text if table.schema.field(column).type == "string" else NUMBER
    pq.write_table(table.from_pylist(rows, schema=table.schema), file)


def _in_archive(file: Path, path: str, text: str) -> None:
    with zipfile.ZipFile(file) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            told = name.startswith("samples/")
            changed = json.dumps(_put(json.loads(content), path, text)) if told else content
            archive.writestr(name, changed)


def toolcalls(root: Path) -> Path:
    root.mkdir()
    return written(root, [RUN])


def answers(root: Path) -> Path:
    root.mkdir()
    (root / "results.jsonl").write_text(answer_line("a") + answer_line("b"))
    return root


def maker(kind: str) -> Callable[[Path], object]:
    """What writes a sample of the kind: one of those here, or ``sample`` of its own tests."""
    made_here = MADE | {"toolcalls": toolcalls, "browser-use-answers": answers}
    if kind in made_here:
        return made_here[kind]
    own = f"{__package__}.test_{kind.replace('-', '_')}"
    if find_spec(own) is None:
        pytest.skip(f"{own} has no sample(root)")
    write: Callable[[Path], object] = import_module(own).sample
    return write


def sample(kind: str, root: Path) -> list[str]:
    """Write the kind's sample with a mark in every leak; the marks."""
    names = leaks(kind)
    marks = [mark(number) for number in range(len(names))]
    if kind == "browsergym":
        told = dict(zip(("reward", "task_info"), marks[1:], strict=True))
        made.browsergym(root / "2025-01-02_00-00-00_A_on_webarena.3_5", steps=2, told=dict(told))
    else:
        maker(kind)(root)
    for name, text in zip(names, marks, strict=True):
        assert plant(root, name, text), f"{kind}: the sample has no file of {name}"
    return [*marks, str(NUMBER)]


def shown(run: Trajectory) -> Iterator[str]:
    """Everything that is shown, or may be: the run without what no judge is shown, and all
    prompts of all judges on it, a real picture at each step."""
    hidden = {"official_reward", "telemetry", "metadata", "key", "raw_task_id"}
    yield json.dumps(run.model_dump(exclude=hidden), default=str)
    steps = tuple(
        step.model_copy(
            update={
                "observation": step.observation.model_copy(
                    update={"screenshot": png(), "axtree": step.observation.axtree or "Root"}
                )
            }
        )
        for step in run.steps or (Step(index=0, action="stop()"),)  # answers have no step
    )
    whole = run.model_copy(update={"steps": steps, "goal_images": (), "goal": run.goal or "Buy"})
    for judge in JUDGES:
        yield from texts(m for asked in prompts(judge, whole, StagedAsk()) for m in asked.messages)


def leaked(runs: Iterable[Trajectory], marks: Sequence[str]) -> set[str]:
    """The marks that are shown."""
    return {text for run in runs for one in shown(run) for text in marks if text in one}


def loaded(items: Loaded) -> list[Trajectory]:
    return [item for item in items if isinstance(item, Trajectory)]


@pytest.mark.parametrize("kind", KINDS)
def test_no_label_and_no_verdict_is_shown(kind: str, tmp_path: Path) -> None:
    root = tmp_path / "root"
    marks = sample(kind, root)
    runs = loaded(open_source(f"{kind}:{root}"))
    assert runs, "nothing was loaded, so nothing was checked"
    assert leaked(runs[:2], marks) == set()


@pytest.mark.parametrize("field", ["goal", "answer", "reasoning", "url"])
def test_a_planted_leak_is_found(field: str, tmp_path: Path) -> None:
    """A loader that reads what it must not."""
    marks = sample("fara", tmp_path / "root")
    run = loaded(open_source(f"fara:{tmp_path / 'root'}"))[0]
    score = json.loads(next((tmp_path / "root").rglob("mmrubric*.json")).read_text())
    told = score["gpt_response_text"]
    first = run.steps[0]
    if field in ("goal", "answer"):
        run = run.model_copy(update={field: told})
    elif field == "reasoning":
        step = first.model_copy(update={"reasoning": f"I think: {told}"})
        run = run.model_copy(update={"steps": (step, *run.steps[1:])})
    else:
        seen = first.observation.model_copy(update={"url": f"https://x.example/?{told}"})
        step = first.model_copy(update={"observation": seen})
        run = run.model_copy(update={"steps": (step, *run.steps[1:])})
    assert leaked([run], marks) == {told}


def texts_in(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        value = [*value.values()]
    if isinstance(value, list):
        for one in value:
            yield from texts_in(one)
    elif isinstance(value, str):
        yield value


def test_what_the_real_verifier_wrote_is_in_no_prompt(real_data: Path) -> None:
    """Of its texts longer than 30 characters, beyond what the agent itself wrote."""
    folder = real_data / "fara_trajectory" / "alltrails_find_23"
    score = json.loads((folder / "scores" / "mmrubric_0.8-5-3.json").read_text())
    rubric = json.loads(score["gpt_response_text"])
    own = (folder / "web_surfer.log").read_text()
    written = {text for text in texts_in(rubric) if len(text) > 30 and text not in own}
    assert len(written) > 20
    [run] = loaded(open_source(str(folder)))
    assert leaked([run], [*written]) == set()
    rows = loaded(open_source(str(real_data / "cuaverifierbench")))
    assert leaked(rows, [*written]) == set()
