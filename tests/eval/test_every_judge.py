"""Every judge of the list, and the judges of papers: their models, options, what they cannot do."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.command_words import instead
from tests.commands import command
from tests.eval.cases import key
from tests.eval.judge_replies import assumed, reply
from tests.judges.http_judging import stage_of
from tests.judges.methods.universal_verifier.scripts import stage_of_prompt as verifier_stage
from tests.judges.runs import png
from tests.llm_replies import Incoming
from tests.llm_server import LlmServer
from tests.screens import on_one_line
from trajudge.eval.judge import main
from trajudge.eval.store.run_folder import read_judgments, read_manifest
from trajudge.judges.registry import JUDGES
from trajudge.prompts.render import load_prompt
from trajudge.trajectories import store
from trajudge.trajectories.model import Observation, Step, Trajectory

pytestmark = pytest.mark.usefixtures("own_folder")


COMPOSED = {"panel", "cascade"}
# About forty calls a run: in a test of its own.
VERIFIER = "universal-verifier"
# They read the files of a benchmark that the sample is none of: see test_rules_judge.
RULES = {"rules:verified", "rules:webarena"}


@pytest.mark.slow
def test_every_judge_of_the_list(
    capsys: pytest.CaptureFixture[str],
) -> None:
    trained = ["--data", "sample", "--folds", "2", "--save", "telemetry.json"]
    assert command("judges train")(trained) == 0
    capsys.readouterr()
    apart = COMPOSED | RULES | {"telemetry", VERIFIER}
    names = [name for name in JUDGES if name not in apart]
    with LlmServer(text=reply, record=0) as server:
        words = [
            *("--data", "sample", "--model", "gpt-4o", "--base-url", f"{server.url}/v1"),
            *("--limit", "6", "--full"),
            *(word for name in names for word in ("--judge", name)),
        ]
        assert main([*words, "--out", "grid"]) == 0
        asked = server.stats.requests
        assert asked > 6 * len(names)
        assert server.stats.answered_again == 0
        shown = capsys.readouterr().out
        assert main([*words, "--out", "again"]) == 0
        for name, more in (
            ("panel", ["--members", "simplified,insta,heuristic"]),
            ("cascade", ["--members", "heuristic,simplified"]),
            ("telemetry", ["--judge-option", "model=telemetry.json"]),
        ):
            model = words[:6] if name in COMPOSED else words[:2]
            line = [*model, "--limit", "6", "--judge", name, "--out", name, *more]
            assert main(line) == 0
        assert server.stats.requests == asked
    runs = [*Path("grid").iterdir(), *(Path(name) for name in (*COMPOSED, "telemetry"))]
    judged = {read_manifest(run)["judge"].split(":")[0].split("-")[0] for run in runs}
    assert judged == {name.split("-")[0] for name in JUDGES.keys() - RULES - {VERIFIER}}
    for run in runs:
        assert [judgment.status for judgment in read_judgments(run)] == ["ok"] * 6, run
    assert [name for name in (*names, "rule-based") if name not in shown] == []


@pytest.mark.slow
@pytest.mark.parametrize("adapter", ["openai", "anthropic"])
def test_the_verifier_over_both_protocols(adapter: str) -> None:
    with LlmServer(text=reply, record=200) as server:
        url = f"{server.url}/v1" if adapter == "openai" else server.url
        words = [
            *("--data", "sample", "--limit", "1", "--judge", VERIFIER, "--adapter", adapter),
            *("--model", "gpt-4o", "--light-model", "gpt-4o-mini", "--base-url", url),
        ]
        assert main([*words, "--out", "first"]) == 0
        asked = server.stats.requests
        light = [s for s in server.seen if s.payload["model"] == "gpt-4o-mini"]
        assert [verifier_stage(seen.prompt) for seen in light] == ["baseline"]
        assert main([*words, "--out", "again"]) == 0
        assert server.stats.requests == asked
    (judgment,) = read_judgments(Path("first"))
    assert (judgment.status, judgment.success) == ("ok", True)
    assert len(judgment.calls) >= asked
    (record,) = Path("first/records").iterdir()
    assert json.loads(record.read_text("utf-8"))["format"] == VERIFIER
    assert record.read_bytes() == (Path("again/records") / record.name).read_bytes()


def share_their_beginning(requests: Iterable[Incoming]) -> None:
    """The system prompt is that of the stage, whatever the trajectory; what all screenshots of a
    run have in common comes before the picture."""
    stages: dict[str, list[Incoming]] = defaultdict(list)
    for seen in requests:
        (system,) = seen.payload["system"]
        stages[system["text"]].append(seen)
    # One for simplified, aer-v, webvoyager, insta, browser-use; two for aer-c, nnetnav,
    # claims-first; three for the others.
    assert len(stages) >= 5 * 1 + 3 * 2 + 2 * 3
    for folder, template in (("webjudge", "screenshot"), ("rubric", "relevance")):
        asked = stages[load_prompt(folder).render(template, answer="text")]
        begun = [seen.payload["messages"][0]["content"] for seen in asked]
        assert all([part["type"] for part in parts] == ["text", "image"] for parts in begun)
        assert len({parts[0]["text"] for parts in begun}) < len(begun)


@pytest.mark.slow
def test_every_judge_over_the_other_protocol(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Anthropic's: only browser-use's system prompt is long enough to be marked for its cache;
    token probabilities are not to be had, which is said before anything is asked."""
    names = [
        n for n, entry in JUDGES.items() if entry.needs_model and n not in {"logprob", VERIFIER}
    ]
    with LlmServer(text=reply) as server:
        words = [
            *("--data", "sample", "--model", "claude-3-7-sonnet", "--adapter", "anthropic"),
            *("--base-url", server.url, "--limit", "1"),
        ]
        assert main([*words, *(word for name in names for word in ("--judge", name))]) == 0
        assert server.stats.requests > len(names)
        for seen in server.seen:
            assert seen.protocol == "anthropic"
            (system,) = seen.payload["system"]
            assert ("cache_control" in system) == ("reached_captcha" in system["text"])
        asked = server.stats.requests
        share_their_beginning(server.seen)
        capsys.readouterr()
        assert main([*words, "--judge", "logprob"]) == 2
        assert "gives no token probabilities" in capsys.readouterr().err
        assert main([*words, "--judge", "panel", "--members", "logprob,insta"]) == 2
        assert server.stats.requests == asked
    assert "gives no token probabilities" in capsys.readouterr().err


PAPER_JUDGES = ("aer-c", "aer-v", "nnetnav", "webvoyager", "webjudge")


def run(server: LlmServer, *words: str) -> int:
    where = ["--data", "sample", "--out", "run", "--base-url", server.url + "/v1"]
    return main(instead([*where, "--model", "gpt-4o"], words))


@pytest.mark.slow
@pytest.mark.parametrize("name", PAPER_JUDGES)
def test_a_dry_run_names_the_calls_that_the_run_then_makes(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever several judgments share is counted once, in both."""
    with LlmServer(text=assumed) as server:
        words = ["--judge", name, "--limit", "8"]
        assert run(server, *words, "--dry-run") == 0
        assert server.stats.requests == 0
        said = re.search(r"calls +(\d+), (\d+) of them", capsys.readouterr().out)
        assert said
        assert run(server, *words) == 0
        assert server.stats.requests == int(said[1]) - int(said[2])
        assert run(server, *words, "--out", "again") == 0
        assert server.stats.requests == int(said[1]) - int(said[2])
    assert {judgment.status for judgment in read_judgments(Path("run"))} == {"ok"}
    for file in ("judgments.jsonl", "results.json"):
        assert (Path("run") / file).read_bytes() == (Path("again") / file).read_bytes()


def test_a_dry_run_of_a_grid_prices_what_its_runs_share_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("prices.toml").write_text('[models."gpt-4o"]\ninput = 2.0\noutput = 8.0\n')
    grid = ["--judge", "webvoyager", "--judge", "panel", "--members", "webvoyager,heuristic"]
    with LlmServer(text=assumed) as server:
        words = ["--limit", "6", "--prices", "prices.toml", *grid]
        assert run(server, *words, "--dry-run") == 0
        shown = capsys.readouterr().out
        assert run(server, *words) == 0
        assert server.stats.requests == 6
    assert re.findall(r"calls +(\d+), (\d+) of them", shown) == [("6", "0"), ("6", "6")]
    alone, panel, total = re.findall(r"(?:cost|total) +\$([\d.]+)", shown)
    assert (alone, panel) == (total, "0.0000")


def test_the_captioner_has_its_own_model_price_and_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("prices.toml").write_text(
        'date = "2026-01-01"\n'
        '[models."gpt-4o"]\ninput = 2.0\noutput = 8.0\n'
        '[models."gpt-4o-mini"]\ninput = 0.5\noutput = 1.0\n'
    )
    with LlmServer(text=assumed) as server:
        words = ["--judge", "aer-c", "--captioner-model", "gpt-4o-mini", "--limit", "4", "--full"]
        assert run(server, *words, "--prices", "prices.toml") == 0
        asked = Counter((seen.payload["model"], stage_of(seen)) for seen in server.seen)
    assert set(asked) == {("gpt-4o-mini", "caption"), ("gpt-4o", "verdict")}
    shown = capsys.readouterr().out
    assert "aer-c-agentrewardbench-captioner-gpt-4o-mini:gpt-4o" in shown
    assert re.search(r"^  caption +4 ", shown, re.MULTILINE)
    assert re.search(r"^  verdict +4 ", shown, re.MULTILINE)
    [spent] = json.loads(Path("run/results.json").read_bytes())["spending"]
    for stage, prices in zip(spent["stages"], ((0.5, 1.0), (2.0, 8.0)), strict=True):
        cost = stage["usage"]["input"] * prices[0] + stage["usage"]["output"] * prices[1]
        assert stage["cost"] == pytest.approx(cost / 1e6)
    assert spent["cost"] == pytest.approx(sum(stage["cost"] for stage in spent["stages"]))
    manifest = json.loads(Path("run/manifest.json").read_bytes())
    assert manifest["options"]["captioner"]["model"] == "gpt-4o-mini"
    assert manifest["card"]["name"] == "aer-c"


def test_options_of_a_judge_are_given_by_name() -> None:
    with LlmServer(text=assumed) as server:
        words = ["--judge-option", "variant=online-mind2web", "--judge-option", "threshold=5"]
        assert run(server, "--judge", "webjudge", *words, "--limit", "2") == 0
        shown = [seen for seen in server.seen if stage_of(seen) == "verdict"]
    assert not any("</notes>" in seen.prompt for seen in shown)
    [judge] = {judgment.judge for judgment in read_judgments(Path("run"))}
    assert judge == "webjudge-online-mind2web-threshold-5:gpt-4o"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--judge", "nnetnav", "--representation", "screenshot"],
            "--representation screenshot: judge nnetnav reads axtree only",
        ),
        (
            ["--judge", "webjudge", "--model", "gpt-4"],
            "--model gpt-4: takes no images, and judge webjudge shows it screenshots",
        ),
        (
            ["--judge", "aer-c", "--captioner-model", "gpt-4"],
            "--captioner-model gpt-4: takes no images, and judge aer-c shows it screenshots",
        ),
        (
            ["--judge", "panel", "--members", "insta,webjudge:gpt-4,heuristic"],
            "--members gpt-4: takes no images, and judge webjudge shows it screenshots",
        ),
        (
            ["--judge", "panel", "--members", "insta,aer-c", "--captioner-model", "gpt-4o-mini"],
            "--captioner-model gpt-4o-mini: judge panel has no captioner",
        ),
        (
            ["--judge", "simplified", "--captioner-model", "gpt-4o-mini"],
            "--captioner-model gpt-4o-mini: judge simplified has no captioner",
        ),
        (
            ["--judge", "aer-v", "--success-last"],
            "--success-last: judge aer-v asks for success in one way",
        ),
        (["--judge", "webjudge", "--prompts", "farah"], "--prompts farah: farah is no source"),
        (["--judge", "webjudge", "--prompts", "webvoyager:x"], "use trajudge or online-mind2web"),
        (["--judge", "insta", "--prompts", "insta"], "name a checkout of data-for-agents/insta"),
        (["--judge", "insta", "--prompts", "insta:none"], "none is no folder: name a checkout"),
        (["--judge", "logprob", "--prompts", "agentrewardbench"], "has no prompts of a source"),
        (["--judge", "simplified", "--prompts", "browser-use"], "prompts = 'browser-use'"),
        (["--judge", "browser-use", "--prompts", "browser-use"], "name the date"),
        (["--judge", "aer-v", "--judge-option", "variant"], "write it as NAME=VALUE"),
        (["--judge", "aer-v", "--judge-option", "variant=x"], "variant = 'x'"),
    ],
)
def test_what_a_judge_cannot_do_is_refused_in_one_sentence(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    model = [] if "--model" in words else ["--model", "gpt-4o"]
    assert main(["--data", "sample", "--base-url", "http://127.0.0.1:9", *model, *words]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert len(told.strip().splitlines()) == 1


def test_a_text_model_serves_where_only_the_captioner_sees() -> None:
    with LlmServer(text=assumed) as server:
        words = ["--judge", "aer-c", "--captioner-model", "gpt-4o", "--limit", "2"]
        where = ["--data", "sample", "--out", "run", "--base-url", server.url + "/v1"]
        assert main([*where, "--model", "gpt-4", *words]) == 0


def test_a_failed_caption_is_asked_for_again_alone() -> None:
    bad = {"caption": ""}
    with LlmServer(text=lambda seen: bad.get(stage_of(seen), assumed(seen))) as server:
        words = ["--judge", "aer-c", "--limit", "3", "--max-failures", "100%"]
        assert run(server, *words) == 0
        assert [j.status for j in read_judgments(Path("run"))] == ["unparsable"] * 3
        bad.clear()
        before = server.stats.requests
        assert run(server, *words, "--retry-failed") == 0
        assert server.stats.requests == before + 6  # a caption and a verdict of each
    assert [j.status for j in read_judgments(Path("run"))] == ["ok"] * 3


UNSENT = "not sent the answer of 1 trajectory, which is no action"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--judge", "aer-v"], f"aer-v: {UNSENT}; variant=original sends it"),
        (["--judge", "aer-c"], f"aer-c: {UNSENT}; variant=original sends it"),
        (["--judge", "panel", "--members", "aer-v,aer-c,heuristic"], f"aer-v and aer-c: {UNSENT};"),
        (["--judge", "aer-v", "--judge-option", "hide=answer"], f"aer-v: {UNSENT};"),
        (["--judge", "aer-v", "--judge-option", "variant=original"], ""),
        (["--judge", "webvoyager"], ""),
    ],
)
def test_an_answer_that_no_action_holds_is_told_where_the_judge_is_not_sent_it(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a log of messages the last one is the answer and no action."""
    page = Observation(url="http://shop/", screenshot=png())
    runs = [
        Trajectory(
            key=key(number),
            raw_task_id=str(number),
            goal="How many lamps are there?",
            steps=(Step(index=0, observation=page, action=action),),
            answer="Three lamps.",
        )
        for number, action in enumerate(["stop [Three lamps.]", "click('1')"])
    ]
    store.write(Path("data"), runs)
    with LlmServer(text=assumed) as server:
        assert run(server, "--data", "trajudge:data", *words) == 0
    told = on_one_line(capsys.readouterr().err)
    assert said in told
    assert (UNSENT in told) == bool(said)
