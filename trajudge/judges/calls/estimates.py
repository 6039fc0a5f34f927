"""What a request will take, in tokens by our count: as is to be expected, and at most."""

from __future__ import annotations

import json
from collections.abc import Iterable
from math import ceil

from trajudge.judges.model import Picture, Request, Text, Usage
from trajudge.trajectories.tokens import (
    ImagePricing,
    count_tokens,
    counting_for,
    encoding_of,
    image_tokens,
    likely_tokens,
)

# What a judgment's reply was seen to take, with room: for predictions and the token limit.
EXPECTED_OUTPUT = 400
MESSAGE_OVERHEAD = 4
# Factors of the worst case: a text of 20 kB takes up to 1.09 times our count
# (benchmarks.token_estimates), and other tokenizers than OpenAI's may take half as much again.
COUNT_MARGIN = 1.2
GUESS_MARGIN = 1.6


def expected_usage(request: Request, pricing: ImagePricing, max_tokens: int) -> Usage:
    """Return the usage to expect of a request: its tokens, and an assumed reply of at most
    ``max_tokens``."""
    texts, pictures = _parts(request)
    with counting_for(encoding_of(request.model)):
        tokens = sum(map(likely_tokens, texts))
    tokens += MESSAGE_OVERHEAD * len(request.messages) + _image_tokens(pictures, pricing)
    return Usage(input=tokens, output=min(EXPECTED_OUTPUT, max_tokens))


def most_usage(request: Request, pricing: ImagePricing, longest_reply: int) -> Usage:
    """Return the most that a request can take: its prompt and a margin (of a tokenizer that is not
    public a wide one), and an answer as long as the request allows, else of ``longest_reply``
    tokens."""
    encoding = encoding_of(request.model)
    texts, pictures = _parts(request)
    if schema := request.parameters.get("response_format"):
        texts.append(json.dumps(schema))
    with counting_for(encoding):
        counted = sum(map(count_tokens, texts))
    tokens = (
        MESSAGE_OVERHEAD * (1 + len(request.messages))
        + ceil(counted * (COUNT_MARGIN if encoding else GUESS_MARGIN))
        + _image_tokens(pictures, pricing)
    )
    limit = request.parameters.get("max_tokens")
    return Usage(input=tokens, output=limit if isinstance(limit, int) else longest_reply)


def _parts(request: Request) -> tuple[list[str], list[Picture]]:
    """Return the texts and the pictures of a prompt."""
    parts = [part for message in request.messages for part in message.parts]
    texts = [part.text for part in parts if isinstance(part, Text)]
    return texts, [part for part in parts if isinstance(part, Picture)]


def _image_tokens(pictures: Iterable[Picture], pricing: ImagePricing) -> int:
    return sum(image_tokens(one.width, one.height, pricing) for one in pictures)
