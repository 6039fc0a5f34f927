"""``--reproduce``: a paper's row by one command, held to the requests of the package's own code."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from collections import Counter
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import orjson
import pytest

from tests.eval.reproduced import ask_as_the_package, stored, write_dataset
from tests.llm_replies import Incoming
from tests.llm_server import LlmServer
from tests.tables import mistakes
from trajudge import judge as judge_in_python
from trajudge.eval.judge import main
from trajudge.eval.runs.reproduce import FIGURES, find_row
from trajudge.eval.store.run_folder import read_judgments, read_manifest

pytestmark = [
    pytest.mark.usefixtures("own_folder"),
    pytest.mark.skipif(find_spec("agent_reward_bench") is None, reason="needs agent-reward-bench"),
]
ASKED = sorted(FIGURES.keys() - {"functional"})
HISTORIES = int(os.environ.get("TRAJUDGE_HISTORIES", "38"))
TABLES = "agentrewardbench_table{}.csv"


def answer(incoming: Incoming) -> str:
    """A verdict that each judge reads; captions and changes end in what a careless one strips."""
    text = incoming.prompt
    known = sha256(text.encode()).hexdigest()
    if "GUI captioner" in text:
        return f"# Page\n\n- a link {known}\n  "
    if "State change:" in text and "Reward:" not in text:
        return f"State change: a link appeared {known}\n"
    if "Reward:" in text:
        return "Thought: done.\nReward: 5"
    if "Status:" in text:
        return 'Thoughts: done.\n\nStatus: "success"'
    return (
        "<reasoning>done</reasoning><success>Successful</success><side>No</side>"
        "<optimal>4. Completely Optimal</optimal><loop>No</loop>"
    )


def bodies(server: LlmServer) -> Counter[bytes]:
    """Every body; the limit of a reply has one of its two names, and 0 is 0.0."""
    read = [dict(seen.payload) for seen in server.seen]
    for body in read:
        body.setdefault("max_tokens", body.pop("max_completion_tokens", None))
        body["temperature"] = float(body["temperature"])
    return Counter(orjson.dumps(body, option=orjson.OPT_SORT_KEYS) for body in read)


def differences(name: str, dataset: Path, *words: str) -> tuple[int, int]:
    """How many requests the package makes, and how many bodies only one of us sends."""
    with LlmServer(text=answer, record=10**6) as server:
        ask_as_the_package(name, dataset, Path("scratch") / name, server.url)
        theirs = bodies(server)
    with LlmServer(text=answer, record=10**6) as server:
        row = ["--reproduce", f"agentrewardbench:{name}", "--data", f"agentrewardbench:{dataset}"]
        asked = ["--adapter", "openai", "--base-url", f"{server.url}/v1", "--yes", *words]
        assert main([*row, *asked, "--out", f"runs/{name}", "--cache", f"{name}.sqlite"]) == 0
        ours = bodies(server)
    # Two histories may give one prompt, of which the cache answers the second.
    return theirs.total(), len(theirs.keys() ^ ours.keys())


@pytest.fixture(scope="module")
def dataset(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    histories = list(stored(real_data))
    assert len(histories) == 926
    return write_dataset(tmp_path_factory.mktemp("dataset"), histories[::116])


@pytest.mark.parametrize("name", ["aerc", "aerv", "nnetnav", "gpt-4o-axtree"])
def test_the_server_receives_what_the_package_sends(name: str, dataset: Path) -> None:
    requests, different = differences(name, dataset)
    assert requests >= 8
    assert different == 0
    judgments = read_judgments(Path(f"runs/{name}"))
    assert all(judgment.success for judgment in judgments)
    assert {judgment.scores["changed_places"] for judgment in judgments} == {0.0}
    manifest = read_manifest(Path(f"runs/{name}"))
    assert manifest["protocol"] == "agentrewardbench"
    assert manifest["selection"]["split"] == "test"


@pytest.mark.slow
@pytest.mark.parametrize("name", ASKED)
def test_every_row_sends_the_histories_as_the_package(
    name: str, real_data: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """One history in 24; all 926 with TRAJUDGE_HISTORIES=926: 10 s of CPU a row, nnetnav 70."""
    histories = list(stored(real_data))[:: 926 // HISTORIES]
    requests, different = differences(name, write_dataset(tmp_path_factory.mktemp("h"), histories))
    assert requests >= len(histories) >= HISTORIES
    assert different == 0


def test_the_rules_row_asks_nobody(dataset: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--data", f"agentrewardbench:{dataset}", "--out", "run"]
    assert main(["--reproduce", "agentrewardbench:functional", *words]) == 0
    assert [one.success for one in read_judgments(Path("run"))].count(True) == 4
    notes = capsys.readouterr().err
    assert "--judge rule-based --split test --protocol agentrewardbench\n" in notes
    assert "precision 83.8, recall 55.9, F1 67.1 (Table 1, rule-based)" in notes


def test_a_row_has_one_call_in_python(dataset: Path) -> None:
    with LlmServer(text=answer) as server:
        run = judge_in_python(
            f"agentrewardbench:{dataset}",
            reproduce="agentrewardbench:aerv",
            base_url=f"{server.url}/v1",
            limit=2,
            out="run",
        )
        assert server.seen[-1].payload["model"] == "gpt-4o-2024-11-20"
    assert {judgment.judge.partition(":")[0] for judgment in run} == {
        "aer-v-agentrewardbench-agentrewardbench-as-recorded-source"
    }


@pytest.mark.parametrize("name", FIGURES)
def test_a_row_is_what_the_package_says(name: str) -> None:
    args = import_module("agent_reward_bench.judge.args")
    own, row = args.judge_args[name], find_row(f"agentrewardbench:{name}")
    if name == "functional":
        assert "model" not in row.settings
        return
    assert row.settings["model"] == (own["model_name"],)
    common = args.default_judge_args
    assert row.settings["temperature"] == common["temperature"]
    assert row.settings["max_tokens"] == common["max_completion_tokens"]
    assert row.settings["seed"] == common["seed"]
    assert ("base_url" in row.defaults) == (own["provider"] == "openrouter")
    if "representation" in row.settings:
        shown = row.settings["representation"]
        assert own["use_screenshot"] == (shown in {"screenshot", "both"})
        assert own["use_axtree"] == (shown in {"axtree", "both"})


def test_the_docs_show_every_row_beside_the_papers_figures() -> None:
    docs = (Path(__file__).parents[2] / "docs" / "judging.md").read_text(encoding="utf-8")
    for name, figures in FIGURES.items():
        [line] = [line for line in docs.splitlines() if line.startswith(f"| `{name}` |")]
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert cells[-3:] == [str(figures.precision), str(figures.recall), str(figures.f1)]
        row = find_row(f"agentrewardbench:{name}").settings
        assert cells[1].strip("`") == row["judge"][0]
        assert cells[2].strip("`") == row.get("model", ("",))[0]
        assert cells[3] == row.get("representation", "")


def test_every_judge_of_the_package_is_a_row() -> None:
    assert import_module("agent_reward_bench.judge.args").judge_args.keys() == FIGURES.keys()


def test_the_papers_figures_are_those_of_its_tables(real_data: Path) -> None:
    tables = real_data.parent / "tables"
    first = [*csv.DictReader((tables / "agentrewardbench_table1_success.csv").open())]
    second = [*csv.DictReader((tables / "agentrewardbench_table2_representation.csv").open())]
    for name, figures in FIGURES.items():
        if figures.table == 2:
            wanted = {"both": ("true", "true"), "none": ("false", "false")}[name.split("-")[-1]]
            [row] = [each for each in second if (each["axtree"], each["screenshot"]) == wanted]
            named = [row[f"success_{rate}"] for rate in ("precision", "recall", "f1")]
        else:
            kind = {"axtree": "Ours (A)", "screen": "Ours (S)"}.get(name.split("-")[-1])
            judge = figures.judge.partition(" (")[0].replace("rule-based", "Rule-based*")
            [row] = [
                each
                for each in first
                if each["judge"] == judge and (kind is None or each["category"] == kind)
            ]
            named = [row[rate] for rate in ("precision", "recall", "f1")]
        assert [figures.precision, figures.recall, figures.f1] == [float(rate) for rate in named]


@mistakes(
    """
    gpt-4o-axtree => name a row as agentrewardbench:ROW
    agentrewardbench => name a row as agentrewardbench:ROW
    another-paper:gpt-4o-axtree => name a row as agentrewardbench:ROW
    agentrewardbench:gpt-4o-axtre => has no row gpt-4o-axtre, did you mean 'gpt-4o-axtree'?
    agentrewardbench:gpt-4o-axtree --split dev => sets --split test: leave --split dev out, or
    agentrewardbench:gpt-4o-axtree --model gpt-4o => sets --model gpt-4o-2024-11-20: leave --model
    agentrewardbench:gpt-4o-axtree --temperature 0.5 => sets --temperature 0.0: leave
    agentrewardbench:gpt-4o-axtree --representation both => sets --representation axtree: leave
    agentrewardbench:aerv --judge simplified => sets --judge aer-v: leave --judge simplified out
    agentrewardbench:aerv --judge-option untrusted=neutralised => untrusted=as-recorded: leave
    agentrewardbench:nnetnav => a vLLM server of its own: name a server that has the model with
    agentrewardbench:functional --protocol default => sets --protocol agentrewardbench: leave
    """
)
def test_what_contradicts_a_row_is_one_sentence(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--reproduce", *words]) == 2
    assert sentence in capsys.readouterr().err


def test_what_agrees_with_a_row_may_be_said(capsys: pytest.CaptureFixture[str]) -> None:
    same = ["--judge", "simplified", "--model", "gpt-4o-2024-11-20", "--temperature", "0"]
    row = ["--reproduce", "agentrewardbench:gpt-4o-axtree", *same]
    assert main([*row, "--data", "nowhere"]) == 2
    assert "nowhere" in capsys.readouterr().err


def test_without_the_package_its_name_is_said() -> None:
    code = (
        "import sys; sys.modules['agent_reward_bench'] = None; "
        "from trajudge.eval.judge import main; "
        "sys.exit(main(['--reproduce', 'agentrewardbench:gpt-4o-axtree']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") <= 2
    assert done.stderr.startswith("error: --reproduce agentrewardbench:gpt-4o-axtree reads")
    assert "pip install --no-deps agent-reward-bench" in done.stderr.replace("\n  ", " ")
