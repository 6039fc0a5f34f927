"""The main command as a user runs it, one judge or several, against servers on loopback."""

from __future__ import annotations

import csv
from importlib.util import find_spec
from pathlib import Path

import msgspec
import orjson
import pytest

from tests.commands import score as score_main
from tests.eval.judge_command import SAMPLE, model, run, statuses
from tests.llm_server import LlmServer, at
from trajudge.eval.judge import main
from trajudge.eval.store.published import read_published
from trajudge.eval.store.run_folder import read_judgments
from trajudge.judges.model import Status
from trajudge.trajectories.model import TrajectoryKey

pytestmark = pytest.mark.usefixtures("own_folder")


def test_a_baseline_scores_the_sample(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--judge", "heuristic") == 0
    shown = capsys.readouterr().out
    assert "heuristic" in shown
    assert "rule-based" in shown
    names = {path.name for path in Path("run").iterdir()}
    assert {"manifest.json", "judgments.jsonl", "results.json", "results.csv"} <= names
    with Path("run/results.csv").open() as file:
        rows = list(csv.DictReader(file))
    overall = next(r for r in rows if r["benchmark"] == "overall" and r["label"] == "success")
    assert int(overall["n"]) == SAMPLE
    assert 0 < float(overall["precision_low"]) < float(overall["precision"])


def test_without_data_the_sample_is_judged_and_the_user_told_how_to_get_more(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--judge", "heuristic"]) == 0
    assert "trajudge data fetch agentrewardbench" in capsys.readouterr().err
    assert len(list(Path("runs").iterdir())) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "path", "words"),
    [
        ("gpt-4o", "/v1/chat/completions", ["--representation", "both"]),
        ("claude-3-7-sonnet-latest", "/v1/messages", ["--representation", "screenshot"]),
        ("some-local-model", "/v1/chat/completions", ["--representation", "axtree"]),
    ],
)
def test_a_model_judges_over_its_own_protocol_once(name: str, path: str, words: list[str]) -> None:
    with LlmServer() as server:
        assert model(server, *words, name=name) == 0
        assert statuses() == ["ok"] * SAMPLE
        assert {seen.path for seen in server.seen} == {path}
        assert server.stats.answered_again == 0
        asked, first = server.stats.requests, Path("run/judgments.jsonl").read_bytes()
        assert model(server, *words, name=name) == 0
        assert server.stats.requests == asked
    assert Path("run/judgments.jsonl").read_bytes() == first


@pytest.mark.slow
def test_a_model_through_litellm() -> None:
    if find_spec("litellm") is None:
        pytest.skip("the extra litellm is not installed")
    with LlmServer() as server:
        words = ["--base-url", server.url + "/v1", "--adapter", "litellm", "--limit", "5"]
        assert run("--model", "openai/anything", *words) == 0
        assert statuses() == ["ok"] * 5


def test_another_folder_is_filled_from_the_cache_without_a_call() -> None:
    with LlmServer() as server:
        assert model(server) == 0
        asked = server.stats.requests
        assert model(server, "--out", "other") == 0
        assert server.stats.requests == asked
    assert Path("run/judgments.jsonl").read_bytes() == Path("other/judgments.jsonl").read_bytes()


def test_samples_are_asked_apart() -> None:
    with LlmServer() as server:
        assert model(server, "--limit", "3", "--samples", "4") == 0
        assert server.stats.requests == 12
    assert [(j.key.order, j.sample) for j in read_judgments(Path("run"))] == sorted(
        (j.key.order, j.sample) for j in read_judgments(Path("run"))
    )


def test_score_prints_the_same_tables_without_a_call(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "240")  # no table is divided, whatever else it shows
    assert main(["--judge", "heuristic", "--data", "sample", "--out", "run", "--full"]) == 0
    shown = capsys.readouterr().out
    assert score_main(["run", "--full", "--baselines", "off"]) == 0
    again = capsys.readouterr().out
    assert shown.split("wall time")[0].strip() == again.strip()
    with LlmServer() as server:  # of a model the baselines that read no page are shown as well
        assert model(server, "--full", "--out", "asked") == 0
        requests = server.stats.requests
        shown = capsys.readouterr().out
        assert score_main(["asked", "--full", "--baselines", "off"]) == 0
        assert server.stats.requests == requests
    again = capsys.readouterr().out
    lines, more = (
        {" ".join(line.split()) for line in text.splitlines()} for text in (again, shown)
    )
    assert len(lines) > 40
    assert lines <= more


def test_failed_judgments_have_a_status_and_can_be_asked_for_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("--limit", "4", "--repair", "0")
    with LlmServer(text="I would rather not say") as server:
        assert model(server, *words) == 1
        assert statuses() == ["unparsable"] * 4
        assert "4 of 4 judgments failed" in capsys.readouterr().err
        assert model(server, *words, "--max-failures", "100%") == 0
        assert server.stats.requests == 4
        server.text = None
        assert model(server, *words, "--retry-failed") == 0
        assert server.stats.requests == 8
        assert statuses() == ["ok"] * 4
        model(server, *words)
        assert server.stats.requests == 8


def test_a_refusal_is_no_negative_verdict() -> None:
    with LlmServer(script=at({0: "refusal"})) as server:
        assert model(server, "--limit", "3", "--concurrency", "1") == 1
    judgments = read_judgments(Path("run"))
    assert sorted(j.status for j in judgments) == ["ok", "ok", "refused"]
    assert all(j.success is None for j in judgments if j.status is Status.REFUSED)


def test_a_prompt_that_the_server_finds_too_long_goes_down_the_ladder() -> None:
    with LlmServer(script=at({0: "overflow"})) as server:
        assert model(server, "--limit", "1") == 0
        assert server.stats.requests == 2
    (judgment,) = read_judgments(Path("run"))
    # 128,000 of the 140,000 tokens that the server counted: the pruned tree alone saves too little.
    assert [call.rung for call in judgment.calls] == ["full", "elided"]


def test_a_window_that_is_named_cuts_the_prompt_before_the_call() -> None:
    with LlmServer() as server:
        assert model(server, "--limit", "2", "--context", "2900") == 0
        assert server.stats.requests == 2
    rungs = {call.rung for j in read_judgments(Path("run")) for call in j.calls}
    assert rungs <= {"pruned", "cut", "elided"}


def test_export_writes_what_the_reader_of_published_judgments_reads() -> None:
    with LlmServer() as server:
        assert model(server, "--export", "agentrewardbench", "published") == 0
    mine: dict[object, object] = {
        j.key: (j.success, j.side_effect, j.repetition) for j in read_judgments(Path("run"))
    }
    theirs: dict[object, object] = {
        TrajectoryKey(**msgspec.structs.asdict(item.judgment.key)): (
            item.judgment.success,
            item.judgment.side_effect,
            item.judgment.repetition,
        )
        for item in read_published(Path("published"))
    }
    assert theirs == mine


def test_a_grid_of_judges_and_models_is_one_table_and_shares_the_cache(
    capsys: pytest.CaptureFixture[str],
) -> None:
    grid = [
        "--judge",
        "heuristic",
        "--judge",
        "simplified",
        "--model",
        "gpt-4o",
        "--model",
        "other",
    ]
    with LlmServer() as server:
        words = [*grid, "--base-url", server.url + "/v1", "--limit", "6", "--full"]
        assert run(*words) == 0
        assert server.stats.requests == 12
        shown = capsys.readouterr().out
        assert run(*words) == 0
        assert server.stats.requests == 12
    table = shown.split("\n\n")[0].splitlines()
    assert table[0] == "Judges"
    assert table[1].split()[:2] == ["judge", "precision"]
    judges = [line.split("  ")[0] for line in table[2:]]
    assert judges == [
        "heuristic",
        "simplified-axtree:gpt-4o",
        "simplified-axtree:other",
        "rule-based baseline",
    ]
    assert len(list(Path("run").iterdir())) == 3


def test_an_option_goes_to_the_judges_of_a_grid_that_take_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    grid = ["--judge", "heuristic", "--judge", "webvoyager", "--judge", "simplified", "--dry-run"]
    words = ["--model", "gpt-4o", "--judge-option", "screenshots=3", "--success-last"]
    assert run(*grid, *words, "--representation", "screenshot") == 0
    assert "simplified-screenshot-success-last:gpt-4o" in capsys.readouterr().out
    assert run(*grid, *words, "--judge-option", "nobody=1") == 2
    assert "nobody" in capsys.readouterr().err


def test_the_same_run_twice_in_a_grid(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--judge", "heuristic", "--judge", "heuristic") == 2
    assert "duplicate run" in capsys.readouterr().err


FAILING = "needs_model = False\n\nasync def judge(trajectory, ask):\n    raise KeyError(1)\n"


def test_a_judge_that_fails_does_not_keep_the_others_from_their_runs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("mine.py").write_text(FAILING)
    assert run("--judge", "mine.py", "--judge", "heuristic", "--limit", "4") == 2
    shown = capsys.readouterr()
    assert "heuristic" in shown.out
    assert shown.err.splitlines()[-1].startswith(
        "error: 1 of 2 runs failed: mine: judge mine failed on "
    )
    (judged,) = Path("run").glob("heuristic-*/results.json")
    assert judged.is_file()


INTERRUPTING = """
import os, signal
from trajudge import Verdict

needs_model = False
once = iter([signal.SIGINT])

async def judge(trajectory, ask):
    for number in once:
        os.kill(os.getpid(), number)
    return Verdict(success=True)
"""


def test_an_interruption_after_a_failure_ends_with_its_own_code_and_names_the_failure(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("mine.py").write_text(FAILING)
    Path("other.py").write_text(INTERRUPTING)
    words = ["--judge", "mine.py", "--judge", "other.py", "--judge", "heuristic"]
    assert run(*words, "--limit", "4") == 130
    told = " ".join("".join(capsys.readouterr()).split())
    assert "the same command goes on from there 1 of 3 runs failed: mine: judge mine f" in told
    assert not list(Path("run").glob("heuristic-*"))


def test_judges_that_fail_for_the_same_reason_are_named_together(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["--judge", "simplified", "--judge", "aer-c", "--model", "gpt-4o", "--limit", "4"]
    with LlmServer() as server:
        place = server.url + "/v1"
    assert run(*words, "--base-url", place, "--yes") == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    told = shown.err.splitlines()[-1]
    assert told.startswith(
        "error: 2 of 2 runs failed: simplified-axtree:gpt-4o, aer-c-agentrewardbench:gpt-4o: no "
    )


REPLY = "<reasoning>x</reasoning><success>{}</success><side>No</side><loop>No</loop>"
ADAPTER = """
from trajudge.judges.adapters.scripted import ScriptedAdapter

def adapter(model, *, base_url, timeout, max_connections, dry_run):
    return ScriptedAdapter(lambda request: {reply!r}, endpoint="mine")
"""


def verdict_and_cached(folder: str, option: str, name: str, content: str) -> tuple[bool, bool]:
    """The verdict of a run whose adapter is a file of that name, and whether it was cached."""
    Path(folder).mkdir()
    file = Path(folder) / name
    file.write_text(content, encoding="utf-8")
    words = ["--data", "sample", "--limit", "1", "--judge", "simplified", "--model", "m", "--yes"]
    assert main([*words, option, str(file), "--cache", "one.sqlite", "--out", f"{folder}/run"]) == 0
    (line,) = Path(f"{folder}/run/judgments.jsonl").read_bytes().splitlines()
    (call,) = Path(f"{folder}/run/calls.jsonl").read_bytes().splitlines()
    return orjson.loads(line)["success"], orjson.loads(call)["cached"]


@pytest.mark.parametrize(
    ("option", "name", "form"),
    [
        ("--script", "script.jsonl", lambda text: orjson.dumps({"text": text}).decode()),
        ("--adapter", "adapter.py", lambda text: ADAPTER.format(reply=text)),
    ],
)
def test_files_of_one_name_have_caches_of_their_own(option: str, name: str, form: object) -> None:
    assert callable(form)
    yes, no = (form(REPLY.format(word)) for word in ("Successful", "Unsuccessful"))
    assert verdict_and_cached("a", option, name, yes) == (True, False)
    assert verdict_and_cached("b", option, name, no) == (False, False)
    assert verdict_and_cached("c", option, name, yes) == (True, True), (
        "the same content, in another place"
    )
