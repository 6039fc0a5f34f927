"""Values of other types than a format promises are read, or named: in pickles that a program of
another class wrote, and in JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.trajectories.loaders.made import browsergym, split
from trajudge.trajectories.loaders.browsergym import load
from trajudge.trajectories.loaders.values import Values
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
    [warning] = run.metadata["warnings"]  # type: ignore[misc]
    assert str(warning).startswith("summary_info.json is not read (")


def test_a_value_of_one_kind_is_named_five_times_at_most() -> None:
    warnings: list[str] = []
    values = Values(warnings)
    for at in range(9):
        assert values.flag([at], "done", f"of step {at}") is None
    assert len(warnings) == 5
    assert warnings[0] == "The done of step 0 is not read: the type list is not read."
