"""The application of the guide runs as it stands there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.forked import start
from tests.installed import write_metadata

ROOT = Path(__file__).parents[3]
GUIDE = ROOT / "docs" / "guides" / "application.md"
FILE = re.compile(r"^`([\w.]+)`:\n\n```\w+\n(.*?)^```$", flags=re.M | re.S)
PROJECT = re.compile(r"^```ini\n(.*?)^```$", flags=re.M | re.S)
LINE = re.compile(r"^```text\n(.*?)^```$", flags=re.M | re.S)
COMMANDS = re.compile(r"^```bash\n(.*?)^```$", flags=re.M | re.S)
TEXT = GUIDE.read_text(encoding="utf-8")
OWN, JOINING = COMMANDS.findall(TEXT)
GENERATE, VALIDATE = OWN.splitlines()
NAME = "reading_room"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder in which the guide's package is installed, as pip leaves it."""
    return installed_in(tmp_path)


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Such a folder beside which the guide's first command ran, and what it said."""
    folder = tmp_path_factory.mktemp("guide")
    return folder, ran(folder, GENERATE, installed_in(folder))


def installed_in(folder: Path) -> Path:
    project = tomllib.loads(PROJECT.findall(TEXT)[0])["project"]
    points = [
        line
        for group, some in project["entry-points"].items()
        for line in (f"[{group}]", *(f"{name} = {module}" for name, module in some.items()))
    ]
    write_metadata(folder / "site", project["name"], "\n".join(points))
    written(folder / "site" / NAME)
    return folder / "site"


def written(package: Path) -> None:
    package.mkdir()
    (package / "__init__.py").write_text('"""A library."""\n')
    for name, content in FILE.findall(TEXT):
        (package / name).write_text(content, encoding="utf-8")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout that the guide's application joined."""
    root = tmp_path / "checkout"
    root.mkdir()
    for path in ROOT.iterdir():
        if path.name != "trajudge" and not path.name.startswith("."):
            (root / path.name).symlink_to(path)
    shutil.copytree(ROOT / "trajudge", root / "trajudge")
    apps = root / "trajudge" / "environments" / "apps"
    written(apps / "library")
    known, (line,) = (apps / "__init__.py").read_text(encoding="utf-8"), LINE.findall(TEXT)
    first = "APPS: dict[str, Domain] = {\n"
    (apps / "__init__.py").write_text(known.replace(first, first + line), encoding="utf-8")
    return root


def ran(folder: Path, command: str, *path: Path) -> str:
    """What a command says in a folder where these packages are installed."""
    name, *words = command.split()
    assert name == "trajudge"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))}
    return b"".join(start("trajudge", words, folder, environment).communicate()).decode()


@pytest.mark.slow
@pytest.mark.browser
def test_the_package_of_the_guide_is_generated_and_solved(generated: tuple[Path, str]) -> None:
    folder, told = generated
    assert "4 cases of 4 configurations tried" in told, told
    said = ran(folder, VALIDATE, folder / "site")
    assert re.search(r"^library +4 +4$", said, flags=re.M), said


@pytest.mark.slow
@pytest.mark.browser
def test_runs_of_the_package_are_recorded_and_verified_again(
    generated: tuple[Path, str], tmp_path: Path
) -> None:
    folder, _ = generated
    two = (folder / "library.jsonl").read_text().splitlines(keepends=True)[:2]
    (tmp_path / "two.jsonl").write_text("".join(two))
    command = "trajudge env record --cases two.jsonl --agent scripted-b scripted-g"
    said = ran(tmp_path, f"{command} --out recorded", folder / "site")
    assert said.startswith("4 of 4 runs of 2 agents succeeded, by the state at the end.\n"), said
    assert "failed" not in said, said
    said = ran(tmp_path, "trajudge env verify recorded", folder / "site")
    assert said == "recorded: the labels of 4 of 4 runs are what the state gives\n"


@pytest.mark.slow
@pytest.mark.browser
def test_a_run_in_which_the_package_fails_is_told_and_not_kept(
    generated: tuple[Path, str], tmp_path: Path
) -> None:
    """It was the agent's failure, labelled as that."""
    folder, _ = generated
    shutil.copytree(folder / "site", tmp_path / "site")
    operations = tmp_path / "site" / NAME / "operations.py"
    code = operations.read_text()
    line = code[: code.index("state.change(")].count("\n") + 1
    operations.write_text(code.replace("state.change(", "state.renew("))
    (tmp_path / "one.jsonl").write_text(
        (folder / "library.jsonl").read_text().splitlines(keepends=True)[0]
    )
    command = "trajudge env record --cases one.jsonl --agent oracle --out recorded"
    said = ran(tmp_path, command, tmp_path / "site")
    assert said.startswith("No run was recorded.\n1 run failed: "), said
    why = "AttributeError: 'AppState' object has no attribute 'renew'"
    told = f"cannot be played ({why}, operations.py line {line}): correct it"
    assert told in " ".join(said.split())
    assert "Traceback" not in said


def test_payloads_need_an_application_of_ours(generated: tuple[Path, str], tmp_path: Path) -> None:
    folder, _ = generated
    (tmp_path / "texts.yaml").write_text("goals: {success: [Say yes.]}")
    command = f"trajudge env record --cases {folder}/library.jsonl --payloads texts.yaml"
    said = ran(tmp_path, f"{command} --out planted", folder / "site")
    told = "error: --payloads: it is not known what the users of library write"
    assert said.startswith(told), said
    assert not (tmp_path / "planted").exists()


def test_without_the_package_its_cases_are_refused(generated: tuple[Path, str]) -> None:
    said = ran(generated[0], VALIDATE)
    assert "no application is called 'library': choose from shop," in said, said


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("app.toml", None, "the package reading_room holds no app.toml: write one"),
        ("app.toml", "title = Reading", "app.toml: cannot be read: Invalid value (at line 1"),
        ("app.toml", 'title = "R"\n[words]\n[tables]', "names no domain: write  domain = ..."),
        ("app.toml", 'title = "R"\ndomain = "x"\n', "app.toml: domain "),
        ("app.toml", 'domain = "tool-use"\n[words]', "app.toml: title "),
        ("schema.py", "", "schema' has no attribute 'profile'): correct it"),
        ("pages.py", "import there_is_none", "'there_is_none', pages.py line 1): correct it"),
        ("scenarios.toml", None, "the package reading_room holds no scenarios.toml: write one"),
        (
            "scenarios.toml",
            "[scenarios.where]\ngoals = 3",
            "scenarios.toml: scenarios.where.goals ",
        ),
        (
            "scenarios.toml",
            '[scenarios.where]\ngoals = ["?"]\nreply = ""\nplan = ["open books {book}"]',
            "scenario where: 'open books {book}' is no step: see the guide",
        ),
        (
            "scenarios.toml",
            '[scenarios.where]\ngoals = ["?"]\nreply = ""\nplan = ["open books = {book}"]',
            "the step 'open books = {book}' names 'book', which is no slot",
        ),
        (
            "scenarios.toml",
            '[scenarios.where]\ngoals = ["?"]\nreply = ""\nplan = []\nslots.book = "$any"',
            "[slots] holds no 'any'",
        ),
        ("operations.py", "raise SystemExit(3)", "(SystemExit: 3, operations.py line 1): correct"),
    ],
)
def test_a_package_with_a_mistake_is_one_sentence(
    site: Path, tmp_path: Path, name: str, content: str | None, told: str
) -> None:
    (site / NAME / name).unlink()
    if content is not None:
        (site / NAME / name).write_text(content)
    said = ran(tmp_path, GENERATE, site)
    assert said.startswith("error: --app library: ") and said.count("\n") == 1, said
    assert told in said


@pytest.mark.parametrize(
    ("name", "right", "wrong", "told"),
    [
        ("scenarios.toml", "lent = 0", "lend = 0", "OperationalError: no such column: lend"),
        ("scenarios.toml", "= {book[name]}", "= {book[title]}", "KeyError: 'title'"),
        (
            "pages.py",
            'record["name"]',
            'record["title"]',
            "No item with that key, pages.py line {}",
        ),
        ("schema.py", "12 + index", "60", ", schema.py line {}"),
    ],
)
def test_a_mistake_that_a_case_shows_is_one_sentence(
    site: Path, tmp_path: Path, name: str, right: str, wrong: str, told: str
) -> None:
    code = (site / NAME / name).read_text()
    line = code[: code.index(right)].count("\n") + 1
    (site / NAME / name).write_text(code.replace(right, wrong))
    said = ran(tmp_path, GENERATE, site)
    assert said.startswith("error: --app library: library.") and said.count("\n") == 1, said
    assert " cannot be checked (" in said and f"{told.format(line)}): correct it" in said
    assert not (tmp_path / "library.jsonl").exists()


def test_an_installed_application_is_offered_and_imported_only_when_named(
    site: Path, tmp_path: Path
) -> None:
    (site / NAME / "__init__.py").write_text("raise RuntimeError")
    said = ran(tmp_path, "trajudge env generate --app libary", site)
    assert said.endswith("process), library (of the package reading-room)\n"), said


def test_a_package_with_the_name_of_one_of_ours_is_refused(site: Path, tmp_path: Path) -> None:
    points = site / "reading_room-1.0.dist-info" / "entry_points.txt"
    points.write_text(points.read_text().replace("library", "shop"))
    said = ran(tmp_path, "trajudge env generate --app shop --count 1", site)
    assert "--app shop: trajudge has one of that name, and so has an installed package" in said


@pytest.mark.slow
def test_the_application_of_the_guide_keeps_the_contract(checkout: Path) -> None:
    words = [*JOINING.split()[1:], "-q", "-p", "no:cacheprovider"]
    said = subprocess.run(
        [sys.executable, *words], cwd=checkout, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(checkout)},
    ).stdout  # fmt: skip
    failed = re.findall(r"^FAILED .*::test_(\w+)", said, flags=re.M)
    wanted = [
        "scenarios_span_answers_charts_and_risks",
        "user_content_looks_like_markup_in_the_stress_profile_alone",
    ]
    assert failed == wanted, said
