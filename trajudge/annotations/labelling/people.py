"""The people of a queue and the tokens that they sign in with."""

from __future__ import annotations

import hmac
import secrets
import sqlite3
from hashlib import scrypt
from typing import NamedTuple

from trajudge.annotations.labelling.database import LabelStore
from trajudge.annotations.labelling.records import Person, PersonRole
from trajudge.util.errors import UserError

NAME_LIMIT = 100
_COST = 2**14


class Admission(NamedTuple):
    """A person and the token that is shown once; the store keeps its scrypt hash alone."""

    person: Person
    token: str


def add_person(store: LabelStore, name: str, role: PersonRole = "annotator") -> Admission:
    """Add a person with a fresh token. Raises UserError for a name that is taken or empty."""
    name = name.strip()
    if not 0 < len(name) <= NAME_LIMIT or not name.isprintable():
        raise UserError(
            f"the name {name!r} is not usable: give 1 to {NAME_LIMIT} printable characters"
        )
    token = secrets.token_urlsafe(24)
    with store.writing() as connection:
        try:
            cursor = connection.execute(
                "INSERT INTO person (name, role, token_hash) VALUES (?, ?, ?)",
                (name, role, _hash_of(token, secrets.token_bytes(16))),
            )
        except sqlite3.IntegrityError:
            raise UserError(f"{store.folder}: there is a person {name!r} already") from None
        row = connection.execute("SELECT * FROM person WHERE id = ?", (cursor.lastrowid,))
        return Admission(_person(row.fetchone()), token)


def people(store: LabelStore) -> list[Person]:
    """List everybody, in the order in which they were added."""
    rows = store.reading().execute("SELECT * FROM person ORDER BY id")
    return [_person(row) for row in rows]


def person_by_id(store: LabelStore, number: int) -> Person | None:
    """Return a person by their number."""
    row = store.reading().execute("SELECT * FROM person WHERE id = ?", (number,)).fetchone()
    return None if row is None else _person(row)


def person_by_name(store: LabelStore, name: str) -> Person | None:
    """Return a person by their name."""
    row = store.reading().execute("SELECT * FROM person WHERE name = ?", (name,)).fetchone()
    return None if row is None else _person(row)


def person_by_token(store: LabelStore, token: str) -> Person | None:
    """Return the active person whose token this is. It compares with every hash in turn, each of
    which is slow on purpose: remember the answer for a session."""
    matches = [p for p in people(store) if p.active and p.token_hash and _fits(token, p.token_hash)]
    return matches[0] if matches else None


def _person(row: sqlite3.Row) -> Person:
    return Person(row["id"], row["name"], row["role"], row["token_hash"], bool(row["active"]))


def _hash_of(token: str, salt: bytes) -> str:
    return f"{salt.hex()}${scrypt(token.encode(), salt=salt, n=_COST, r=8, p=1).hex()}"


def _fits(token: str, stored: str) -> bool:
    salt, _, _ = stored.partition("$")
    return hmac.compare_digest(_hash_of(token, bytes.fromhex(salt)), stored)
