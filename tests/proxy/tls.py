"""A certificate that a server on loopback has signed for itself."""

from __future__ import annotations

import ssl
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


def own_certificate(*protocols: str) -> ssl.SSLContext:
    """A server's context with a certificate that nobody else knows; ``protocols`` are those that it
    names, the best first."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    building = x509.CertificateBuilder(name, name, key.public_key(), 1)
    building = building.not_valid_before(now - timedelta(days=1))
    certificate = building.not_valid_after(now + timedelta(days=1)).sign(key, hashes.SHA256())
    text = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if protocols:
        context.set_alpn_protocols(protocols)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "own.pem"
        file.write_bytes(text + certificate.public_bytes(serialization.Encoding.PEM))
        context.load_cert_chain(file)
    return context
