from __future__ import annotations

import pytest

from eval.layout import print_tables, printable


def test_columns_are_aligned_and_numbers_to_the_right(capsys: pytest.CaptureFixture[str]) -> None:
    print_tables([("T", ("name", "n"), [("a", "5"), ("long name", "12")])], ["That is all."])
    assert (
        capsys.readouterr().out
        == "T\nname        n\na           5\nlong name  12\n\nThat is all.\n"
    )


def test_what_files_say_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_tables([("T", ("name",), [("\x1b[2Jgone\x07",)])], ["\x1b]0;title\x07"])
    assert "\x1b" not in capsys.readouterr().out
    assert printable("a\x9b31mb\nc\td") == "a31mb\nc\td"
