"""The console's pages about alerts, people, keys, invoices and maintenance."""

from __future__ import annotations

from environments.apps.console.schema import (
    ALERTED,
    GROUNDS,
    PAID,
    PRIORITIES,
    ROLES,
    SCOPES,
    SEVERITIES,
    TEAMS,
)
from environments.apps.lists import asked_for, chosen, headings, opens, pick, searched
from environments.model.binding import money
from environments.model.page import (
    Block,
    Facts,
    Field,
    Form,
    Items,
    Link,
    Option,
    Page,
    Section,
    Text,
    Word,
)
from environments.model.site import missing
from environments.model.spec import View

_ALERTS = """SELECT a.*, s.name AS of FROM alert a JOIN service s ON s.id = a.service
    WHERE instr(lower(a.number || ' ' || s.name), lower(:words))
    AND :severity IN ('', a.severity) AND :status IN ('', a.status) ORDER BY """
_ALERT_SORTS = ("a.raised DESC, a.id", "a.number", "s.name, a.id")
_MEMBERS = """SELECT * FROM member WHERE instr(lower(name), lower(:words))
    AND :team IN ('', team) ORDER BY name"""
_KEYS = """SELECT k.*, m.name AS holder FROM accesskey k JOIN member m ON m.id = k.member
    WHERE instr(lower(k.label || ' ' || m.name), lower(:words)) AND :scope IN ('', k.scope)
    AND :status IN ('', k.status) ORDER BY k.label"""
_INVOICES = """SELECT i.*, s.name AS of FROM invoice i JOIN service s ON s.id = i.service
    WHERE instr(lower(i.number || ' ' || s.name), lower(:words)) AND :status IN ('', i.status)
    ORDER BY """
_INVOICE_SORTS = ("i.issued DESC, i.id", "i.number", "s.name, i.id")
_WINDOWS = """SELECT w.*, s.name AS of FROM window w JOIN service s ON s.id = w.service
    WHERE instr(lower(w.number || ' ' || s.name), lower(:words)) ORDER BY w.starts, w.id"""


def _service(view: View, key: str) -> Section:
    name = view.world.row("service", key)["name"]
    return Section(Word("service"), (Link(name, "service", {"id": key}),))


def alerts(view: View) -> Page:
    asked = asked_for(view, "severity", "status")
    found = view.world.rows(_ALERTS + _ALERT_SORTS[view.ui.sort], **asked)
    rows = [
        opens(r["number"], "alert", r["id"], r["of"], r["severity"], r["raised"], r["status"])
        for r in found
    ]
    filters = (chosen(view, "severity", SEVERITIES), chosen(view, "status", ALERTED))
    return searched(view, "alerts", "alert service severity raised status", rows, filters)


def alert(view: View) -> Page:
    found = view.world.get("alert", view.args.get("id", ""))
    if found is None:
        return missing()
    shown = ("severity", "raised", "status", "assignee", "priority", "note")
    about = tuple((Word(name), found[name] or "-") for name in shown)
    blocks: tuple[Block, ...] = (
        Text(found["body"]),
        Facts(about),
        _service(view, found["service"]),
    )
    if found["status"] != "resolved":
        people = view.world.rows("SELECT * FROM member ORDER BY name")
        options = tuple(Option(row["id"], row["name"]) for row in people)
        fields = (
            Field("assignee", Word("assignee"), "choice", "", options),
            pick("priority", PRIORITIES),
            Field("note", Word("note"), "long"),
        )
        hidden = {"alert": found["id"]}
        blocks = (*blocks, Form(Word("assign"), fields, operation="assign", hidden=hidden))
    return Page(found["number"], blocks)


def members(view: View) -> Page:
    found = view.world.rows(_MEMBERS, **asked_for(view, "team"))
    rows = [opens(r["name"], "member", r["id"], r["team"], r["role"]) for r in found]
    return searched(view, "members", "member team role", rows, (chosen(view, "team", TEAMS),))


def member(view: View) -> Page:
    found = view.world.get("member", view.args.get("id", ""))
    if found is None:
        return missing()
    held = view.world.rows("SELECT * FROM accesskey WHERE member = :id ORDER BY label",
                           id=found["id"])  # fmt: skip
    rows = tuple(opens(r["label"], "key", r["id"], r["scope"], r["status"]) for r in held)
    about = Facts(((Word("team"), found["team"]), (Word("role"), found["role"])))
    fields = (pick("role", ROLES, found["role"]), pick("team", TEAMS, found["team"]))
    form = Form(Word("set_role"), fields, operation="set-role", hidden={"member": found["id"]})
    keys_held = Section(Word("their_keys"), (Items(headings("key scope status"), rows),))
    return Page(found["name"], (Text(found["about"]), about, keys_held, form))


def keys(view: View) -> Page:
    found = view.world.rows(_KEYS, **asked_for(view, "scope", "status"))
    rows = [
        opens(r["label"], "key", r["id"], r["holder"], r["scope"], r["expires"], r["status"])
        for r in found
    ]
    filters = (chosen(view, "scope", SCOPES), chosen(view, "status", ("active", "revoked")))
    return searched(view, "keys", "key member scope expires status", rows, filters)


def key(view: View) -> Page:
    found = view.world.get("accesskey", view.args.get("id", ""))
    if found is None:
        return missing()
    about = tuple((Word(name), found[name]) for name in ("scope", "expires", "status", "ground"))
    sealed = (Word("code"), view.code("accesskey", found["id"]))
    holder = view.world.row("member", found["member"])
    link = Link(holder["name"], "member", {"id": holder["id"]})
    blocks: tuple[Block, ...] = (Facts((*about, sealed)), Section(Word("member"), (link,)))
    if found["status"] == "active":
        hidden = {"key": found["id"]}
        form = Form(Word("revoke"), (pick("ground", GROUNDS),), operation="revoke", hidden=hidden)
        blocks = (*blocks, form)
    return Page(found["label"], blocks)


def invoices(view: View) -> Page:
    asked = asked_for(view, "status")
    found = view.world.rows(_INVOICES + _INVOICE_SORTS[view.ui.sort], **asked)
    rows = [
        opens(
            r["number"], "invoice", r["id"], r["of"], r["issued"], money(r["amount"]), r["status"]
        )
        for r in found
    ]
    filters = (chosen(view, "status", PAID),)
    return searched(view, "invoices", "invoice service issued amount status", rows, filters)


def invoice(view: View) -> Page:
    found = view.world.get("invoice", view.args.get("id", ""))
    if found is None:
        return missing()
    about = (
        (Word("issued"), found["issued"]),
        (Word("amount"), money(found["amount"])),
        (Word("status"), found["status"]),
    )
    return Page(found["number"], (Facts(about), _service(view, found["service"])))


def windows(view: View) -> Page:
    found = view.world.rows(_WINDOWS, **asked_for(view))
    rows = [
        opens(r["number"], "window", r["id"], r["of"], r["starts"], str(r["hours"])) for r in found
    ]
    page = searched(view, "windows", "window service starts hours", rows)
    return page._replace(blocks=(Link(Word("plan_window"), "plan"), *page.blocks))


def window(view: View) -> Page:
    found = view.world.get("window", view.args.get("id", ""))
    if found is None:
        return missing()
    about = tuple((Word(name), str(found[name])) for name in ("starts", "hours", "reason"))
    sealed = (Word("code"), view.code("window", found["id"]))
    return Page(found["number"], (Facts((*about, sealed)), _service(view, found["service"])))


def plan(view: View) -> Page:
    found = view.world.rows("SELECT * FROM service ORDER BY name")
    options = tuple(Option(row["id"], row["name"]) for row in found)
    fields = (
        Field("service", Word("service"), "choice", "", options),
        Field("starts", Word("starts"), "date", required=True),
        Field("hours", Word("hours"), "number", required=True),
        Field("reason", Word("reason"), required=True),
    )
    return Page(Word("plan_window"), (Form(Word("schedule"), fields, operation="schedule"),))


def preferences(view: View) -> Page:
    me = view.world.row("account", "me")
    digest = Field("digest", Word("digest"), "tick", "on" if me["digest"] else "")
    return Page(Word("preferences"), (Form(Word("save"), (digest,), operation="digest"),))


PAGES = {
    "alerts": alerts,
    "alert": alert,
    "members": members,
    "member": member,
    "keys": keys,
    "key": key,
    "invoices": invoices,
    "invoice": invoice,
    "windows": windows,
    "window": window,
    "plan": plan,
    "preferences": preferences,
}
