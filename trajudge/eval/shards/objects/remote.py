"""Objects in an object store, through obstore: S3 and what speaks its protocol, Google Cloud
Storage, Azure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from trajudge.eval.shards.objects.store import StoredObject
from trajudge.trajectories.util.errors import MissingExtra, UserError


class RemoteStore:
    """A version is the object's ETag, with which the store itself compares.

    Keys, regions and endpoints are read from the usual variables of the environment
    (``AWS_ACCESS_KEY_ID``, ``AWS_ENDPOINT_URL``, ...). Raises UserError for an address that is
    none.
    """

    def __init__(self, address: str) -> None:
        try:
            import obstore  # noqa: PLC0415 - an extra
            from obstore.exceptions import BaseError  # noqa: PLC0415
            from obstore.store import from_url  # noqa: PLC0415
        except ImportError as error:
            raise MissingExtra("obstore", "shards", f"a run in {address}") from error
        self._obstore, self._error = obstore, BaseError
        self._address = address
        make: Any = from_url
        # A store beside the workers is often reached without TLS; memory:// takes no options.
        options = {} if address.startswith("memory:") else {"client_options": {"allow_http": True}}
        with self._explained("the address"):
            self._store: Any = make(address, **options)

    @property
    def address(self) -> str:
        return self._address

    def read(self, name: str) -> StoredObject | None:
        with self._explained(name):
            try:
                found = self._obstore.get(self._store, name)
                return StoredObject(bytes(found.bytes()), str(found.meta["e_tag"]))
            except FileNotFoundError:
                return None

    def create(self, name: str, content: bytes) -> bool:
        from obstore.exceptions import AlreadyExistsError  # noqa: PLC0415

        with self._explained(name):
            try:
                self._obstore.put(self._store, name, content, mode="create")
            except AlreadyExistsError:
                return False
        return True

    def replace(self, name: str, content: bytes, version: str) -> bool:
        from obstore.exceptions import PreconditionError  # noqa: PLC0415

        with self._explained(name):
            try:
                self._obstore.put(self._store, name, content, mode={"e_tag": version})
            except (PreconditionError, FileNotFoundError):
                return False
        return True

    def write(self, name: str, content: bytes) -> None:
        with self._explained(name):
            self._obstore.put(self._store, name, content)

    def names(self, prefix: str) -> Iterator[str]:
        with self._explained(prefix):
            pages = self._obstore.list(self._store, prefix=prefix.rstrip("/"))
            found = [str(entry["path"]) for page in pages for entry in page]
        yield from sorted(found)

    @contextmanager
    def _explained(self, name: str) -> Iterator[None]:
        try:
            yield
        except (self._error, ValueError, OSError) as error:
            if isinstance(error, FileNotFoundError):
                raise
            first = str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
            raise UserError(
                f"{self._address}: {name} cannot be read or written ({first}): check the address, "
                "and the store's keys, region and endpoint in the environment"
            ) from error
