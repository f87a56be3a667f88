"""A server behind the proxy that does what a test says, step by step.

A path of the form /gen/KIND/SIZE/CHUNK/GAP_MS answers with text of that size:
KIND is "chunked", "length" (with Content-Length) or "close" (its end is the
connection's). Other paths answer what reply() was told.
"""

import contextlib
import queue
import socket
import threading
import time

from support import data
from support.limits import HANG


class Wait:
    """A step: go on when the event is set."""

    def __init__(self, event):
        self.event = event


class Chunk:
    """A step: these bytes as one chunk of a chunked body."""

    def __init__(self, content):
        self.content = content


LAST_CHUNK = b"0\r\n\r\n"


def head(status="200 OK", **fields):
    """head(content_length=3): the head of a response."""
    lines = ["HTTP/1.1 " + status]
    for name, value in fields.items():
        lines.append("%s: %s" % (name.replace("_", "-"), value))
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def chunked(*steps, content_type="text/plain", **fields):
    """The steps of a response with a chunked body; bytes in them are its
    content."""
    yield head(
        content_type=content_type, transfer_encoding="chunked", **fields
    )
    for step in steps:
        yield Chunk(step) if isinstance(step, bytes) else step
    yield LAST_CHUNK


def whole(content, content_type="text/plain", status="200 OK", **fields):
    """The steps of a response with a Content-Length."""
    yield head(
        status,
        content_type=content_type,
        content_length=len(content),
        **fields,
    )
    yield content


def short(content, announced, content_type="text/plain", **fields):
    """Announces more than it sends, and closes."""
    yield head(
        content_type=content_type, content_length=announced, **fields
    )
    yield content
    yield CLOSE


CLOSE = object()  # a step: close the connection, in order
RESET = object()  # a step: close it by RST


class Gone(Exception):
    """The other side has closed, or the test is over."""


class Upstream:
    def __init__(self):
        self.replies = {}
        self.requests = queue.Queue()  # (method, path, fields, body)
        self.sent = 0  # bytes, of all connections
        self.closed = threading.Event()
        self.connections = set()
        self.threads = []
        self.failures = []
        self.listener = socket.create_server(
            ("127.0.0.1", 0), backlog=1024
        )
        self.port = self.listener.getsockname()[1]
        self.address = "127.0.0.1:%d" % self.port
        self.start(self.accept)

    def reply(self, path, steps):
        """A sequence of steps, or a function of (method, fields, body) that
        gives one. A step is bytes, a Chunk, a number (seconds to sleep), a
        Wait, CLOSE, RESET or a function, which is called."""
        self.replies[path] = (
            steps if callable(steps) else lambda *request, s=list(steps): s
        )

    def start(self, function, *arguments):
        thread = threading.Thread(
            target=function, args=arguments, daemon=True
        )
        self.threads.append(thread)
        thread.start()

    def accept(self):
        while not self.closed.is_set():
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            connection.setsockopt(
                socket.IPPROTO_TCP, socket.TCP_NODELAY, 1
            )
            self.connections.add(connection)
            self.start(self.serve, connection)

    def serve(self, connection):
        try:
            with connection, connection.makefile("rb") as lines:
                while self.serve_one(connection, lines):
                    pass
        except (OSError, Gone, ValueError):
            pass
        except Exception as e:
            self.failures.append(e)
            raise
        finally:
            self.connections.discard(connection)

    def serve_one(self, connection, lines):
        request = read_request(lines)
        if not request:
            return False
        method, path, fields, body = request
        self.requests.put(request)
        steps = self.steps_of(method, path, fields, body)
        for step in steps:
            if step is CLOSE:
                return False
            if step is RESET:
                reset(connection)
                return False
            self.do(connection, step)
        return fields.get("connection", "") != "close"

    def steps_of(self, method, path, fields, body):
        path = path.split("?")[0]
        if path.startswith("/gen/"):
            kind, size, chunk, gap = path[5:].split("/")
            return generate(kind, int(size), int(chunk), float(gap) / 1e3)
        if path not in self.replies:
            return whole(b"no such reply", status="404 Not Found")
        return self.replies[path](method, fields, body)

    def do(self, connection, step):
        if isinstance(step, bytes):
            self.send(connection, step)
        elif isinstance(step, Chunk):
            if step.content:
                self.send(
                    connection,
                    b"%x\r\n%s\r\n" % (len(step.content), step.content),
                )
        elif isinstance(step, (int, float)):
            if self.closed.wait(step):
                raise Gone
        elif isinstance(step, Wait):
            limit = time.monotonic() + HANG
            while not step.event.wait(0.05):
                if self.closed.is_set() or time.monotonic() > limit:
                    raise Gone
        else:
            step()

    def send(self, connection, content):
        view = memoryview(content)
        while view:
            count = connection.send(view[: 1 << 18])
            self.sent += count
            view = view[count:]

    def close(self):
        self.closed.set()
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for connection in list(self.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join(HANG)
            assert not thread.is_alive(), "a thread of the upstream hangs"
        assert not self.failures, self.failures


def reset(connection):
    connection.setsockopt(
        socket.SOL_SOCKET,
        socket.SO_LINGER,
        b"\x01\x00\x00\x00\x00\x00\x00\x00",
    )


def read_request(lines):
    first = lines.readline().decode("latin-1").split()
    if len(first) < 2:
        return None
    fields = {}
    while True:
        line = lines.readline().decode("latin-1").strip()
        if not line:
            break
        name, _, value = line.partition(":")
        fields[name.lower()] = value.strip()
    body = lines.read(int(fields.get("content-length", 0)))
    return first[0], first[1], fields, body


def generate(kind, size, chunk, gap):
    content = data.text(size)
    if kind == "length":
        yield head(content_type="text/plain", content_length=size)
    elif kind == "chunked":
        yield head(content_type="text/plain", transfer_encoding="chunked")
    else:
        yield head(content_type="text/plain", connection="close")
    for at in range(0, size, chunk):
        part = content[at : at + chunk]
        yield Chunk(part) if kind == "chunked" else part
        if gap:
            yield gap
    if kind == "chunked":
        yield LAST_CHUNK
    elif kind == "close":
        yield CLOSE
