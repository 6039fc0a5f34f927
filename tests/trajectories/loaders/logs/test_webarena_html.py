"""WebArena's render files: parts between fixed marks, whatever a page's text holds."""

from __future__ import annotations

import base64
import os
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.trajectories.loaders import made_logs
from tests.trajectories.loaders.made_logs import TREE, rendered_page
from trajudge.trajectories.loaders import detect_kind, open_source, webarena_html
from trajudge.trajectories.model import Trajectory, Unreadable
from trajudge.util.errors import UserError


def loaded(tmp_path: Path, *pages: str, **more: Any) -> Trajectory:
    (one,) = open_source(str(made_logs.webarena_html(tmp_path / "agent", pages, **more)))
    assert isinstance(one, Trajectory), one
    return one


def colours(run: Trajectory) -> list[object]:
    return [
        Image.open(BytesIO(step.observation.screenshot.data)).convert("RGB").getpixel((0, 0))
        for step in run.steps
        if step.observation.screenshot and step.observation.screenshot.data
    ]


def test_pages_with_what_was_done_on_them(tmp_path: Path) -> None:
    run = loaded(tmp_path, *made_logs.PAGES)
    assert str(run.key) == "webarena/agent/webarena.7"
    assert (run.raw_task_id, run.goal, run.answer) == ("7", "Find lamps.", "Three.")
    assert (run.terminated, run.truncated, run.official_reward) == (True, False, None)
    assert [step.action for step in run.steps] == ["click [2]", "type [2] [x]", "stop [Three.]"]
    assert [step.reasoning for step in run.steps] == [f"I see page {n}." for n in (1, 2, 3)]
    assert [step.observation.axtree for step in run.steps] == [TREE] * 3
    assert run.final.url == "http://shop.example/3?a=<b>"
    assert colours(run) == [(255, 255, 255), (255, 0, 0), (0, 0, 255)]
    refused = 'Attempt to perform "click" on element "[2]" but no'
    assert [step.observation.page_error for step in run.steps] == [None, refused, None]
    assert run.telemetry == {"n_steps": 3, "n_err": 1}
    assert run.metadata["warnings"] == []
    assert "LEAKED" not in str(run.model_dump())


TREES = [
    "a</pre><div>\nb",
    "<div class='prev_action'>x</div>",
    "</pre></div><div class='parsed_action'><pre>x",
    "<img src='data:image/png;base64,AAAA'/>",
    "<script>alert(1)</script> </html>",
    "é ✓ \u2028 x",
]


@pytest.mark.parametrize("tree", TREES)
def test_a_tree_may_hold_marks(tree: str, tmp_path: Path) -> None:
    pages = [rendered_page(1, "click [2]", tree=tree), rendered_page(2, "stop [3]", tree=tree)]
    run = loaded(tmp_path, *pages)
    assert [step.observation.axtree for step in run.steps] == [tree, tree]
    assert run.answer == "3"


ENDINGS = [
    ("stop [a [b] c]", None, None, "a [b] c", True, False),
    ("stop []", None, None, None, True, False),
    ("stop", None, None, None, True, False),
    ("stop [N/A]", None, None, "N/A", True, False),
    ("", "", "stop [Early stop: Reach max steps 30]", None, False, True),
    ("", "", "stop [ERROR: RuntimeError()]", None, False, False),
    ("click [1]", None, None, None, False, None),
    ("stopover [1]", None, None, None, False, None),
]


@pytest.mark.parametrize(("action", "text", "parsed", "answer", "done", "cut"), ENDINGS)
def test_ends(
    action: str,
    text: str | None,
    parsed: str | None,
    answer: str | None,
    done: bool,
    cut: bool | None,
    tmp_path: Path,
) -> None:
    run = loaded(tmp_path, rendered_page(1, action, prediction=text, parsed=parsed))
    assert (run.answer, run.terminated, run.truncated) == (answer, done, cut)
    assert ("Early" in str(run.metadata["error"])) is (cut is True)


def test_a_prediction_without_splitter_has_the_parsed_action(tmp_path: Path) -> None:
    page = rendered_page(1, "", prediction="No action.", parsed="none")
    run = loaded(tmp_path, page)
    assert (run.steps[0].action, run.steps[0].reasoning) == ("none", "No action.")
    several = rendered_page(1, "", prediction="```a``` or ```stop [x]``` then", parsed="none")
    run = loaded(tmp_path / "2", several)
    assert (run.steps[0].action, run.steps[0].reasoning) == ("stop [x]", "```a``` or then")


def test_code_alone_is_the_action(tmp_path: Path) -> None:
    page = rendered_page(1, "x", colour=None)
    code = page.partition("<div class='predict_action'>")[0]
    run = loaded(tmp_path, f"{code}<div class='predict_action'>page.stop()</div>\n")
    assert (run.steps[0].action, run.steps[0].reasoning) == ("page.stop()", None)
    assert run.steps[0].observation.screenshot is None


def test_parts_that_derived_writers_leave_out(tmp_path: Path) -> None:
    page = rendered_page(1, "click [2]")
    start, _, rest = page.partition("<div class='prev_action'")
    no_previous = start + rest.partition("</div>\n")[2]
    before, _, after = page.partition("<div class='action_object'")
    no_object = before + after.partition("</pre></div>")[2]
    for written in (no_previous, no_object):
        run = loaded(tmp_path / str(len(written)), written, rendered_page(2, "stop [x]"))
        assert [step.action for step in run.steps] == ["click [2]", "stop [x]"]
        assert [step.observation.axtree for step in run.steps] == [TREE, TREE]
        assert run.steps[0].reasoning == "I see page 1."
        assert run.metadata["warnings"] == []


def test_several_actions_of_one_page_are_one_step(tmp_path: Path) -> None:
    first, second = rendered_page(1, "click [2]"), rendered_page(2, "stop [x]")
    action = second.partition("<div class='predict_action'>")[2]
    both = first.removesuffix("</div>\n") + action
    run = loaded(tmp_path, both)
    (step,) = run.steps
    assert (step.action, run.answer) == ("click [2]\nstop [x]", "x")
    assert step.reasoning == "I see page 1.\nI see page 2."


GOALS = [
    ({"intent": "Two\nlines: here."}, "Two\nlines: here."),
    ({"intent": "Ask.", "image": None, "comments": "LEAKED"}, "Ask."),
    ({"intent": "Ask.", "answer": "LEAKED"}, "Ask."),
    ({"intent": "Ask.", "our_own_notes": "LEAKED"}, "Ask."),
]


@pytest.mark.parametrize(("task", "goal"), GOALS)
def test_the_goal_ends_where_a_field_begins(task: Any, goal: str, tmp_path: Path) -> None:
    run = loaded(tmp_path, *made_logs.PAGES, task=task)
    assert run.goal == goal
    assert "LEAKED" not in str(run.model_dump())


def test_visual_webarena_is_told_by_its_fields(tmp_path: Path) -> None:
    task = {"image": ["coco/images/1.png", "https://example.com/2.jpg"], "viewport_size": {}}
    run = loaded(tmp_path, *made_logs.PAGES, task=task)
    assert str(run.key) == "visualwebarena/agent/visualwebarena.7"
    assert run.metadata["goal_images"] == ["1.png", "2.jpg"]
    assert run.goal_images == ()


def test_a_file_cut_in_the_middle_gives_the_whole_pages_and_warns(tmp_path: Path) -> None:
    file = made_logs.webarena_html(tmp_path)
    content = file.read_bytes()
    last = content.rfind(b"<h2>New Page")
    for cut in (last + 60, content.rfind(b"</pre><div>"), content.rfind(b"</pre></div></div>")):
        file.write_bytes(content[:cut])
        (run,) = open_source(str(file))
        assert isinstance(run, Trajectory)
        assert len(run.steps) == 2
        assert (run.terminated, run.truncated) == (False, None)
        assert run.metadata["warnings"] == [
            "The file does not end with </html>: its end is missing.",
            "Page 3 was cut and is left out.",
        ]


def test_a_page_that_the_writer_cut_is_left_out(tmp_path: Path) -> None:
    """The writer takes a page's own </body> for the end of what it wrote before."""
    cut = rendered_page(1, "click [2]", tree="before </body> after").partition("</body>")[0]
    run = loaded(tmp_path, cut, rendered_page(2, "stop [x]"))
    assert [step.action for step in run.steps] == ["stop [x]"]
    assert run.metadata["warnings"] == ["Page 1 was cut and is left out."]


def test_files_of_windows(tmp_path: Path) -> None:
    file = made_logs.webarena_html(tmp_path)
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    (run,) = open_source(str(file))
    assert isinstance(run, Trajectory)
    assert [step.observation.axtree for step in run.steps] == [TREE] * 3


def test_a_bad_picture_costs_the_picture(tmp_path: Path) -> None:
    page = rendered_page(1, "stop [x]", colour=None)
    bad = page.replace("<div>\n", "<div>\n<img src='data:image/png;base64,AAAA' style=''/>\n", 1)
    run = loaded(tmp_path, bad)
    assert run.metadata["warnings"] == [
        "The picture of step 1 is not a PNG, JPEG, GIF or WebP image."
    ]


def test_rewards_and_crashes_of_the_folder(tmp_path: Path) -> None:
    for task_id in (1, 2, 3, 4, 5):
        made_logs.webarena_html(tmp_path, task_id=task_id)
    (tmp_path / "log_files").mkdir()
    (tmp_path / "log_files" / "log_1.log").write_text(
        "2023 - [Config file]: config_files/1.json\n"
        "2023 - [Result] (FAIL) config_files/1.json\n2023 - [Result] (PASS) /tmp/x/1.json\n"
        "2023 - [Result] (FAIL) C:\\x\\2.json\n2023 - [Result] (PASS) LEAKED/../4.json x\n"
    )
    (tmp_path / "results.json").write_text('{"2": 1, "3": 0.5, "5": [1]}')
    (tmp_path / "error.txt").write_text(
        "[Config file]: config_files/4.json\n[Unhandled Error] TimeoutError('30 s')\nTraceback\n"
        "[Config file]: config_files/1.json\n[Unhandled Error] X()\n"
    )
    items = list(webarena_html.load(tmp_path))
    rewards = [one.official_reward for one in items if isinstance(one, Trajectory)]
    assert rewards == [1.0, 0.0, 0.5, None]
    (crashed,) = [one for one in items if isinstance(one, Unreadable)]
    assert crashed.reason == "the run crashed: TimeoutError('30 s')"
    assert crashed.key is not None
    assert crashed.key.task_id == "webarena.4"


def test_hostile_logs_cost_the_rewards_alone(tmp_path: Path) -> None:
    made_logs.webarena_html(tmp_path)
    os.mkfifo(tmp_path / "a.log")
    (tmp_path / "b.log").symlink_to("/dev/zero")
    (tmp_path / "results.json").write_text("[" * 100_000)
    (tmp_path / "merged_log.txt").touch()
    os.truncate(tmp_path / "merged_log.txt", 10 * 2**30)
    (run,) = webarena_html.load(tmp_path)
    assert isinstance(run, Trajectory)
    assert run.official_reward is None
    warnings = run.metadata["warnings"]
    assert isinstance(warnings, list)
    assert len(warnings) == 4


@pytest.mark.parametrize("content", ["", "<html>", "<h2>New Page</h2>\n<h3 class='url'>"])
def test_a_file_without_a_page_is_named(content: str, tmp_path: Path) -> None:
    (tmp_path / "render_1.html").write_text(content)
    assert not webarena_html.detect(tmp_path)
    (one,) = webarena_html.load(tmp_path)
    assert isinstance(one, Unreadable)
    assert one.reason == "it holds no whole page"


def test_other_files_are_not_taken(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<div class='state_obv'>")
    assert not webarena_html.detect(tmp_path)
    assert not webarena_html.detect(tmp_path / "page.html")
    for path in (tmp_path, tmp_path / "page.html"):
        with pytest.raises(UserError, match="holds no webarena-html trajectory"):
            webarena_html.load(path)


@pytest.mark.real_data
def test_the_sample_equals_an_independent_reading(real_data: Path) -> None:
    file = real_data / "formats" / "webarena_html" / "render_4242.html"
    assert detect_kind(file) == "webarena-html"
    (run,) = open_source(str(file))
    assert isinstance(run, Trajectory)
    pages = file.read_text().split("<h2>New Page</h2>")[1:]
    assert len(run.steps) == len(pages) == 2
    for step, page in zip(run.steps, pages, strict=True):
        assert step.observation.url == page.split("URL: ")[1].split("</a>")[0]
        tree = page.split("<pre>", 1)[1].split("</pre><div>\n<img")[0]
        assert step.observation.axtree == tree
        data = page.split("base64,")[1].split("'")[0]
        assert step.observation.screenshot is not None
        assert step.observation.screenshot.data == base64.b64decode(data)
        model = page.split("<div class='raw_parsed_prediction'")[1].split("<pre>")[1]
        model = model.split("</pre>")[0]
        assert f"{step.reasoning} ```{step.action}```" == model
    assert "Lamp </pre></div> special" in str(run.final.axtree)
    assert (run.answer, run.terminated) == ("3", True)
    first, second = colours(run)
    assert isinstance(first, tuple)
    assert isinstance(second, tuple)
    assert first[0] > 150 > first[2]
    assert second[2] > 150 > second[0]
    assert "reference_answer" not in str(run.model_dump())
