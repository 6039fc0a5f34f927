"""Every command of the README and of the first page of the documentation is understood as written,
and those that can run here do."""

from __future__ import annotations

import base64
import json
import re
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import trajudge as tj
from tests.batch_server import BatchServer
from tests.conftest import missing
from tests.eval.conftest import cache_home, own_folder  # noqa: F401 - fixtures
from tests.eval.decided_runs import SETTINGS, decided, lines
from tests.eval.decided_runs import new_runs as strangers
from tests.eval.scored_run import make_run
from tests.llm_server import LlmServer
from tests.screens import same_screen
from tests.spelling import MISUNDERSTOOD
from tests.trajectories.loaders.conversations import colour as seen_colour
from tests.trajectories.loaders.conversations import picture
from trajudge.eval.cli import main as trajudge
from trajudge.eval.judge import main as judge
from trajudge.judges.registry import JUDGES
from trajudge.trajectories.loaders import detect_kind

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = {
    name: (ROOT / f"docs/{name}.md").read_text("utf-8") for name in ("index", "judging", "data")
}
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", flags=re.M | re.S)
COMMANDS: list[str] = [
    *dict.fromkeys(
        line.split("  #")[0].strip()
        for language, block in BLOCK.findall(README + PAGES["index"])
        if not language
        for line in block.splitlines()
    )
]
MODELS = [command for command in COMMANDS if command.startswith("python -m eval.judge")]
# These need no files: they always run, in tests of their own.
NO_INPUT = tuple(f"trajudge {name}" for name in ("env generate", "robust"))
PRICES = '[models."gpt-4o"]\ninput = 2.5\noutput = 10.0\n'


def run(command: str) -> int:
    words = shlex.split(command)
    words = [
        path
        for word in words
        for path in (sorted(map(str, Path().glob(word))) if "*" in word else [word])
    ]
    if words[:3] == ["python", "-m", "eval.judge"]:
        return judge(words[3:])
    assert words[0] == "trajudge", command
    try:
        return trajudge(words[1:])
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 1


def written(start: str) -> str:
    """The one command that begins so."""
    (command,) = [command for command in COMMANDS if command.startswith(start)]
    return command


def test_the_readme_is_short_and_its_links_lead_somewhere() -> None:
    assert len(README.splitlines()) <= 100
    assert max(map(len, README.splitlines())) <= 110
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


@pytest.mark.usefixtures("own_folder")
def test_the_screen_is_what_the_main_job_prints(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    [screen] = [block for language, block in BLOCK.findall(README) if language == "text"]
    assert judge(["--judge", "heuristic", "--data", "sample"]) == 0
    wall_time = re.compile(r"wall time of this session: [\d.]+ s")
    same_screen(ROOT / "README.md", screen, capsys.readouterr().out, wall_time)


def test_the_judges_that_are_named_exist() -> None:
    text = PAGES["judging"]
    (listed,) = re.findall(r"^`trajudge judges list` has (.*?)\[Your own\]", text, re.M | re.S)
    named = re.findall(r"`([\w:-]+)`", listed)
    assert len(named) > 10
    assert set(named) <= set(JUDGES)


def test_setting_up_installs_the_command() -> None:
    """The plain commands install what ``make`` does, and the project itself: without it there is no
    ``trajudge`` to call."""
    installs = re.findall(r"pip install (?:--quiet )?(.+?)(?: && \\)?\n", README + MAKEFILE)
    assert [installs.count(words) for words in dict.fromkeys(installs)] == [2, 2, 2], installs
    assert sum("-e ." in words for words in installs) == 4
    command = shutil.which("trajudge", path=str(Path(sys.executable).parent))
    if command is None:
        missing("installed", "this environment was not made as the README says")
    shown = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert shown.stdout == f"trajudge {tj.__version__}\n"


def test_there_are_commands_to_check() -> None:
    assert len(MODELS) >= 6
    assert len(COMMANDS) >= 30


@pytest.mark.slow
@pytest.mark.usefixtures("own_folder")
@pytest.mark.parametrize("command", MODELS)
def test_a_model_judges_as_written(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the servers are ours: the providers' addresses are taken from the environment."""
    with LlmServer() as server:
        for provider in ("OPENAI", "ANTHROPIC"):
            monkeypatch.setenv(f"{provider}_API_KEY", "a-key")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url + "/v1")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("OPENROUTER_API_BASE", server.url + "/v1")
        words = command.replace("http://127.0.0.1:8000", server.url) + " --limit 4"
        if "openrouter/" in command:
            if find_spec("litellm") is None:
                pytest.skip("the extra litellm is not installed")
            words += " --dry-run"
        if "--max-cost" in words:  # another endpoint's prices are not known
            Path("prices.toml").write_text(PRICES)
            words += " --prices prices.toml"
        elif "--dry-run" not in words:
            words += " --yes"
        if "aer-c" in words:  # the server's one reply suits the simplified judge
            words += " --max-failures 8"
        assert run(words) == 0
        if "--dry-run" not in words:
            assert server.stats.requests


@pytest.mark.usefixtures("own_folder")
def test_half_the_price_as_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the server is ours: its limits and waits are told beside."""
    with BatchServer(seconds=0.05) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "a-key")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url + "/v1")
        Path("prices.toml").write_text(PRICES + '[models."gpt-4o".batch]\ninput = 1\noutput = 5\n')
        words = " --limit 4 --prices prices.toml --batch-options lines=9,bytes=9000000,poll=0.05"
        assert run(written("trajudge judge --model gpt-4o --batch") + words) == 0
        assert (server.submissions, server.live) == (1, 0)


@pytest.fixture
def runs(own_folder: None) -> None:  # noqa: F811
    """Two runs of the sample in ``runs/``."""
    for name in ("heuristic", "rule-based"):
        assert judge(["--judge", name, "--data", "sample", "--out", f"runs/{name}"]) == 0


@pytest.mark.slow
@pytest.mark.usefixtures("runs")
def test_runs_are_scored_and_a_judge_is_chosen_as_written() -> None:
    scoring = [c for c in COMMANDS if c.startswith(("trajudge score runs", "trajudge select"))]
    assert len(scoring) == 4
    for command in scoring:
        if "--calibration" not in command:  # of judges that give scores
            assert run(command) in (0, 1), command
    assert list(Path("selections").glob("*/decision.json"))


@pytest.mark.slow
@pytest.mark.usefixtures("own_folder")
def test_what_verdicts_survive_as_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(written("trajudge robust") + " --limit 6 --out out") == 0
    told = capsys.readouterr()
    assert told.out.startswith("heuristic: of the runs that it accepts ")
    assert not MISUNDERSTOOD.search(told.err), told.err
    assert Path("out/robustness.json").is_file()


@pytest.mark.usefixtures("own_folder")
def test_scores_are_calibrated_as_written(capsys: pytest.CaptureFixture[str]) -> None:
    Path("runs").mkdir()
    make_run(Path("runs/scored"))
    assert run(written("trajudge score runs/* --calibration")) == 0
    assert re.search(r"^judge +log-odds +98 .* 101$", capsys.readouterr().out, re.MULTILINE)


@pytest.mark.usefixtures("own_folder")
def test_a_decision_is_applied_and_certified_again_as_written() -> None:
    shutil.move(decided(Path("labelled"), SETTINGS), "selections/mine")
    strangers(Path("runs/new"), 120)
    apply = "trajudge accept --decision selections/... --run runs/new"
    for start in (f"{apply} --format", f"{apply} --recertify"):
        assert run(written(start).replace("selections/...", "selections/mine")) == 0, start
    assert len(lines(Path("accepted/accepted.jsonl"))) == 180
    assert lines(Path("again/sample.jsonl"))


@pytest.mark.usefixtures("own_folder")
def test_cases_are_generated_as_written() -> None:
    few = written("trajudge env generate").replace("--count 50", "--count 3")  # 50: half a minute
    assert run(few) == 0
    assert len(lines(Path("cases.jsonl"))) == 3


@pytest.mark.slow
@pytest.mark.real_data
@pytest.mark.usefixtures("own_folder")
def test_the_published_files_are_read_as_written(real_data: Path) -> None:
    shutil.copy(real_data / "webarena" / "test.raw.json", "test.raw.json")
    folder = real_data / "agentrewardbench"
    for file in ("annotations.csv", "splits.csv"):
        shutil.copy(folder / file, file)
    started = ("trajudge score --judgments", "trajudge audit", "trajudge rules lint")
    real = (*started, "trajudge rules blind ", "trajudge label estimate")
    commands = [command for command in COMMANDS if command.startswith(real)]
    assert len(commands) == len(real)
    for command in commands:
        assert run(command.replace("DIR", str(folder / "judgments"))) == 0, command


@pytest.mark.slow
@pytest.mark.real_data
@pytest.mark.usefixtures("own_folder")
def test_verified_rules_are_tried_as_written(
    real_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On 100 of the 812 tasks; the demonstration run of the package is of task 108."""
    name = "webarena-verified.json"
    tasks = json.loads((real_data / "webarena" / name).read_text(encoding="utf-8"))
    Path(name).write_text(json.dumps(tasks[100:200]))
    shutil.copytree(real_data / "webarena" / "demo", "RUNS")
    assert run(written("trajudge rules mutate")) == 0
    assert "false accepts: " in capsys.readouterr().out
    assert run(written("trajudge rules evaluate")) == 0
    assert "1 of 1 runs passed" in capsys.readouterr().out


@pytest.mark.usefixtures("own_folder")
@pytest.mark.parametrize(
    "command", [c for c in COMMANDS if c not in MODELS and not c.startswith(NO_INPUT)]
)
def test_every_command_is_spelled_as_the_parser_has_it(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """In an empty folder a command fails for what it lacks, never for how it is written.

    The commands that drive Chromium (``env validate``, ``record``)
    and those that read what ``record`` writes are checked here alone: one case takes a minute.
    """
    Path("attempts.csv").write_text("")
    code = run(command)
    told = capsys.readouterr().err
    assert not MISUNDERSTOOD.search(told), told
    assert "Traceback" not in told
    assert code in (0, 1, 2)


@pytest.mark.slow
@pytest.mark.usefixtures("own_folder")
def test_the_python_of_the_readme_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    [loop, code] = [block for language, block in BLOCK.findall(README) if language == "python"]
    for block in (loop, code):
        assert len([line for line in block.splitlines() if line]) <= 10
    played: dict[str, Any] = {}
    exec(compile(loop, "README.md", "exec"), played)
    assert played["info"]["status"] == "judged" and played["reward"] in (0.0, 1.0)
    with LlmServer() as server:
        monkeypatch.setenv("OPENAI_API_KEY", "a-key")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url + "/v1")
        Path("prices.toml").write_text(PRICES)
        code = code.replace("max_cost=5", "max_cost=5, prices='prices.toml'")
        exec(compile(code, "README.md", "exec"), {})


@pytest.mark.usefixtures("own_folder")
def test_the_judge_of_the_guide_reads_answers_as_people_write_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    guide = (ROOT / "docs/guides/judge.md").read_text(encoding="utf-8")
    Path("my_judge.py").write_text(BLOCK.findall(guide)[0][1])
    answers = iter(["Yes.", "**No**", "I cannot tell"])
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    with LlmServer(text=lambda _: next(answers)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url + "/v1")
        words = "--judge ./my_judge.py --model gpt-4o --data sample --limit 3 --concurrency 1"
        assert judge([*words.split(), "--max-failures", "1", "--yes", "--out", "mine"]) == 0
    rows = [json.loads(line) for line in Path("mine/judgments.jsonl").read_text().splitlines()]
    verdicts = [(row["status"], row["success"]) for row in rows]
    assert verdicts == [("ok", True), ("ok", False), ("unparsable", None)]


@pytest.mark.usefixtures("own_folder")
def test_an_agent_writes_our_format_in_eight_lines() -> None:
    [code] = [block for _, block in BLOCK.findall(PAGES["data"]) if "def save" in block]
    assert len([line for line in code.splitlines() if line]) == 8
    names: dict[str, Any] = {}
    exec(compile(code, "data.md", "exec"), names)
    for number, colour in enumerate(("red", "green")):
        key = {"benchmark": "mine", "agent": "me", "task_id": f"task-{number}"}
        png = base64.b64decode(picture(colour))
        names["save"](key, "Buy tea", "Bought.", [(png, "I look.", "click(12)"), (png, None, None)])
    runs = tj.load("mine")
    assert [str(run.key) for run in runs] == ["mine/me/task-0", "mine/me/task-1"]
    assert [seen_colour(run.final.screenshot) for run in runs] == ["red", "green"]
    assert (runs[0].steps[0].action, runs[0].answer) == ("click(12)", "Bought.")
    assert detect_kind(Path("mine/trajectories.jsonl")) == "trajudge"


@pytest.mark.slow
def test_the_figures_of_baselines_are_what_the_command_prints(
    real_data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tables of the guide, and what it says of equal recall."""
    monkeypatch.setenv("COLUMNS", "100")
    folder = str(real_data / "agentrewardbench")
    assert trajudge(["score", "--judgments", folder, "--split", "test", "--full"]) == 0
    parts = capsys.readouterr().out.split("\n\n")
    (equal,) = [part for part in parts if part.startswith("Trivial baselines at")]
    guide = (ROOT / "docs/measurements.md").read_text(encoding="utf-8")
    tables = [cells for cells in map(_cells, guide.splitlines()) if len(cells) == 4]
    written = {name.partition(" (")[0]: cells for name, *cells in tables}
    names = {"webjudge-7b": "WebJudge-7B", "rule-based beside webjudge-7b": "rule-based"}
    printed = {
        names.get(judge, judge): (precision, recall, f1.partition(" ")[0])
        for judge, precision, recall, f1, *_ in map(_printed, parts[0].splitlines()[1:])
    }
    for name in ("WebJudge-7B", "rule-based", "telemetry", "tfidf-answer", "claim-of-success"):
        assert written[name] == list(printed[name]), name
    rows = [row for row in map(_printed, equal.splitlines()) if row[0] == "webjudge-7b"]
    at_recall = {row[1]: row[4:6] for row in rows}
    for name in ("telemetry", "claim-of-success", "tfidf-answer"):
        assert re.search(rf"`{name}`\s+(reaches )?{at_recall[name][0]} %", guide), name
    points, limits = at_recall["telemetry"][1].lstrip("+").replace("-", "−").split(" ", 1)
    assert f"{points} points less, {limits}" in guide


def _printed(line: str) -> list[str]:
    return re.split(r"  +", line)


def _cells(row: str) -> list[str]:
    """The cells of a row in Markdown, marks of code left out."""
    return [cell.strip().strip("`") for cell in row.strip("|").split("|")]
