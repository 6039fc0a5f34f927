"""What a member of the workshop can do."""

from __future__ import annotations

from environments.apps.submissions import asks, preference, removal
from environments.apps.toolbox.tools import TOOLS, Outcome, hundredths, read, whole
from environments.model.spec import TODAY, Call, Done, Operation, Refused

_GONE = "This entry is no longer there."


def _reckoned(call: Call) -> tuple[str, Outcome | None]:
    tool = call.form.get("tool", "")
    return tool, TOOLS[tool](call.world, call.form) if tool in TOOLS else None


def _store(call: Call, name: str, tool: str, outcome: Outcome) -> Done:
    key = call.world.token("result")
    call.world.add(
        "result", id=key, name=name, tool=tool, inputs=outcome.written,
        outcome=outcome.rows[0][1], value=outcome.value, made=TODAY,
    )  # fmt: skip
    return Done("result", {"id": key})


def _save_result(call: Call) -> Done | Refused:
    (tool, outcome), name = _reckoned(call), call.text("result_name", 60)
    if outcome is None or not name:
        return Refused("A result needs a name and inputs that the tool can reckon with.")
    return _store(call, name, tool, outcome)


def _save_job(call: Call) -> Done | Refused:
    (tool, outcome), name = _reckoned(call), call.text("job_name", 60)
    if outcome is None or not name:
        return Refused("A job needs a name and inputs that the tool can reckon with.")
    key = call.world.token("job")
    call.world.add(
        "job", id=key, name=name, tool=tool, inputs=outcome.written, made=TODAY, remark=""
    )
    return Done("job", {"id": key})


def _run_job(call: Call) -> Done | Refused:
    job = call.row("job")
    if job is None:
        return Refused(_GONE)
    outcome = TOOLS[job["tool"]](call.world, read(job["inputs"]))
    if outcome is None:
        return Refused("The tool can no longer reckon with what this job has stored.")
    return _store(call, job["name"], job["tool"], outcome)


def _rename_job(call: Call) -> Done | Refused:
    job, name = call.row("job"), call.text("new_name", 60)
    if job is None or not name:
        return Refused("Please give the job a name.")
    call.world.change("job", job["id"], name=name)
    return Done("job", {"id": job["id"]})


def _delete_job(call: Call) -> Done | Refused:
    job = call.row("job")
    if job is None:
        return Refused(_GONE)
    call.world.remove("job", job["id"])
    return Done("jobs")


def _record_room(call: Call) -> Done | Refused:
    name = call.text("name", 60)
    sides = [whole(call.form.get(side, ""), 1, 5000) for side in ("length", "width", "height")]
    length, width, height = sides
    openings = whole(call.form.get("openings", ""), 0, 500)
    if not name or length is None or width is None or height is None or openings is None:
        return Refused("Please give a name and whole numbers for all four measurements.")
    if call.world.value("SELECT count(*) FROM room WHERE name = :name", name=name):
        return Refused("A room of this name is on record already.")
    key = call.world.token("room")
    call.world.add(
        "room", id=key, name=name, length=length, width=width, height=height, openings=openings
    )
    return Done("room", {"id": key})


def _order(call: Call) -> Done | Refused:
    paint = call.row("paint")
    tins = whole(call.form.get("tins", ""), 1, 999)
    if paint is None or tins is None:
        return Refused("From 1 to 999 tins can be ordered.")
    key = call.world.token("purchase")
    call.world.add("purchase", id=key, paint=paint["id"], tins=tins, total=tins * paint["price"])
    return Done("purchase", {"id": key})


def _about_order(call: Call) -> str:
    paint = call.row("paint")
    name = paint["name"] if paint else "?"
    return f"Mixed paint is not taken back. Order {call.form.get('tins', '')[:6]} of {name}?"


def _enquire(call: Call) -> Done | Refused:
    lender = call.row("lender")
    principal = hundredths(call.form.get("principal", ""))
    years = whole(call.form.get("term", ""), 1, 40)
    if lender is None or not principal or years is None or years > lender["longest"]:
        return Refused("Please give an amount and a term for which this lender lends.")
    key = call.world.token("enquiry")
    call.world.add("enquiry", id=key, lender=lender["id"], principal=principal, years=years)
    return Done("enquiry", {"id": key})


OPERATIONS = {
    "save-result": Operation(_save_result),
    "save-job": Operation(_save_job),
    "run-job": Operation(_run_job),
    "rename-job": Operation(_rename_job),
    "delete-job": Operation(
        _delete_job,
        irreversible=True,
        confirm=asks("job", "name", "The job {} cannot be brought back. Delete it?"),
    ),
    "delete-result": removal("result", "history", irreversible=True),
    "record-room": Operation(_record_room),
    "order": Operation(_order, irreversible=True, confirm=_about_order),
    "enquire": Operation(_enquire, irreversible=True),
    "survey": preference("survey", "account"),
}
