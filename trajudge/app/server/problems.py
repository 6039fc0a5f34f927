"""What a person is told where a page cannot be shown."""

from __future__ import annotations


class PageError(Exception):
    """A request that is answered by ``status`` and one ``sentence``: what is wrong, what to do."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
