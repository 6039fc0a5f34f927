"""What judges declare that they must see: all that they show, and never a verdict on less."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PIL import Image

from tests.judges.methods.replies import BROWSER_USE as JUDGEMENT
from tests.judges.methods.replies import INSTA, logprobs
from tests.judges.runs import GOOD, pictures, texts
from tests.samples import examples
from tests.worlds import agentrewardbench_like as like
from trajudge.judges.judging import BaseClient, CallArgs, judge_trajectory
from trajudge.judges.methods.claims_first import ASSUMED_CLAIMS
from trajudge.judges.model import Call, Judgment, Reply, Status
from trajudge.judges.registry import JUDGES, make_judge, needs_of
from trajudge.trajectories import store
from trajudge.trajectories.loaders import agentrewardbench, trajudge
from trajudge.trajectories.model import (
    ImageRef,
    Observation,
    Step,
    Trajectory,
    TrajectoryKey,
)
from trajudge.trajectories.needs import (
    EVERYTHING,
    FINAL,
    Needs,
    Shown,
    last,
    needed_pictures,
    spread,
    union,
)
from trajudge.util.errors import UserError

STATUS = "Thoughts: fine.\nStatus: success\nReward: 4"
FINDINGS = {
    "reasoning": "Step 1 shows it.",
    "side_effect_steps": [],
    "side_effect": False,
    "outcome": True,
}
DOUBTED = {"reasoning": "No page shows it.", "side_effect": False, "success": False}
COMPOSED = {"of": {"members": [{"name": "webvoyager"}, {"name": "aer-c"}]}}
# Every judge, and every option of its that changes what it shows.
CASES: tuple[tuple[str, dict[str, Any]], ...] = (
    *(("simplified", {"representation": r}) for r in ("axtree", "screenshot", "both", "none")),
    *(("simplified", {"representation": "both", "frames": n}) for n in (2, 3, 9)),
    ("aer-c", {}),
    ("aer-v", {}),
    ("aer-v", {"variant": "original"}),
    ("nnetnav", {}),
    ("webvoyager", {}),
    ("webvoyager", {"screenshots": 2}),
    ("webjudge", {}),
    ("webjudge", {"screenshots": 1}),
    ("browser-use", {}),
    ("browser-use", {"screenshots": 2}),
    ("browser-use", {"representation": "none"}),
    ("insta", {}),
    ("insta", {"observations": 2}),
    ("webvoyager", {"unanswered": "failure"}),
    *(("logprob", {"representation": r}) for r in ("axtree", "screenshot", "both", "none")),
    ("claims-first", {}),
    ("claims-first", {"pages": 1}),
    ("rubric", {}),
    ("rubric", {"representation": "none"}),
    ("panel", COMPOSED),
    ("cascade", COMPOSED),
    ("heuristic", {}),
    ("rule-based", {}),
)
DAMAGES = ("whole", "whole", "whole", "gone", "empty", "cut", "garbled", "pointer", "unnamed")


class Answering(BaseClient):
    """A model that understands every prompt, and keeps what it was shown."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.asked: list[CallArgs] = []
        self.calls: list[Call] = []

    async def answer(self, asked: CallArgs) -> Reply:
        self.asked.append(asked)
        if not asked.stage.endswith("verdict"):
            return Reply(text=asked.assume)
        if self.name == "logprob":
            return Reply(text="Yes", logprobs=logprobs(("Yes", {"Yes": 0.8, "No": 0.2})))
        return Reply(text=self._verdict(asked))

    def _verdict(self, asked: CallArgs) -> str:
        if self.name == "rubric":
            prompt = "\n".join(texts(asked.messages))
            count = max(n for n in range(1, 20) if f"\n{n}. " in f"\n{prompt}")
            found = [{"criterion": n + 1, "steps": [], "score": 1} for n in range(count)]
            return json.dumps(FINDINGS | {"findings": found})
        if self.name == "claims-first":
            claims = json.loads(ASSUMED_CLAIMS)["claims"]
            held = [{"claim": n + 1, "holds": False} for n in range(len(claims))]
            return json.dumps({"claims": held, "requirements": [], **DOUBTED})
        return {"simplified": GOOD, "insta": INSTA, "browser-use": JUDGEMENT}.get(self.name, STATUS)

    @property
    def shown(self) -> set[str]:
        return {shot.sha256 for asked in self.asked for shot in pictures(asked.messages)}

    @property
    def told(self) -> str:
        return "\n".join(text for asked in self.asked for text in texts(asked.messages))


def png(shade: int) -> bytes:
    buffer = BytesIO()
    Image.new("L", (8, 8), shade).save(buffer, "PNG")
    return buffer.getvalue()


class Copy(NamedTuple):
    """Screenshots of a run by step; which of them the run names."""

    folder: Path
    kind: str
    images: Mapping[int, Path]

    def read(self) -> Trajectory:
        load = trajudge.load if self.kind == "trajudge" else agentrewardbench.load
        (found,) = load(self.folder)
        assert isinstance(found, Trajectory)
        return found


def copy_of(folder: Path, kind: str, steps: int, unnamed: set[int]) -> Copy:
    """A complete copy of a run, its trees and pictures different at every step."""
    made = like.trajectory(np.random.default_rng(0), size=100 * steps, n_steps=steps)
    made["steps"][-1]["action"] = "send_msg_to_user('The answer is 42.')"
    images = {}
    for index, step in enumerate(made["steps"]):
        step["axtree"] = step["axtree_pruned"] = f"RootWebArea 'Page number {index}'"
        if index in unnamed:
            step["screenshot_path"] = None
        else:
            images[index] = folder / step["screenshot_path"].removeprefix("trajectories/")
            images[index].parent.mkdir(parents=True, exist_ok=True)
            images[index].write_bytes(png(index))
    like.write(folder, made)
    if kind == "trajudge":
        store.write(folder / "own", agentrewardbench.load(folder))  # type: ignore[arg-type]
        stored = folder / "own" / "images"
        images = {i: stored / f"{sha256(png(i)).hexdigest()}.png" for i in images}
        return Copy(folder / "own", kind, images)
    return Copy(folder, kind, images)


def damage(path: Path, how: str) -> None:
    data = path.read_bytes()
    if how == "gone":
        path.unlink()
    elif how == "garbled":
        path.write_bytes(data[:45] + bytes([data[45] ^ 255]) + data[46:])
    else:
        pointer = b"version https://git-lfs.github.com/spec/v1\n"
        path.write_bytes({"empty": b"", "cut": data[:-20], "pointer": pointer}[how])


def judged(name: str, options: dict[str, Any], run: Trajectory) -> tuple[Judgment, Answering]:
    ask = Answering(name)
    judge_id, judge = make_judge(name, options)
    needs = needs_of(name, options)
    return asyncio.run(judge_trajectory(judge_id, judge, run, ask, needs=needs)), ask


@settings(max_examples=examples(40))
@given(
    case=st.sampled_from(CASES),
    kind=st.sampled_from(("agentrewardbench", "trajudge")),
    damages=st.lists(st.sampled_from(DAMAGES), min_size=1, max_size=5),
)
@example(case=("claims-first", {}), kind="agentrewardbench", damages=["whole"])
def test_no_judge_says_ok_of_less_than_it_declared(
    case: tuple[str, dict[str, Any]], kind: str, damages: list[str]
) -> None:
    name, options = case
    needs = needs_of(name, options)
    unnamed = {index for index, how in enumerate(damages) if how == "unnamed"}
    with TemporaryDirectory() as folder:
        copy = copy_of(Path(folder), kind, len(damages), unnamed)
        complete = copy.read()
        before, saw = judged(name, options, complete)
        needed = needs.screenshot_steps([i not in unnamed for i in range(len(damages))])
        hashes = {sha256(png(index)).hexdigest() for index in needed}
        trees = {step for one in needs.trees for step in one.steps([True] * len(damages))}
        assert before.status == (
            Status.SKIPPED if lacks(name, needs, unnamed, len(damages)) else Status.OK
        )
        if before.status is Status.OK and name in JUDGES and needs != Needs():
            assert saw.shown == hashes
            assert len(damages) == 1 or all(f"'Page number {n}'" in saw.told for n in trees)
            assert not saw.asked or ("The answer is 42." in saw.told) >= needs.answer
        broken = {index for index in copy.images if damages[index] not in ("whole", "unnamed")}
        for index in broken:
            damage(copy.images[index], damages[index])
        after, ask = judged(name, options, copy.read())
    if broken & set(needed):
        assert after.status is Status.SKIPPED
        assert "step" in after.detail
        assert not ask.asked
    else:
        assert after.status == before.status
        assert ask.shown == saw.shown


def lacks(name: str, needs: Needs, unnamed: set[int], steps: int) -> bool:
    """Whether the run was recorded without something that the judge requires, or of the composed
    ones a member without which there is no verdict."""
    requires = needs_of("aer-c").requires if name in ("panel", "cascade") else needs.requires
    return ("final screenshot" in requires and steps - 1 in unnamed) or (
        "screenshot" in requires and len(unnamed) == steps
    )


def test_every_judge_of_ours_declares_what_it_needs() -> None:
    for entry in JUDGES.values():
        assert "needs" in dir(entry.options_class), entry.summary


def test_a_composed_judge_needs_what_its_members_need() -> None:
    members: list[dict[str, Any]] = [
        {"name": "webvoyager", "given": {"screenshots": 4}},
        {"name": "simplified", "given": {"representation": "both", "frames": 3}},
        {"name": "nnetnav"},
    ]
    found = needs_of("panel", {"of": {"members": members}})
    assert found.screenshots == (*last(4), Shown(which="spread", count=3))
    assert found.screenshot_steps([True] * 9) == [0, 4, 5, 6, 7, 8]
    assert found.goal_images
    assert found == union(needs_of(m["name"], m.get("given")) for m in members)


def test_webjudge_of_ours_reads_no_picture_of_the_goal() -> None:
    for variant in ("general", "online-mind2web"):
        assert not needs_of("webjudge", {"variant": variant}).goal_images


OWN = """
from trajudge.trajectories.model import Record
from trajudge.trajectories.needs import Needs, last
{declared}
async def judge(trajectory, ask):
    return None
"""


@pytest.mark.parametrize(
    ("declared", "needs"),
    [
        ("", EVERYTHING),
        ("needs = Needs()", Needs()),
        ("needs = Needs(screenshots=last(2))", Needs(screenshots=last(2))),
    ],
)
def test_a_users_judge_needs_everything_unless_it_says_what(
    tmp_path: Path, declared: str, needs: Needs
) -> None:
    path = tmp_path / "own.py"
    path.write_text(OWN.format(declared=declared))
    assert needs_of(str(path)) == needs


def test_needs_of_a_users_judge_may_depend_on_its_options(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    options = "class Options(Record):\n    k: int = 1\n    @property\n    def needs(self):\n"
    path.write_text(OWN.format(declared=f"{options}        return Needs(screenshots=last(self.k))"))
    assert needs_of(str(path), {"k": "3"}) == Needs(screenshots=last(3))


def test_needs_that_are_none_are_the_users_mistake(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(OWN.format(declared="needs = 'last'"))
    with pytest.raises(UserError, match="needs = 'last': make it"):
        needs_of(str(path))


def test_a_users_judge_that_says_nothing_is_asked_only_where_everything_can_be_read(
    tmp_path: Path,
) -> None:
    copy = copy_of(tmp_path / "data", "agentrewardbench", 3, {0})
    path = tmp_path / "own.py"
    path.write_text(
        "from trajudge.judges.model import Verdict\n"
        "async def judge(trajectory, ask):\n    return Verdict(success=True)\n"
    )
    assert judged(str(path), {}, copy.read())[0].status is Status.OK
    damage(copy.images[1], "garbled")
    judgment, _ = judged(str(path), {}, copy.read())
    assert judgment.status is Status.SKIPPED
    assert "screenshot of step 2: " in judgment.detail


def test_what_is_spread_has_both_ends_at_even_distances() -> None:
    assert [spread(range(6), count) for count in (1, 2, 3, 5, 6, 9)] == [
        [5],
        [0, 5],
        [0, 2, 5],
        [0, 1, 2, 4, 5],
        [*range(6)],
        [*range(6)],
    ]


@pytest.mark.parametrize(
    ("recorded", "final", "two", "apart", "every"),
    [
        ([True, True, False, True], [3], [1, 3], [0, 3], [0, 1, 3]),
        ([True, True, True, False], [], [1, 2], [], [0, 1, 2]),
        ([True], [0], [0], [0], [0]),
        ([], [], [], [], []),
    ],
)
def test_the_steps_that_are_shown(
    recorded: list[bool], final: list[int], two: list[int], apart: list[int], every: list[int]
) -> None:
    shown = [
        Shown(which="final"),
        Shown(which="last", count=2),
        Shown(which="spread", count=2),
        Shown(which="all"),
    ]
    assert [one.steps(recorded) for one in shown] == [final, two, apart, every]


def test_needed_pictures_are_named_by_their_step() -> None:
    one, other, goal = (ImageRef(problem=name) for name in ("one", "other", "goal"))
    steps = [
        Step(index=index, observation=Observation(screenshot=shot))
        for index, shot in enumerate((one, None, other))
    ]
    run = Trajectory(
        key=TrajectoryKey(benchmark="b", agent="a", task_id="t"),
        raw_task_id="t",
        goal="Go.",
        goal_images=(goal,),
        steps=tuple(steps),
    )
    assert needed_pictures(run, Needs()) == []
    assert needed_pictures(run, Needs(screenshots=FINAL)) == [("screenshot of step 3", other)]
    assert needed_pictures(run, Needs(goal_images=True)) == [("picture of the goal", goal)]
    assert [name for name, _ in needed_pictures(run, EVERYTHING)] == [
        "screenshot of step 1",
        "screenshot of step 3",
        "picture of the goal",
    ]
    assert (Needs().goal_images, Needs().answer) == (False, False)
