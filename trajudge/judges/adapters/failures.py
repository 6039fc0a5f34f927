"""From an HTTP status and body to one of our errors: error bodies of every shape, the wordings of
providers, and the numbers in messages about prompts that are too long.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Mapping
from typing import Any, NamedTuple

import orjson

from trajudge.judges.adapters.errors import (
    AccountClosed,
    AuthFailed,
    BadRequest,
    Blocked,
    CallFailed,
    ContextOverflow,
    Forbidden,
    NoAccess,
    NoCredit,
    Overloaded,
    RateLimited,
    Refused,
    Retryable,
    ServerFailed,
    UnknownModel,
    rate_headers,
    retry_after,
)
from trajudge.util.masking import masked

_TEXTS = {
    *("message", "msg", "error", "detail", "details", "title", "raw", "error_message"),
    *("error_msg", "status_msg", "reasons"),
}
_CODES = {"code", "type", "status", "status_code", "error_type", "error_code", "reason"}
_INSIDE = {"errors", "metadata", "innererror", "base_resp"}

_MARKUP = re.compile(r"<(script|style)\b.*?</\1\s*>|<[^>]*>", re.IGNORECASE | re.DOTALL)

_PAGE = re.compile(r"\s*<(!doctype|html|head|body)\b", re.IGNORECASE)

_LONGEST = 2000

_DEEPEST = 8


class ErrorBody(NamedTuple):
    """A server's error message; empty strings where it said nothing.

    ``message`` holds all texts of the body, the outermost first (a gateway's own words, then those
    of the provider behind it); ``code`` the first code word, ``kind`` the others. ``is_page``: it
    is HTML, which a proxy or firewall wrote and no model server.
    """

    message: str = ""
    code: str = ""
    kind: str = ""
    parameter: str = ""
    is_page: bool = False


def read_error(body: bytes) -> ErrorBody:
    """Parse the error in a body, its keys masked; its beginning is the message where it has none (a
    page's text without its markup)."""
    text = body.decode("utf-8-sig", "replace")
    content = _json(text)
    if content is None:
        is_page = bool(_PAGE.match(text))
        words = _MARKUP.sub(" ", text).strip() if is_page else text
        return ErrorBody(masked(words)[:_LONGEST], is_page=is_page)
    return error_of(content) or ErrorBody(masked(str(content))[:_LONGEST])


def error_of(content: Any) -> ErrorBody | None:
    """Return the error that decoded JSON holds, None if it holds none.

    Only fields that servers put their own words in are read: what they repeat of the request
    (``input``, ``flagged_input``) is not looked at.
    """
    texts, codes = dict[str, None](), dict[str, None]()
    parameter = _gather(content, texts, codes, 0)
    names = set(content) if isinstance(content, dict) else set()
    if not texts and not ({"error", "base_resp"} & names and codes):
        return None
    code, *others = codes or [""]
    return ErrorBody(masked("; ".join(texts))[:_LONGEST], code, " ".join(others), parameter)


def _gather(content: Any, texts: dict[str, None], codes: dict[str, None], depth: int) -> str:
    """Collect all texts and code words of ``content`` in order; return the parameter that is named,
    or ""."""
    if depth > _DEEPEST:
        return ""
    if isinstance(content, list):
        parameters = [_gather(item, texts, codes, depth + 1) for item in content]
        return next(filter(None, parameters), "")
    if not isinstance(content, dict):
        _add(content, texts)
        return ""
    parameter = content.get("param")
    parameter = parameter if isinstance(parameter, str) else ""
    for name, value in content.items():
        if name in _TEXTS and isinstance(value, str):
            inner = _json(value)
            if isinstance(inner, dict | list):
                parameter = _gather(inner, texts, codes, depth + 1) or parameter
            else:
                _add(value, texts)
        elif name in _TEXTS | _INSIDE and isinstance(value, dict | list):
            parameter = _gather(value, texts, codes, depth + 1) or parameter
        elif name in _CODES and isinstance(value, str | int) and not isinstance(value, bool):
            codes.setdefault(str(value))
    return parameter


def _add(value: object, texts: dict[str, None]) -> None:
    if isinstance(value, str) and value.strip():
        texts.setdefault(value.strip())


def _json(text: str) -> Any:
    """Decode JSON, None if it is none: most texts are not, and are known by their beginning."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _any_of(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.IGNORECASE | re.DOTALL)


class ErrorRule(NamedTuple):
    """An answer of one of ``statuses`` (all that there are, by default) is an error of ``kind``.

    Where ``codes`` or ``words`` are given, its code words (lower case, underscores) or its message
    must match them, and the message must not match ``unless``. ``page``: what ``is_page`` must be.
    """

    kind: type[CallFailed]
    statuses: Container[int] = range(1000)
    words: re.Pattern[str] | None = None
    codes: re.Pattern[str] | None = None
    unless: re.Pattern[str] | None = None
    page: bool | None = None

    def applies(self, status: int, error: ErrorBody, codes: str) -> bool:
        """Return True if the rule is about this answer."""
        if status not in self.statuses or self.page not in (None, error.is_page):
            return False
        if self.unless and self.unless.search(error.message):
            return False
        if self.words is None and self.codes is None:
            return True
        by_code = self.codes is not None and self.codes.search(codes)
        return bool(by_code or (self.words is not None and self.words.search(error.message)))


_OVER = (
    r"(exceed|too (long|large|big)|(long|larg|great|bigg)er than|less than|should be|"
    r"must be <=|超)"
)
_WRONG = r"(not valid|invalid|incorrect|wrong|expired|leaked|revoked|disabled|missing)"
_IN_FLIGHT = _any_of(r"in[_ ]flight|retry (in|after)")
_TOKENS_A_MINUTE = r"tokens? per (min|hour|day)|\bTP[MD]\b"
# Where the length is not that of the prompt.
_OTHER_LENGTH = (
    r"\A(?!.*(token|context|length)).*\bimages?\b",
    r"\A(?!.*(\b(prompt|inputs?(?! validation)|messages?|context|body)\b|size limit))"
    r".*((output|completion) (length|tokens?)|\bmax\w*[_ ]tokens\b)",
)

# The first that applies counts; where none does, it is a BadRequest.
RULES = (
    ErrorRule(RateLimited, {402}, words=_IN_FLIGHT, codes=_IN_FLIGHT),
    ErrorRule(NoCredit, {402}),
    # These words come as a 429, too: no waiting helps.
    ErrorRule(
        NoCredit,
        {400, 403, 412, 429},
        codes=_any_of(
            r"insufficient_(quota|balance|credit|fund)",
            r"current_quota_error",
            r"credit_balance",
            r"billing_not_active",  # OpenAI, 429: BerriAI/litellm#2743
        ),
        words=_any_of(
            r"insufficient (account )?(credit|balance|fund)|(out|run out) of (credit|fund|balance)",
            r"(credit|balance)s?( is| are)? (too low|exhausted|depleted)",
            r"not enough (credit|balance|fund)",
            # Gemini, 429 ("prepayment credits are depleted"): discuss.ai.google.dev/t/170539. xAI,
            # 429: continuedev/continue#10373. OpenAI, 429: lifan0127/ai-research-assistant#174.
            r"used all available credits|account is not active",
            r"余额不足|欠费",
        ),
    ),
    ErrorRule(
        NoCredit,
        {400, 403, 412},
        codes=_any_of(r"arrear", r"billing", r"payment_required", r"overdue"),
        words=_any_of(
            # Anthropic, 400: anthropics/claude-code#38035, #1047 (of a workspace).
            r"reached your specified (workspace )?API usage limits",
            # Fireworks, 412: pollinations/pollinations#12136.
            r"account \S+ is suspended",
            r"requires more credits|have (no|any) credits|no credits? (left|remaining|available)",
            r"(key|spend|usage) limit (exceeded|reached)|in good standing|overdue|\bunpaid\b",
            r"billing (is )?not",
        ),
    ),
    # One request is larger than all that the account may send in a minute or a day.
    ErrorRule(
        BadRequest,
        {413, 429},
        words=_any_of(
            r"(too large|reduce[d]?\b).*tokens? per (min|day)",
            # Anthropic, to an account that may not ask it: anthropics/claude-code#39948.
            r"required for long context requests",
        ),
    ),
    ErrorRule(RateLimited, {402, 429}),
    # A page speaks of the policy of whoever runs the proxy, not of the prompt.
    ErrorRule(
        Refused,
        frozenset(range(1000)) - {401},
        codes=_any_of(
            r"content_(policy|filter|moderation)|moderation|inspection|sensitive|safety_"
        ),
        page=False,
    ),
    ErrorRule(
        Refused,
        frozenset(range(500)) - {401},
        words=_any_of(
            r"content[\w ]{0,20} (policy|policies|filter\w*|moderation|guidelines)|content filter",
            r"(usage|safety|acceptable use) (policy|policies|guidelines|system|reasons|filter\w*)",
            r"\bmoderation\b|safety_check|inappropriate|content exists risk|high risk",
            r"(?<![a-z-])(?<!case )sensitive|prohibited[ _]content",
            r"(input|prompt|output|content|message) (was|is|has been) (flagged|blocked|filtered)",
            r"敏感|不安全|违规",
        ),
        page=False,
    ),
    ErrorRule(NoAccess, {407}),
    ErrorRule(
        AccountClosed,
        {400, 403},
        words=_any_of(
            r"organization has been disabled",  # Anthropic, 400: anthropics/claude-code#54311
            r"organization has been restricted",  # Groq, 400: NVIDIA-NeMo/Guardrails#563
            # Gemini, 400: google-gemini/gemini-cli#24641. OpenAI, 403: its page on error codes.
            r"user location is not supported|country, region, or territory not supported",
        ),
    ),
    ErrorRule(AuthFailed, {401}),
    ErrorRule(
        AuthFailed,
        {400, 403},
        words=_any_of(
            rf"(api|access)[ _-]?(key|token)[^.;]{{0,40}}{_WRONG}",
            rf"{_WRONG} (api|access)[ _-]?(key|token)",
            r"security token included in the request is",
            r"request signature we calculated does not match",
        ),
    ),
    # A limit on the answer alone (max_tokens), on images or on tokens per minute is none of the
    # context window. Local servers say it with a 500.
    ErrorRule(ContextOverflow, {413}, unless=_any_of(_TOKENS_A_MINUTE)),
    ErrorRule(
        ContextOverflow,
        {400, 422, 500},
        codes=_any_of(
            r"context_(length|window|size)|request_too_large|tokens?_limit_|prompt_tokens_"
        ),
        unless=_any_of(_TOKENS_A_MINUTE),
    ),
    ErrorRule(
        ContextOverflow,
        {400, 422, 500},
        words=_any_of(
            r"(context|prompt|sequence) (length|size|window|limit)|maximum model length",
            r"model token limit",
            r"\b(prompt|inputs?(?! validation)|request|messages?|body)(_\w+)?\b"
            rf".{{0,60}}{_OVER}.{{0,40}}(max|length|token|limit|process|size|model)",
            rf"\b(input|prompt|total|token) (token|count|length|number).{{0,60}}{_OVER}",
            r"(prompt|input|request|messages?|conversation|payload|body)s? (is|are|was) too "
            r"(long|large)",
            r"(prompt|input|request|payload|entity) too (long|large|big)|too many (input )?tokens",
            r"`inputs`.{0,40}(less than|<=)",
            r"string too long|expected max_?length",
            r"reduce the (length|size) of|shorter (prompt|input)",
            r"\bn_ctx\b|\bKV (cache )?size\b",
        ),
        unless=_any_of(_TOKENS_A_MINUTE, *_OTHER_LENGTH),
    ),
    # Local servers answer 500 about images, which must not be retried for ever.
    ErrorRule(
        BadRequest,
        {400, 404, 415, 422, 500, 501},
        words=_any_of(
            r"(image|vision|multimodal|mmproj).{0,80}(not support|unsupported|only supported|"
            r"invalid|disabled|too large|could not process|exceed|at most)",
            r"(not support|unsupported|could not process|invalid|at most \d+).{0,40}"
            r"(image|vision|multimodal)",
            r"not a multimodal model|support image",
        ),
    ),
    ErrorRule(UnknownModel, {404, 410}),
    ErrorRule(
        UnknownModel,
        {400, 403, 422},
        codes=_any_of(r"model_?(id_)?(not|does_not|un)_?\w+", r"(invalid|unknown)_model"),
        words=_any_of(
            r"\bmodels?\b[^.;]{0,120}(does not|doesn't|not) (exist|found|available)",
            r"\bmodels/\S+ is not found|model [^.;]{0,120}not found",
            r"(invalid|unknown|no such|unrecognized) model(?! (out|in|param|resp))",
            r"not a valid model|no endpoints found|模型不存在",
            # Bedrock, where the name lacks its region; Vertex AI, where the project did not enable
            # it.
            r"on-demand throughput isn.t supported|model identifier is invalid",
            r"not allowed to use publisher model",
        ),
    ),
    ErrorRule(
        Blocked,
        {403},
        words=_any_of(
            r"you have been blocked|request (is |was |has been )?blocked",
            r"a certain word or phrase",
        ),
        page=True,
    ),
    ErrorRule(Forbidden, {403}),
    ErrorRule(ServerFailed, {500}),
    ErrorRule(Overloaded, {408, 409, 425, *range(501, 1000)}),
)


def kind_of(status: int, error: ErrorBody) -> type[CallFailed]:
    """Choose the class of error for a status and its words."""
    # ``DataInspectionFailed`` becomes data_inspection_failed.
    split = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", f"{error.code} {error.kind}")
    codes = re.sub(r"[-.]", "_", split).lower()
    return next((rule.kind for rule in RULES if rule.applies(status, error, codes)), BadRequest)


_TEXTS_ONLY = _any_of(
    r"invalid type: sequence, expected a string",  # DeepSeek: BerriAI/litellm#6642
    r"content'? ?: value must be a string",  # Groq: OpenHands/OpenHands#4643
    r"input should be a valid string",  # SiliconFlow: CherryHQ/cherry-studio#3474
)


def is_about_parts(error: ErrorBody) -> bool:
    """Return True if the server takes a message's texts as one string alone."""
    return bool(_TEXTS_ONLY.search(error.message))


_WAIT = _any_of(
    r"(?:retry|try again) (?:in|after) (?=\d)(?:(\d+)h ?)?(?:(\d+)m ?(?!s))?"
    r"(?:(\d+(?:\.\d+)?) ?(ms|s(?:ec(?:ond)?s?)?\b))?",
)


def stated_wait(error: ErrorBody) -> float | None:
    """Return the seconds after which to ask again, as Gemini, Azure and OpenAI say in words; None
    where nothing is said."""
    stated = _WAIT.search(error.message)
    if stated is None or not any(stated.groups()):
        return None
    hours, minutes, seconds, unit = stated.groups()
    rest = float(seconds or 0) / (1000 if unit and unit.lower() == "ms" else 1)
    return 3600 * int(hours or 0) + 60 * int(minutes or 0) + rest


class OverflowNumbers(NamedTuple):
    """Numbers of a refusal in tokens: the ``window``, the ``prompt`` as the server counted it, and
    what it reserved for the ``reply``; None for what it does not say."""

    window: int | None = None
    prompt: int | None = None
    reply: int | None = None


_NUMBER = r"(\d[\d,]*)"

_WINDOW = (
    rf"maximum context length(?: is| of)? {_NUMBER}",
    rf"context (?:size|window|length) \({_NUMBER}",
    rf"> {_NUMBER} maximum",
    rf"exceed context limit: [\d,]+ \+ [\d,]+ > {_NUMBER}",
    rf"maximum number of tokens allowed \({_NUMBER}",
    rf"with {_NUMBER} maximum context",
    rf"(?:cannot exceed|must be <=|limit of|limit is) {_NUMBER}",
    rf"n_ctx\W+{_NUMBER}",
)

_PROMPT = (
    rf"{_NUMBER} (?:tokens )?in (?:the|your) (?:messages|prompt|input)",
    rf"{_NUMBER} input tokens",
    rf"(?:resulted in|request \(|prompt is too long:|contains|received) {_NUMBER} ?tokens",
    rf"request \({_NUMBER} tokens",
    rf"input token count \({_NUMBER}",
    rf"exceed context limit: {_NUMBER} \+",
    rf"(?:Given:|received) {_NUMBER}",
    rf"n_prompt_tokens\W+{_NUMBER}",
    rf"requested {_NUMBER} tokens",
)

_REPLY = (
    rf"{_NUMBER} (?:tokens )?(?:in|for) the completion",
    rf"exceed context limit: [\d,]+ \+ {_NUMBER}",
    rf"too large: {_NUMBER}",
)


def overflow_numbers(message: str) -> OverflowNumbers:
    """Parse the numbers in a server's message about a prompt that is too long."""
    return OverflowNumbers(*(_first(message, kind) for kind in (_WINDOW, _PROMPT, _REPLY)))


def with_numbers(sentence: str, message: str) -> str:
    """Append to ``sentence``, which shows a server's ``message`` cut, the numbers that it lacks."""
    stated = overflow_numbers(message)
    if overflow_numbers(sentence) == stated:
        return sentence
    numbers = (
        ("maximum context length is {} tokens", stated.window),
        ("{} tokens in the prompt", stated.prompt),
        ("{} for the completion", stated.reply),
    )
    shown = ", ".join(words.format(number) for words, number in numbers if number is not None)
    return f"{sentence} ({shown})"


def _first(message: str, patterns: tuple[str, ...]) -> int | None:
    matches = (re.search(pattern, message, re.IGNORECASE) for pattern in patterns)
    return next((int(match[1].replace(",", "")) for match in matches if match), None)


CHECK_MODEL = "check --model and --base-url"

_SHOWN = 200

_PARAMETER_TEXT = re.compile(
    r"not support|unsupported|deprecated|not permitted|unknown|unrecognized|cannot be used",
    re.IGNORECASE,
)


def failure(
    status: int,
    error: ErrorBody,
    headers: Mapping[str, str],
    *,
    where: str,
    key_variable: str,
    model: str = "the model",
    unserved: str = CHECK_MODEL,
) -> CallFailed:
    """Make the error to raise for a status. ``where`` names the server, ``key_variable`` its key;
    ``unserved`` says what to do about a model that it does not serve.

    The provider's words are shown cut and without what looks like a key; of a refused key nothing
    is shown at all.
    """
    kind, words = kind_of(status, error), shown(error.message)
    summary = f"{where} answered {status}: {words}"
    if kind is ContextOverflow:
        return kind(with_numbers(summary, error.message))
    if issubclass(kind, Retryable):
        wait = retry_after(headers)
        if wait is None and kind is RateLimited:
            wait = stated_wait(error)
        return kind(summary, wait, rate_headers(headers))
    sentences: dict[type[CallFailed], str] = {
        AuthFailed: f"{where} refused the key ({status}): check {key_variable}",
        NoAccess: f"{where} is not reached: the proxy asks for a user and a password (407)",
        AccountClosed: f"{summary}: check the account behind {key_variable}, and where requests "
        "come from",
        NoCredit: f"{where} says that the account has no credit left to ask {model} "
        f"({status}: {words}): add credit",
        UnknownModel: f"{where} does not serve {model} ({status}: {words}): {unserved}",
        Forbidden: f"{summary}: check that the key in {key_variable} may use {model}",
        Blocked: f"{where} answered {status} with a firewall's page ({words}): check that "
        "this network may reach it",
    }
    return kind(sentences.get(kind, summary))


def hidden_failure(error: ErrorBody, *, where: str, key_variable: str, model: str) -> CallFailed:
    """Make the error to raise for one that a gateway hid in a 200.

    Its code is the status if it can be one; else its words decide, and without telling words the
    server is taken to be in trouble.
    """
    codes = [word for word in (error.code, *error.kind.split()) if word.isascii()]
    status = next((int(word) for word in codes if re.fullmatch(r"[45]\d\d", word)), 400)
    if kind_of(status, error) is BadRequest and str(status) not in codes:
        status = 502
    return failure(status, error, {}, where=where, key_variable=key_variable, model=model)


def refused_parameter(error: ErrorBody, sent: Collection[str]) -> str | None:
    """Return the one of the parameters ``sent`` that the server says it does not take."""
    if not _PARAMETER_TEXT.search(f"{error.message} {error.code}"):
        return None
    if error.parameter in sent:
        return error.parameter
    named = [name for name in sent if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", error.message)]
    # A server that refuses one name often recommends another: the refused one comes first.
    return min(named, key=error.message.find, default=None)


def shown(message: str) -> str:
    """Return a provider's words on one line, cut, without what looks like a key."""
    line = " ".join(masked(message).split())
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"
