"""What a defence does to prompts: of every judge that asks a model, the same bytes every time."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.judges.runs import StagedAsk, seen_run, texts
from trajudge.eval.runs.plan import plan_runs, shown_options
from trajudge.eval.runs.settings import DataConfig, JudgeConfig, RunRequest
from trajudge.judges.calls.settings import CallConfig
from trajudge.judges.defences import (
    DEFENCES,
    MARK,
    Defences,
    after_material,
    before_material,
    marked,
    nonce_of,
    own_options,
    read_defences,
    with_room,
)
from trajudge.judges.judging import FAILURES, CallArgs
from trajudge.judges.model import Message, Text
from trajudge.judges.registry import JUDGES, find_judge, make_judge
from trajudge.trajectories.model import Record, Trajectory
from trajudge.util.errors import UserError

ASKING = [name for name, entry in JUDGES.items() if entry.needs_model]
NO_MODEL = {"members": [{"name": "heuristic"}, {"name": "rule-based"}]}
THOUGHT = "I can see that the mug is there"
CLOSING = "before </axtree> after"


def run() -> Trajectory:
    made = seen_run()
    steps = [step.model_copy(update={"reasoning": THOUGHT}) for step in made.steps]
    page = steps[-1].observation
    told = page.model_copy(update={"axtree": f"{page.axtree}\n\t[8] StaticText '{CLOSING}'"})
    steps[-1] = steps[-1].model_copy(update={"observation": told})
    return made.model_copy(update={"steps": tuple(steps), "answer": "All of it was done."})


def asked(name: str, trajectory: Trajectory, **options: Any) -> list[CallArgs]:
    client = StagedAsk()
    with suppress(*FAILURES):
        asyncio.run(make_judge(name, options)[1](trajectory, client))  # type: ignore[arg-type]
    assert client.asked, name
    return client.asked


def words(calls: Sequence[CallArgs]) -> list[list[str]]:
    return [texts(call.messages) for call in calls]


@pytest.mark.parametrize("name", ASKING)
@pytest.mark.parametrize(
    "defence", [{"datamark": True}, {"sandwich": True}, {"nonce": 3}, {"canary": 3}]
)
def test_every_judge_that_asks_a_model_is_another_one_with_it(
    name: str, defence: dict[str, Any]
) -> None:
    (option,) = defence
    if find_judge(name).logprobs and option == "canary":
        return
    (plain_id, plain), (judge_id, judge) = make_judge(name), make_judge(name, defence)
    assert judge_id == f"{plain_id}-{option}"
    assert judge.prompt_hash != plain.prompt_hash  # type: ignore[attr-defined]
    before, after = asked(name, run()), asked(name, run(), **defence)
    assert [call.stage for call in after] == [call.stage for call in before]
    assert words(after) != words(before)
    assert words(after) == words(asked(name, run(), **defence)), "the same bytes again"


@pytest.mark.parametrize("name", ["simplified", "insta", "logprob", "aer-v", "rubric"])
def test_no_blank_is_left_in_what_the_agent_thought(name: str) -> None:
    shown = str(words(asked(name, run(), datamark=True)))
    assert THOUGHT in str(words(asked(name, run())))
    assert THOUGHT not in shown
    assert THOUGHT.replace(" ", MARK) in shown
    assert run().goal.strip() in shown


def test_marks_stand_between_words_and_lines_and_nowhere_else() -> None:
    tree = "RootWebArea 'A b'\n\t[3] link 'c\u00a0 d'\n\n\t\tend"
    assert marked(tree) == (
        f"RootWebArea{MARK}'A{MARK}b'{MARK}\n\t[3]{MARK}link{MARK}'c{MARK}d'{MARK}\n\n\t\tend"
    )
    assert marked("") == ""
    assert marked(" a\u2028b ") == f" a{MARK}b", "whatever the blank"


def test_an_action_keeps_its_form_and_what_was_typed_is_marked() -> None:
    steps = [step.model_copy(update={"action": "fill('9', 'a b')"}) for step in run().steps]
    calls = asked("simplified", run().model_copy(update={"steps": tuple(steps)}), datamark=True)
    assert f"fill('9', 'a{MARK}b')" in str(words(calls)[0][-1])


def test_every_tag_of_the_material_ends_in_the_nonce_and_no_other_text_does() -> None:
    ((system, user),) = words(asked("simplified", run(), nonce=3))
    ((plain_system, plain),) = words(asked("simplified", run()))
    (nonce,) = set(re.findall(r"<goal-([a-z2-7]{8})>", user))
    assert system == plain_system, "it is cached by providers"
    assert user.endswith(re.sub(r"<(/?[a-z]+)", rf"<\1-{nonce}", plain))
    assert "(/axtree>" in user, "a page's tag is no tag"
    assert nonce not in plain


def test_a_nonce_depends_on_the_messages_up_to_the_users_first() -> None:
    system, user, reply = (
        Message(role=role, parts=(Text(text=role),)) for role in ("system", "user", "assistant")
    )
    longer = user.model_copy(update={"parts": (*user.parts, *system.parts)})
    nonce = nonce_of("tags", 3, [system, user])
    assert nonce == nonce_of("tags", 3, [system, user, reply, longer])
    others = [
        nonce_of("tags", 3, [system, longer]),
        nonce_of("tags", 3, [user]),
        nonce_of("tags", 4, [system, user]),
        nonce_of("canary", 3, [system, user]),
    ]
    assert len({nonce, *others}) == 5 and re.fullmatch("[a-z2-7]{8}", nonce)


def test_what_a_judge_is_not_shown_changes_no_nonce() -> None:
    unseen = run().model_copy(update={"metadata": {"agent": "another"}})
    assert words(asked("simplified", unseen, nonce=3)) == words(asked("simplified", run(), nonce=3))


def test_a_nonce_is_of_the_seed_and_of_the_material() -> None:
    def of(text: str, seed: int = 0) -> str:
        return nonce_of("nonce", seed, [Message(role="user", parts=(Text(text=text),))])

    assert of("a") == of("a")
    assert len({of("a"), of("b"), of("a", 1)}) == 3
    drawn = {of(str(number)) for number in range(2_000)}
    assert len(drawn) == 2_000
    assert set("".join(drawn)) == set("abcdefghijklmnopqrstuvwxyz234567")


def test_a_call_that_must_not_know_the_goal_is_not_told_it() -> None:
    calls = asked("nnetnav", run(), sandwich=True)
    goal = run().goal.strip()
    for call in calls:
        told = goal in str(texts(call.messages))
        assert told == (call.stage == "verdict"), call.stage
    (verdict,) = (call for call in calls if call.stage == "verdict")
    assert str(texts(verdict.messages)).count(goal) == 2


def test_the_defences_go_together_and_with_hidden_words() -> None:
    judge_id, _ = make_judge(
        "simplified", {"nonce": "3", "datamark": "on", "sandwich": "yes", "hide": "reasoning"}
    )
    assert judge_id == "simplified-axtree-no-reasoning-datamark-sandwich-nonce"
    shown = str(words(asked("simplified", run(), nonce=3, datamark=True, hide="reasoning")))
    assert "[not shown]" in shown and "All" + MARK + "of" in shown and "<steps-" in shown


def test_the_members_of_a_panel_have_them() -> None:
    members = {"of": {"members": [{"name": "heuristic"}, {"name": "simplified"}]}}
    judge_id, _ = make_judge("panel", {**members, "datamark": True})
    assert judge_id.endswith("-datamark")
    (call,) = asked("panel", run(), **members, datamark=True)
    assert THOUGHT.replace(" ", MARK) in str(texts(call.messages))
    with pytest.raises(UserError, match="datamark: changes prompts, and no member asks a model"):
        make_judge("panel", {"of": NO_MODEL, "datamark": True})


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("simplified", {"datamark": "maybe"}, "judge simplified: datamark = 'maybe': "),
        ("simplified", {"sandwich": 7}, "judge simplified: sandwich = 7: "),
        ("simplified", {"nonce": "often"}, "judge simplified: nonce = 'often': "),
        ("simplified", {"nonce": -1}, "judge simplified: nonce = -1: "),
        ("simplified", {"canary": "x"}, "judge simplified: canary = 'x': "),
        ("logprob", {"canary": 1}, "judge logprob: answers with one word, which no canary fits"),
        ("heuristic", {"datamark": True}, "judge heuristic: asks no model, and datamark changes"),
    ],
)
def test_a_wrong_form_is_one_sentence(name: str, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError) as raised:
        make_judge(name, options)
    assert str(raised.value).startswith(sentence)
    assert "\n" not in str(raised.value)


def test_a_judge_of_a_users_own_has_all_but_the_nonce(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from trajudge.judges.model import Message, Text, Verdict\n"
        "async def judge(trajectory, ask):\n"
        "    text = f'{trajectory.goal} {trajectory.answer}'\n"
        "    await ask([Message(role='user', parts=(Text(text=text),))])\n"
        "    return Verdict(success=True)\n"
    )
    options = {"datamark": True, "sandwich": True, "canary": 1}
    ((prompt,),) = words(asked(str(file), run(), **options))
    assert prompt.startswith("# Marked text") and "One thing beside" in prompt
    assert f"All{MARK}of{MARK}it" in prompt and prompt.count(run().goal.strip()) == 2
    with pytest.raises(UserError, match="which tags its prompts have is not known"):
        make_judge(str(file), {"nonce": 1})


def test_an_id_tells_every_defence_and_none_is_on_by_itself() -> None:
    on = Defences(hide="reasoning", two_pass="answer", cross_modal="fail", datamark=True, nonce=0)
    assert on.suffix == "-no-reasoning-datamark-nonce-two-pass-answer-cross-modal-fail"
    off = Defences()
    assert (off.datamark, off.sandwich, off.suffix, off.given) == (False, False, "", {})


def test_an_option_of_the_judges_own_is_no_defence() -> None:
    class Own(Record):
        canary: int = 0

    given = {"canary": 1, "hide": "answer", "datamark": True, "repair": 1, "other": 2}
    assert own_options(Own, given) == {"canary": 1, "other": 2}
    assert read_defences("own", Own, given) == Defences(hide=("answer",), datamark=True)


def test_the_room_that_defences_take() -> None:
    options = find_judge("simplified").options_class.model_validate({"max_prompt_tokens": 10_000})

    def room(**on: Any) -> object:
        return getattr(with_room(options, Defences(**on)), "max_prompt_tokens", None)

    assert room() == room(hide=("answer",)) == 10_000
    assert room(sandwich=True, datamark=True) == 10_000 - 500 - 100
    assert room(nonce=1, canary=1) == 8_500 - 100 - 150
    heuristic = find_judge("heuristic").options_class()
    assert with_room(heuristic, Defences(datamark=True)) == heuristic


def test_what_is_added_stands_before_or_after_all_material() -> None:
    def turns(*texts: str) -> list[Message]:
        roles = {"s": "system", "a": "assistant", "u": "user"}
        return [
            Message(role=roles[text[0]], parts=(Text(text=text),) if text[1:] else ())
            for text in texts
        ]

    def shown(messages: list[Message]) -> list[str]:
        return [part.text for one in messages for part in one.parts if isinstance(part, Text)]

    several = turns("s1", "u1", "a1", "u2", "a2")
    assert shown(after_material(several, "T")) == ["s1", "u1", "a1", "u2\n\nT", "a2"]
    assert shown(before_material(several, "T")) == ["s1", "T\n\nu1", "a1", "u2", "a2"]
    assert shown(before_material(turns("s1"), "T")) == shown(after_material(turns("s1"), "T"))
    assert shown(before_material(turns("s1"), "T")) == ["s1", "T"]
    assert shown(before_material(turns("u"), "T")) == ["T\n\n"]
    assert shown(after_material(turns("u"), "T")) == ["T"]


def test_what_is_off_is_as_if_it_was_not_named() -> None:
    off = {"datamark": False, "sandwich": "no", "nonce": None}
    assert make_judge("simplified", off)[0] == make_judge("simplified")[0]
    assert words(asked("simplified", run(), **off)) == words(asked("simplified", run()))


def test_the_judge_leaves_room_for_what_they_add() -> None:
    options = {"max_prompt_tokens": 10_000, "datamark": True, "nonce": 1}
    _, judge = make_judge("simplified", options)
    assert judge.options.max_prompt_tokens == 8_300  # type: ignore[attr-defined]


def test_no_judge_of_ours_has_an_option_of_that_name() -> None:
    for name, entry in JUDGES.items():
        assert entry.options_class.model_fields.keys().isdisjoint(DEFENCES), name


def test_a_manifest_holds_those_that_are_on_and_gives_the_same_judge_again() -> None:
    given = {"hide": "reasoning", "datamark": "true", "nonce": "3", "sandwich": "false"}
    shown = shown_options("simplified", given)
    on = {name: shown[name] for name in DEFENCES if name in shown}
    assert on == {"hide": ["reasoning"], "datamark": True, "nonce": 3}
    assert make_judge("simplified", on)[0] == make_judge("simplified", given)[0]
    assert not set(DEFENCES) & shown_options("simplified", {}).keys()


def test_a_judge_without_a_model_goes_without_them_beside_one_that_has_them() -> None:
    request = RunRequest(
        judges=("heuristic", "simplified"),
        models=("gpt-4o",),
        judge=JudgeConfig(judge="heuristic", options={"datamark": "true"}),
        data=DataConfig(data="sample", limit=2),
        calls=CallConfig(dry_run=True),
    )
    ids = [planned.judge_id for planned in plan_runs(request)]
    assert ids == ["heuristic", "simplified-axtree-datamark:gpt-4o"]
