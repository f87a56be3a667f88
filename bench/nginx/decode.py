"""What a peer sends, decoded by the stock commands and compared."""

import hashlib
import http.client
import pathlib
import subprocess
import time

from server import Failure

DECODERS = {
    'zstd': ['zstd', '-dc', '--memory=8MB'],
    'gzip': ['gzip', '-dc'],
    'br': ['brotli', '-dc'],
}


def fetch(nginx, path, coding):
    """The body as it came, over HTTP/1.1, and the seconds that it took."""
    connection = http.client.HTTPConnection(nginx.address, timeout=120)
    try:
        begun = time.monotonic()
        connection.request('GET', path, headers={'Accept-Encoding': coding})
        answer = connection.getresponse()
        body = answer.read()
        seconds = time.monotonic() - begun
    finally:
        connection.close()
    got = (answer.version, answer.status,
           answer.getheader('Content-Encoding', 'identity'))
    if got != (11, 200, coding):
        raise Failure(f'{path}: HTTP version, status and coding are {got}')
    return body, seconds


def decode(body, coding):
    """The content, by the stock command of the coding."""
    if coding == 'identity':
        return body
    done = subprocess.run(DECODERS[coding], input=body,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise Failure(f'{DECODERS[coding][0]}: {done.stderr.decode()}')
    return done.stdout


def check(nginx, name):
    """A file of a peer; its size as sent, and the seconds that it took."""
    coding = nginx.peer.coding
    body, seconds = fetch(nginx, f'/packed/{name}', coding)
    content = pathlib.Path(nginx.files, name).read_bytes()
    if (hashlib.sha256(decode(body, coding)).digest()
            != hashlib.sha256(content).digest()):
        raise Failure(f'{nginx.peer.name}, level {nginx.level}: {name} came '
                      'back changed')
    return len(body), seconds
