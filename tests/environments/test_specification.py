"""The specification that a case emits: Verified's form, and what an honest run must meet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.environments.cases import sound
from trajudge.environments.apps import APPS, load_app
from trajudge.environments.model.case import Case
from trajudge.environments.specification import (
    PROBE,
    specification,
    write_tasks,
)
from trajudge.rules.audit.verified import lint
from trajudge.rules.values import Mode
from trajudge.rules.verdict import Outcome
from trajudge.rules.verified.evaluator import VerifiedEvaluator
from trajudge.rules.verified.network import trace_of_list
from trajudge.rules.verified.state import State
from trajudge.rules.verified.tasks import (
    AnswerCheck,
    BackendCheck,
    NetworkCheck,
    Task,
    load_tasks,
    published_record,
)
from trajudge.util.errors import UserError


@pytest.fixture(scope="module")
def buy() -> Case:
    return sound("buy")


def _wanted(task: Task) -> Any:
    """The one right answer."""
    assert task.answer_check is not None
    assert isinstance(task.answer_check.expected.retrieved_data, list)
    (wanted,) = task.answer_check.expected.retrieved_data
    return wanted


def test_a_purchase_asks_for_its_code_its_requests_and_its_rows(buy: Case) -> None:
    answer, cart, order, purchase, line = specification(buy).eval
    assert isinstance(answer, AnswerCheck)
    assert answer.expected.task_type == "retrieve"
    assert answer.expected.retrieved_data == ["^[A-Z2-7]{10}$"]
    assert answer.shape_only
    assert isinstance(cart, NetworkCheck)
    assert cart.expected.url == "__HOMEPAGE__/do/add-to-cart"
    assert cart.expected.response_status == 303
    assert cart.expected.post_data is not None
    assert cart.expected.post_data.keys() == {"product", "quantity"}
    assert isinstance(order, NetworkCheck)
    assert order.expected.post_data is not None
    assert order.expected.post_data["_confirmed"] == "yes"
    assert isinstance(purchase, BackendCheck)
    assert isinstance(line, BackendCheck)
    product, quantity = (cart.expected.post_data[name] for name in ("product", "quantity"))
    delivery = order.expected.post_data["delivery"]
    whole = f"@.line[0].product == '{product}' && @.line[0].quantity == {quantity}"
    tests = f"@.delivery == '{delivery}' && {whole} && @.status != 'cancelled'"
    rows = f"$.purchase.added[?({tests})]"
    assert purchase.expected == {f"{rows}.delivery": delivery}
    lines = {f"{rows}.line[*].product": product, f"{rows}.line[*].quantity": int(quantity)}
    assert line.expected == lines


def test_the_state_asks_for_one_order_that_is_whole(buy: Case) -> None:
    task = specification(buy)
    task = msgspec.structs.replace(task, eval=task.backend_checks)
    *_, lines = task.backend_checks
    asked = {path.rpartition(".")[2]: value for path, value in lines.expected.items()}
    delivery = str(next(iter(task.backend_checks[0].expected.values())))
    right = {"delivery": delivery, "status": "processing", "line": [asked]}
    other = {**right, "line": [{**asked, "product": "another"}]}

    def outcome(*orders: dict[str, Any]) -> Outcome:
        states = {PROBE: State(after={"purchase": {"added": list(orders)}}, before={})}
        evaluator = VerifiedEvaluator(Mode.SOUND, {})
        return evaluator.evaluate(task, None, trace_of_list([]), states).outcome

    assert outcome(right) is outcome(other, right) is outcome(right, other) is Outcome.PASS
    assert outcome(right, right) is outcome(other) is outcome() is Outcome.FAIL
    more = {**right, "line": [asked, {**asked, "product": "another"}]}
    assert outcome(more) is Outcome.FAIL, "a second product in the same order"


def test_what_an_agent_may_leave_out_is_not_asked_for() -> None:
    """A note beside the decision is the moderator's own affair; the one unit of a purchase that
    nobody typed in is part of the goal."""
    decided = specification(sound("remove-post", "moderation"))
    assert "note" not in (decided.network_checks[0].expected.post_data or {})
    bought = specification(sound("buy-best"))
    assert (bought.network_checks[0].expected.post_data or {})["quantity"] == "1"


def test_a_question_is_a_list_of_values_of_its_kind() -> None:
    task = specification(sound("manager-of", "helpdesk"))
    assert task.answer_check is not None
    name = _wanted(task)
    assert name in task.answer_check.results_schema["items"]["enum"]
    assert not task.network_checks


def test_a_task_of_two_answers_asks_for_an_object() -> None:
    task = specification(sound("grant-leave", "helpdesk"))
    wanted = _wanted(task)
    assert wanted.keys() == {"code", "number"}
    assert isinstance(wanted["number"], int)


@pytest.mark.parametrize("app", list(APPS))
def test_some_run_passes_every_specification_in_either_mode(app: str, tmp_path: Path) -> None:
    """What a check of the state asks for, no trace can show: the linter asks for the rest."""
    cases = [sound(scenario.id, app) for scenario in load_app(app).scenarios[::3]]
    path = tmp_path / "cases.tasks.json"
    write_tasks(path, cases)
    tasks = load_tasks(path)
    assert [task.instantiation_dict["case"] for task in tasks] == [case.id for case in cases]
    assert {found.category for found in lint(tasks)} <= {"no_evidence"}


def test_the_published_form_holds_no_extension_of_ours(buy: Case) -> None:
    record = published_record(specification(buy))
    assert not {"shape_only", "changing_urls"} & {key for entry in record["eval"] for key in entry}
    assert {entry["evaluator"] for entry in record["eval"]} == {
        "AgentResponseEvaluator",
        "NetworkEventEvaluator",
    }
    assert isinstance(record["task_id"], int)
    assert json.loads(json.dumps(record))["sites"] == ["homepage"]


def test_the_same_case_has_the_same_specification(buy: Case) -> None:
    assert specification(buy) == specification(buy)


def test_a_file_that_cannot_be_written_is_named(buy: Case, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        write_tasks(tmp_path / "file" / "tasks.json", [buy])
