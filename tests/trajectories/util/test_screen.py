"""One screen: no line too long, no figure broken, each warning once."""

from __future__ import annotations

import pytest

from trajudge.util.tables import columns, first_warnings, fitted, folded, screen_width
from trajudge.util.terminal import listed


def test_the_width_is_that_of_columns_but_at_most_a_hundred(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for given, width in (("80", 80), ("100", 100), ("250", 100), ("20", 60)):
        monkeypatch.setenv("COLUMNS", given)
        assert screen_width() == width


def test_a_figure_stays_with_its_unit_and_its_interval() -> None:
    text = "word " * 13 + "24.5 % [12.1, 43.4] and more"
    lines = folded(text, 72)
    assert " ".join(line.strip() for line in lines) == text
    assert not any(line.lstrip().startswith(("%", "[")) for line in lines)


def test_what_is_too_long_keeps_its_beginning_and_its_reason() -> None:
    text = "seven judgments failed, the first because of what the server said: wrong key"
    assert folded(text, 40, most=1) == ["seven … said: wrong key"]


def test_a_sentence_names_as_many_as_let_it_stand_whole() -> None:
    names = [f"a-judge:with-a-long-name-{n:02}" for n in range(30)]

    def sentences(most: int | None) -> list[str]:
        return [f"Ranked: {listed(names, most)}; no difference.", f"First: {names[0]}."]

    ranked, first = fitted(sentences, 60)
    assert ranked == f"Ranked: {', '.join(names[:4])} and 26 more; no difference."
    assert first == f"First: {names[0]}."
    assert fitted(sentences, 10_000) == sentences(None)


def test_a_path_is_never_broken() -> None:
    path = "/a-folder/" + "x" * 90
    assert folded(f"the run is in {path}", 60)[-1].strip() == path


def test_only_the_first_warnings_are_shown_each_once() -> None:
    lines = first_warnings(["a", "b", "a", "c"], 80, rest="--full", most=2)
    assert lines == ["a", "b", "1 more warning: --full"]
    assert first_warnings([], 80, rest="--full") == []


def test_only_names_are_shortened() -> None:
    rows = [("a-benchmark", "a-very-long-name-of-a-judge", "100.0 [52.0, 100.0]")]
    lines = columns(("benchmark", "judge", "precision"), rows, 50, names=2)
    assert all(len(line) <= 50 for line in lines)
    assert "100.0 [52.0, 100.0]" in lines[1]
    assert "…" in lines[1]


def test_nothing_is_obeyed_by_the_terminal() -> None:
    shown = columns(("name",), [("\x1b[2Jx",)], 80, names=1) + folded("\x1b[2Jx", 80)
    assert not any("\x1b" in line for line in shown)
