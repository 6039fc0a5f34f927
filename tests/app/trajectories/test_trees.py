"""Trees of pages and what changed between two of them."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajudge.app.evidence_files import (
    FACTS,
    NetworkRequest,
    ShownRequests,
    network_trace,
    state_facts,
)
from trajudge.app.images import ImageShelf, KnownImage
from trajudge.app.steps import (
    ActionParts,
    ScreenMark,
    action_parts,
    marks_of,
    neighbours,
    summarise,
    tree_line,
)
from trajudge.app.trees import (
    MAX_LINES,
    difference_view,
    folded_tree,
    parse_tree,
    place_of,
    tree_difference,
)
from trajudge.trajectories.loaders import open_source
from trajudge.trajectories.model import Observation, Step, Trajectory, TrajectoryKey
from trajudge.trajectories.sample import sample_path
from trajudge.util.files import DataFolder

SHOP = """RootWebArea 'Shop', focused
\t[1] banner ''
\t\t[2] link 'Cart (0)', clickable
\t[3] list ''
\t\t[4] listitem ''
\t\t\t[5] link 'Mug', clickable
\t\t[6] listitem ''
\t\t\t[7] link 'Plate', clickable"""
# The same page with other ids, one more mug on top of the list, and the plate's link not clickable.
LATER = """RootWebArea 'Shop', focused
\t[11] banner ''
\t\t[12] link 'Cart (1)', clickable
\t[13] list ''
\t\t[14] listitem ''
\t\t\t[15] link 'Bowl', clickable
\t\t[16] listitem ''
\t\t\t[17] link 'Mug', clickable
\t\t[18] listitem ''
\t\t\t[19] link 'Plate'"""


def changes(before: str, after: str) -> list[tuple[str, str]]:
    lines = tree_difference(parse_tree(before), parse_tree(after))
    return [(line.kind, line.text) for line in lines if line.kind != "same"]


def test_a_node_is_known_by_role_and_name_and_what_is_above_it() -> None:
    assert changes(SHOP, LATER) == [
        ("removed", "link 'Cart (0)', clickable"),
        ("added", "link 'Cart (1)', clickable"),
        ("added", "listitem ''"),
        ("added", "link 'Bowl', clickable"),
        ("changed", "link 'Plate'"),
    ]


def test_the_same_name_elsewhere_is_another_node() -> None:
    moved = SHOP.replace("link 'Mug'", "text 'x'").replace(
        "\t[3] list", "\t[8] link 'Mug'\n\t[3] list"
    )
    assert ("removed", "link 'Mug', clickable") in changes(SHOP, moved)
    assert ("added", "link 'Mug'") in changes(SHOP, moved)


def test_another_title_is_a_change_of_one_line() -> None:
    assert changes(SHOP, SHOP.replace("'Shop'", "'Shop - page 2'")) == [
        ("changed", "RootWebArea 'Shop - page 2', focused")
    ]


def test_other_ids_alone_are_no_change() -> None:
    renumbered = re.sub(r"\[(\d+)\]", lambda found: f"[a{int(found[1]) + 50}]", SHOP)
    assert changes(SHOP, renumbered) == []


LINES = st.lists(
    st.tuples(
        st.integers(0, 4), st.sampled_from(["link 'a'", "link 'b'", "list ''", "text 'x', on"])
    ),
    max_size=25,
)


@given(LINES, LINES)
def test_both_trees_can_be_told_from_the_difference(
    first: list[tuple[int, str]], second: list[tuple[int, str]]
) -> None:
    before, after = (
        "\n".join("\t" * depth + text for depth, text in each) for each in (first, second)
    )
    lines = tree_difference(parse_tree(before), parse_tree(after))
    assert [line.text for line in lines if line.kind != "removed"] == [text for _, text in second]
    kept = [line.before or line.text for line in lines if line.kind != "added"]
    assert sorted(kept) == sorted(text for _, text in first)


def test_real_trees_can_be_told_from_their_differences() -> None:
    """Those of the bundled sample, which another program's browser gave."""
    from trajudge.trajectories.sample import sample_path

    runs = [one for one in open_source(f"trajudge:{sample_path()}") if isinstance(one, Trajectory)]
    pairs = 0
    for run in runs[::40]:
        trees = [step.observation.axtree or "" for step in run.steps]
        for before, after in pairwise(trees):
            lines = tree_difference(parse_tree(before), parse_tree(after))
            assert [line.text for line in lines if line.kind != "removed"] == plain(after)
            is_same = plain(before) == plain(after)
            assert all(line.kind == "same" for line in lines) is is_same
            pairs += 1
    assert pairs > 20


def plain(tree: str) -> list[str]:
    """The lines of a tree without indents and ids, read without our parser."""
    return [re.sub(r"^\[\w+\] ", "", line.strip()) for line in tree.splitlines() if line.strip()]


def test_webarenas_own_trees_are_read(real_data: Path) -> None:
    found = [
        one
        for one in open_source(f"webarena-html:{real_data / 'formats/webarena_html'}")
        if isinstance(one, Trajectory)
    ]
    tree = parse_tree(found[0].steps[0].observation.axtree or "")
    box = tree.with_id("12")
    assert box is not None
    assert (box.role, box.name) == ("textbox", "Search")


@pytest.mark.parametrize(
    ("properties", "place"),
    [
        (', box="(8,20,108,52)", clickable', (8, 20, 108, 52)),
        (', clickable, center="(12,30)"', (12, 30)),
        (', center="(1,2,3)"', None),
        (', box="(1,2)"', None),
        (', box="(a,b,c,d)"', None),
        (", clickable", None),
    ],
)
def test_a_line_may_say_where_its_element_was(
    properties: str, place: tuple[float, ...] | None
) -> None:
    (node,) = parse_tree(f"[12] button 'Pay'{properties}").nodes()
    assert place_of(node) == place


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n \n",
        "no tree at all",
        "[1] [2] [3]",
        "link 'never closed",
        "\t" * 5_000 + "link 'deep'",
        "\n".join("\t" * depth + "list ''" for depth in range(2_000)),
        "[" + "a" * 100_000,
        "link '" + "\\" * 50_001,
        "\x00\ud800 link '\u202e'",
        '{"ok": true, "data": []}',
    ],
)
def test_no_text_is_refused(text: str) -> None:
    folds = folded_tree(text, frozenset({"1"}), "link").rows
    assert sum(row.opens for row in folds) == sum(row.closes for row in folds)
    assert difference_view(text, text).added == 0


def test_what_is_too_long_is_said() -> None:
    assert folded_tree("link 'a'\n" * (MAX_LINES + 7), frozenset(), "").left_out == 7


def test_targets_and_matches_are_marked() -> None:
    tree = folded_tree(SHOP, frozenset({"5"}), "PLATE")
    assert [row.bid for row in tree.rows if row.is_target] == ["5"]
    assert [row.bid for row in tree.rows if row.is_match] == ["7"]
    assert tree.matches == 1


def test_far_from_a_change_lines_are_folded() -> None:
    many = "RootWebArea 'x'\n" + "\n".join(f"\tlink '{n}'" for n in range(100))
    view = difference_view(many, many.replace("link '50'", "link 'other'"))
    assert [block.folded for block in view.blocks] == [True, False, True]
    assert (view.added, view.removed, view.changed, view.same) == (1, 1, 0, 100)


PAGE = KnownImage("0" * 64, 800, 600)


@pytest.mark.parametrize(
    ("action", "parts"),
    [
        ("click('12')", ActionParts("click", "12")),
        ("fill('a51', 'Glass Trivet')", ActionParts("fill", "a51", typed="Glass Trivet")),
        ("select_option('39', ['a', 'b'])", ActionParts("select_option", "39", typed="a, b")),
        ("mouse_click(12, 30.5)", ActionParts("mouse_click", point=(12, 30.5))),
        ("scroll(0, 500)", ActionParts("scroll")),
        ("noop(1000)", ActionParts("noop")),
        ("send_msg_to_user('It is (about) 5')", ActionParts("send_msg_to_user")),
        ("pyautogui.click(241, 362)", ActionParts("click", point=(241, 362))),
        ("Click at (471, 22)", ActionParts("Click", point=(471, 22))),
        ("Scroll (delta_x=0, delta_y=500)", ActionParts("Scroll")),
        ("click [12]", ActionParts("click", "12")),
        ("type [12] [lamp] [1]", ActionParts("type", "12", typed="lamp")),
        ("Type [2]; Baked Salmon", ActionParts("Type", "2", typed="Baked Salmon")),
        ("Scroll [WINDOW]; down", ActionParts("Scroll")),
        ("stop [3]", ActionParts("stop")),
        ("click(target_id=47)", ActionParts("click", "47")),
        (
            'computer({"action": "left_click", "coordinate": [12, 34]})',
            ActionParts("left_click", point=(12, 34)),
        ),
        (
            'input({"index": 12, "text": "lamp", "clear": true})',
            ActionParts("input", "12", typed="lamp"),
        ),
        ('CLICK {"x": 5, "y": 6}', ActionParts("CLICK", point=(5, 6))),
        ("DONE", ActionParts("DONE")),
        ("__import__('os').system('x')", ActionParts("system")),
    ],
)
def test_the_forms_of_actions(action: str, parts: ActionParts) -> None:
    assert action_parts(action) == (parts,)


def test_several_calls_are_read_in_turn() -> None:
    verbs = [parts.verb for parts in action_parts("click('1')\nfill('2', 'x')\nnoop()")]
    assert verbs == ["click", "fill", "noop"]


@given(st.text(max_size=60))
def test_no_action_is_refused(text: str) -> None:
    assert bool(action_parts(text)) is bool(text.strip())


def test_long_actions_take_no_time() -> None:
    for text in ("click(" * 50_000, "a at (" * 20_000, "x [" * 30_000, "9" * 500_000):
        assert len(action_parts(text)) == 1


def test_the_mark_stands_where_the_raw_file_says(real_data: Path) -> None:
    """OSWorld's and Online-Mind2Web's own files, read here without our loaders."""
    wanted: set[tuple[float, float]] = set()
    for file in (real_data / "formats/osworld_style").rglob("traj.jsonl"):
        for line in map(json.loads, file.read_text().splitlines()):
            action = line.get("action")
            if isinstance(action, str) and (
                found := re.search(r"To?\((\d+), (\d+)|click\((\d+), (\d+)", action)
            ):
                wanted.add(tuple(float(part) for part in found.groups() if part))  # type: ignore[arg-type]
            elif isinstance(action, dict):
                wanted.add((float(action["x"]), float(action["y"])))
    for file in (real_data / "online-mind2web").glob("*/result.json"):
        for text in json.loads(file.read_text())["action_history"]:
            if found := re.match(r"Click at \((\d+), (\d+)\)", str(text)):
                wanted.add((float(found[1]), float(found[2])))
    marks = set()
    for spec in ("osworld:formats/osworld_style", "online-mind2web:online-mind2web"):
        kind, place = spec.split(":")
        for run in open_source(f"{kind}:{real_data / place}"):
            if isinstance(run, Trajectory):
                for step in run.steps:
                    screen = marks_of(step, PAGE._replace(width=5_000, height=5_000))
                    marks |= {(mark.x, mark.y) for mark in screen.marks}
    assert len(wanted) >= 10
    assert marks == wanted


def marks(
    action: str, tree: str | None = None, image: KnownImage | None = PAGE
) -> tuple[object, ...]:
    found = marks_of(Step(index=0, action=action, observation=Observation(axtree=tree)), image)
    return (*found.marks, *found.sentences)


def test_a_recorded_box_is_drawn() -> None:
    tree = "RootWebArea 'x'\n\t[12] textbox 'Search', box=\"(10,20,110,50)\", clickable"
    assert marks("fill('12', 'mug')", tree) == (ScreenMark(10, 20, 100, 30, "mug"),)


@pytest.mark.parametrize(
    ("action", "tree", "image", "sentence"),
    [
        ("click('12')", "[12] link 'Pay'", PAGE, "where it was on the screen is not recorded"),
        ("click('99')", "[12] link 'Pay'", PAGE, "Element 99 is not in the recorded tree"),
        ("click('99')", None, PAGE, "no tree of this step is recorded"),
        ("mouse_click(900, 10)", None, PAGE, "outside of the screenshot of 800 × 600 pixels"),
        ("mouse_click(90, 10)", None, None, "The action was at (90, 10)."),
    ],
)
def test_what_cannot_be_drawn_is_said(
    action: str, tree: str | None, image: KnownImage | None, sentence: str
) -> None:
    (said,) = marks(action, tree, image)
    assert sentence in str(said)


def test_no_fact_of_the_sample_shows_a_template() -> None:
    folder = sample_path()
    lines = (folder / FACTS).read_bytes().splitlines()
    keys = [TrajectoryKey.model_validate(orjson.loads(line)["key"]) for line in lines]
    texts = [
        fact.text
        for key in keys
        for fact in state_facts(key, Path(folder), DataFolder(folder))
        if fact.name == "must hold"
    ]
    assert texts
    assert not [text for text in texts if "{" in text]
    assert any(text.startswith("added purchase: delivery = …: 1 found, 1 wanted") for text in texts)


def test_a_tree_is_cut_at_20_000_lines_and_below_60_levels() -> None:
    for lines, left_out in ((20_000, 0), (20_001, 1)):
        tree = parse_tree("link 'a'\n" * lines)
        assert (len(tree.roots), tree.left_out) == (20_000, left_out)
    nested = parse_tree("\n".join("\t" * depth + f"[{depth}] list ''" for depth in range(63)))
    assert [node.depth for node in nested.nodes()] == [*range(61), 60, 60]
    found = nested.with_id("2")
    assert found is not None
    assert found.depth == 2


def test_an_action_of_20_000_characters_is_parsed() -> None:
    for size in (20_000, 20_001):
        action = f"fill('12', '{'a' * (size - 14)}')"
        assert len(action) == size
        (parts,) = action_parts(action)
        assert (parts.typed == "a" * (size - 14)) is (size == 20_000)
    assert action_parts(" \n") == action_parts(None) == ()


def test_steps_are_summarised_with_what_changed() -> None:
    def step(index: int, url: str | None, tree: str, error: str | None = None) -> Step:
        seen = Observation(url=url, axtree=tree, page_error=error)
        return Step(index=index, action="click('2')", observation=seen)

    lines = "[12] text '[2] no'\n\t[2] link 'Mug', clickable\n[3] link 'Cup'"
    steps = (
        step(0, "http://a", lines),
        step(1, "http://b", lines),
        step(2, "http://b", "[2] link 'Plate'", "gone"),
        step(3, "http://a", lines.replace("3", "9")),
    )
    run = Trajectory(
        key=TrajectoryKey(benchmark="b", task_id="1", agent="a"),
        raw_task_id="1",
        goal="",
        steps=steps,
    )
    shown = summarise(run, ImageShelf(None), None)
    assert [(s.number, s.target, s.has_error, s.same_as, s.page_changed) for s in shown] == [
        (1, "link Mug", False, None, False),
        (2, "link Mug", False, None, True),
        (3, "link Plate", True, None, False),
        (4, "link Mug", False, 1, True),
    ]
    ways = [neighbours(shown, number) for number in (1, 2, 3, 4)]
    assert ways == [(None, 2), (1, 3), (2, 4), (3, None)]
    seen = steps[0].observation
    lines_of = [tree_line(seen, bid) for bid in ("12", "2", "3", "4")]
    assert lines_of == ["text '[2] no'", "link 'Mug', clickable", "link 'Cup'", ""]
    assert tree_line(Observation(), "2") == ""


def test_2000_requests_of_a_trace_are_shown(tmp_path: Path) -> None:
    key = TrajectoryKey(benchmark="b", task_id="b.1", agent="a")
    run = Trajectory(key=key, raw_task_id="1", goal="")
    folder, root = tmp_path / "run", DataFolder(tmp_path / "run")
    file = folder / "1" / "network.har"
    file.parent.mkdir(parents=True)
    assert network_trace(run, folder, root) is None
    entry = {"request": {"method": "GET", "url": "http://a/"}, "time": 1.5}
    for count, left_out in ((2_000, 0), (2_001, 1)):
        file.write_bytes(orjson.dumps({"log": {"entries": [entry] * count}}))
        shown = network_trace(run, folder, root)
        assert shown is not None
        assert (shown.file, shown.left_out) == ("1/network.har", left_out)
        assert len(shown.requests) == 2_000
        assert shown.requests[0] == NetworkRequest("GET", "http://a/", 0, "", -1, 1.5)
    file.write_text("no HAR")
    problem = "1/network.har is no HAR file that can be read."
    assert network_trace(run, folder, root) == ShownRequests("1/network.har", (), 0, problem)
    for name in ("../run/1", "1\0"):
        assert network_trace(run.model_copy(update={"raw_task_id": name}), folder, root) is None
