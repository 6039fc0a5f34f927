"""Judges follow their sources, or their cards say where they do not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import trajudge.prompts
from tests.commands import judges as main
from tests.screens import one_screen
from trajudge.judges.fidelity import fidelity_items, read_fidelity
from trajudge.judges.registry import JUDGES
from trajudge.prompts.render import load_prompt, prompt_of

PROMPTS = Path(trajudge.prompts.__path__[0])
COMPARED = sorted(read_fidelity())
# Of every rule of a variant's source, which the templates choose between.
VARIANTS: dict[tuple[str, str], tuple[dict[str, object], set[str]]] = {
    ("webjudge", "general"): (
        {"variant": "general"},
        {"V1", "V2", "V3", "V4", "V5", "G5", "G6"},
    ),
    ("webjudge", "online-mind2web"): (
        {"variant": "online-mind2web"},
        {"V1", "V2", "V3", "V4", "V4x", "V5", "V6", "V7"},
    ),
}


def folder_of(name: str) -> str:
    return JUDGES[name].prompt


@pytest.mark.parametrize("name", COMPARED)
def test_every_rule_of_a_source_is_marked_or_left_out_on_the_card(name: str) -> None:
    known = read_fidelity()[name].rules.keys()
    card = JUDGES[name].card
    assert card
    marked = load_prompt(folder_of(name)).rules
    sharing = [other for other in COMPARED if folder_of(other) == folder_of(name)]
    assert marked <= set().union(*(read_fidelity()[other].rules for other in sharing))
    assert known - marked == card.left_out.keys(), "a rule is neither marked nor left out"


@pytest.mark.parametrize("name", COMPARED)
def test_every_mark_is_read(name: str) -> None:
    """A mark that stands elsewhere than on a line of its own before a rule would count for none."""
    for template in (PROMPTS / folder_of(name)).glob("*.jinja"):
        text = template.read_text(encoding="utf-8")
        marks = re.findall(r"\{#-? *R (.*?)-?#\}", text)
        read = prompt_of({"card.yaml": _card(name), template.name: text}).rules
        assert {rule for mark in marks for rule in mark.split()} == read, template


def _card(name: str) -> str:
    return (PROMPTS / folder_of(name) / "card.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "variant"), VARIANTS)
def test_each_variant_holds_the_rules_of_its_own_source(name: str, variant: str) -> None:
    values, rules = VARIANTS[name, variant]
    files = {
        path.name: re.sub(
            r"^\{# R (.*) #\}$", r"[R \1]\n", path.read_text(encoding="utf-8"), flags=re.M
        )
        for path in (PROMPTS / folder_of(name)).iterdir()
    }
    rendered = prompt_of(files).render("system", answer="text", **values)
    assert {rule for mark in re.findall(r"\[R (.*)\]", rendered) for rule in mark.split()} == rules


@pytest.mark.parametrize("name", COMPARED)
def test_every_declared_deviation_stands_on_the_card(name: str) -> None:
    card = JUDGES[name].card
    assert card
    stated = [deviation.what for deviation in card.deviations]
    for row in read_fidelity()[name].items:
        assert (row.status == "declared") == bool(row.card), row.item
        assert not row.card or any(what.startswith(row.card) for what in stated), row.item


@pytest.mark.parametrize("name", COMPARED)
def test_what_was_mended_made_another_version(name: str) -> None:
    card = JUDGES[name].card
    assert card
    mended = any(row.status == "mended" for row in read_fidelity()[name].items)
    # How large pictures are made smaller has changed once, for all judges that show any.
    first = 2 if "screenshot" in JUDGES[name].representations else 1
    assert card.version >= first
    assert mended == (card.version > first)


def test_the_command_shows_what_a_judge_follows(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fidelity", "webjudge", "--full"]) == 0
    head, *rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert head == ["judge", "item", "source", "here", "status"]
    assert {row[0] for row in rows} == {"webjudge"}
    assert rows[-1][1] == "rules"
    assert main(["fidelity", "--full"]) == 0
    assert {line.split("\t")[0] for line in capsys.readouterr().out.splitlines()[1:]} == set(
        COMPARED
    )
    assert main(["fidelity", "heuristic"]) == 2
    assert "no source is compared with it" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["", *COMPARED])
def test_what_differs_takes_one_screen(
    name: str, width: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fidelity", *name.split()]) == 0
    lines = one_screen(capsys.readouterr().out, width)
    if not name:
        assert {line.split()[0] for line in lines[3:-2]} == set(COMPARED)
        return
    same = sum(item.status == "same" for item in fidelity_items(name))
    assert lines[-1].endswith(f"{same} item{'' if same == 1 else 's'} the same: --full")
    assert not any(line.endswith("  same") for line in lines)


def test_no_sentence_recommends_a_strangers_package() -> None:
    """The index has an empty package of the name that the Universal Verifier's folder has."""
    root = PROMPTS.resolve().parents[1]
    for room in ("trajudge", "docs"):
        for path in (root / room).rglob("*.*"):
            if path.suffix in {".py", ".md", ".yaml", ".toml"}:
                assert "install webeval" not in path.read_text(encoding="utf-8"), path
