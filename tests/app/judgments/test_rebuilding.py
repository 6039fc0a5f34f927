"""Prompts made again are the requests that a server really received, whatever the judge."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.eval.cases import call, said
from tests.eval.judge_replies import reply
from tests.llm_server import LlmServer
from trajudge.app.library import TrajectoryLibrary
from trajudge.app.rebuilding import RebuiltPrompt, rebuild
from trajudge.app.recorded_judge import asked_model
from trajudge.eval.judge import main
from trajudge.eval.store.run_folder import read_judgments, read_manifest
from trajudge.judges.model import Judgment, Text
from trajudge.judges.models import capability
from trajudge.judges.registry import JUDGES

WITH_MODEL = [name for name, entry in JUDGES.items() if entry.needs_model and not entry.composed]


DEFENCES = (
    "hide=answer",
    "datamark=true",
    "sandwich=true",
    "nonce=3",
    "canary=3",
    "two_pass=reasoning",
)


class Recorded:
    """Runs of every judge, and what the server that answered them received."""

    def __init__(self, folder: Path) -> None:
        self.library = TrajectoryLibrary(("sample",), ())
        with LlmServer(text=reply, record=2_000) as server:
            common = [
                *("--data", "sample", "--limit", "2", "--model", "gpt-4o"),
                *("--base-url", f"{server.url}/v1"),
            ]
            judges = [word for name in WITH_MODEL for word in ("--judge", name)]
            assert main([*common, *judges, "--out", str(folder / "grid")]) == 0
            defences = [f"--judge-option={one}" for one in DEFENCES]
            assert main([*common, *defences, "--out", str(folder / "defended")]) == 1, "no canary"
            for name, members in (
                ("panel", "simplified,insta:gpt-4o-mini,heuristic"),
                ("cascade", "heuristic,webjudge:gpt-4o-mini"),
            ):
                words = ["--judge", name, "--members", members, "--out", str(folder / name)]
                assert main([*common, *words]) == 0
            self.received = {text for seen in server.seen for text in texts(seen.payload)}
        others = [folder / name for name in ("defended", "panel", "cascade")]
        self.runs = [*(folder / "grid").iterdir(), *others]

    def rebuilt(self, run: Path) -> Iterator[tuple[Judgment, RebuiltPrompt]]:
        manifest = read_manifest(run)
        for judgment in read_judgments(run):
            trajectory = self.library.open(judgment.key).trajectory
            yield judgment, rebuild(manifest, judgment, trajectory)


def texts(value: Any) -> Iterator[str]:
    """All texts of a payload, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from texts(part)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("recorded")
        patch.setenv("TRAJUDGE_CACHE", str(folder / "replies.sqlite"))
        patch.setenv("OPENAI_API_KEY", "none")
        yield Recorded(folder)


@pytest.mark.slow
def test_every_judges_prompts_are_what_the_server_received(recorded: Recorded) -> None:
    assert len(recorded.runs) == len(WITH_MODEL) + 3
    for run in recorded.runs:
        for judgment, rebuilt in recorded.rebuilt(run):
            if run.name == "cascade" and not judgment.calls:
                continue
            assert rebuilt.outcome == "same", (run.name, rebuilt.sentence)
            assert [call.hash for call in rebuilt.calls] == [c.request for c in judgment.calls]
            parts = [part for call in rebuilt.calls for m in call.messages for part in m.parts]
            assert {part.text for part in parts if isinstance(part, Text)} <= recorded.received


def test_the_members_say_what_the_panel_counted(recorded: Recorded) -> None:
    for judgment, rebuilt in recorded.rebuilt(recorded.runs[-2]):
        assert {member.label for member in rebuilt.members} == judgment.scores.keys()
        yes = [member.verdict.success for member in rebuilt.members].count(True)
        assert judgment.success is (yes > len(rebuilt.members) / 2)
    for judgment, rebuilt in recorded.rebuilt(recorded.runs[-1]):
        assert len(rebuilt.members) == 1 + judgment.scores["second_asked"]


def test_another_trajectory_or_setting_differs(recorded: Recorded) -> None:
    run = next(run for run in recorded.runs if "simplified" in run.name)
    manifest, judgment = read_manifest(run), read_judgments(run)[0]
    trajectory = recorded.library.open(judgment.key).trajectory
    other = trajectory.model_copy(update={"goal": trajectory.goal + "."})
    for changed, run_of in (
        (manifest, other),
        (manifest | {"parameters": {"temperature": 1.0}, "sent": []}, trajectory),
        (manifest | {"endpoint": "another", "sent": []}, trajectory),
    ):
        rebuilt = rebuild(changed, judgment, run_of)
        assert rebuilt.outcome == "differs"
        assert "with the same prompts" in rebuilt.sentence
    older = rebuild(manifest | {"prompt_hash": "0" * 64}, judgment, other)
    assert older.sentence.startswith("the prompts changed since (000000000000 then")


def judged(**fields: Any) -> Judgment:
    return said("1", True, judge="simplified-axtree:x", calls=(call(),), **fields)


@pytest.mark.parametrize(
    ("manifest", "sentence"),
    [
        ({"judge": "mine"}, "is none of trajudge's"),
        ({"judge": "simplified-axtree:x", "published": True}, "others ran this judge"),
        ({"judge": "simplified-axtree:x", "options": {"no": 1}}, "cannot make the judge again"),
        ({"judge": "panel"}, "does not say of which judges"),
        ({"judge": "simplified-axtree:x"}, "The data is gone."),
    ],
)
def test_why_it_cannot_be_rebuilt_is_said(manifest: dict[str, Any], sentence: str) -> None:
    rebuilt = rebuild(manifest, judged(), None, "The data is gone.")
    assert rebuilt.outcome == "cannot be rebuilt"
    assert sentence in rebuilt.sentence


def test_no_code_is_run_that_a_run_names(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("raise SystemExit('ran')")
    member = {"name": str(file), "given": {}}
    for manifest in (
        {"judge": str(file), "card": {"name": str(file)}},
        {"judge": "panel:x", "options": {"of": {"members": [member, {"name": "heuristic"}]}}},
    ):
        assert "its" in rebuild(manifest, judged(), None).sentence


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=5,
)


@given(st.sampled_from(["of", "representation", "images", "max_prompt_tokens"]), JSON, JSON, JSON)
def test_no_manifest_is_refused_with_a_traceback(
    option: str, value: Any, windows: Any, sent: Any
) -> None:
    member = {"name": "simplified", "asks": value, "given": {option: value}}
    for judge, options in (
        ("simplified-axtree:x", {option: value}),
        ("panel:x", {"of": {"members": [member, {"name": "heuristic"}]}}),
    ):
        manifest = {"judge": judge, "options": options, "windows": windows, "sent": sent,
                    "parameters": value, "model": "x"}  # fmt: skip
        assert rebuild(manifest, judged(), None, "gone").sentence


def test_a_model_was_asked_as_the_manifest_says() -> None:
    given, other = {"temperature": 0}, {"temperature": 1}
    sent = [
        {"model": "gpt-4o", "endpoint": "one", "parameters": other},
        {"model": "llama", "endpoint": "two", "parameters": {"top_p": 0.5}},
        {"model": "llama", "parameters": "lost"},
        "lost",
    ]
    whole = {"model": "gpt-4o", "endpoint": "own", "parameters": given, "sent": sent}
    limited = {**given, "max_tokens": capability("llama").default_max_tokens()}
    assert asked_model(whole, None) == ("own", "gpt-4o", (given, given, other))
    assert asked_model(whole, "llama") == ("two", "llama", (given, limited, {"top_p": 0.5}))
    assert asked_model({**whole, "sent": None}, "llama") == ("own", "llama", (given, limited))
    assert asked_model({}, None) == ("", "", ({}, {}))
