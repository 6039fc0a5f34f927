"""The register of data sets, and the export that a card forbids."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.screens import one_screen
from trajudge.annotations import KINDS as LABEL_KINDS
from trajudge.eval.cli import main
from trajudge.trajectories import sources as register
from trajudge.trajectories.loaders import KINDS
from trajudge.trajectories.sources import check_redistribution, source_cards


def test_every_set_that_is_read_or_comes_first_has_a_card_with_a_licence() -> None:
    cards = source_cards()
    assert {
        *("cuaverifierbench", "osreward", "agentrewardbench", "online-mind2web"),
        *("trajectory-judge", "webchorearena", "browser-use-om2w"),
    } <= set(cards)
    assert all(card.licence and card.home and card.size for card in cards.values())
    known = {*KINDS, *LABEL_KINDS, "sample"}
    for card in cards.values():
        assert set(card.kinds) <= known, card.name


def test_the_register_is_printed(width: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "sources"]) == 0
    lines = one_screen(capsys.readouterr().out, width)
    assert [line.split()[0] for line in lines[1:] if line[0] != " "] == [*source_cards()]
    assert main(["data", "sources", "cuaverifierbench"]) == 0
    assert "c19eb323cd802add5c3d2840ff13044061364867" in capsys.readouterr().out
    assert main(["data", "sources", "--json"]) == 0
    assert [card["name"] for card in json.loads(capsys.readouterr().out)] == [*source_cards()]
    assert main(["data", "sources", "nothing"]) == 2
    assert "use one of agentrewardbench" in capsys.readouterr().err


@pytest.mark.usefixtures("forbidden_sample")
def test_an_export_that_the_card_forbids_is_refused_before_anything_is_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["judge", "--judge", "heuristic", "--data", "sample", "--limit", "3"]
    words += ["--out", str(tmp_path / "run"), "--export", "agentrewardbench", str(tmp_path / "x")]
    assert main(words) == 2
    assert "may not be redistributed (by hand)" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()
    assert not (tmp_path / "run").exists()
    assert main([*words, "--export-restricted"]) == 0
    assert list((tmp_path / "x").rglob("*.json"))


def test_leave_to_export_without_an_export_is_a_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["judge", "--judge", "heuristic", "--data", "sample", "--out", str(tmp_path / "run")]
    assert main([*words, "--export-restricted"]) == 2
    assert "--export-restricted goes with --export" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_unknown_terms_are_said_and_anybodys_data_passes() -> None:
    assert "ask its authors" in check_redistribution("agentrewardbench", allowed=False)
    assert check_redistribution("agentrewardbench", allowed=True) == ""
    assert check_redistribution("browsergym", allowed=False) == ""
    assert check_redistribution("toolcalls", allowed=False) == ""


@pytest.fixture
def forbidden_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sample under a card that forbids redistribution: no set that is read here has one."""
    cards = dict(source_cards())
    forbidden = {"redistribution": "no", "licence": "by hand"}
    cards["sample"] = cards["sample"].model_copy(update=forbidden)
    monkeypatch.setattr(register, "source_cards", lambda: cards)
