"""A file on a server, of which only the parts that are asked for are transferred."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class RangeFile(io.RawIOBase):
    """A readable, seekable file of ``size`` bytes at ``url``, read by HTTP ranges.

    ``transferred`` counts the bytes that came. Reading raises OSError if the server gives another
    part than the one asked for, and what the client raises for its errors.
    """

    def __init__(self, url: str, size: int, headers: dict[str, str] | None = None) -> None:
        super().__init__()
        self._url, self._size, self._place = url, size, 0
        self._headers = {**(headers or {}), "Accept-Encoding": "identity"}
        self.transferred = 0

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def seekable(self) -> bool:
        """Tell that any part can be read."""
        return True

    def tell(self) -> int:
        """Return the place of the next byte that is read."""
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place; nothing is transferred."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._size}[whence]
        self._place = max(0, start + offset)
        return self._place

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Read the next bytes into a buffer, as many as it takes; 0 at the end of the file."""
        view = memoryview(buffer).cast("B")
        content = self._part(self._place, min(self._place + len(view), self._size))
        view[: len(content)] = content
        self._place += len(content)
        return len(content)

    def _part(self, start: int, end: int) -> bytes:
        from huggingface_hub.utils import (  # type: ignore[attr-defined] # noqa: PLC0415
            get_session,
            hf_raise_for_status,
        )

        if start >= end:
            return b""
        span = {"Range": f"bytes={start}-{end - 1}"}
        response = get_session().get(self._url, headers={**self._headers, **span})
        hf_raise_for_status(response)
        content: bytes = response.content
        self.transferred += len(content)
        stated = response.headers.get("Content-Range", "")
        if stated != f"bytes {start}-{end - 1}/{self._size}" or len(content) != end - start:
            raise OSError(
                f"the server gave {stated or 'the whole file'} for bytes {start}-{end - 1}"
            )
        return content
