"""Every judge of the list in one grid on the sample, twice: the second time without a call."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.commands import command
from tests.eval.judge_replies import reply
from tests.judges.methods.universal_verifier.scripts import stage_of_prompt as verifier_stage
from tests.llm_replies import Incoming
from tests.llm_server import LlmServer
from trajudge.eval.judge import main
from trajudge.eval.store.run_folder import read_judgments, read_manifest
from trajudge.judges.registry import JUDGES
from trajudge.prompts.render import load_prompt

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
            *("--base-url", server.url, "--limit", "3"),
        ]
        assert main([*words, *(word for name in names for word in ("--judge", name))]) == 0
        assert server.stats.requests > 3 * len(names)
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
