"""The published prompts are read as data, and used as the reference uses them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

import pytest

from trajudge.judges.fidelity import read_fidelity
from trajudge.prompts.published import (
    EXCERPTS,
    PublishedTexts,
    check_source,
    load_texts,
    read_texts,
)
from trajudge.trajectories.represent import StepLine
from trajudge.trajectories.truncate import TruncatedView, TruncationLevel
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
    "def format_content_for_image(url):\n"
    '    return [{"type": "text", "text": "The screenshot."}, {"type": "x"}]\n'
)
WEBJUDGE = '''
async def identify_key_points(task, model):
    system_msg = """Points."""
    prompt = """Task: {task}"""
    raise SystemExit("never run")

async def judge_image(task, image_path, key_points, model):
    system_msg = "Score it."
    prompt = """{task} {key_points}"""
    part = {"type": "text", "text": "Input images:"}

async def EVAL(task):
    system_msg = "Judge."
    prompt = """{task} {key_points} {last_actions} {thoughts}"""
    if not task:
        prompt = """{task} {key_points} {last_actions}"""
'''
WEBVOYAGER = '''
SYSTEM_PROMPT = "Judge {it}."
USER_PROMPT = """<task> {x} <answer> <num>"""
def auto_eval_by_gpt4v(text):
    return [{"type": "text", "text": text}, {"type": "text", "text": "Verdict:\\n"}]
'''
INSTA = """
class BrowserJudge:
    def get_user_prompt(self):
        raise SystemExit("never run")
        a = "# {} Page: {}".format(1, 2)
        return a, "# {} Action: {}".format(3, 4)
"""
# By judge: its source, and the files that hold its prompts.
FILES: dict[str, tuple[str, Mapping[str, str]]] = {
    "simplified": (
        "agentrewardbench",
        {"judge/defaults.py": DEFAULTS, "judge/__init__.py": CODE},
    ),
    "webjudge-general": (
        "online-mind2web",
        {"src/methods/webjudge_general_eval.py": WEBJUDGE.replace("EVAL", "WebJudge_general_eval")},
    ),
    "webjudge-online-mind2web": (
        "online-mind2web",
        {
            "src/methods/webjudge_online_mind2web.py": WEBJUDGE.replace(
                "EVAL", "WebJudge_Online_Mind2Web_eval"
            )
        },
    ),
    "webvoyager": ("webvoyager", {"evaluation/auto_eval.py": WEBVOYAGER}),
    "insta": (
        "insta",
        {
            "insta/judge.py": INSTA,
            "insta/judge_prompts/verbose_judge_prompt.py": (
                'SYSTEM_PROMPT = "{judge}"\n'
                'USER_PROMPT_TEMPLATE = """{instruction} {summary} {{json}}"""\n'
            ),
        },
    ),
}


def written(folder: Path, judge: str, /, **changed: str) -> PublishedTexts:
    """The texts of a judge, read in a made folder; ``changed`` are old texts to new ones, named as
    the end of their file's name."""
    source, files = FILES[judge]
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(changed.get(Path(name).stem, text))
    return read_texts(judge, source, folder)


def test_constants_are_read_without_running_the_file(tmp_path: Path) -> None:
    texts = written(tmp_path, "simplified")
    assert (texts.fill("system_first"), texts.fill("system_last")) == ("first", "\nlast\n")
    assert (texts.fill("screenshot"), texts.fill("final")) == ("The screenshot.", "Answer.")


def test_values_are_filled_in_once_and_never_read_as_templates(tmp_path: Path) -> None:
    texts = written(tmp_path, "simplified")
    step = StepLine(1, None, "{url} {0.__class__}", "r\x00")
    view = TruncatedView(TruncationLevel.FULL, "g", (step, step), 2, 0, None, None)
    steps = texts.steps(view)
    assert steps == "--\nStep: 1 None {url} {0.__class__} r?" * 2
    assert texts.fill("steps", steps=steps) == f"Did:\n{steps}"
    assert texts.write("axtree", axtree="{goal}") == "Tree {goal}"
    marked = texts.steps(view._replace(head=1, elided=3))
    assert marked.count("[... 3 steps left out ...]") == 1
    assert marked.startswith(steps[: len(steps) // 2] + "\n[...")


def test_texts_are_taken_out_of_functions_and_methods(tmp_path: Path) -> None:
    for judge in ("webjudge-general", "webjudge-online-mind2web"):
        texts = written(tmp_path, judge)
        assert texts.fill("key_points_user", key_points_system="", task="{t}") == "Task: {t}"
        assert texts.fill("screenshot_system") == "Score it."
        values = dict.fromkeys(("task", "key_points", "last_actions"), "x")
        assert texts.fill("user_without", **values) == "x x x"
        assert texts.fill("user", **values, thoughts="<b>") == "x x x <b>"
        assert ("goal_images" in texts.texts) == (judge == "webjudge-general")
    texts = written(tmp_path, "insta")
    assert texts.fill("page", **{"0": "Last", "1": "p"}) == "# Last Page: p"
    assert texts.fill("action", **{"0": "Next", "1": "a"}) == "# Next Action: a"
    assert texts.fill("user", instruction="{i}", summary="s") == "{i} s {json}"
    assert texts.fill("system") == "{judge}"


def test_webvoyagers_slots_are_in_angles(tmp_path: Path) -> None:
    texts = written(tmp_path, "webvoyager")
    assert texts.fill("user", task="<answer>", answer="a", num="15") == "<answer> {x} a 15"
    assert (texts.fill("system"), texts.fill("closing")) == ("Judge {it}.", "Verdict:\n")


@pytest.mark.parametrize(
    ("judge", "file", "old", "new", "said"),
    [
        ("simplified", "defaults", "FINAL_MSG", "X", "lacks the prompt FINAL_MSG"),
        ("simplified", "defaults", "{goal}", "{gaol}", "lacks the prompt GOAL_TEMPLATE"),
        ("simplified", "__init__", '"text"', "text", "text of format_content_for_image"),
        ("simplified", "defaults", "GOAL", "GOAL(", "cannot be read as the prompts"),
        ("webvoyager", "auto_eval", "<num>", "", "a checkout of MinorJerry/WebVoyager"),
        ("insta", "judge", ".format(3, 4)", "", "lacks the prompt format of get_user_prompt"),
        ("insta", "verbose_judge_prompt", "{{json}}", "{json", "USER_PROMPT_TEMPLATE"),
    ],
)
def test_another_version_is_said(
    tmp_path: Path, judge: str, file: str, old: str, new: str, said: str
) -> None:
    [text] = [text for name, text in FILES[judge][1].items() if Path(name).stem == file]
    with pytest.raises(UserError, match=said):
        written(tmp_path, judge, **{file: text.replace(old, new)})


def test_the_hash_is_of_the_texts(tmp_path: Path) -> None:
    one = written(tmp_path, "webvoyager")
    assert written(tmp_path, "webvoyager").hash == one.hash
    parts = ["Judge {it}.", "{task} {x} {answer} {num}", "Verdict:\n"]
    assert one.text_hash == sha256("\0".join(parts).encode()).hexdigest()
    other = written(tmp_path, "webvoyager", auto_eval=WEBVOYAGER.replace("Judge", "judge"))
    assert (other.hash != one.hash) and (other.text_hash != one.text_hash)
    as_recorded = PublishedTexts(one.texts, "as-recorded")
    assert as_recorded.text_hash == one.text_hash and as_recorded.hash != one.hash


@pytest.mark.parametrize(
    ("prompts", "said"),
    [
        ("webvoyager", "name a checkout of MinorJerry/WebVoyager:  webvoyager:PATH"),
        ("agentrewardbench:x", "installed package agent-reward-bench: leave :x out"),
        ("webvoyger:x", "did you mean 'webvoyager'"),
        ("trajudge:x", "is no source of prompts"),
    ],
)
def test_a_source_is_named_as_it_is_read(prompts: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        check_source(prompts)


def test_a_checkout_that_is_no_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is no folder: name a checkout of data-for-agents/insta"):
        load_texts("insta", f"insta:{tmp_path / 'nothing'}")


def test_a_package_that_is_not_installed_is_said() -> None:
    code = (
        "from trajudge.prompts.published import load_texts; "
        "load_texts('simplified', 'agentrewardbench')"
    )
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


needs_package = pytest.mark.skipif(
    find_spec("agent_reward_bench") is None, reason="agent-reward-bench is not installed"
)


@needs_package
def test_the_installed_prompts_ask_the_four_questions() -> None:
    texts = load_texts("simplified", "agentrewardbench")
    for success in ("first", "last"):
        system = texts.fill(f"system_{success}")
        tags = [system.rfind(f"<{tag}>") for tag in ("success", "loop")]
        assert min(tags) > 0
        assert (tags[0] < tags[1]) == (success == "first")


@needs_package
@pytest.mark.parametrize(
    "judge", [judge for judge, source in EXCERPTS if source == "agentrewardbench"]
)
def test_the_installed_texts_are_those_that_the_fidelity_file_names(judge: str) -> None:
    [known] = {
        compared.published.texts[judge]
        for compared in read_fidelity().values()
        if compared.published and judge in compared.published.texts
    }
    assert load_texts(judge, "agentrewardbench").text_hash == known


@needs_package
def test_the_installed_package_is_read_and_not_imported() -> None:
    code = (
        "import sys; from trajudge.prompts.published import load_texts; "
        "load_texts('nnetnav', 'agentrewardbench'); sys.exit('agent_reward_bench' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
