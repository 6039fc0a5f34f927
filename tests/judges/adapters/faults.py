"""Which error of ours each fault of the test server becomes, whoever carries the request."""

from __future__ import annotations

from trajudge.judges.adapters import errors

_FAULTS: dict[type[errors.CallFailed], str] = {
    errors.ContextOverflow: "overflow overflow-vllm overflow-llamacpp",
    errors.BadRequest: "image-refused",
    errors.AuthFailed: "401",
    errors.UnknownModel: "404",
    errors.Refused: "content-policy",
    errors.RateLimited: "429 bare-429",
    errors.Overloaded: "503 529",
    errors.ServerFailed: "500",
    errors.Unreachable: "drop",
}
ERRORS = {fault: error for error, faults in _FAULTS.items() for fault in faults.split()}
