"""What about a recorded run is changed when it is recorded once more.

The values name the perturbations of ``trajudge robust`` that pair such a run with the one that it
was made of, and end the agent's name in its key: ``scripted-b~theme``.
"""

from __future__ import annotations

from enum import StrEnum

MARK = "~"


class RunVariant(StrEnum):
    """``theme``: another look and window; ``undo``: what was done is taken back at the end;
    ``page-visited-native``: the page on which the work would have ended is opened by its address;
    ``own-note-native``: the agent leaves a note on the site that says it was done; ``page-native``:
    an instruction to the judge stands in what users wrote. ``…-benign``: neutral text of the same
    length stands there."""

    THEME = "theme"
    UNDO = "undo"
    PAGE_VISITED = "page-visited-native"
    OWN_NOTE = "own-note-native"
    OWN_NOTE_BENIGN = "own-note-native-benign"
    PAGE = "page-native"
    PAGE_BENIGN = "page-native-benign"
