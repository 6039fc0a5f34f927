"""The pages of a run without a browser: the same documents and the same accessibility trees.

``document`` reads the HTML that the server sends as elements with the state of their controls;
``tree`` writes it as Chromium's accessibility tree; ``session`` is what a recorder uses:
``observe``, ``act``, ``har``, as ``chromium.Session``.
"""

from trajudge.environments.text.session import TextSession

__all__ = ["TextSession"]
