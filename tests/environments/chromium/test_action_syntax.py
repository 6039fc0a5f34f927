"""Actions are text in BrowserGym's syntax; reading them evaluates nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajudge.environments.chromium.action_syntax import Action, BadAction, parse, spoken, write
from trajudge.environments.chromium.actions import (
    ActionRefused,
    check_arguments,
    check_fill,
    check_window,
    checked_address,
    click_options,
    file_names,
)


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("click('12')", Action("click", ("12",))),
        ('fill("7", "it\'s a mug")', Action("fill", ("7", "it's a mug"))),
        ("scroll(0, 200.5)", Action("scroll", (0, 200.5))),
        (" noop() ", Action("noop", ())),
        ("noop(500)", Action("noop", (500,))),
        ("click('1', button='right')", Action("click", ("1", "right"))),
        ("fill(value='x', bid='1')", Action("fill", ("1", "x"))),
        ("select_option('4', ['a', 'b'])", Action("select_option", ("4", ["a", "b"]))),
        ("click('1', modifiers=['Shift'])", Action("click", ("1", "left", ["Shift"]))),
        ("fill('1', 'x', enable_autocomplete_menu=True)", Action("fill", ("1", "x", True))),
        ("tab_focus(1)", Action("tab_focus", (1,))),
        ("mouse_click(10, 20.5)", Action("mouse_click", (10, 20.5))),
        ("report_infeasible('no such item')", Action("report_infeasible", ("no such item",))),
    ],
)
def test_a_call_with_literal_arguments_is_an_action(text: str, action: Action) -> None:
    assert parse(text) == action


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "click",
            "click(12)",
            "click('1', 'left', '3')",
            "open('/etc/passwd')",
            "click(str(1))",
        ),
        *("noop(); noop()", "click(id='1')", "__import__('os').getcwd()", "(" * 500),
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(BadAction):
        parse(text)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "fill('1', '\\ud800')",
            "select_option('1', ['a', 2])",
            "scroll(0, 1e999)",
            "scroll(0, True)",
        ),
        *(
            f"scroll(0, {10**40})",
            f"fill('1', '{'x' * 50_000}')",
            "fill(**{'bid': '1'})",
            "tab_close(1)",
        ),
        *(
            "fill('1')",
            "fill('1', '2', bid='3')",
            "click('1', bid='1')",
            "tab_focus(True)",
            "-" * 9000,
        ),
    ],
)
def test_what_a_browser_cannot_take_is_refused_in_few_words(text: str) -> None:
    with pytest.raises(BadAction) as refused:
        parse(text)
    assert len(str(refused.value)) < 300 and str(refused.value).isascii()


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_any_text_survives_writing_and_reading(text: str) -> None:
    assert parse(write("fill", "3", text)) == Action("fill", ("3", text))


@given(st.text())
def test_no_text_does_more_than_fail(text: str) -> None:
    try:
        parse(text)
    except BadAction as error:
        assert str(error)


def test_limits_are_the_last_that_are_taken() -> None:
    texts = {size: f"noop({' ' * (size - 6)})" for size in (20_000, 20_001)}
    for taken, refused in (
        (texts[20_000], texts[20_001]),
        ("scroll(0, -100000)", "scroll(0, 100000.5)"),
    ):
        assert parse(taken)
        with pytest.raises(BadAction):
            parse(refused)


def test_the_last_message_is_what_an_action_says() -> None:
    said = [spoken(text) for text in ("answer(['a', 1])", "send_msg_to_user('Hi')", "noop()", "?")]
    assert said == ['{"answer": ["a", 1]}', "Hi", None, None]


def refused(function: Callable[..., object], *arguments: object) -> str:
    """Why an action is not done, "" where it is."""
    try:
        function(*arguments)
    except ActionRefused as error:
        return str(error)
    return ""


def test_a_control_takes_what_its_kind_takes() -> None:
    cases = [("text", "x"), ("number", ""), ("number", "1.5"), ("number", "x"), ("date", "")]
    cases += [("date", "2026-03-02"), ("date", "2026-3-2"), ("search", "2026-3-2")]
    assert [refused(check_fill, "1", kind, text) for kind, text in cases] == [
        "", "", "", "element '1' takes a number, not 'x'", "",
        "", "element '1' takes a date as 2026-03-02, not '2026-3-2'", "",
    ]  # fmt: skip
    assert refused(check_fill, "1", None, "x") == "element '1' takes no text"


def test_buttons_modifiers_and_keys_have_names() -> None:
    texts = [
        "click('1', 'middle', ['Shift'])",
        "click('1', 'fourth')",
        "click('1', 'left', ['Hyper'])",
        "fill('fourth', 'Hyper')",
        "press('1', 'Control+a')",
        "press('1', 'Control+Hop')",
    ]
    assert [refused(check_arguments, parse(text)) for text in texts] == [
        "", "no mouse button is called 'fourth'", "no modifier is called 'Hyper'", "",
        "", "no key is called 'Hop'",
    ]  # fmt: skip
    assert click_options(()) == ("left", [])
    assert click_options(("right",)) == ("right", [])
    assert click_options(("left", ["Shift"])) == ("left", ["Shift"])


def test_only_a_click_that_opens_another_window_is_refused() -> None:
    for opens, button, is_refused in (
        ("a link", "middle", True),
        ("a link", "right", False),
        (None, "middle", False),
    ):
        assert bool(refused(check_window, opens, button)) is is_refused


def test_a_file_has_a_printable_name_of_at_most_200_characters() -> None:
    assert file_names(["/etc/passwd", "a" * 200]) == ["passwd", "a" * 200]
    for name in ("a" * 201, "a/", "a\tb"):
        assert refused(file_names, name).endswith("is no name of a file")


def test_an_address_is_the_origin_s_own_in_plain_characters() -> None:
    origin = "http://run.localhost"
    for path in ("", "/", "/home?a=b", "#top", "?q"):
        assert checked_address(origin + path, origin) == origin + path
    for url in (
        f"{origin}.evil.test/",
        f"{origin}/a b",
        f"{origin}/\\x",
        f"{origin}/\x00",
        "/home",
    ):
        assert refused(checked_address, url, origin) == f"{url!r} is outside of {origin}"
