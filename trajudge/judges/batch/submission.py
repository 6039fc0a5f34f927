"""Submission of a batch: intent, submission, and what became of one without an answer."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import NamedTuple

from trajudge.judges.adapters.errors import CallFailed, Retryable
from trajudge.judges.batch.ledger import Ledger, new_batch_id
from trajudge.judges.batch.records import BatchLine, BatchRow, MaybeAccepted
from trajudge.judges.batch.service import BatchService
from trajudge.util.errors import UserError

log = logging.getLogger(__name__)


class BatchPlace(NamedTuple):
    """Where a batch goes: endpoint (as in a request's hash), model, and the run that asks."""

    endpoint: str
    model: str
    run: str


async def submit(
    service: BatchService, ledger: Ledger, place: BatchPlace, lines: Sequence[BatchLine]
) -> bool:
    """Submit the lines that are in no open batch; False if the provider has no room for now.

    A submission without an answer stays an intent, for ``reconcile``. Raises UserError if the
    provider refuses the batch.
    """
    batch = new_batch_id()
    mine = ledger.intend(batch, (service.name, *place), lines)
    if not mine:
        return True
    try:
        provider_id = await service.submit(batch, mine)
    except MaybeAccepted as error:
        log.info("batch %s: %s: it may have been taken", batch, error)
        return True
    except Retryable as error:  # refused before it was taken
        ledger.release(batch, str(error))
        log.info("batch %s: %s", batch, error)
        return False
    except UserError as error:  # a file that could not be written
        ledger.release(batch, str(error))
        raise
    except CallFailed as error:
        ledger.release(batch, str(error))
        raise UserError(f"the batch was refused: {error}") from error
    ledger.submitted(batch, provider_id)
    log.info("batch %s: submitted as %s, %d lines", batch, provider_id, len(mine))
    return True


async def reconcile(
    service: BatchService, ledger: Ledger, row: BatchRow, grace: float
) -> BatchRow | None:
    """Find out what became of an intent: return the batch once it is known to be submitted.

    It is released, and its lines may be sent again, when the provider lists no such batch
    ``grace`` seconds after the intent, and none that may be it. Raises CallFailed.
    """
    is_late = time.time() > row.intent_at + grace
    requests = ledger.open_lines(row.id).keys()
    match = await service.find(row, requests, ledger.provider_ids())
    if match.provider_id:
        ledger.submitted(row.id, match.provider_id)
        log.info("batch %s: found as %s", row.id, match.provider_id)
        return row._replace(state="submitted", provider_id=match.provider_id)
    if is_late and not match.must_wait:
        ledger.release(row.id, "never reached the provider")
        log.info("batch %s: never reached the provider", row.id)
    return None
