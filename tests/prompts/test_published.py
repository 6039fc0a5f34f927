"""The published prompts are read as data, and used as the reference uses them."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from trajudge.prompts.published import PublishedPrompt, load_published, read_published
from trajudge.util.errors import UserError

DEFAULTS = '''
SYSTEM_PROMPT = """
first
"""
INVERTED_SYSTEM_PROMPT = "\\nlast\\n"
STEP_TEMPLATE = "--\\nStep: {step_number} {url} {action} {reasoning}\\n"
GOAL_TEMPLATE = "Goal {goal}\\n"
ACTION_TEMPLATE = "Did:\\n{steps}"
AXTREE_TEMPLATE = "Tree {axtree}"
FINAL_MSG = "Answer."
SYSTEM_PROMPT = SYSTEM_PROMPT.strip()
STEP_TEMPLATE = STEP_TEMPLATE.strip()
raise SystemExit("never run")
'''
CODE = (
    'def content(url):\n    return [{"type": "text", "text": "The screenshot."}, {"type": "x"}]\n'
)


def package(folder: Path, defaults: str = DEFAULTS, code: str = CODE) -> PublishedPrompt:
    (folder / "defaults.py").write_text(defaults)
    (folder / "__init__.py").write_text(code)
    return read_published(folder)


def test_constants_are_read_without_running_the_file(tmp_path: Path) -> None:
    prompt = package(tmp_path)
    assert (prompt.system("first"), prompt.system("last")) == ("first", "\nlast\n")
    assert (prompt.screenshot_text, prompt.final) == ("The screenshot.", "Answer.")


def test_values_are_filled_in_once_and_never_read_as_templates(tmp_path: Path) -> None:
    prompt = package(tmp_path)
    steps = prompt.step(1, None, "{url} {0.__class__}", "r\x00")
    assert steps == "--\nStep: 1 None {url} {0.__class__} r?"
    assert prompt.before_picture("g", steps * 2, None) == ["Goal g\n", f"Did:\n{steps}{steps}"]
    assert prompt.before_picture("g", "", "{goal}")[-1] == "Tree {goal}"


@pytest.mark.parametrize(
    ("defaults", "code", "said"),
    [
        (DEFAULTS.replace("FINAL_MSG", "X"), CODE, "lacks the prompt FINAL_MSG"),
        (DEFAULTS, "", "for the screenshot"),
        ("SYSTEM_PROMPT = (", CODE, "cannot be read"),
    ],
)
def test_another_version_is_said(tmp_path: Path, defaults: str, code: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        package(tmp_path, defaults, code)


def test_the_hash_is_of_the_texts(tmp_path: Path) -> None:
    one = package(tmp_path)
    assert package(tmp_path).hash == one.hash
    assert package(tmp_path, DEFAULTS.replace("Answer.", "Answer!")).hash != one.hash


def test_a_package_that_is_not_installed_is_said() -> None:
    code = "from trajudge.prompts.published import load_published; load_published()"
    root = Path(__file__).parents[2]
    shadow = "import sys; sys.modules['agent_reward_bench'] = None; "
    done = subprocess.run(
        [sys.executable, "-c", f"{shadow}{code}"],
        capture_output=True,
        text=True,
        cwd=root,
        check=False,
    )
    assert "pip install --no-deps agent-reward-bench" in done.stderr


@pytest.fixture
def installed() -> PublishedPrompt:
    if find_spec("agent_reward_bench") is None:
        pytest.skip("agent-reward-bench is not installed")
    return load_published()


def test_the_installed_prompts_ask_the_four_questions(installed: PublishedPrompt) -> None:
    for success in ("first", "last"):
        tags = [installed.system(success).rfind(f"<{tag}>") for tag in ("success", "loop")]
        assert min(tags) > 0
        assert (tags[0] < tags[1]) == (success == "first")


def test_the_installed_package_is_read_and_not_imported(installed: PublishedPrompt) -> None:
    code = (
        "import sys; from trajudge.prompts.published import load_published; load_published(); "
        "sys.exit('agent_reward_bench' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_installed_prompts_list_steps_as_the_reference_does(installed: PublishedPrompt) -> None:
    step = installed.step(1, "http://x/", "click('1')", None)
    assert step.splitlines()[1:] == [
        "Step: 1",
        "URL: http://x/",
        "Action: click('1')",
        "Reasoning: None",
    ]
    texts = installed.before_picture("g\n", step * 2, "tree")
    assert texts[0].endswith(": g\n\n")
    assert f"{step}{step}" in texts[1]
    assert texts[2].endswith(":\ntree")
