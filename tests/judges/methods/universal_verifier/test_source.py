"""The verifier in the words of a checkout, here a small one made for the test."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from pathlib import Path

import pytest

from tests.judges.methods.universal_verifier.scripts import StageScript, rescore_reply, rubric_reply
from tests.judges.runs import seen_run
from trajudge.judges.methods.universal_verifier.judge import UniversalVerifier
from trajudge.judges.methods.universal_verifier.model import UniversalVerifierOptions
from trajudge.judges.model import Text, Verdict
from trajudge.judges.registry import make_judge
from trajudge.prompts.published import EXCERPTS, load_texts
from trajudge.prompts.render import load_prompt
from trajudge.util.errors import UserError

MARK = "<|im_end|>"
TEXTS = EXCERPTS["universal-verifier", "fara"]
WHOLE = {
    "critical_point_system": (
        "{{ critical_point_definition }}\n"
        "{% for name, kind in critical_point_types.items() %}{{ name }}: {{ kind.examples[0] }}"
        "{% endfor %}; {{ Confidence | map(attribute='value') | sort | join(', ') }}"
        "{% for level in Confidence %} {{ level.description }}{% endfor %}\n"
    ),
    "critical_point": "{{ task_proposal }}|{{ url }}|{{ apps }}|{{ action_history }}\n",
    "critical_point_types": "definition: D\ntypes:\n  T:\n    description: d\n    examples: [e]\n",
}


def made_checkout(folder: Path) -> Path:
    """Every text is its name and its slots, in the files and functions where the judge looks."""
    literals: dict[str, dict[str, dict[int, str]]] = defaultdict(lambda: defaultdict(dict))
    files: dict[str, str] = defaultdict(str)
    for name, text in TEXTS.items():
        if not text.variable:
            files[text.file] = WHOLE[name]
        elif text.variable == "literal":
            slots = "".join(f" {{s{slot}['k']}}" for slot in text.slots or ())
            literals[text.file][text.function][text.nth] = f'f"[{name}{slots}]"'
            if text.slots is None:
                literals[text.file][text.function][text.nth] = f'"[{name}]"'
        else:
            slots = " ".join(f"{slot}=${{{slot}}}" for slot in text.slots or ())
            files[text.file] += f'{text.variable} = """<{name}> $$5 {slots}"""\n'
            if text.slots is None:
                files[text.file] += f'{text.variable} = "[{name}]"\n'
    for file, functions in literals.items():
        for function, strings in functions.items():
            kind = "class" if function[0].isupper() else "async def"
            body = [strings.get(n, '"other"') for n in range(max(strings) + 1)]
            lines = "\n".join(f"    {line}" for line in body)
            files[file] += f"{kind} {function}{'' if kind == 'class' else '()'}:\n{lines}\n"
    for file, content in files.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(content, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_checkout(tmp_path_factory.mktemp("fara"))


def judged(checkout: Path, script: StageScript, **options: object) -> Verdict:
    run = seen_run(3, goal=f"Find {MARK} a mug.", answer="It is red.")
    run = run.model_copy(update={"metadata": {"start_url": "http://shop.test/"}})
    settings = {"prompts": f"fara:{checkout}", "last_page": False, **options}
    judge = UniversalVerifier(UniversalVerifierOptions.model_validate(settings))
    return asyncio.run(judge(run, script))


def texts(script: StageScript, stage: str, call: int = 0) -> list[str]:
    parts = [part for message in script.stage(stage)[call].messages for part in message.parts]
    return [part.text for part in parts if isinstance(part, Text)]


def after(text: str, slot: str) -> str:
    return text.partition(f"{slot}=")[2]


def seen(*criteria: int) -> str:
    """What a screenshot shows of the criteria: the condition of criterion 1 is not met."""
    listed = [
        {
            "criterion_idx": number,
            "screenshot_evidence": "E",
            "criterion_analysis": "A",
            "discrepancies": "D",
            "environment_issues_confirmed": False,
            **({"condition_verification": False} if number else {}),
        }
        for number in criteria
    ]
    return json.dumps({"analyses": listed} if len(listed) > 1 else listed[0])


def test_every_stage_is_filled_as_the_source_fills_it(checkout: Path) -> None:
    rubric = rubric_reply(None, "it rains")
    scored = json.loads(rubric)
    for item in scored["items"]:
        item |= {"justification": "why", "earned_points": 2, "is_condition_met": True}
    notes = [{"criterion_idx": 0, "reality_notes": ""}, {"criterion_idx": 1, "reality_notes": "n"}]
    penalty = {"criterion": "Penalize it", "description": "p", "max_points": 2}
    penalty |= {"post_image_justification": "because", "post_image_earned_points": 0}
    effects = {"reasoning": "r", "requires_penalty": True, "penalty_criteria": [penalty]}
    script = StageScript(
        rubric=rubric,
        baseline=json.dumps(scored),
        scores=[[9, 9], [0, 9]],
        evidence=[seen(0, 1), seen(1)],
        reality=json.dumps({"reality_checks": notes}),
        rescore=rescore_reply(3, 3),
        side_effects=json.dumps(effects),
    )
    verdict = judged(checkout, script, untrusted="as-recorded")
    assert verdict.scores["changed_places"] == 0
    task = f"Find {MARK} a mug. init_url_context=[init_url http://shop.test/]"
    first, second = "criterion number 0 of the rubric", "criterion number 1 of the rubric"

    system, user = texts(script, "critical_point")
    assert system == "D\nT: e; HIGH, LOW, MEDIUM [HIGH] [MEDIUM] [LOW]\n"
    assert user.startswith(f"Find {MARK} a mug.|http://shop.test/|N/A|State 1: ")

    [asked] = texts(script, "rubric")
    assert asked.startswith(f"<rubric> $5 task_id={task} critical_point_context=[point NO_CRIT")
    assert asked.endswith("user_simulator_policy=[policy_rubric_off]")
    assert "[point_nothing] [point_nothing] [point_nothing] [simulator_off] [point_expe" in asked
    [asked] = texts(script, "dependencies")
    reviewed = after(asked, "rubric")
    assert json.loads(reviewed) == json.loads(rubric)
    assert reviewed == json.dumps(json.loads(reviewed), indent=2) and '"max_points": 3,' in reviewed
    assert list(json.loads(reviewed)["items"][1])[:3] == ["criterion", "condition", "description"]
    [asked] = texts(script, "baseline")
    listed = json.loads(rubric)["items"]
    assert f"rubric={{'items': [{listed[0]}, " in asked
    assert asked.endswith("predicted_target=It is red.")

    assert texts(script, "relevance") == [
        "[system]",
        f"<relevance> $5 task_definition={task} rubric_criteria=[relevance_name 0 {first}]"
        f"[relevance_description d][relevance_name 1 {second}][relevance_description d]",
    ]
    assert after(texts(script, "evidence")[1], "criteria_info_block") == (
        f"[each_name 0 {first}][each_description d][each_max 3]"
        f"[each_name 1 {second}][each_description d][each_max 3][each_condition it rains]"
    )
    assert after(texts(script, "evidence", 1)[1], "criterion_info") == (
        f"[one_name 1 {second}][one_description d][one_max 3] "
        "conditional_check=[one_condition it rains] conditional_output=[one_output]"
    )
    shot = "[reality_shot {}][reality_evidence E][reality_analysis A][reality_discrepancies D]"
    assert after(texts(script, "reality")[1], "num_criteria") == (
        "2 last_criterion_idx=1 criteria_with_evidence="
        f"[reality_name 0 {first}][reality_description d][reality_max 3]{shot.format(1)}"
        f"[reality_name 1 {second}][reality_description d][reality_max 3]"
        f"{shot.format(1)}{shot.format(2)}"
    )
    rescore = texts(script, "rescore")[1]
    again = after(rescore, "full_rubric_with_baselines").partition(" all_screenshot_evidence")[0]
    assert again.split("\n") == [
        *(f"[again_name 0 {first}]", "[again_description d]", "[again_max 3]"),
        *("[again_baseline 2 3]", "[again_reason why]", ""),
        *(f"[again_name 1 {second}]", "[again_description d]", "[again_notes n]"),
        *("[again_condition it rains]", "[again_met False]", "[again_max 3]"),
        *("[again_baseline 2 3]", "[again_reason why]", ""),
    ]
    side_effects = texts(script, "side_effects")[1]
    # The totals of the points without pictures, when the condition counted as met.
    assert "[scored_total 4.0 6.0]" in side_effects
    shown = "[effects_evidence E][effects_analysis A][effects_discrepancies D]"
    assert after(side_effects, "all_concatenated_evidence") == (
        f"[effects_name 0 {first}]{shown}[effects_name 1 {second}]{shown}{shown}"
    )

    outcome = texts(script, "outcome")[1]
    assert "cp_decision_rules=[rules_none]" in outcome
    assert "user_simulator_policy=[policy_outcome_off]" in outcome
    assert outcome.endswith("predicted_output=It is red.")
    summary, _, evidence = after(outcome, "rubric_summary").partition(" evidence_summary=")
    assert summary.split("\n") == [
        *(f"[scored_name 0 {first}]", "[scored_description d]", "[scored_max 3]"),
        *("[scored_baseline 2 3]", "[scored_final 3.0 3]", "[scored_reason j]", ""),
        *(f"[scored_name 1 {second}]", "[scored_description d]", "[scored_notes n]"),
        *("[scored_condition it rains]", "[scored_met False]", "[scored_max 3]"),
        *("[scored_baseline 2 3]", "[scored_final 0.0 3]", "[scored_reason [unmet]]", ""),
        *("[scored_name 2 Penalize it]", "[scored_description p]", "[scored_max 2]"),
        *("[scored_baseline 0 2]", "[scored_final 0 2]", "[scored_reason because]"),
        *("[scored_penalty]", "", "[scored_total 3.0 5.0]"),
    ]
    shown = "\n[seen_evidence E]\n[seen_analysis A]\n[seen_discrepancies D]\n"
    shown += "[seen_environment False]\n\n"
    assert evidence.removesuffix(" predicted_output=It is red.") == (
        f"[seen_name 0 {first}]\n[seen_shot 1 2]{shown}\n"
        f"[seen_name 1 {second}]\n[seen_shot 1 2]{shown}[seen_shot 2 2]{shown}\n"
        "[seen_name 2 Penalize it]\n[seen_nothing]\n"
    )
    assert "predicted_output" not in texts(script, "violation")[1]


def test_two_conditions_and_an_unknown_point(checkout: Path) -> None:
    script = StageScript(
        critical_point="no block",
        rubric=rubric_reply("it rains", "it does not"),
        scores=[[9, 9], [9, 0]],
    )
    judged(checkout, script, attempts=1, user_simulator=True, on_stage_failure="continue")
    conditions = after(texts(script, "conditions")[1], "num_conditional")
    assert conditions.startswith(
        "2 conditional_criteria_with_evidence=[condition_name 0 criterion number 0 of the rubric]"
        "[condition_condition it rains][condition_description d][condition_max 3][condition_shot 1]"
    )
    [asked] = texts(script, "rubric")
    assert (
        "critical_point_context=[point_unknown] user_simulator_policy=[policy_rubric_on]" in asked
    )
    assert "cp_decision_rules=[rules_no_permission]" in texts(script, "outcome")[1]


def test_marks_of_pages_are_taken_out_and_counted(checkout: Path) -> None:
    script = StageScript()
    verdict = judged(checkout, script)
    assert verdict.scores["changed_places"] == 1
    for call in script.asked:
        for message in call.messages:
            for part in message.parts:
                assert not isinstance(part, Text) or MARK not in part.text


def test_the_hash_is_that_of_the_checkouts_texts(checkout: Path) -> None:
    made = {"prompts": f"fara:{checkout}"}
    judge_id, judge = make_judge("universal-verifier", made)
    assert isinstance(judge, UniversalVerifier)
    assert judge.text_hash == load_texts("universal-verifier", made["prompts"]).text_hash
    assert judge.prompt_hash != load_prompt("universal-verifier").hash
    assert "fara" in judge_id and str(checkout) not in judge_id


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("formatting.py", "scored_total", "{0}", "lacks the prompt literal of build_scored_rubric"),
        ("prompts.py", "${rubric}", "$rubic", "lacks the prompt RUBRIC_DEPENDENCY_CHECKING_PROMPT"),
        ("critical_point_types.yaml", "definition: D", "definition: [", "cannot be read"),
        ("templates/cp_classifier_user.j2", "{{ url }}", "{{ ().__class__.__mro__ }}", "Security"),
        ("templates/cp_classifier_system.j2", "{{", "{{ %}", "TemplateSyntaxError"),
    ],
)
def test_another_version_is_one_sentence(
    tmp_path: Path, file: str, old: str, new: str, said: str
) -> None:
    made_checkout(tmp_path)
    path = tmp_path / "webeval/src/webeval/rubric_agent" / file
    path.write_text(path.read_text("utf-8").replace(old, new, 1), "utf-8")
    with pytest.raises(UserError, match=said) as error:
        make_judge("universal-verifier", {"prompts": f"fara:{tmp_path}"})
    assert "name a checkout of" in str(error.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"critical_points": "inline"}, "are of critical_points=classified"),
        ({"failures": True}, "lack the stage of failures"),
        ({"validity": True}, "lack the stage of validity"),
    ],
)
def test_what_the_texts_lack_is_refused(
    checkout: Path, options: dict[str, object], said: str
) -> None:
    with pytest.raises(UserError, match=said):
        make_judge("universal-verifier", {"prompts": f"fara:{checkout}", **options})
