"""How an agent comes to trust the certificates that mitmproxy shows it.

Chromium by a flag that names the authority's public key; other programs by the environment
variables that name a file of authorities, which holds those of the machine as well.
"""

from __future__ import annotations

import ssl
from pathlib import Path

from trajudge.proxy.server.embedded import EmbeddedProxy
from trajudge.proxy.server.settings import Backend
from trajudge.util.files import read_regular, write_bytes

# OpenSSL (and with it Python), requests, curl, Node and Deno.
_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "DENO_CERT")
_NODE = "NODE_EXTRA_CA_CERTS"


def chromium_flags(proxy: EmbeddedProxy) -> list[str]:
    """Return the flags with which Chromium sends all its requests, loopback among them, through
    the proxy, and trusts it."""
    flags = [f"--proxy-server={proxy.url}", "--proxy-bypass-list=<-loopback>"]
    if proxy.authority:
        flags.append(f"--ignore-certificate-errors-spki-list={proxy.authority.spki}")
    return flags


def trusting(proxy: EmbeddedProxy) -> dict[str, str]:
    """Return the variables with which an agent's HTTPS goes through the proxy and trusts it."""
    authority = proxy.authority
    if authority is None:
        return {}
    bundle = str(_bundle(authority.certificate))
    return {
        "HTTPS_PROXY": proxy.url,
        "https_proxy": proxy.url,
        **dict.fromkeys(_VARIABLES, bundle),
        _NODE: str(authority.certificate),
        "TRAJUDGE_PROXY_CERTIFICATE": str(authority.certificate),
    }


def inherited_use(backend: Backend) -> str:
    """Say by which variables of its environment an agent uses the proxy, whatever client it is."""
    browser = "a browser by the flags in TRAJUDGE_PROXY_CHROMIUM or the address in TRAJUDGE_PROXY"
    if backend == "embedded":
        return f"programs use it by HTTP_PROXY (https:// needs --backend mitm), {browser}"
    trust = ", ".join((*_VARIABLES, _NODE))
    return f"programs use it by HTTP_PROXY and HTTPS_PROXY and trust it by {trust}; {browser}"


def announced_use(backend: Backend) -> str:
    """Say by what of the first line of ``serve`` an agent uses the proxy."""
    names = "HTTP_PROXY" if backend == "embedded" else "HTTP_PROXY and HTTPS_PROXY"
    trust = "" if backend == "embedded" else "; programs have to trust its `certificate`"
    return (
        f"start programs with the `proxy` of the first line as {names}, and a browser with the "
        f"flags in its `chromium`{trust}"
    )


def _bundle(certificate: Path) -> Path:
    """Write the machine's authorities and ours into one file, beside ours."""
    paths = ssl.get_default_verify_paths()
    machine = next((Path(name) for name in (paths.cafile, paths.openssl_cafile) if name), None)
    known = read_regular(machine) if machine and machine.is_file() else b""
    bundle = certificate.with_name("authorities.pem")
    write_bytes(bundle, known + b"\n" + read_regular(certificate))
    return bundle
