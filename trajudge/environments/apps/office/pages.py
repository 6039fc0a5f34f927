"""The pages of the office: signing in, the start page, who may do what, and its applications'."""

from __future__ import annotations

from functools import wraps

from trajudge.environments.apps import details as ui
from trajudge.environments.apps import lists
from trajudge.environments.apps.composite import in_member, member_pages
from trajudge.environments.apps.office.operations import RIGHTS, USER
from trajudge.environments.apps.office.schema import MEMBERS
from trajudge.environments.model.page import Link, ListRow, Page, Paragraph, Word
from trajudge.environments.model.spec import PageContext, PageMaker

NAVIGATION = (
    Link(Word("start_page"), "home"),
    *(Link(Word(f"to_{member.name}"), f"{member.name}/home") for member in MEMBERS),
    Link(Word("rights"), "rights"),
)
AREAS = {member.name: (*NAVIGATION, *in_member(member.navigation, member)) for member in MEMBERS}


def home(view: PageContext) -> Page:
    user = view.state.one(USER)
    if user is None:
        fields = (ui.control("login"), ui.control("password"))
        form = ui.action_form("sign_in", "sign-in", *fields)
        return Page(Word("sign_in"), (Paragraph("Please sign in to go on."), form))
    about = ui.facts(signed_in_as=user["name"], role=user["role"])
    return Page(Word("start_page"), (about, ui.action_form("sign_out", "sign-out")))


def signed_in(make: PageMaker) -> PageMaker:
    """Show the form to sign in where nobody is."""

    @wraps(make)
    def page(view: PageContext) -> Page:
        return home(view) if view.state.one(USER) is None else make(view)

    return page


@signed_in
def rights(view: PageContext) -> Page:
    rows = [
        ListRow(operation.partition("/")[2].replace("-", " "), (", ".join(roles),))
        for operation, roles in RIGHTS.items()
    ]
    return lists.table_page("rights", "right allowed_roles", rows)


PAGES = {
    "home": home,
    "rights": rights,
    **{name: page for one in MEMBERS for name, page in member_pages(one, signed_in).items()},
}
