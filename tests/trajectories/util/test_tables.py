"""A table on a terminal holds what it was given, and nothing of it is obeyed."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from trajudge.util.tables import Column, terminal_table

COLUMNS = [Column("agent", folded=True), Column("rate", figures=True)]


def drawn(width: int, *rows: tuple[str, str], title: str | None = "Title") -> list[str]:
    out = StringIO()
    console = Console(file=out, width=width, force_terminal=True, color_system=None)
    console.print(terminal_table(title, COLUMNS, rows))
    return out.getvalue().splitlines()


def test_figures_stand_right() -> None:
    *_, short, long, _ = drawn(40, ("a", "5.0 %"), ("b", "100.0 %"))
    assert short.rstrip().endswith("   5.0 %")
    assert long.rstrip().endswith(" 100.0 %")
    assert len(short.rstrip()) == len(long.rstrip())


def test_only_a_folded_column_is_broken_where_there_is_little_room() -> None:
    lines = drawn(16, ("an-agent-with-a-long-name", "[12.5, 17.5]"))
    assert any("[12.5, 17.5]" in line for line in lines)
    assert not any("an-agent-with-a-long-name" in line for line in lines)


def test_escape_sequences_and_markup_are_shown_as_they_are() -> None:
    shown = "\n".join(drawn(60, ("[red]a\x1b[2J", "1"), title="\x1b]0;x\x07[b]t"))
    assert "\\x1b]0;x\\x07[b]t" in shown
    assert "[red]a\\x1b[2J" in shown


def test_a_title_may_be_left_out() -> None:
    assert drawn(40, title=None)[0].split() in ([], ["agent", "rate"])
