"""Tables of cases as one reads them: a line per case, a column per parameter."""

from __future__ import annotations

import shlex

import pytest


def table(names: str, text: str) -> pytest.MarkDecorator:
    """Run the test once per line of ``text``: its columns, parted by ``|``, are the parameters
    ``names`` (str each, without the spaces around them)."""
    rows = [[cell.strip() for cell in line.split("|")] for line in _lines(text)]
    return pytest.mark.parametrize(names.split(), rows)


def mistakes(text: str) -> pytest.MarkDecorator:
    """Run the test once per mistaken call, ``command's words => what its sentence says``, as
    ``words`` (list[str]) and ``sentence``."""
    calls = [line.split("=>") for line in _lines(text)]
    return pytest.mark.parametrize(
        ("words", "sentence"),
        [(shlex.split(words), sentence.strip()) for words, sentence in calls],
        ids=_lines(text),
    )


def one_sentence(capsys: pytest.CaptureFixture[str], sentence: str) -> str:
    """Hold that stderr is one line with this sentence; return what stands on stdout."""
    shown = capsys.readouterr()
    assert sentence in shown.err
    assert shown.err.count("\n") == 1
    return shown.out


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]
