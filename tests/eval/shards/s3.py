"""An S3 server on loopback: moto, as a process of an environment of its own."""

from __future__ import annotations

import os
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.pinned import pinned_python
from tests.ports import free_port
from tests.waiting import wait_until
from trajudge.trajectories.util.local.pinned import PinnedPackage

BUCKET = "runs"
# moto compares an object's version and replaces it without a lock: of two requests at once that
# name the same version both would be taken, which S3 rules out. It answers one after the other.
SERVER = """
import sys
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple

application = DomainDispatcherApplication(create_backend_app)
run_simple("127.0.0.1", int(sys.argv[1]), application, threaded=False)
"""
MOTO = PinnedPackage(
    name="moto",
    pins=Path(__file__).with_name("moto.txt"),
    module="moto",
    variable="TRAJUDGE_MOTO_PYTHON",
)


@contextmanager
def s3_server() -> Iterator[Mapping[str, str]]:
    """Yield what the environment of a client must say of the server; it has the bucket ``runs``."""
    python = pinned_python(MOTO)
    port = free_port()
    command = [str(python), "-c", SERVER, str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        address = f"http://127.0.0.1:{port}"
        try:
            wait_until(lambda: _made(f"{address}/{BUCKET}"), server)
            yield {
                "AWS_ENDPOINT_URL": address,
                "AWS_ACCESS_KEY_ID": "key",
                "AWS_SECRET_ACCESS_KEY": "secret",
                "AWS_REGION": "us-east-1",
            }
        finally:
            server.terminate()


def _made(bucket: str) -> bool:
    """Make the bucket; False while the server does not answer yet."""
    try:
        request = urllib.request.Request(bucket, method="PUT")
        urllib.request.urlopen(request, timeout=5).close()
    except OSError:
        return False
    return True


def environment(settings: Mapping[str, str]) -> dict[str, str]:
    """This process's environment with the settings."""
    return {**os.environ, **settings}
