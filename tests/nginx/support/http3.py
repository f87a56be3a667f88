"""HTTP/3 by curl, where curl has it."""

import functools
import subprocess
import time

from support import http1
from support.limits import HANG


@functools.lru_cache(None)
def curl_has_it():
    said = subprocess.run(
        ["curl", "--version"], stdout=subprocess.PIPE, text=True, check=True
    ).stdout
    return " HTTP3" in said


def listen(port):
    """Directives of a server that is started with tls=True."""
    return "listen 127.0.0.1:%d quic; http3 on;" % port


def command(port, path, *options):
    return [
        *("curl", "--silent", "--show-error", "--http3-only", "--insecure"),
        *("--header", "Accept-Encoding: zstd", *options),
        "https://127.0.0.1:%d%s" % (port, path),
    ]


def start(port, path, *options):
    """A curl that writes the head and the body as they arrive."""
    return subprocess.Popen(
        command(port, path, "--include", "--no-buffer", *options),
        bufsize=0,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def get(port, path, *options):
    return response_of(start(port, path, *options))


def response_of(process, said=b""):
    """What curl took to be a whole response, behind what was read of it."""
    more, errors = process.communicate(timeout=HANG)
    assert process.returncode == 0, errors.decode()
    said += more
    head, _, body = said.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    version, status = first.split()[:2]
    assert version == "HTTP/3"
    fields = [
        tuple(part.strip() for part in line.split(":", 1)) for line in lines
    ]
    response = http1.Response(int(status), fields)
    response.pieces = [(time.monotonic(), body)]
    response.ended = "length"
    return response
