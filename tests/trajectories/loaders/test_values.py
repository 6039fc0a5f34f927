"""Values of other types than a format promises are read, or named: in pickles that a program of
another class wrote, and in JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.trajectories.loaders import conversations, inspect_made, made_logs
from tests.trajectories.loaders.made import browsergym, fara, judgment, mind2web, split, webvoyager
from trajudge.app.web import json_page
from trajudge.trajectories import store
from trajudge.trajectories.loaders import loader
from trajudge.trajectories.loaders._run import Values
from trajudge.trajectories.loaders.browsergym import load
from trajudge.trajectories.model import Trajectory, Unreadable

# A module that the reading process cannot import, with what agents put where a text belongs.
_MODULE = """
import enum
class Text(str): pass
class Said(str):
    def __init__(self, text): self.tokens = 7
class Action(str, enum.Enum):
    CLICK = "click('a')"
class Plain(enum.Enum):
    CLICK = "click('a')"
class Number(enum.IntEnum):
    TWO = 2
class Seed(int): pass
class Actions(list): pass
class Opaque:
    def __init__(self): self.bid = "a"
class Command:
    def __init__(self, name, bid): self.name, self.bid = name, bid
    def __reduce__(self): return Command, (self.name, self.bid)
"""
_WRITER = """
import gzip, pickle, sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from theirs import *
folder, protocol, action, answer, seed = sys.argv[2], int(sys.argv[3]), *map(eval, sys.argv[4:7])
def save(name, value):
    opened = gzip.open if name.endswith("gz") else open
    with opened(f"{folder}/{name}", "wb") as file:
        pickle.dump(value, file, protocol)
chat = [{"role": Text("user"), "message": "Buy"}, {"role": "assistant", "message": answer}]
obs = {"chat_messages": chat, "open_pages_urls": np.array(["http://a", "http://b"]),
       "active_page_index": np.array([1]), "axtree_txt": np.str_("Tree"), "last_action_error": ""}
save("step_0.pkl.gz", {"obs": obs, "action": action, "agent_info": {"think": Text("Hm.")}})
save("step_1.pkl.gz", {"obs": obs, "action": None, "agent_info": {}})
save("goal_object.pkl.gz", [{"type": "text", "text": np.str_("Buy")}])
save("exp_args.pkl", {"agent_args": {"agent_name": Text("Theirs"), "model_name": np.str_("m")},
                      "env_args": {"task_name": np.str_("webarena.3"), "task_seed": seed}})
"""
NAME = "2025-01-02_03-04-05_A_on_webarena.3_5"


def _written(
    tmp_path: Path, action: str, *, answer: str = "'Bought.'", seed: str = "5", protocol: int = 4
) -> Trajectory | Unreadable:
    """The run whose pickles another process wrote; the values are Python expressions."""
    folder = browsergym(tmp_path / "runs" / NAME, steps=1)
    (tmp_path / "theirs.py").write_text(_MODULE)
    values = [str(tmp_path), str(folder), str(protocol), action, answer, seed]
    subprocess.run([sys.executable, "-c", _WRITER, *values], check=True, timeout=60)
    [run] = load(tmp_path / "runs")
    return run


@pytest.mark.parametrize(
    ("action", "read"),
    [
        ("np.str_(\"click('a')\")", "click('a')"),
        ("np.array(\"click('a')\")", "click('a')"),
        ("Text(\"click('a')\")", "click('a')"),
        ("Said(\"click('a')\")", "click('a')"),
        ("Action.CLICK", "click('a')"),
        ("Plain.CLICK", "click('a')"),
        ("[Text(\"click('a')\"), \"click('b')\"]", "click('a')\nclick('b')"),
        ("Actions([\"click('a')\"])", "click('a')"),
        ("np.array([\"click('a')\", 'stop'], dtype=object)", "click('a')\nstop"),
        ("{'name': 'click', 'bid': np.int64(3)}", '{"name": "click", "bid": 3}'),
        ("np.bytes_(b'noop()')", "noop()"),
        ("b'noop()'", "noop()"),
        ("Number.TWO", "2"),
    ],
)
def test_a_text_of_another_type_is_read(tmp_path: Path, action: str, read: str) -> None:
    run = _written(tmp_path, action, answer="Said('Bought.')", seed="np.int64(5)")
    assert isinstance(run, Trajectory)
    assert [step.action for step in run.steps] == [read, None]
    assert (run.answer, run.goal, run.steps[0].reasoning) == ("Bought.", "Buy", "Hm.")
    assert (run.steps[0].observation.url, run.steps[0].observation.axtree) == ("http://b", "Tree")
    assert (run.key.agent, run.key.task_id) == ("Theirs", "webarena.3")
    assert (run.metadata["model"], run.metadata["seed"]) == ("m", 5)
    assert [one for one in run.metadata["warnings"] if "screenshot" not in str(one)] == []  # type: ignore[union-attr]


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 5])
def test_every_protocol_tells_a_subclass_of_a_text(tmp_path: Path, protocol: int) -> None:
    run = _written(tmp_path, "Text('noop()')", seed="Seed(5)", protocol=protocol)
    assert isinstance(run, Trajectory)
    assert (run.steps[0].action, run.metadata["seed"]) == ("noop()", 5)


@pytest.mark.parametrize(
    ("action", "kind"), [("Opaque()", "theirs.Opaque"), ("Command('click', 'a')", "theirs.Command")]
)
def test_a_run_of_whose_actions_none_is_read_is_unreadable(
    tmp_path: Path, action: str, kind: str
) -> None:
    run = _written(tmp_path, action)
    assert isinstance(run, Unreadable)
    assert run.reason == (
        "no action of it can be read. The action of step_0.pkl.gz is not read: the type "
        f"{kind} is not read."
    )


def test_an_answer_of_an_unknown_type_is_named(tmp_path: Path) -> None:
    run = _written(tmp_path, "'noop()'", answer="Opaque()", seed="[1, 2]")
    assert isinstance(run, Trajectory)
    assert (run.answer, run.metadata["seed"]) == (None, None)
    assert {
        "The task_seed is not read: the type list is not read.",
        "The message of the agent is not read: the type theirs.Opaque is not read.",
    } <= {*run.metadata["warnings"]}  # type: ignore[misc]


def test_one_list_named_many_times_is_no_bomb(tmp_path: Path) -> None:
    layers = "(lambda f, n: f(f, n))(lambda f, n: [0] if n == 0 else [f(f, n - 1)] * 9, 12)"
    run = _written(tmp_path, layers)
    assert isinstance(run, Unreadable)
    assert "more than 200,000 parts" in run.reason


def _summary(tmp_path: Path, **fields: Any) -> Trajectory:
    folder = browsergym(tmp_path / NAME, steps=1)
    file = folder / "summary_info.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | fields))
    [run], [] = split(load(folder))
    return run


@pytest.mark.parametrize(
    ("value", "reward", "named"),
    [
        (True, 1.0, ""),
        ("0.5", 0.5, ""),
        ("true", 1.0, ""),
        (1e300, 1e300, ""),
        (2**70, float(2**70), ""),
        (None, None, ""),
        ("", None, ""),
        (float("nan"), None, "the number is nan"),
        (float("-inf"), None, "the number is -inf"),
        ("won", None, "the text is no number"),
        ({"a": 1}, None, "the type dict is not read"),
        (10**301, None, "the number is too large"),
    ],
)
def test_a_reward_is_read_or_named(
    tmp_path: Path, value: object, reward: float | None, named: str
) -> None:
    run = _summary(tmp_path, cum_reward=value)
    assert run.official_reward == reward
    sentence = [f"The reward cum_reward is not read: {named}."] if named else []
    assert run.metadata["warnings"] == sentence


def test_truth_values_are_read_or_named(tmp_path: Path) -> None:
    run = _summary(tmp_path, terminated=1, truncated="perhaps")
    assert (run.terminated, run.truncated) == (True, None)
    assert run.metadata["warnings"] == ["The truncated is not read: the type str is not read."]


@pytest.mark.parametrize("content", ["{", "[]", "\xff"])
def test_a_summary_that_cannot_be_read_is_a_warning(tmp_path: Path, content: str) -> None:
    folder = browsergym(tmp_path / NAME, steps=1)
    (folder / "summary_info.json").write_bytes(content.encode("latin-1"))
    [run], [] = split(load(folder))
    assert run.official_reward is None
    [warning] = _warnings(run)
    assert warning.startswith("summary_info.json is not read (")


def test_a_value_of_one_kind_is_named_five_times_at_most() -> None:
    warnings: list[str] = []
    values = Values(warnings)
    for at in range(9):
        assert values.flag([at], "done", f"of step {at}") is None
    assert len(warnings) == 5
    assert warnings[0] == "The done of step 0 is not read: the type list is not read."


def _sets() -> set[int]:
    return {1}


@pytest.mark.parametrize(
    ("read", "value", "result", "kind"),
    [
        ("name", 3.0, "3", ""),
        ("name", 2.5, None, "float"),
        ("name", True, None, "bool"),
        ("name", 10**100 - 1, "9" * 100, ""),
        ("name", -(10**100), None, "int"),
        ("name", " ", None, ""),
        ("name", None, None, ""),
        ("flag", " True ", True, ""),
        ("flag", "", None, ""),
        ("flag", None, None, ""),
        ("flag", 0.0, False, ""),
        ("flag", 2, None, "int"),
        ("whole", " +5 ", 5, ""),
        ("whole", "9" * 18, 10**18 - 1, ""),
        ("whole", "9" * 19, None, "str"),
        ("whole", 5.0, 5, ""),
        ("whole", 5.5, None, "float"),
        ("whole", True, None, "bool"),
        ("whole", "", None, ""),
        ("whole", None, None, ""),
        ("number", " ", None, ""),
        ("number", False, 0.0, ""),
        ("number", _sets(), None, "set"),
        ("text", float("nan"), None, ""),
        ("text", 1.5, "1.5", ""),
        ("text", ["a", "b"], "a\nb", ""),
        ("text", ["a", 1], '["a", 1]', ""),
        ("text", b"a", "a", ""),
        ("text", b"\xff", None, "bytes"),
        ("text", _sets(), None, "set"),
        ("entries", None, (), ""),
        ("entries", "a", (), "str"),
        ("inline_picture", "", None, ""),
    ],
)
def test_a_value_is_read_or_its_type_named(
    read: str, value: object, result: object, kind: str
) -> None:
    values = Values()
    found = getattr(values, read)(value, "field")
    assert (found, type(found)) == (result, type(result))
    said = f"The field is not read: the type {kind} is not read."
    assert values.warnings == ([said] if kind else [])


def _released(folder: Path, name: str, record: dict[str, Any]) -> None:
    conversations.write(folder / name, [record])


_CALLED = {"thought": "Hm.", "call": {"tool": "click", "args": {"id": 1}}, "observation": "Tea"}
_RUN = {"trajectory_id": "t", "instance_id": "i", "goal": "Buy", "steps": [_CALLED]}
_SUMMARY = ("trajectory_info", "summary_info")
_ANSWERED = {"task_id": "t", "task": "Buy", "final_result_response": "Done."}
_SAMPLES: dict[str, Any] = {
    "browser-use": lambda folder: made_logs.browser_use(folder / "agent" / "task"),
    "osworld": made_logs.osworld,
    "webvoyager": lambda folder: webvoyager(folder / "taskA--1"),
    "online-mind2web": lambda folder: mind2web(folder / "a"),
    "agentrewardbench-text": judgment,
    "fara": lambda folder: fara(folder / "task"),
    "toolcalls": lambda folder: _released(
        folder, "trajectories.jsonl", {**_RUN, "final_answer": "Done."}
    ),
    "browser-use-answers": lambda folder: _released(folder, "results.jsonl", _ANSWERED),
    "messages": lambda folder: conversations.write(
        folder / "a.json",
        {"id": "t", "goal": "Buy", "reward": 1, "messages": conversations.anthropic()},
    ),
    "inspect": lambda folder: inspect_made.write(folder / "a.json", inspect_made.sample()),
    "webarena-html": lambda folder: (
        made_logs.webarena_html(folder),
        (folder / "results.json").write_text('{"7": 1.0}'),
    ),
}
# The fields that a run is made of: where they stand, in which file.
_FIELDS = [
    ("browser-use", "*.json", ("history", -1, "result", -1, "extracted_content")),
    ("browser-use", "*.json", ("history", -1, "result", -1, "is_done")),
    ("browser-use", "*.json", ("history", -1, "result", -1, "success")),
    ("browser-use", "*.json", ("history", 0, "state", "url")),
    ("browser-use", "*.json", ("history", 0, "model_output", "memory")),
    ("browser-use", "*.json", ("history", 0, "model_output", "action")),
    ("browser-use", "*.json", ("history", 0, "model_output", "action", 0)),
    ("osworld", "traj.jsonl", ("step_num",)),
    ("osworld", "traj.jsonl", ("action",)),
    ("osworld", "traj.jsonl", ("response",)),
    ("osworld", "traj.jsonl", ("done",)),
    ("osworld", "traj.jsonl", ("instruction",)),
    ("webvoyager", "interact_messages.json", (2, "content")),
    ("webvoyager", "interact_messages.json", (1, "content", 0, "text")),
    *(("online-mind2web", "result.json", (name,)) for name in ("task_id", "task", "thoughts")),
    *(("online-mind2web", "result.json", (name,)) for name in ("final_result_response",)),
    ("online-mind2web", "result.json", ("action_history", 0)),
    ("online-mind2web", "result.json", ("action_history",)),
    ("agentrewardbench-text", "*.json", ("goal",)),
    ("agentrewardbench-text", "*.json", ("trajectory_info", "seed")),
    ("agentrewardbench-text", "*.json", ("trajectory_info", "summary_info", "cum_reward")),
    ("agentrewardbench-text", "*.json", ("trajectory_info", "summary_info", "terminated")),
    ("fara", "*_answer.json", ("final_answer",)),
    ("fara", "*_answer.json", ("is_aborted",)),
    ("fara", "*_answer.json", ("screenshots",)),
    ("fara", "task_data.json", ("task_proposal",)),
    ("fara", "web_surfer.log", ("arguments",)),
    ("fara", "web_surfer.log", ("url",)),
    *(("toolcalls", "*.jsonl", (name,)) for name in ("goal", "final_answer", "instance_id")),
    *(("toolcalls", "*.jsonl", ("steps", 0, name)) for name in ("thought", "observation")),
    ("toolcalls", "*.jsonl", ("steps", 0, "call")),
    ("toolcalls", "*.jsonl", ("steps", 0, "call", "args")),
    *(("browser-use-answers", "*.jsonl", (name,)) for name in _ANSWERED),
    *(("messages", "a.json", (name,)) for name in ("id", "goal", "reward", "messages")),
    ("messages", "a.json", ("messages", -1, "content")),
    ("messages", "a.json", ("messages", -1, "content", 0, "text")),
    ("messages", "a.json", ("messages", 1, "content", 0, "name")),
    ("messages", "a.json", ("messages", 1, "content", 0, "input")),
    ("inspect", "a.json", ("samples", 0, "input")),
    ("inspect", "a.json", ("samples", 0, "scores", "match", "value")),
    ("inspect", "a.json", ("samples", 0, "output", "completion")),
    ("inspect", "a.json", ("samples", 0, "messages", 1, "content")),
    ("inspect", "a.json", ("samples", 0, "messages", 1, "tool_calls")),
    ("inspect", "a.json", ("samples", 0, "messages", 1, "tool_calls", 0, "function")),
    ("webarena-html", "results.json", ("7",)),
]


_VALUES = ([{"mark-7": 1}], {"mark-7": 1}, "mark-7", 2**73)


@pytest.mark.parametrize(
    ("kind", "pattern", "path"), _FIELDS, ids=lambda part: str(part).replace(" ", "")
)
def test_no_value_of_another_type_vanishes(
    tmp_path: Path, kind: str, pattern: str, path: tuple[Any, ...]
) -> None:
    """It stands in the run, or a warning names it, or the run cannot be read."""
    _SAMPLES[kind](tmp_path)
    before = {one for run in _loaded(kind, tmp_path) for one in _warnings(run)}
    file = max(tmp_path.rglob(pattern), key=lambda one: one.stat().st_size)
    text = file.read_text()
    lines = text.splitlines() if file.suffix in (".jsonl", ".log") else [text]
    record = holder = json.loads(lines[0])
    for part in path[:-1]:
        holder = holder[part]
    for value in _VALUES:
        holder[path[-1]] = value
        file.write_text("\n".join([json.dumps(record), *lines[1:]]))
        for run in _loaded(kind, tmp_path):
            if isinstance(run, Unreadable):
                assert run.reason
            elif before.issuperset(_warnings(run)):
                shown = repr(run.model_dump(exclude={"metadata": {"warnings"}}))
                marks = (str(value), str(float(value))) if isinstance(value, int) else ("mark-7",)
                assert any(mark in shown for mark in marks), (value, shown)


@pytest.mark.parametrize(
    ("kind", "name", "path"),
    [
        ("messages", "a.json", ("reward",)),
        ("inspect", "a.json", ("samples", 0, "scores", "match", "value")),
        ("agentrewardbench-text", "webarena.1.json", (*_SUMMARY, "cum_reward")),
        ("webarena-html", "results.json", ("7",)),
        ("trajudge", "trajectories.jsonl", ("official_reward",)),
    ],
)
def test_a_reward_of_nan_is_named(
    tmp_path: Path, kind: str, name: str, path: tuple[Any, ...]
) -> None:
    if kind == "trajudge":
        _SAMPLES["messages"](tmp_path / "source")
        runs = list(_loaded("messages", tmp_path / "source"))
        store.write(tmp_path, [run for run in runs if isinstance(run, Trajectory)])
    else:
        _SAMPLES[kind](tmp_path)
    [file] = tmp_path.rglob(name)
    record = holder = json.loads(file.read_text())
    for part in path[:-1]:
        holder = holder[part]
    holder[path[-1]] = float("nan")
    file.write_text(json.dumps(record))
    [run] = _loaded(kind, tmp_path)
    assert isinstance(run, Trajectory)
    assert run.official_reward is None
    assert any("is not read" in one for one in _warnings(run)), _warnings(run)


def test_integers_of_more_than_64_bits_are_written(tmp_path: Path) -> None:
    """An agent's arguments and a run's metadata hold what other programs wrote there."""
    called = {**_CALLED, "observation": {"id": 2**70}, "call": {"tool": "a", "args": {"n": 2**70}}}
    _released(tmp_path, "trajectories.jsonl", {**_RUN, "steps": [called]})
    [run] = _loaded("toolcalls", tmp_path)
    assert isinstance(run, Trajectory)
    assert run.steps[0].action == f"a(n={2**70})"
    assert run.steps[1].observation.axtree == f'{{"id":{2**70}}}'
    changed = run.model_copy(update={"metadata": {"seed": 2**70, "half": "\ud800"}})
    store.write(tmp_path / "out", [changed])
    [again] = _loaded("trajudge", tmp_path / "out")
    assert isinstance(again, Trajectory)
    assert again.metadata["seed"] == 2**70
    assert json.loads(bytes(json_page({"n": 2**70}).body)) == {"n": 2**70}


def _loaded(kind: str, folder: Path) -> list[Trajectory | Unreadable]:
    return list(loader(kind).load(folder, lambda _: True))


def _warnings(run: Trajectory | Unreadable) -> list[str]:
    listed = [] if isinstance(run, Unreadable) else run.metadata.get("warnings", [])
    assert isinstance(listed, list)
    return [str(one) for one in listed]
