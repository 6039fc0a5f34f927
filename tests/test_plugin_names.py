"""Names that a package of the user's shares with trajudge or with another package."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import trajudge as tj
from tests.installed import write_metadata
from tests.plugin_files import FILES
from trajudge.annotations import parse_labels
from trajudge.eval.judge import main
from trajudge.eval.store.inputs import open_recorded
from trajudge.judges.adapters.routing import make_adapter
from trajudge.judges.registry import JUDGES, find_judge
from trajudge.judges.show import installed_rows, list_screen
from trajudge.trajectories import plugins
from trajudge.trajectories.loaders import KINDS, open_source, parse_source
from trajudge.trajectories.sample import sample_path
from trajudge.util.commands import OK, USAGE_ERROR
from trajudge.util.errors import UserError

Install = Callable[[str, str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install a distribution with the given entry points, as pip leaves it on ``sys.path``."""

    def installed(package: str, points: str) -> None:
        site = tmp_path / package
        (site / package).mkdir(parents=True)
        (site / package / "__init__.py").touch()
        for name, content in FILES.items():
            (site / package / f"{name}.py").write_text(content)
        write_metadata(site, package, points)
        monkeypatch.syspath_prepend(str(site))

    monkeypatch.chdir(tmp_path)
    plugins.warn_once.cache_clear()
    yield installed
    plugins.warn_once.cache_clear()


def test_a_judge_and_an_adapter_of_a_name_of_ours_are_refused(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    """Which of two the user means is not ours to guess: the built-in ran without a word."""
    install("theirs", "[trajudge.judges]\nheuristic = theirs.judge\n")
    install("more", "[trajudge.adapters]\nopenai = more.adapter\n")
    assert main(["--data", "sample", "--judge", "heuristic", "--out", "run"]) == USAGE_ERROR
    said = capsys.readouterr().err
    assert "--judge heuristic: trajudge has one of that name, and so has an installed" in said
    assert "(theirs): rename its entry point in the group trajudge.judges" in said
    with pytest.raises(UserError, match="--judge heuristic: trajudge has one"):
        tj.judge("sample", tj.panel("heuristic", "rule-based"), out="run")
    with pytest.raises(UserError, match=r"--adapter openai: .* package \(more\): rename"):
        make_adapter("gpt-4o", adapter="openai")
    assert make_adapter("gpt-4o", dry_run=True)[0].name == "openai"
    assert find_judge("rule-based") is JUDGES["rule-based"]


def test_kinds_of_a_name_of_ours_are_ours_with_a_warning(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    install("theirs", "[trajudge.loaders]\ntrajudge = theirs.loader\n")
    install("more", "[trajudge.annotations]\ntrajudge = more.labels\n")
    ours = f"trajudge:{sample_path()}"
    words = ["--data", ours, "--judge", "heuristic", "--limit", "1", "--out", "run"]
    assert main(words) == OK
    said = capsys.readouterr().err
    own = "trajudge's own is used, not that of an installed package"
    assert said.count(f"--data trajudge: {own} (theirs): rename") == 1
    assert said.count(f"--annotations trajudge: {own} (more): rename") == 1
    assert open_recorded(ours) == ours, "no code of the user's would be run"


def test_the_name_of_the_sample_is_ours_alone_and_theirs_with_a_path(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    install("theirs", "[trajudge.loaders]\nsample = theirs.loader\n")
    install("more", "[trajudge.annotations]\nsample = more.labels\n")
    words = ["--judge", "heuristic", "--limit", "1", "--out", "run"]
    assert main(["--data", "sample", *words, "--annotations", "sample"]) == OK
    said = capsys.readouterr().err
    own = "trajudge's own is used, not that of an installed package"
    assert said.count(f"warning: --data sample: {own} (theirs): rename") == 1
    assert said.count(f"warning: --annotations sample: {own} (more): rename") == 1
    Path("mine").touch()
    assert parse_source("sample:mine") == ("sample", Path("mine"))
    assert parse_labels("sample:mine").kind == "sample"
    said = capsys.readouterr().err
    for option, package in (("--data", "theirs"), ("--annotations", "more")):
        theirs = f"{option} sample:PATH is read by an installed package ({package}), {option}"
        assert said.count(f"warning: {theirs} sample alone is trajudge's own: rename") == 1


def test_a_name_that_is_taken_is_listed_once(install: Install) -> None:
    install("theirs", "[trajudge.loaders]\ntrajudge = theirs.loader\nlines = theirs.loader\n")
    install("more", "[trajudge.adapters]\nopenai = more.adapter\n")
    install("judges", "[trajudge.judges]\nheuristic = judges.judge\n")
    with pytest.raises(UserError, match=f"a KIND of {', '.join(KINDS)}, lines$"):
        open_source("nowhere")
    Path("mine.txt").touch()
    own = r", lines, or as \./LOADER\.py:PATH with a loader of your own$"
    with pytest.raises(UserError, match=rf"no known format.* {', '.join(KINDS)}{own}"):
        open_source("mine.txt")
    with pytest.raises(UserError, match=r"openai, .*vertex, gemini, local, scripted, or name"):
        make_adapter("m", adapter="openia")
    with pytest.raises(UserError, match=r"agentrewardbench, .*, trajudge, table\)"):
        parse_labels("nowhere")
    taken = "a judge of the package judges, whose name trajudge has: rename it"
    assert installed_rows() == [("heuristic", taken)]
    assert taken in list_screen(full=True)


def test_an_entry_point_of_a_function_is_told_what_to_name(install: Install) -> None:
    install("theirs", "[trajudge.judges]\nasks = theirs.judge:judge\n")
    with pytest.raises(UserError, match=r'names no module: write  asks = "theirs\.judge"$'):
        find_judge("asks")


def test_a_name_of_two_packages_is_refused(install: Install) -> None:
    for package in ("one", "other"):
        install(package, f"[trajudge.judges]\nasks = {package}.judge\n")
    with pytest.raises(UserError, match="packages one and other each bring one of that name"):
        find_judge("asks")
