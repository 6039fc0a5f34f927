"""Untrusted values and foreign patterns cost at most their share."""

from __future__ import annotations

import threading
import time

import pytest

from trajudge.rules.limits import (
    PATTERN_CHARS,
    BadPattern,
    TooLarge,
    TooSlow,
    fullmatch,
    is_pattern,
    nfkc,
    unicode_text,
)


def test_lone_surrogates_become_replacement_characters() -> None:
    assert unicode_text("a\ud800b").encode() == "a\ufffdb".encode()


def test_endless_combining_marks_are_refused_before_they_are_normalised() -> None:
    with pytest.raises(TooLarge, match="combining marks"):
        unicode_text("e" + "\u0316\u0301" * 100_000)


def test_long_text_of_another_script_is_no_run_of_marks() -> None:
    text = "北京" * 1000
    assert unicode_text(text) == text
    with pytest.raises(TooLarge):
        unicode_text(text * 1000)


def test_text_that_explodes_when_it_is_normalised_is_refused() -> None:
    assert nfkc("ﬁ") == "fi"
    with pytest.raises(TooLarge):
        nfkc("ﷺ" * 100_000)


@pytest.mark.parametrize("value", ["^$", "^a.*$"])
def test_a_pattern_is_a_text_from_caret_to_dollar(value: str) -> None:
    assert is_pattern(value)


@pytest.mark.parametrize("value", ["", "^", "a$", "^a", 5, None, ["^a$"]])
def test_anything_else_is_not_a_pattern(value: object) -> None:
    assert not is_pattern(value)


def test_the_whole_text_has_to_match() -> None:
    assert fullmatch("^#?0*170$", "#000170")
    assert not fullmatch("^170$", "1700")
    assert not fullmatch("^170$", "170\n")
    assert fullmatch("^a.*b$", "A\nB")
    assert not fullmatch("^a.*b$", "A\nB", case_matters=True)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [("^(a|aa)+$", "a" * 60 + "b"), (r"^(\w+\s?)*$", "aaaa " * 50_000 + "!")],
)
def test_an_exploding_pattern_stops_at_its_time_limit(pattern: str, text: str) -> None:
    with pytest.raises(TooSlow, match=r"took more than 0\.05 s"):
        fullmatch(pattern, text, seconds=0.05)


@pytest.mark.parametrize(
    "pattern",
    [
        "^(a$",
        "^[a$",
        "^a{1000}{1000}$",
        "^((a{999}){999}){999}$",
        "^a{99999999999999999999}$",
        "^" + "(" * 3000 + ")" * 3000 + "$",
        "^" + "a" * PATTERN_CHARS + "$",
    ],
)
def test_a_pattern_that_is_none_or_too_much_is_refused(pattern: str) -> None:
    with pytest.raises(BadPattern):
        fullmatch(pattern, "a")


def test_the_limit_of_a_pattern_counts_this_thread_alone() -> None:
    """Another thread's work is no reason to call a pattern slow."""
    done = threading.Event()

    def work() -> None:
        while not done.is_set():
            pass

    other = threading.Thread(target=work)
    other.start()
    try:
        started = time.thread_time()
        with pytest.raises(TooSlow):
            fullmatch("^(a|aa)+$", "a" * 60 + "b", seconds=0.05)
        assert time.thread_time() - started >= 0.04
    finally:
        done.set()
        other.join()
