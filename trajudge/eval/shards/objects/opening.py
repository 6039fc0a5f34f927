"""The store at an address."""

from __future__ import annotations

from pathlib import Path

from trajudge.eval.shards.objects.store import ObjectStore


def open_store(address: str) -> ObjectStore:
    """Open a folder, ``memory://`` (of this process alone) or the address of an object store
    (``s3://``, ``gs://``, ``az://``). Raises UserError."""
    if "://" not in address:
        from trajudge.eval.shards.objects.folder import FolderStore  # noqa: PLC0415

        return FolderStore(Path(address))
    from trajudge.eval.shards.objects.remote import RemoteStore  # noqa: PLC0415 - an extra

    return RemoteStore(address)
