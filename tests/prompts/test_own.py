"""A prompt of the user's own is given what ours is given, and its mistakes are named at once."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from tests.commands import command
from tests.judges.runs import GOOD, ScriptedAsk, mug_run
from trajudge.app.recorded_judge import NotRebuilt, remake
from trajudge.eval.runs.plan import plan_runs
from trajudge.eval.runs.settings import RunRequest
from trajudge.eval.store.run_folder import read_manifest
from trajudge.judges.methods.simplified import (
    PROMPT_VARIABLES,
    Simplified,
    SimplifiedOptions,
)
from trajudge.judges.model import Text
from trajudge.judges.registry import make_judge
from trajudge.judges.show import template
from trajudge.prompts.own import OwnPrompt, read_own_prompt
from trajudge.prompts.render import load_prompt
from trajudge.trajectories.loaders import open_source
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.sample import SAMPLE, resolve_sample
from trajudge.util.errors import UserError
from trajudge.util.settings import make

ROOT = Path(__file__).parents[2]
SAMPLE_RUNS = [run for run in open_source(resolve_sample(SAMPLE)) if isinstance(run, Trajectory)]
ASKED = "<success>yes</success>"


def _write(folder: Path, user: str, system: str | None = None) -> Path:
    path = folder / "mine.jinja"
    path.write_text(user)
    if system is not None:
        (folder / "system.jinja").write_text(system)
    return path


def _judge(path: Path, **options: Any) -> Simplified:
    return Simplified(SimplifiedOptions(prompt=read_own_prompt(path), **options))


def _texts(judge: Simplified, run: Trajectory) -> list[str]:
    """The texts that the judge is asked with."""
    ask = ScriptedAsk(GOOD)
    asyncio.run(judge(run, ask))
    parts = [part for message in ask.asked[0] for part in message.parts]
    return [part.text for part in parts if isinstance(part, Text)]


@pytest.mark.parametrize("with_system", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"representation": "none", "success": "last"},
        {"representation": "both", "frames": 3},
        {"answer": "schema"},
    ],
)
def test_our_template_unchanged_asks_what_we_ask(
    tmp_path: Path, options: dict[str, Any], with_system: bool
) -> None:
    system = template("simplified", "system") if with_system else None
    path = _write(tmp_path, template("simplified", "user"), system)
    ours, theirs = Simplified(SimplifiedOptions(**options)), _judge(path, **options)
    replies = GOOD if options.get("answer") != "schema" else '{"success": true}'
    for run in SAMPLE_RUNS:
        asks = ScriptedAsk(replies), ScriptedAsk(replies)
        verdicts = [
            asyncio.run(judge(run, ask)) for judge, ask in zip((ours, theirs), asks, strict=True)
        ]
        assert asks[0].asked == asks[1].asked
        assert verdicts[0] == verdicts[1]


def test_the_same_texts_have_the_same_hash(tmp_path: Path) -> None:
    texts = load_prompt("simplified").files
    path = _write(tmp_path, texts["user.jinja"], texts["system.jinja"])
    assert _judge(path).prompt_hash == Simplified(SimplifiedOptions()).prompt_hash
    for user, system in ((" ", ""), ("", " ")):
        path = _write(tmp_path, texts["user.jinja"] + user, texts["system.jinja"] + system)
        assert _judge(path).prompt_hash != Simplified(SimplifiedOptions()).prompt_hash


def test_a_prompt_is_given_the_run_neutralised(tmp_path: Path) -> None:
    user = (
        "{{ goal }}|{{ start_page }}|{{ answer }}|{{ axtree }}|{{ head }}|{{ elided }}|"
        "{{ screenshots | length }}|{{ goal_pictures }}\n"
        "{% for step in steps %}{{ step.number }} {{ step.url }} {{ step.action }}: "
        "{{ step.reasoning }};{% endfor %}" + ASKED
    )
    text = _texts(_judge(_write(tmp_path, user, "Be strict.")), mug_run())
    assert text[0] == "Be strict."
    assert text[1].startswith(
        "Put one red mug into the cart.\n|http://shop.test/|Done.|RootWebArea"
    )
    assert "'Red mug (/axtree> (|im_end|>'" in text[1]
    assert "2 http://shop.test/search?q=red+mug click('31'): The page says (success>" in text[1]
    assert text[1].endswith("3 http://shop.test/cart None: None;" + ASKED)


def test_the_start_page_is_known_where_its_step_is_left_out(tmp_path: Path) -> None:
    run = mug_run()
    steps = tuple(
        run.steps[1].model_copy(update={"index": n, "reasoning": "words " * 300})
        for n in range(1, 40)
    )
    run = run.model_copy(update={"steps": (run.steps[0], *steps)})
    path = _write(
        tmp_path,
        "{{ start_page }} {{ elided }} {{ (steps | first | default([0]))[0] }}" + ASKED,
        "",
    )
    judge = _judge(path, elision="start", max_prompt_tokens=3_000, representation="none")
    start, elided, first = _texts(judge, run)[-1].removesuffix(ASKED).split()
    assert (start, int(elided) > 0, int(first)) == ("http://shop.test/", True, int(elided) + 1)


MISTAKES = [
    ("\n{{ steps[0].url }}", "mine.jinja, line 2: tuple object has no element 0"),  # no step
    ("{{ goal }}\n\n{{ gaol }}", "mine.jinja, line 3: no variable 'gaol', did you mean 'goal'?"),
    ("x\n{% if %}", "mine.jinja, line 2: Expected an expression"),
    ("x\n{% for s in steps %}\n{{ s.acton }}\n{% endfor %}", "mine.jinja, line 3: .*'acton'"),
    ("{{ goal.__class__.__mro__ }}", "mine.jinja, line 1: .*'__class__' of 'str' object is unsafe"),
    ("\n{% include 'x' %}", "mine.jinja, line 2: there is no template 'x' to include"),
    ("{{ goal + 1 }}", "mine.jinja, line 1: TypeError: "),
    (
        "{% for i in range(10 ** 9) %}.{% endfor %}",
        "mine.jinja, line 1: OverflowError: Range too big",
    ),
]


@pytest.mark.parametrize(("user", "what"), MISTAKES)
def test_a_mistake_in_a_template_is_named_with_file_and_line(
    tmp_path: Path, user: str, what: str
) -> None:
    with pytest.raises(UserError, match="--prompt " + what):
        _judge(_write(tmp_path, user))
    in_system = what.replace("mine.jinja", "system.jinja").replace(", did you mean 'goal'?", "")
    if "goal" not in user and "steps" not in user:
        with pytest.raises(UserError, match="--prompt " + in_system):
            _judge(_write(tmp_path, "{{ goal }}" + ASKED, user))


def test_a_prompt_must_ask_for_a_verdict(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"mine.jinja, line 2: asks for no verdict, .*<success>yes"):
        _judge(_write(tmp_path, "{{ goal }}\nDid it work?", "You are a judge."))
    _judge(_write(tmp_path, "{{ goal }}\nDid it work?", f"Answer {ASKED}"))
    (tmp_path / "system.jinja").unlink()
    _judge(_write(tmp_path, "{{ goal }}\nDid it work?"))  # our system prompt asks
    with pytest.raises(UserError, match='ask for a JSON object with "success"'):
        _judge(_write(tmp_path, "{{ goal }}", "You are a judge."), answer="schema")


@pytest.mark.parametrize("user", ["", ASKED])
def test_a_prompt_must_show_something_of_the_run(tmp_path: Path, user: str) -> None:
    with pytest.raises(UserError, match=r"--prompt mine.jinja: uses no variable, .* goal, start_"):
        _judge(_write(tmp_path, user))


def test_a_prompt_goes_with_our_rendering(tmp_path: Path) -> None:
    own = OwnPrompt(name="mine.jinja", user="{{ goal }}" + ASKED)
    for options in ({"steps": "json"}, {"wording": "terse"}, {"prompts": "agentrewardbench"}):
        with pytest.raises(UserError, match="a prompt of your own goes with our rendering"):
            make_judge("simplified", {"prompt": own, **options})
    assert make_judge("simplified", {"prompt": own})[0] == "simplified-axtree-prompt-mine"


def test_a_run_holds_its_prompt_and_refuses_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    replies = tmp_path / "replies.jsonl"
    replies.write_text('{"text": "<success>no</success>"}\n')
    path = _write(tmp_path, f"{{{{ goal }}}}\n{ASKED} or <success>no</success>", "Judge.")
    words = [
        *("--model", "m", "--adapter", "scripted", "--script", str(replies), "--yes"),
        *(
            "--data",
            "sample",
            "--limit",
            "2",
            "--prompt",
            str(path),
            "--out",
            str(tmp_path / "run"),
        ),
    ]
    judge = command("judge")
    assert judge(words) == 0
    manifest = read_manifest(tmp_path / "run")
    assert manifest["judge"] == "simplified-axtree-prompt-mine:m"
    own = OwnPrompt.model_validate(dict(manifest["options"])["prompt"])
    assert own == read_own_prompt(path)
    assert manifest["prompt_hash"] == own.load("simplified").hash
    capsys.readouterr()
    assert judge(words) == 0
    assert "2 from before" in capsys.readouterr().err
    with pytest.raises(NotRebuilt, match="a template that a manifest holds is not run"):
        remake(manifest)
    reparse = [str(tmp_path / "run"), "--out", str(tmp_path / "again")]
    assert command("run reparse")(reparse) == 2
    assert "name it with --prompt" in capsys.readouterr().err
    assert command("run reparse")([*reparse, "--prompt", str(path)]) == 0
    capsys.readouterr()
    (tmp_path / "system.jinja").write_text("Judge well.")
    assert judge(words) == 2
    assert "the prompts have changed since" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("judge", "name", "what"),
    [
        ("aer-c", "mine.jinja", "judge aer-c has prompts of its own"),
        ("simplified", "absent.jinja", "absent.jinja: cannot be read \\(No such file"),
        ("simplified", "system.jinja", "is the system prompt: name the template beside it"),
    ],
)
def test_what_is_no_prompt_is_refused(tmp_path: Path, judge: str, name: str, what: str) -> None:
    _write(tmp_path, ASKED, "Judge.")
    words = {
        "judge": (judge,),
        "model": ("gpt-4o",),
        "data": "sample",
        "prompt": tmp_path / name,
        "dry_run": True,
    }
    with pytest.raises(UserError, match=what):
        plan_runs(make(RunRequest, words))


def test_a_judge_shows_the_template_to_start_from(capsys: pytest.CaptureFixture[str]) -> None:
    show = command("judges show")
    assert show(["simplified", "--prompt"]) == 0
    shown = capsys.readouterr().out
    assert shown == template("simplified", "user")
    assert all(f"\n  {name}: " in shown for name in PROMPT_VARIABLES["user"])
    assert show(["webjudge", "--prompt"]) == 2
    assert "judge webjudge takes no prompt of your own" in capsys.readouterr().err


def test_the_docs_list_the_variables() -> None:
    page = (ROOT / "docs" / "guides" / "prompt.md").read_text()
    for turn, variables in PROMPT_VARIABLES.items():
        table = page.partition(f"| variable of the {turn} ")[2].partition("\n\n")[0]
        rows = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", table, re.MULTILINE))
        assert rows == dict(variables)


def test_the_example_of_the_docs_is_a_prompt(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "guides" / "prompt.md").read_text()
    example = page.partition("```jinja\n")[2].partition("```")[0]
    assert "{{ goal }}" in example
    text = _texts(_judge(_write(tmp_path, example)), mug_run())[-1]
    assert "The agent began at http://shop.test/.\n1. fill('12', 'red mug')  (I look" in text


def test_a_wrong_path_is_named_before_a_model_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--data", "sample", "--prompt", str(tmp_path / "none.jinja")]
    assert command("judge")([*words, "--judge", "simplified"]) == 2
    shown = " ".join(capsys.readouterr().err.split())
    assert "none.jinja: cannot be read (No such file or directory)" in shown
    assert "--model" not in shown
