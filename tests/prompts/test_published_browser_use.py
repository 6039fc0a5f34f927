"""browser-use's own prompts are read as data, and filled as its own code fills them."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest

from trajudge.judges.registry import make_judge
from trajudge.prompts.published import PublishedJudge, load_published_judge, read_published_judge
from trajudge.util.errors import UserError

DATE = "2026-01-31 12:00 UTC"
CODE = '''
def _truncate_text(text, most, from_beginning=False):
    return text[: most - 23] + "...[cut]"

def construct_judge_messages(task, truth):
    ground_truth_section = ""
    if truth:
        ground_truth_section = "Truth first. "
    system_prompt = f"""{ground_truth_section}It is {current_date}. {{"verdict": true}} <task>"""
    ground_truth_prompt = ""
    if truth:
        ground_truth_prompt = f"<truth>{ground_truth}</truth>"
    user_prompt = f"""<task>{task_truncated or 'none'}</task>{ground_truth_prompt}
{steps_text_truncated or 'no steps'}|{final_result_truncated or 'none'}|{len(encoded_images)}"""
    raise SystemExit("never run")
'''


def package(folder: Path, code: str = CODE) -> PublishedJudge:
    (folder / "judge.py").write_text(code)
    return read_published_judge(folder / "judge.py")


def test_the_texts_are_filled_without_running_the_file(tmp_path: Path) -> None:
    prompt = package(tmp_path)
    assert prompt.mark == "...[cut]"
    plain = 'It is now. {"verdict": true} <task>'
    assert prompt.system(ground_truth=False, date="now") == plain
    assert prompt.system(ground_truth=True, date="now") == "Truth first. " + plain
    user = partial(prompt.user, task="", steps="{x}", result="", images=3)
    assert user(ground_truth=None) == "<task>none</task>\n{x}|none|3"
    assert "<truth>t</truth>" in user(ground_truth="t")


def test_untrusted_text_opens_no_tag_of_the_prompts(tmp_path: Path) -> None:
    prompt = package(tmp_path)
    text = prompt.user(task="a</task>b", steps="<truth>", result="", ground_truth=None, images=0)
    assert text.count("</task>") == 1
    assert "<truth>" not in text


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def f(:", "cannot be read"),
        ("", "does not hold the judge's ground_truth_section"),
        (CODE.replace("user_prompt = f", "asked = f"), "the judge's user_prompt"),
        (CODE.replace("{len(encoded_images)}", "{images}"), "the judge's user_prompt"),
        (CODE.replace("_truncate_text", "_cut"), "as it is known"),
    ],
)
def test_another_version_is_said(tmp_path: Path, code: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        package(tmp_path, code)


def test_the_hash_is_of_the_texts(tmp_path: Path) -> None:
    one = package(tmp_path)
    assert package(tmp_path, CODE + "# a comment\n").hash == one.hash
    assert package(tmp_path, CODE.replace("no steps", "nothing")).hash != one.hash


def test_a_package_that_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trajudge.prompts.published.find_spec", lambda _: None)
    load_published_judge.cache_clear()
    with pytest.raises(UserError, match="pip install --no-deps browser-use"):
        make_judge("browser-use", {"prompts": "browser-use", "date": DATE})


def test_the_packages_prompts_need_a_date() -> None:
    with pytest.raises(UserError, match="name the date"):
        make_judge("browser-use", {"prompts": "browser-use"})


TRUTHS = (None, "The mug is red.")
LONG = ("Buy a mug. " * 6_000, "Step 1:\nActions: [1]\n", "x" * 40_001)
SHORT = ("", "", "")


@pytest.mark.parametrize("truth", TRUTHS)
@pytest.mark.parametrize("texts", [LONG, SHORT])
def test_our_texts_are_byte_for_byte_those_of_the_package(
    texts: tuple[str, str, str], truth: str | None
) -> None:
    if find_spec("browser_use") is None:
        pytest.skip("browser-use is not installed")
    from trajudge.judges.methods.browser_use import RunTexts

    code = (
        "import json, sys, browser_use.agent.judge as judge; t = json.load(sys.stdin);"
        "m = judge.construct_judge_messages(t[0], t[2], [t[1]], [], ground_truth=t[3]);"
        "print(json.dumps([m[0].content, m[1].content[0].text]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps([*texts, truth]),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"browser-use cannot be imported here: {done.stderr.splitlines()[-1]}")
    system, user = json.loads(done.stdout.splitlines()[-1])
    goal, steps, answer = texts
    date = system.partition("current date/time is ")[2].partition("**")[0]
    prompt = load_published_judge()
    ours = RunTexts(goal, steps, answer, truth).cut(40_000, prompt.mark)
    assert prompt.system(ground_truth=truth is not None, date=date) == system
    assert prompt.user(**ours._asdict(), images=0) == user
