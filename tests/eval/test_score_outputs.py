"""What is written beside the tables: submission, wrong verdicts explained, plots, replies again."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.commands import command
from tests.commands import score as main
from tests.eval.judge_command import model
from tests.llm_replies import Incoming
from tests.llm_server import LlmServer, always, at
from trajudge.eval.analysis.explain import KINDS, UNCLASSIFIED, read_explanation
from trajudge.eval.judge import main as judge_main
from trajudge.eval.store.run_folder import JUDGMENTS, read_judgments
from trajudge.judges.model import Judgment


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A judge without a model, on the bundled sample."""
    monkeypatch.setenv("TRAJUDGE_CACHE", str(tmp_path / "replies.sqlite"))
    folder = tmp_path / "run"
    assert judge_main(["--data", "sample", "--judge", "heuristic", "--out", str(folder)]) == 0
    return folder


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def results(run: Path, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    capsys.readouterr()
    assert main([str(run), "--json", *words]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def overall(run: Path, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """The score of success over all benchmarks."""
    scores: list[dict[str, Any]] = results(run, capsys, *words)["scores"]
    return next(s for s in scores if s["benchmark"] == "overall" and s["label"] == "success")


@pytest.mark.slow
def test_the_submission_holds_the_leaderboards_fields_and_what_they_come_from(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "submission.json"
    whole = overall(run, capsys, "--submission", str(file))
    written = json.loads(file.read_text())
    (line,) = written["leaderboard"]
    fields = ["Judge", "Overall", "Recall", "F1", "AB", "VWA", "WA", "Work", "Work++"]
    assert list(line) == fields
    assert line["Overall"] == pytest.approx(100 * whole["precision"], abs=0.05)
    arrays = written["results"]["heuristic"]["all"]["all"]["trajectory_success"]
    pairs = Counter(zip(arrays["y_human"], arrays["y_judge"], strict=True))
    assert pairs[1, 1] == whole["counts"]["tp"]
    assert pairs[0, 1] == whole["counts"]["fp"]

    before = written["computed_from"]
    assert len(before["trajectories"]["heuristic"]) == whole["n"]
    verdicts = (run / JUDGMENTS).read_bytes()
    (run / JUDGMENTS).write_bytes(verdicts.replace(b'"success":true', b'"success":false', 1))
    results(run, capsys, "--submission", str(file))
    after = json.loads(file.read_text())["computed_from"]
    assert after["labels_sha256"] == before["labels_sha256"]
    assert after["judgments_sha256"] != before["judgments_sha256"]


@pytest.mark.slow
def test_wrong_verdicts_are_written_with_what_one_needs_to_see_why(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "wrong.jsonl"
    whole = overall(run, capsys, "--mismatches", str(file))
    cases = lines(file)
    errors = Counter(case["error"] for case in cases)
    assert errors["false positive"] == whole["counts"]["fp"]
    assert errors["false negative"] == whole["counts"]["fn"]
    assert cases
    for case in cases:
        assert case["goal"]
        assert 0 < len(case["steps"]) <= 3
        assert case["verdict"] != case["expert"]["success"]


def refused(capsys: pytest.CaptureFixture[str], needed: str, run: Path, *words: str) -> None:
    """Score with these words: a mistake, which says what is needed."""
    assert main([str(run), *words]) == 2
    assert needed in capsys.readouterr().err


@pytest.mark.slow
def test_wrong_verdicts_need_the_data(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [str(run), "--mismatches", "wrong.jsonl", "--data", "agentrewardbench:absent"]
    assert main(words) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("error: ")
    manifest = json.loads((run / "manifest.json").read_text())
    del manifest["data"]
    (run / "manifest.json").write_text(json.dumps(manifest))
    refused(capsys, "--data KIND:PATH", run, "--mismatches", "wrong.jsonl")


@pytest.mark.slow
def test_a_script_sorts_them_by_kind_and_another_script_has_its_own_replies(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script, file = tmp_path / "script.jsonl", tmp_path / "wrong.jsonl"
    reply = "<reasoning>It believed a claim.</reasoning>\n<kind>misleading_reasoning</kind>"
    script.write_text(json.dumps({"text": reply}) + "\n")
    words = [str(run), "--mismatches", str(file), "--explain", "any", "--script", str(script)]
    assert main(words) == 0
    assert "Wrong verdicts by kind" in capsys.readouterr().out
    assert {case["explanation"]["kind"] for case in lines(file)} == {KINDS["misleading_reasoning"]}
    assert lines(file)[0]["explanation"]["reason"] == "It believed a claim."

    script.write_text(json.dumps({"text": "<kind>grounding_mismatch</kind>"}) + "\n")
    assert main(words) == 0  # cached replies are those of what a script says, not of its name
    assert {case["explanation"]["kind"] for case in lines(file)} == {KINDS["grounding_mismatch"]}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("<kind>other</kind>", "other"),
        ("<kind> Missed instruction </kind>", KINDS["missed_instruction"]),
        ("<kind>other</kind> no: <kind>grounding_mismatch</kind>", KINDS["grounding_mismatch"]),
        ("<kind>bad luck</kind>", None),
        ("I cannot tell.", None),
    ],
)
def test_the_kind_is_read_or_left_open(text: str, kind: str | None) -> None:
    found = read_explanation(text, "model")
    assert found.kind == kind
    if kind is None:
        assert "no kind" in found.reason


@pytest.mark.slow
def test_explain_without_a_file_is_a_mistake(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused(capsys, "--mismatches FILE", run, "--explain", "gpt-4o")


@pytest.mark.slow
def test_what_is_said_of_a_model_needs_explain(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No model is asked without it."""
    refused(capsys, "--base-url is for the model of --explain", run, "--base-url", "http://here")


@pytest.mark.slow
def test_plots_are_png_and_svg_or_the_extra_is_named(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "plots"
    code = main([str(run), "--plots", str(folder)])
    if find_spec("matplotlib") is None:
        assert code == 2
        assert "trajudge[plots]" in capsys.readouterr().err
        return
    assert code == 0
    names = {path.name for path in folder.iterdir()}
    assert {"precision.png", "precision.svg", "success_rate.svg", "precision_recall.png"} <= names
    assert "performance_profile.svg" in names
    first = (folder / "precision.svg").read_bytes()
    assert main([str(run), "--plots", str(folder)]) == 0
    assert (folder / "precision.svg").read_bytes() == first


@pytest.mark.slow
def test_tables_of_the_paper_in_any_format(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main([str(run), "--table", "6", "--format", "csv"]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("benchmark,agent,judge,by expert,by expert low")
    assert "warning" in shown.err
    assert main([str(run), "--table", "1", "--table", "7", "--format", "latex"]) == 0
    assert capsys.readouterr().out.count(r"\begin{tabular}") == 2


KEY = "sk-not-to-be-shown"


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty runs of the bundled sample, judged once by a judge without a model."""
    folder = tmp_path_factory.mktemp("judged") / "run"
    words = ["--data", "sample", "--judge", "heuristic", "--limit", "40"]
    assert judge_main([*words, "--out", str(folder)]) == 0
    return folder


@pytest.fixture
def judged_run(judged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that run, an empty cache, and a key for the model that explains."""
    monkeypatch.setenv("TRAJUDGE_CACHE", str(tmp_path / "replies.sqlite"))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    return shutil.copytree(judged, tmp_path / "run")


def kind_of(incoming: Incoming) -> str:
    """A false positive is misleading reasoning, a false negative a missed instruction."""
    accepted = '<judge verdict="successful">' in incoming.prompt
    kind = "misleading_reasoning" if accepted else "missed_instruction"
    return f"<reasoning>Because of case {incoming.ordinal}.</reasoning>\n<kind>{kind}</kind>"


def explained(judged_run: Path, server: LlmServer, *words: str) -> list[dict[str, Any]]:
    """What ``--mismatches`` holds after the command, which must succeed."""
    file = judged_run.parent / "wrong.jsonl"
    model = ["--explain", "gpt-4o", "--adapter", "openai", "--base-url", server.url]
    off = ["--baselines", "off"]
    assert main([str(judged_run), "--mismatches", str(file), *off, *model, *words]) == 0
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_the_model_is_asked_once_a_case_and_what_it_says_is_written(
    judged_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with LlmServer(text=kind_of) as server:
        cases = explained(judged_run, server)
        assert server.stats.requests == len(cases) > 0
        expected = {
            "false positive": KINDS["misleading_reasoning"],
            "false negative": KINDS["missed_instruction"],
        }
        for case in cases:
            assert case["explanation"]["kind"] == expected[case["error"]]
            assert case["explanation"]["model"] == "gpt-4o"
            assert case["explanation"]["reason"].startswith("Because of case")
        shown = capsys.readouterr()
        assert "Wrong verdicts by kind" in shown.out
        assert KEY not in shown.out + shown.err

        request = server.seen[0]
        assert request.headers["authorization"] == f"Bearer {KEY}"
        assert request.payload["model"] == "gpt-4o"
        assert all(
            any(case["goal"].strip() in incoming.prompt for incoming in server.seen)
            for case in cases
        )

        assert explained(judged_run, server) == cases
        assert server.stats.requests == len(cases)  # the second time from the cache


def test_trouble_on_the_way_is_overcome(judged_run: Path) -> None:
    with LlmServer(text=kind_of, script=at({0: "429", 1: "500", 2: "drop"})) as server:
        cases = explained(judged_run, server)
        assert server.stats.requests == len(cases) + 3
        assert {case["explanation"]["kind"] for case in cases} <= set(KINDS.values())


@pytest.mark.parametrize("fault", ["content-filter", "content-policy", "overflow", "refusal"])
def test_a_case_that_the_model_does_not_answer_is_left_open_and_the_others_are_sorted(
    judged_run: Path, fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with LlmServer(text=kind_of, script=at({0: fault})) as server:
        cases = explained(judged_run, server)
    kinds = Counter(case["explanation"]["kind"] for case in cases)
    assert kinds[None] == 1
    assert kinds.total() == len(cases) > 1
    (left,) = [case for case in cases if case["explanation"]["kind"] is None]
    assert left["explanation"]["reason"]
    shown = capsys.readouterr()
    assert all(word in shown.out for word in UNCLASSIFIED.split())
    assert f"warning: 1 of {len(cases)} wrong verdicts not sorted, for one: " in shown.err


def test_a_reply_of_no_known_kind_is_left_open(judged_run: Path) -> None:
    with LlmServer(text="It was <kind>bad luck</kind>.") as server:
        cases = explained(judged_run, server)
    assert {case["explanation"]["kind"] for case in cases} == {None}
    assert all("bad luck" in case["explanation"]["reason"] for case in cases)


def test_a_refused_key_is_one_sentence_and_the_wrong_verdicts_are_kept(
    judged_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = judged_run.parent / "wrong.jsonl"
    with LlmServer(script=always("401")) as server:
        model = ["--explain", "gpt-4o", "--adapter", "openai", "--base-url", server.url]
        assert main([str(judged_run), "--mismatches", str(file), "--baselines", "off", *model]) == 2
    shown = capsys.readouterr().err
    assert "OPENAI_API_KEY" in shown.splitlines()[-1]
    assert KEY not in shown
    assert all("explanation" in json.loads(line) for line in file.read_text().splitlines())
    assert file.read_text()


reparse = command("run reparse")


def verdict(judgment: Judgment) -> dict[str, object]:
    return judgment.model_dump(exclude={"calls"})


@pytest.fixture
def asked_run() -> Path:
    with LlmServer() as server:
        assert model(server, "--limit", "12") == 0
    return Path("run")


@pytest.mark.usefixtures("own_folder")
def test_the_replies_give_the_recorded_verdicts(
    asked_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reparse(["run", "--out", "again"]) == 0
    assert "12 of 12 judgments read again, 0 with another" in capsys.readouterr().out
    before, after = read_judgments(asked_run), read_judgments(Path("again"))
    assert [*map(verdict, after)] == [*map(verdict, before)]
    assert reparse(["run", "--out", "again"]) == 2
    assert "holds judgments already" in capsys.readouterr().err


@pytest.mark.usefixtures("own_folder")
def test_a_reply_that_was_changed_is_read_as_it_stands(
    asked_run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The verdicts come from the replies, not from the recorded verdicts; of a judgment that comes
    more than once the last counts. The cache has the reply as it was, and is not there any more."""
    monkeypatch.setenv("TRAJUDGE_CACHE", "other.sqlite")
    lines = (asked_run / "judgments.jsonl").read_bytes().splitlines(keepends=True)
    changed = json.loads(lines[0])
    text, was = changed["calls"][0]["text"], changed["success"]
    old, new = ("Successful", "Unsuccessful") if was else ("Unsuccessful", "Successful")
    assert f"<success>{old}<" in text
    changed["calls"][0]["text"] = text.replace(f"<success>{old}<", f"<success>{new}<")
    lines.append(json.dumps(changed).encode() + b"\n")
    (asked_run / "judgments.jsonl").write_bytes(b"".join(lines))
    assert reparse(["run", "--out", "again"]) == 0
    shown = capsys.readouterr().out
    assert "12 of 12 judgments read again, 1 with another verdict" in shown
    assert "holds 1 judgment more than once" in shown
    after = {judgment.key: judgment for judgment in read_judgments(Path("again"))}
    assert len(after) == 12
    (key,) = {j.key for j in read_judgments(asked_run) if vars(j.key) == changed["key"]}
    assert after[key].success is (not was)
