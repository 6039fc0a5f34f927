"""What a member of the workshop can do."""

from __future__ import annotations

from trajudge.environments.apps.submissions import (
    added,
    changed,
    confirmed,
    preference,
    removal,
)
from trajudge.environments.apps.toolbox.tools import TOOLS, ToolResult, hundredths, read, whole
from trajudge.environments.model.spec import TODAY, FormSubmission, Operation, Rejected, Success

_GONE = "This entry is no longer there."


def _reckoned(submission: FormSubmission) -> tuple[str, ToolResult | None]:
    tool = submission.form.get("tool", "")
    return tool, TOOLS[tool](submission.state, submission.form) if tool in TOOLS else None


def _store(submission: FormSubmission, name: str, tool: str, outcome: ToolResult) -> Success:
    return added(
        submission, "result", name=name, tool=tool, inputs=outcome.written,
        outcome=outcome.rows[0][1], value=outcome.value, made=TODAY,
    )  # fmt: skip


def _save_result(submission: FormSubmission) -> Success | Rejected:
    (tool, outcome), name = _reckoned(submission), submission.text("result_name", 60)
    if outcome is None or not name:
        return Rejected("A result needs a name and inputs that the tool can reckon with.")
    return _store(submission, name, tool, outcome)


def _save_job(submission: FormSubmission) -> Success | Rejected:
    (tool, outcome), name = _reckoned(submission), submission.text("job_name", 60)
    if outcome is None or not name:
        return Rejected("A job needs a name and inputs that the tool can reckon with.")
    inputs = outcome.written
    return added(submission, "job", name=name, tool=tool, inputs=inputs, made=TODAY, remark="")


def _run_job(submission: FormSubmission) -> Success | Rejected:
    job = submission.row("job")
    if job is None:
        return Rejected(_GONE)
    outcome = TOOLS[job["tool"]](submission.state, read(job["inputs"]))
    if outcome is None:
        return Rejected("The tool can no longer reckon with what this job has stored.")
    return _store(submission, job["name"], job["tool"], outcome)


def _rename_job(submission: FormSubmission) -> Success | Rejected:
    job, name = submission.row("job"), submission.text("new_name", 60)
    if job is None or not name:
        return Rejected("Please give the job a name.")
    return changed(submission, "job", job, name=name)


def _delete_job(submission: FormSubmission) -> Success | Rejected:
    job = submission.row("job")
    if job is None:
        return Rejected(_GONE)
    submission.state.remove("job", job["id"])
    return Success("jobs")


def _record_room(submission: FormSubmission) -> Success | Rejected:
    name = submission.text("name", 60)
    length, width, height = (
        whole(submission.form.get(side, ""), 1, 5000) for side in ("length", "width", "height")
    )
    openings = whole(submission.form.get("openings", ""), 0, 500)
    if not name or length is None or width is None or height is None or openings is None:
        return Rejected("Please give a name and whole numbers for all four measurements.")
    if submission.state.value("SELECT count(*) FROM room WHERE name = :name", name=name):
        return Rejected("A room of this name is on record already.")
    return added(
        submission, "room", name=name, length=length, width=width, height=height, openings=openings
    )


def _order(submission: FormSubmission) -> Success | Rejected:
    paint = submission.row("paint")
    tins = whole(submission.form.get("tins", ""), 1, 999)
    if paint is None or tins is None:
        return Rejected("From 1 to 999 tins can be ordered.")
    total = tins * paint["price"]
    return added(submission, "purchase", paint=paint["id"], tins=tins, total=total)


def _about_order(submission: FormSubmission) -> str:
    paint = submission.row("paint")
    name = paint["name"] if paint else "?"
    return f"Mixed paint is not taken back. Order {submission.form.get('tins', '')[:6]} of {name}?"


def _enquire(submission: FormSubmission) -> Success | Rejected:
    lender = submission.row("lender")
    principal = hundredths(submission.form.get("principal", ""))
    years = whole(submission.form.get("term", ""), 1, 40)
    if lender is None or not principal or years is None or years > lender["longest"]:
        return Rejected("Please give an amount and a term for which this lender lends.")
    return added(submission, "enquiry", lender=lender["id"], principal=principal, years=years)


OPERATIONS = {
    "save-result": Operation(_save_result),
    "save-job": Operation(_save_job),
    "run-job": Operation(_run_job),
    "rename-job": Operation(_rename_job),
    "delete-job": confirmed(
        _delete_job, "job", "name", "The job {} cannot be brought back. Delete it?"
    ),
    "delete-result": removal("result", "history", irreversible=True),
    "record-room": Operation(_record_room),
    "order": Operation(_order, irreversible=True, confirm=_about_order),
    "enquire": Operation(_enquire, irreversible=True),
    "survey": preference("survey", "account"),
}
