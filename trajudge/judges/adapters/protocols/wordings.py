"""Meaning of servers' error messages: every provider has its own wording for the same few errors.

The rules look for ideas (a prompt, a limit, that one is over the other), not for whole sentences,
so that a wording nobody has seen yet is likely to be understood. How many recorded wordings they
classify correctly is measured on a table (``tests/judges/adapters/provider_errors.jsonl``).
"""

from __future__ import annotations

import re

from trajudge.judges.adapters.protocols.error_body import ErrorBody


def _rule(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.IGNORECASE | re.DOTALL)


_OVER = (
    r"(exceed|too (long|large|big)|(long|larg|great|bigg)er than|less than|should be|"
    r"must be <=|超)"
)
_OVERFLOW_CODE = _rule(
    r"context_(length|window|size)", r"request_too_large", r"tokens?_limit_", r"prompt_tokens_"
)
_OVERFLOW = _rule(
    r"(context|prompt|sequence) (length|size|window|limit)|maximum model length|model token limit",
    rf"\b(prompt|inputs?(?! validation)|request|messages?|body)(_\w+)?\b.{{0,60}}{_OVER}.{{0,40}}"
    r"(max|length|token|limit|process|size|model)",
    rf"\b(input|prompt|total|token) (token|count|length|number).{{0,60}}{_OVER}",
    r"(prompt|input|request|messages?|conversation|payload|body)s? (is|are|was) too (long|large)",
    r"(prompt|input|request|payload|entity) too (long|large|big)|too many (input )?tokens",
    r"`inputs`.{0,40}(less than|<=)",
    r"string too long|expected max_?length",
    r"reduce the (length|size) of|shorter (prompt|input)",
    r"\bn_ctx\b|\bKV (cache )?size\b",
)
_PICTURES = _rule(r"\bimages?\b")
_TOKENS = _rule(r"token|context|length")
_INPUT = _rule(r"\b(prompt|inputs?(?! validation)|messages?|context|body)\b|size limit")
_OUTPUT = _rule(r"(output|completion) (length|tokens?)", r"\bmax\w*[_ ]tokens\b")
_TOO_LARGE_A_MINUTE = _rule(
    r"(too large|reduce[d]?\b).*tokens? per (min|day)",
    # Anthropic, to an account that may not ask it: anthropics/claude-code#39948.
    r"required for long context requests",
)
_TOKENS_A_MINUTE = _rule(r"tokens? per (min|hour|day)|\bTP[MD]\b")

_POLICY_CODE = _rule(
    r"content_(policy|filter|moderation)", r"moderation", r"inspection", r"sensitive", r"safety_"
)
_POLICY = _rule(
    r"content[\w ]{0,20} (policy|policies|filter\w*|moderation|guidelines)|content filter",
    r"(usage|safety|acceptable use) (policy|policies|guidelines|system|reasons|filter\w*)",
    r"\bmoderation\b|safety_check|inappropriate|content exists risk|high risk",
    r"(?<![a-z-])(?<!case )sensitive|prohibited[ _]content",
    r"(input|prompt|output|content|message) (was|is|has been) (flagged|blocked|filtered)",
    r"敏感|不安全|违规",
)
_FIREWALL = _rule(
    r"you have been blocked|request (is |was |has been )?blocked|a certain word or phrase"
)

# The words below come as a 429, too: no waiting helps.
_CREDIT_CODE = _rule(
    r"insufficient_(quota|balance|credit|fund)",
    r"current_quota_error",
    r"credit_balance",
    r"billing_not_active",  # OpenAI, 429: BerriAI/litellm#2743
)
_CREDIT_CODE_ELSEWHERE = _rule(r"arrear", r"billing", r"payment_required", r"overdue")
_CREDIT = _rule(
    r"insufficient (account )?(credit|balance|fund)|(out|run out) of (credit|fund|balance)",
    r"(credit|balance)s?( is| are)? (too low|exhausted|depleted)|not enough (credit|balance|fund)",
    # Gemini, 429 ("prepayment credits are depleted"): discuss.ai.google.dev/t/170539. xAI, 429:
    # continuedev/continue#10373. OpenAI, 429: lifan0127/ai-research-assistant#174.
    r"used all available credits|account is not active",
    r"余额不足|欠费",
)
_CREDIT_ELSEWHERE = _rule(
    # Anthropic, 400: anthropics/claude-code#38035, #1047 (of a workspace).
    r"reached your specified (workspace )?API usage limits",
    # Fireworks, 412: pollinations/pollinations#12136.
    r"account \S+ is suspended",
    r"requires more credits|have (no|any) credits|no credits? (left|remaining|available)",
    r"(key|spend|usage) limit (exceeded|reached)|in good standing|overdue|\bunpaid\b",
    r"billing (is )?not",
)
_PARTS = _rule(
    r"invalid type: sequence, expected a string",  # DeepSeek: BerriAI/litellm#6642
    r"content'? ?: value must be a string",  # Groq: OpenHands/OpenHands#4643
    r"input should be a valid string",  # SiliconFlow: CherryHQ/cherry-studio#3474
)
_CLOSED = _rule(
    r"organization has been disabled",  # Anthropic, 400: anthropics/claude-code#54311
    r"organization has been restricted",  # Groq, 400: NVIDIA-NeMo/Guardrails#563
    # Gemini, 400: google-gemini/gemini-cli#24641. OpenAI, 403: its page on error codes.
    r"user location is not supported|country, region, or territory not supported",
)
_IN_FLIGHT = _rule(r"in[_ ]flight|retry (in|after)")

_MODEL_CODE = _rule(r"model_?(id_)?(not|does_not|un)_?\w+", r"(invalid|unknown)_model")
_MODEL = _rule(
    r"\bmodels?\b[^.;]{0,120}(does not|doesn't|not) (exist|found|available)",
    r"\bmodels/\S+ is not found|model [^.;]{0,120}not found",
    r"(invalid|unknown|no such|unrecognized) model(?! (out|in|param|resp))|not a valid model",
    r"no endpoints found|模型不存在",
    # Bedrock, where the name lacks its region; Vertex AI, where the project did not enable it.
    r"on-demand throughput isn.t supported|model identifier is invalid",
    r"not allowed to use publisher model",
)
_WRONG = r"(not valid|invalid|incorrect|wrong|expired|leaked|revoked|disabled|missing)"
_KEY = _rule(
    rf"(api|access)[ _-]?(key|token)[^.;]{{0,40}}{_WRONG}",
    rf"{_WRONG} (api|access)[ _-]?(key|token)",
    r"security token included in the request is|request signature we calculated does not match",
)
_WAIT = _rule(
    r"(?:retry|try again) (?:in|after) (?=\d)(?:(\d+)h ?)?(?:(\d+)m ?(?!s))?"
    r"(?:(\d+(?:\.\d+)?) ?(ms|s(?:ec(?:ond)?s?)?\b))?",
)
_IMAGE = _rule(
    r"(image|vision|multimodal|mmproj).{0,80}(not support|unsupported|only supported|invalid|"
    r"disabled|too large|could not process|exceed|at most)",
    r"(not support|unsupported|could not process|invalid|at most \d+).{0,40}"
    r"(image|vision|multimodal)",
    r"not a multimodal model|support image",
)


def is_overflow(status: int, error: ErrorBody) -> bool:
    """Tell whether the prompt is longer than the window. Local servers say it with a 500.

    A limit on the answer alone (``max_tokens``), on images or on tokens per minute is none.
    """
    if status not in {400, 413, 422, 500} or _TOKENS_A_MINUTE.search(error.message):
        return False
    if status == 413 or _OVERFLOW_CODE.search(_codes(error)):
        return True
    if not _OVERFLOW.search(error.message):
        return False
    if _PICTURES.search(error.message) and not _TOKENS.search(error.message):
        return False
    return not _OUTPUT.search(error.message) or bool(_INPUT.search(error.message))


def is_too_large_a_minute(status: int, error: ErrorBody) -> bool:
    """Tell whether one request is larger than all that the account may send in a minute or a
    day."""
    return status in {413, 429} and bool(_TOO_LARGE_A_MINUTE.search(error.message))


def is_policy(status: int, error: ErrorBody) -> bool:
    """Tell whether a filter of the provider declined the prompt or the answer to it. A page speaks
    of the policy of whoever runs the proxy, not of the prompt."""
    if error.is_page or status == 401:
        return False
    if _POLICY_CODE.search(_codes(error)):
        return True
    return status < 500 and bool(_POLICY.search(error.message))


def is_firewall(status: int, error: ErrorBody) -> bool:
    """Tell whether this is the page of a firewall before the provider, which rejected the body."""
    return status == 403 and error.is_page and bool(_FIREWALL.search(error.message))


def is_no_credit(status: int, error: ErrorBody) -> bool:
    """Tell whether the account cannot pay. A 429 says it by words that rate limits do not use."""
    if status not in {400, 402, 403, 412, 429}:
        return False
    codes, words = _codes(error), error.message
    if status == 402 and (_IN_FLIGHT.search(f"{codes} {words}")):
        return False
    if status == 402 or _CREDIT_CODE.search(codes) or _CREDIT.search(words):
        return True
    elsewhere = _CREDIT_CODE_ELSEWHERE.search(codes) or _CREDIT_ELSEWHERE.search(words)
    return status != 429 and bool(elsewhere)


def is_about_parts(status: int, error: ErrorBody) -> bool:
    """Tell whether the server takes a message's texts as one string alone."""
    return status in {400, 422} and bool(_PARTS.search(error.message))


def is_closed(status: int, error: ErrorBody) -> bool:
    """Tell whether the provider serves nobody of this account, or of this place."""
    return status in {400, 403} and bool(_CLOSED.search(error.message))


def is_unknown_model(status: int, error: ErrorBody) -> bool:
    """Tell whether the server does not serve the model. Some say it with a 400 or a 403."""
    if status in {404, 410}:
        return True
    named = _MODEL_CODE.search(_codes(error)) or _MODEL.search(error.message)
    return status in {400, 403, 422} and bool(named)


def is_wrong_key(status: int, error: ErrorBody) -> bool:
    """Tell whether the key is missing or wrong, whatever the words."""
    return status == 401 or (status in {400, 403} and bool(_KEY.search(error.message)))


def is_about_images(status: int, error: ErrorBody) -> bool:
    """Tell whether the model does not take the images. Local servers answer 500, which must not be
    retried for ever."""
    return status in {400, 404, 415, 422, 500, 501} and bool(_IMAGE.search(error.message))


def stated_wait(error: ErrorBody) -> float | None:
    """Return the seconds after which to ask again, as Gemini, Azure and OpenAI say in words; None
    where nothing is said."""
    stated = _WAIT.search(error.message)
    if stated is None or not any(stated.groups()):
        return None
    hours, minutes, seconds, unit = stated.groups()
    rest = float(seconds or 0) / (1000 if unit and unit.lower() == "ms" else 1)
    return 3600 * int(hours or 0) + 60 * int(minutes or 0) + rest


def _codes(error: ErrorBody) -> str:
    """Return all code words in lower case with underscores: ``DataInspectionFailed`` as well."""
    split = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", f"{error.code} {error.kind}")
    return re.sub(r"[-.]", "_", split).lower()
