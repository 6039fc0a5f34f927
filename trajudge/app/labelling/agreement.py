"""The page of agreement: computed from the labels as they stand at each look."""

from __future__ import annotations

from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trajudge.annotations.labelling.database import LabelStore
from trajudge.annotations.labelling.offers import progress
from trajudge.app.labelling.people import adjudicator_of
from trajudge.app.server.pages import json_page, page, wants_json
from trajudge.app.server.threads import in_thread
from trajudge.eval.labelling.quality import queue_quality


class AgreementPage(NamedTuple):
    """What the handler of the page needs."""

    store: LabelStore

    def routes(self) -> list[Route]:
        """Route the page."""
        return [Route("/queue/agreement", self.show)]

    async def show(self, request: Request) -> Response:
        """Show how far the annotators agree now."""
        adjudicator_of(self.store, request)
        quality = await in_thread(queue_quality, self.store)
        if wants_json(request):
            return json_page(
                {
                    "agreements": [each.model_dump(mode="json") for each in quality.agreements],
                    "confusion": quality.confusion._asdict(),
                    "pairs": [pair._asdict() for pair in quality.pairs],
                    "people": [person._asdict() for person in quality.people],
                }
            )
        counts = await in_thread(progress, self.store)
        return page(request, "labelling/agreement.html", quality=quality, counts=counts)
