"""The log of events: one JSON object per line, written as it happens.

Every event has ``type`` and ``t`` (Unix seconds). ``docs/proxy.md`` states the fields of each type;
a change of a field's meaning raises ``FORMAT``.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, Literal

from trajudge.util.errors import UserError
from trajudge.util.files import check_regular

FORMAT = 1
EventType = (
    Literal["proxy", "task", "page", "fault", "popup_closed", "navigation", "recovery"]
    | Literal["model", "refused", "task_end", "end"]
)


class EventLog:
    """An open log; ``path`` None keeps nothing. Raises UserError for a path it cannot open."""

    def __init__(self, path: Path | None) -> None:
        try:
            if path is not None:
                check_regular(path)
            self._file = None if path is None else path.open("a", encoding="utf-8")
        except OSError as error:
            raise UserError(
                f"{path}: {error.strerror}: name a folder that can be written"
            ) from error

    def write(self, event: EventType, **fields: Any) -> None:
        """Append one event."""
        if self._file is not None:
            line = json.dumps({"type": event, "t": round(time.time(), 6), **fields})
            self._file.write(line + "\n")
            self._file.flush()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
