"""``trajudge serve``: rewards over HTTP, and nobody is harmed by another's request."""

from __future__ import annotations

import hashlib
import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from tests.commands import serve as main
from tests.llm_server import LlmServer
from tests.ports import free_port
from tests.rewards.cases import calibration_file, trajectory
from tests.rewards.server.conftest import ROOT, Server, record_of, serving
from trajudge.judges.engine.budget import read_payments
from trajudge.rewards.reward import Reward
from trajudge.trajectories.model import ImageRef

TOKEN = "a-token-of-this-test"


def at_the_model(model: LlmServer, *words: str) -> list[str]:
    named = ["--model", "mock", "--representation", "axtree", "--base-url", f"{model.url}/v1"]
    return [*named, *words]


@pytest.fixture(scope="module")
def heuristic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of a judge that asks no model."""
    words = ("--judge", "heuristic", "--neutral-value", "0.4")
    with serving(tmp_path_factory.mktemp("rewards"), *words) as server:
        yield server


def test_trajectories_get_their_rewards_in_order(heuristic: Server) -> None:
    items = [{"trajectory": record_of(trajectory(i))} for i in range(3)]
    answer = heuristic.ask("/v1/rewards", {"items": items})
    rewards = [Reward.model_validate(one) for one in answer.content["rewards"]]
    assert [reward.key.task_id for reward in rewards] == ["t0", "t1", "t2"]
    assert {reward.judge for reward in rewards} == {"heuristic"}
    assert all(reward.value is not None for reward in rewards)


def test_a_pushed_trajectory_is_asked_for_by_its_id(heuristic: Server) -> None:
    pushed = heuristic.ask(
        "/v1/trajectories", {"id": "../x", "trajectory": record_of(trajectory(1))}
    )
    assert (pushed.status, pushed.content) == (201, {"missing_images": []})
    answer = heuristic.ask("/v1/rewards", {"items": [{"id": "../x"}, {"id": "?"}], "deadline": 0.2})
    known, unknown = answer.content["rewards"]
    assert known["value"] is not None
    assert (unknown["value"], unknown["abstained"]) == (None, "unknown")
    assert "no trajectory was pushed under this id" in unknown["detail"]


def picture() -> tuple[bytes, str]:
    made = BytesIO()
    Image.new("RGB", (20, 10), "red").save(made, "PNG")
    return made.getvalue(), hashlib.sha256(made.getvalue()).hexdigest()


def test_images_are_sent_once_and_known_by_their_hash(heuristic: Server) -> None:
    content, name = picture()
    one = trajectory(5)
    shot = one.steps[1].observation.model_copy(
        update={"screenshot": ImageRef(sha256=name, data=b"")}
    )
    steps = (one.steps[0], one.steps[1].model_copy(update={"observation": shot}))
    record = record_of(one.model_copy(update={"steps": steps}))
    first = heuristic.ask("/v1/trajectories", {"id": "p", "trajectory": record})
    assert first.content == {"missing_images": [name]}
    assert heuristic.ask(f"/v1/images/{name}", method="HEAD").status == 404
    put = heuristic.ask(f"/v1/images/{name}", content, method="PUT", Content_Type="image/png")
    assert put.status == 201
    assert heuristic.ask(f"/v1/images/{name}", method="HEAD").status == 204
    again = heuristic.ask("/v1/trajectories", {"id": "p", "trajectory": record})
    assert again.content == {"missing_images": []}


def test_a_picture_of_the_goal_is_asked_for_as_well(heuristic: Server) -> None:
    digest = "ab" * 32
    record = {**record_of(trajectory(6)), "goal_images": [digest]}
    pushed = heuristic.ask("/v1/trajectories", {"id": "g", "trajectory": record})
    assert pushed.content == {"missing_images": [digest]}


@pytest.mark.parametrize(
    ("path", "content", "status", "sentence"),
    [
        ("/v1/rewards", b"{", 400, "the body is not JSON"),
        ("/v1/rewards", b"[]", 400, "the body is not a JSON object"),
        ("/v1/rewards", {"items": []}, 400, "a list of 1 to 1000 objects"),
        ("/v1/rewards", {"items": {"id": "x"}}, 400, "a list of 1 to 1000 objects"),
        ("/v1/rewards", {"items": [{"id": "x"}] * 1001}, 400, "a list of 1 to 1000 objects"),
        ("/v1/rewards", {"items": [{}]}, 400, 'item 0 has neither a "trajectory" nor an "id"'),
        ("/v1/rewards", {"items": [{"trajectory": {}}]}, 422, 'it has no "format"'),
        ("/v1/rewards", {"items": [{"trajectory": {"format": 1}}]}, 422, "item 0: trajectory: "),
        ("/v1/rewards", {"items": [{"id": "x"}], "deadline": -1}, 400, "a positive number"),
        ("/v1/rewards", {"items": [{"id": "x", "group": "g"}]}, 400, '"group_size" must be'),
        ("/v1/rewards", {"items": [{"id": "x"}], "deadlin": 1}, 400, "did you mean 'deadline'?"),
        ("/v1/rewards", {"items": [{"id": "x", "grup": "g"}]}, 400, "item 0 has no field 'grup', "),
        ("/v1/rewards", {"items": [{"id": "x", "n": 8}]}, 400, "'n'; there are id, trajectory, gr"),
        ("/v1/trajectories", {"ID": "x", "trajectory": {}}, 400, "'ID', did you mean 'id'?"),
        ("/v1/audits", {"id": "x", "sucess": True}, 400, "'sucess', did you mean 'success'?"),
        ("/v1/trajectories", {"id": "x"}, 400, 'there is no "trajectory"'),
        ("/v1/trajectories", {"id": "", "trajectory": {"format": 1}}, 400, "an id is a text"),
        ("/get_reward", {"query": ["x"]}, 400, '"labels" must be a list'),
        ("/get_reward", {"query": ["x", "y"], "labels": ["e"]}, 400, '1 ids for 2 in "query"'),
        ("/get_reward", {"labels": []}, 400, '"labels" must be a list'),
        ("/get_reward", {"labels": "e"}, 400, '"labels" must be a list'),
        ("/aggregate_metrics", {"verify_responses": {}}, 400, "must be a list of objects"),
        ("/aggregate_metrics", {"verify_responses": [1]}, 400, "must be a list of objects"),
        ("/rm", {"label": 3}, 400, "an id is a text"),
        ("/rm", {"label": "x" * 513}, 400, "an id is a text of 1 to 512 characters"),
        ("/v1/chat/completions", {"messages": []}, 400, "the last message must be"),
        ("/nowhere", {}, 404, "Not Found"),
    ],
)  # fmt: skip
def test_a_bad_request_gets_one_sentence(
    heuristic: Server, path: str, content: object, status: int, sentence: str
) -> None:
    answer = heuristic.ask(path, content)
    assert answer.status == status
    assert sentence in answer.content["error"]
    assert "\n" not in answer.content["error"]
    assert heuristic.ask("/healthz").content == {"ok": True}


@pytest.mark.parametrize(
    ("path", "content", "reward"),
    [
        ("/get_reward", {"query": ["x"], "prompts": ["p"], "labels": ["e"]}, ["rewards", 0]),
        ("/rm", {"prompt": "p", "response": "r", "label": "e"}, ["reward"]),
        ("/verify", {"trajectory_id": "e", "response": {}, "agent_ref": {}}, ["reward"]),
    ],
)
def test_fields_that_a_trainer_sends_of_its_own_are_no_mistake(
    heuristic: Server, path: str, content: dict[str, object], reward: list[str | int]
) -> None:
    heuristic.ask("/v1/trajectories", {"id": "e", "trajectory": record_of(trajectory(1))})
    answer = heuristic.ask(path, {**content, "group": "of the trainer's own"})
    value = answer.content
    for part in reward:
        value = value[part]
    assert (answer.status, type(value)) == (200, float)


def test_as_much_is_taken_as_is_said(heuristic: Server) -> None:
    items = [{"id": f"{number:0512}"} for number in range(1_000)]
    answer = heuristic.ask("/v1/rewards", {"items": items, "deadline": 0.01})
    assert {one["abstained"] for one in answer.content["rewards"]} == {"unknown"}
    assert answer.content["neutral_values"] == [0.4] * 1_000
    assert heuristic.ask("/v1/reference").content == {"judge": None, "points": []}
    card = heuristic.ask("/v1/card").content
    absent = {name for name in ("calibration", "decision", "reference") if card[name] is None}
    assert absent == {"calibration", "decision", "reference"}
    assert (heuristic.ask("/readyz").status, answer.status) == (200, 200)


def test_an_unknown_id_is_the_neutral_value_of_the_options(heuristic: Server) -> None:
    """At once: of what was never pushed there is nothing to wait for."""
    answer = heuristic.ask("/get_reward", {"query": ["x"], "prompts": ["p"], "labels": ["never"]})
    assert (answer.status, answer.content["rewards"]) == (200, [0.4])
    assert answer.content["extra_logs"]["abstained"] == [1.0]
    masked = heuristic.ask("/verify", {"trajectory_id": "never"}).content
    assert (masked["reward"], masked["mask_sample"]) == (0.4, True)
    assert masked["failure_reason"] == "unknown: no trajectory was pushed under this id"
    assert heuristic.ask("/v1/card").content["neutral_value"] == 0.4


def test_without_a_neutral_value_no_number_is_given_from_the_start(tmp_path: Path) -> None:
    """Else the first judge that fails ends the training, hours later."""
    with serving(tmp_path, "--judge", "heuristic") as server:
        server.ask("/v1/trajectories", {"id": "e", "trajectory": record_of(trajectory(1))})
        for path, body in (
            ("/get_reward", {"query": ["x"], "labels": ["e"]}),
            ("/rm", {"label": "e"}),
            ("/verify", {"trajectory_id": "e"}),
        ):
            answer = server.ask(path, body)
            assert answer.status == 501
            assert answer.content["error"].endswith(
                ": give  trajudge serve  --neutral-value VALUE or --calibration-file FILE"
            )
        (reward,) = server.ask("/v1/rewards", {"items": [{"id": "e"}]}).content["rewards"]
        assert reward["value"] is not None
        server.process.terminate()
        assert server.process.stderr is not None
        assert "note: /get_reward, /rm and /verify are disabled: to" in server.process.stderr.read()


def test_other_bodies_are_refused(heuristic: Server) -> None:
    plain = heuristic.ask("/v1/rewards", b"{}", Content_Type="text/plain")
    assert (plain.status, plain.content["error"]) == (
        415,
        "send the body as Content-Type: application/json",
    )
    name = hashlib.sha256(b"<svg/>").hexdigest()
    svg = heuristic.ask(f"/v1/images/{name}", b"<svg/>", method="PUT")
    assert (svg.status, svg.content["error"]) == (
        415,
        "the body is not a PNG, JPEG, GIF or WebP image",
    )
    assert heuristic.ask(f"/v1/images/{'0' * 64}", b"x", method="PUT").status == 422
    large = heuristic.ask(f"/v1/images/{'0' * 64}", b"x" * (33 * 2**20), method="PUT")
    assert large.status == 413
    assert "larger than 32 MB" in large.content["error"]


def test_a_name_that_leads_here_is_no_way_in(heuristic: Server) -> None:
    answer = heuristic.ask("/v1/card", Host="rebound.example:8377")
    assert answer.status == 403
    assert "rebound.example is not this server's" in answer.content["error"]


_PARSE = """
import json, sys
sys.path.append(sys.argv[1])
from prometheus_client.parser import text_string_to_metric_families
read = text_string_to_metric_families(sys.stdin.read())
print(json.dumps([[one.name, one.type, [s[:3] for s in one.samples]] for one in read]))
"""


def test_prometheus_own_parser_reads_what_was_given(packages: Path, tmp_path: Path) -> None:
    """And finds the metrics that the page lists, each under its kind."""
    with serving(tmp_path, "--judge", "heuristic", "--neutral-value", "0.4") as server:
        for number in range(3):
            server.ask("/v1/rewards", {"items": [{"trajectory": record_of(trajectory(number))}]})
        server.ask("/rm", {"label": "never"})
        server.ask("/rm", {"label": 3})
        answer = server.ask("/metrics")
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    parsed = subprocess.run(
        [sys.executable, "-c", _PARSE, str(packages)],
        input=answer.content, capture_output=True, text=True, check=True,
    )  # fmt: skip
    families = {name: (kind, samples) for name, kind, samples in json.loads(parsed.stdout)}
    page = (ROOT / "docs/rewards.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`trajudge_[^|]+) \| (\w+) \|", page, flags=re.M)
    listed = {
        name.removesuffix("_total"): kind
        for names, kind in rows
        for name in re.findall(r"trajudge_\w+", names)
    }
    assert {name: kind for name, (kind, _) in families.items()} == listed
    values = {
        (name, *sorted(labels.items())): value
        for _, samples in families.values()
        for name, labels, value in samples
    }
    given = [value for (name, *_), value in values.items() if name == "trajudge_rewards_total"]
    assert sorted(given) == [1, 3]
    unknown = [("abstained", "unknown"), ("cached", "false"), ("status", "")]
    assert values["trajudge_rewards_total", *unknown] == 1
    assert values[("trajudge_requests_refused_total",)] == 1
    assert values[("trajudge_rewards_at_work",)] == 0
    for name, count in (("trajudge_reward_seconds", 4), ("trajudge_reward_value", 3)):
        buckets = [value for key, value in values.items() if key[0] == f"{name}_bucket"]
        assert buckets == sorted(buckets)
        assert (buckets[-1], values[(f"{name}_count",)]) == (count, count)


def test_a_card_names_the_judge(heuristic: Server) -> None:
    card = heuristic.ask("/v1/card").content
    assert card["judge"]["judge"] == "heuristic"
    assert card["notes"] == ["no calibration: values are the judge's own scores, not probabilities"]
    assert heuristic.ask("/readyz").content == {"ready": True}


@pytest.mark.slow
def test_equal_items_are_one_call_and_a_kill_loses_nothing(tmp_path: Path) -> None:
    items = {"items": [{"trajectory": record_of(trajectory(1))}] * 64}
    with LlmServer(latency=0.1) as model:
        with serving(tmp_path, *at_the_model(model)) as server:
            first = server.ask("/v1/rewards", items).content["rewards"]
            assert model.stats.requests == 1
            server.process.send_signal(signal.SIGKILL)
        with serving(tmp_path, *at_the_model(model)) as server:
            again = server.ask("/v1/rewards", items).content["rewards"]
        assert model.stats.requests == 1, "nothing that was answered is paid again"
    assert len(first) == 64
    assert {one["value"] for one in first} == {one["value"] for one in again}


@pytest.mark.slow
def test_a_limit_counts_what_was_paid_before_there_was_one(tmp_path: Path) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text("[models.mock]\ninput = 1000.0\noutput = 1000.0\n", encoding="utf-8")
    words = ["--prices", str(prices), "--context", "8000", "--max-tokens", "100"]

    def abstained(server: Server, *numbers: int) -> list[object]:
        items = [{"trajectory": record_of(trajectory(number))} for number in numbers]
        rewards = server.ask("/v1/rewards", {"items": items}).content["rewards"]
        return [reward["abstained"] for reward in rewards]

    with LlmServer() as model:
        with serving(tmp_path, *at_the_model(model, *words)) as server:
            assert abstained(server, *range(9)) == [""] * 9
        paid = sum(read_payments(tmp_path / "store" / "payments.jsonl").values())
        limited = at_the_model(model, *words, "--max-cost", str(paid))
        (tmp_path / "new").mkdir()
        with serving(tmp_path / "new", *limited) as server:
            assert abstained(server, 9) == [""]
        with serving(tmp_path, *limited) as server:
            assert abstained(server, 9) == ["over_budget"]
        assert model.stats.requests == 10


@pytest.mark.slow
def test_an_id_is_judged_again_once_another_trajectory_is_pushed_under_it(tmp_path: Path) -> None:
    with LlmServer() as model, serving(tmp_path, *at_the_model(model)) as server:

        def reward_of(number: int) -> dict[str, object]:
            record = record_of(trajectory(number))
            assert server.ask("/v1/trajectories", {"id": "x", "trajectory": record}).status == 201
            (found,) = server.ask("/v1/rewards", {"items": [{"id": "x"}]}).content["rewards"]
            return dict(found)

        first, again, other = reward_of(1), reward_of(1), reward_of(2)
        asked = model.stats.requests
        (given,) = server.ask("/v1/rewards", {"items": [{"id": "x"}]}).content["rewards"]
    assert (first["cached"], again["cached"], given["cached"]) == (False, True, True)
    assert (first["value"], given["key"]) == (again["value"], other["key"])
    assert asked == 2


@pytest.mark.slow
def test_who_asks_while_the_server_starts_waits_for_the_answer(tmp_path: Path) -> None:
    """OpenRLHF's client gives up after five refusals."""
    port = free_port()
    words = ["--judge", "heuristic", "--port", str(port), "--store", str(tmp_path)]
    command = [sys.executable, "-m", "trajudge", "serve", *words]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        refusals, began = 0, time.monotonic()
        while True:
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
                    accepted = time.monotonic() - began
                    connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
                    answer = connection.recv(100)
                break
            except ConnectionRefusedError:
                refusals += 1
                time.sleep(0.01)
        answered = time.monotonic() - began
        process.terminate()
    assert answer.startswith(b"HTTP/1.1 200")
    assert refusals
    assert accepted < answered / 2, "the address is there long before the server"


@pytest.mark.slow
def test_trainers_get_numbers_that_say_when_they_are_none(tmp_path: Path) -> None:
    """With a calibration, a failure is the base rate and marked; a late one is asked for again."""
    from openai import OpenAI  # collecting every test would pay for it

    name = "simplified-axtree:mock"
    path = calibration_file(tmp_path / "map.json", name, {"model": "mock"})
    whole = json.loads(path.read_text())
    half = {"low": 0, "high": 0.1, "n": 10, "tasks": 5, "mean_score": 0, "rate": 0.3}
    whole["calibrations"][0]["raw"]["bins"] = [{**half, "rate_low": None, "rate_high": None}]
    path.write_text(json.dumps(whole))
    words = [
        "--calibration-file",
        str(path),
        "--token-file",
        str(tmp_path / "token"),
        "--deadline",
        "4",
    ]
    (tmp_path / "token").write_text(TOKEN)
    with (
        LlmServer(script=lambda one: "refusal" if "task 1" in one.prompt else None) as model,
        serving(tmp_path, *at_the_model(model, *words)) as server,
    ):
        head = {"Authorization": f"Bearer {TOKEN}"}
        for i in range(2):
            record = record_of(trajectory(i))
            server.ask("/v1/trajectories", {"id": f"r{i}", "trajectory": record}, **head)
        asked = {"query": ["a", "b"], "prompts": ["a", "b"], "labels": ["r0", "r1"]}
        openrlhf = server.ask(f"/get_reward/{TOKEN}", asked).content
        slime = server.ask(f"/rm/{TOKEN}", {"label": "r1"}).content
        unknown = server.ask("/rm", {"label": "never"}, **head)
        refused = [server.ask("/get_reward", asked), server.ask("/get_reward/wrong", asked)]
        client = OpenAI(base_url=f"{server.url}/v1", api_key=TOKEN)
        spoken = client.chat.completions.create(
            model="reward", messages=[{"role": "user", "content": "r1"}]
        )
    assert openrlhf["rewards"] == openrlhf["scores"]
    assert openrlhf["rewards"][0] in (0.25, 0.75)
    assert openrlhf["rewards"][1] == pytest.approx(0.3)
    assert openrlhf["extra_logs"]["abstained"] == [0.0, 1.0]
    assert slime["reward"] == pytest.approx(0.3)
    assert slime["abstained"] == 1.0
    assert unknown.content["reward"] == pytest.approx(0.3)
    assert (unknown.content["abstained"], unknown.content["probability"]) == (1.0, -1.0)
    assert unknown.content["seconds"] < 1
    assert {answer.status for answer in refused} == {401}
    reward = Reward.model_validate_json(spoken.choices[0].message.content or "")
    assert (reward.value, reward.abstained) == (None, "failed")


@pytest.mark.slow
def test_what_is_too_much_is_asked_for_again(tmp_path: Path) -> None:
    with (
        LlmServer(latency=1.0) as model,
        serving(tmp_path, *at_the_model(model, "--queue", "2")) as server,
    ):
        items = [{"trajectory": record_of(trajectory(i))} for i in range(3)]
        answer = server.ask("/v1/rewards", {"items": items})
        assert (answer.status, answer.headers["Retry-After"]) == (429, "1")
        few = server.ask("/v1/rewards", {"items": items[:2], "deadline": 0.1})
        assert {one["abstained"] for one in few.content["rewards"]} == {"late"}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--host", "0.0.0.0"], "give --token-file FILE"),
        (["--judge", "simplified"], "needs a model: name it"),
        (["--judge", "heuristic", "--token-file", "none"], "--token-file none: cannot be read"),
        (
            ["--judge", "heuristic", "--side-effect-penalty", "1"],
            "error: --side-effect-penalty 1 and --repetition-penalty 0.1 are 1 or more together, "
            "so that a success counts less than a failure: lower them\n",
        ),
        (["--judge", "heuristic", "--threshold", "nan"], "--threshold nan: must be a number"),
        (
            ["--judge", "heuristic", "--form", "gate", "--threshold", "0.3"],
            "--threshold 0.3 of a gate is below --reject-below 0.5: raise the one or lower",
        ),
        (["--judge", "heuristic", "--calibration-file", "none"], "none: cannot be read"),
        (
            ["--judge", "heuristic", "--neutral-value", "1.5"],
            "--neutral-value 1.5: rewards go from 0 to 1: name a value between these",
        ),
        (
            ["--judge", "heuristic", "--port", "99999"],
            "--port 99999: must be at most 65535",
        ),
    ],
)
def test_a_mistake_in_the_call_is_one_sentence(
    words: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--store", str(tmp_path / "s"), *words]) == 2
    assert sentence in (said := capsys.readouterr().err)
    assert len(said.strip().splitlines()) <= 2
