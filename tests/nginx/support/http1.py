"""HTTP/1.1 on a plain socket, which shows each piece as it arrives."""

import contextlib
import socket
import ssl
import time

from support.limits import HANG


class Hangs(AssertionError):
    pass


class Cut(AssertionError):
    """The connection ended where the response had not."""


class Response:
    """A response that may still be arriving."""

    def __init__(self, status, fields):
        self.status = status
        self.fields = fields  # list of (name, value), as they came
        self.pieces = []  # (time, bytes) of the body as they arrived
        self.ended = None  # how: "length", "chunked", "close", "none"

    def get(self, name, default=None):
        values = self.all(name)
        assert len(values) < 2, "%s comes twice: %s" % (name, values)
        return values[0] if values else default

    def all(self, name):
        return [v for n, v in self.fields if n.lower() == name.lower()]

    @property
    def body(self):
        return b"".join(piece for _, piece in self.pieces)


class Connection:
    """One connection to the server; requests may be pipelined."""

    def __init__(self, port, tls=False, receive_buffer=None, timeout=HANG):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if receive_buffer:
            self.socket.setsockopt(
                socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer
            )
        self.socket.settimeout(timeout)
        self.socket.connect(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            self.socket = trusting().wrap_socket(self.socket)
        self.pending = b""  # received, not yet read
        self.at_end = False
        self.response = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def abort(self):
        """Closes by RST."""
        with contextlib.suppress(OSError):
            self.socket.setsockopt(
                socket.SOL_SOCKET,
                socket.SO_LINGER,
                b"\x01\x00\x00\x00\x00\x00\x00\x00",
            )
        self.socket.close()

    def request(
        self,
        path,
        accept="zstd",
        method="GET",
        version="1.1",
        fields=(),
        body=b"",
    ):
        lines = ["%s %s HTTP/%s" % (method, path, version), "Host: test"]
        if accept is not None:
            lines.append("Accept-Encoding: " + accept)
        if body:
            lines.append("Content-Length: %d" % len(body))
        lines += ["%s: %s" % field for field in dict(fields).items()]
        text = "\r\n".join(lines) + "\r\n\r\n"
        self.socket.sendall(text.encode() + body)
        self.method = method

    def receive(self, limit=1 << 16):
        """More bytes into self.pending; False at the end."""
        try:
            more = self.socket.recv(limit)
        except socket.timeout:
            raise Hangs("nothing more arrives") from None
        except ssl.SSLEOFError:
            raise Cut("TLS ended without its end") from None
        except ConnectionResetError:
            more = b""
        self.at_end = not more
        self.pending += more
        return bool(more)

    def line(self):
        while b"\r\n" not in self.pending:
            if not self.receive():
                raise Cut("in a line: %r" % self.pending[:80])
        line, self.pending = self.pending.split(b"\r\n", 1)
        return line.decode("latin-1")

    def head(self):
        """Reads the head of the next response."""
        status = int(self.line().split()[1])
        fields = []
        while True:
            line = self.line()
            if not line:
                break
            name, _, value = line.partition(":")
            fields.append((name, value.strip()))
        self.response = response = Response(status, fields)
        coding = response.get("Transfer-Encoding")
        length = response.get("Content-Length")
        assert not (coding and length), "chunked and with a length"
        if self.method == "HEAD" or status in (204, 304):
            self.framing, response.ended = "none", "none"
        elif coding:
            assert coding == "chunked"
            self.framing, self.left = "chunked", None
        elif length is not None:
            self.framing, self.left = "length", int(length)
            if self.left == 0:
                response.ended = "length"
        else:
            self.framing = "close"
        return response

    def piece(self):
        """The next bytes of the body as they arrive; b"" at its end. Raises
        Cut if the connection ends within."""
        response = self.response
        if response.ended:
            return b""
        if self.framing == "chunked" and not self.left:
            if self.left is not None:
                assert self.line() == "", "no CRLF after a chunk"
            self.left = int(self.line().split(";")[0], 16)
            if not self.left:
                assert self.line() == "", "trailers"
                response.ended = "chunked"
                return b""
        if not self.pending and not self.receive():
            if self.framing == "close":
                response.ended = "close"
                return b""
            raise Cut("after %d bytes of the body" % len(response.body))
        count = len(self.pending)
        if self.framing != "close":
            count = min(count, self.left)
            self.left -= count
            if self.framing == "length" and not self.left:
                response.ended = "length"
        piece, self.pending = self.pending[:count], self.pending[count:]
        response.pieces.append((time.monotonic(), piece))
        return piece

    def read(self):
        """The rest of the body."""
        while self.piece():
            pass
        return self.response

    def read_cut(self):
        """Reads a response that has to end without a proper end."""
        with contextlib.suppress(Cut):
            self.read()
            raise AssertionError("the response ended as if it were whole")
        return self.response

    def get(self, path, **options):
        self.request(path, **options)
        self.head()
        return self.read()

    def expect_end(self):
        """Nothing more comes, and the server closes."""
        assert not self.pending, "more: %r" % self.pending[:80]
        assert not self.receive(), "more: %r" % self.pending[:80]


def trusting():
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def get(port, path, tls=False, timeout=HANG, **options):
    """A response on a connection of its own, which ends as it should."""
    fields = dict(options.pop("fields", ()))
    fields.setdefault("Connection", "close")
    with Connection(port, tls=tls, timeout=timeout) as connection:
        response = connection.get(path, fields=fields, **options)
        connection.expect_end()
    return response
