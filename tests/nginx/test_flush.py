"""Flush and streaming: section B of the reported faults.

The upstream sends a piece only after the client has decoded all that came
before it, so what is held back makes a test wait for ever, and fail.
"""

import statistics
import threading
import time

import pytest

from support import data, http1, http2
from support.check import check_part, check_response, round_trip
from support.frame import Incremental
from support.limits import KIB, MIB, pick, seconds
from support.server import wait_for
from support.upstream import CLOSE, LAST_CHUNK, Chunk, Wait, chunked, head
from support.upstream import short

PROXY = "proxy_pass http://%s; proxy_http_version 1.1;"
UNBUFFERED = "location / { " + PROXY + " proxy_buffering off; }"


def in_turns(parts, **fields):
    """The steps of a response whose parts wait for each other, and the events
    that let them go: one for each part but the first, one for the end."""
    turns = [threading.Event() for _ in parts]
    steps = []
    for part, turn in zip(parts, turns):
        steps += [part, Wait(turn)]
    return chunked(*steps, **fields), turns


class Reader:
    """What a client has decoded so far, over either protocol."""

    def __init__(self, nginx, path, protocol="h1", **options):
        self.decoder = Incremental()
        if protocol == "h1":
            self.client = http1.Connection(nginx.port)
            self.client.request(path, **options)
            self.response = self.client.head()
        else:
            self.client = http2.Connection(nginx.h2_port)
            self.response = self.client.request(path, **options)
        self.taken = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.close()

    def until(self, size):
        """Until this much is decoded."""
        while len(self.decoder.content) < size:
            assert not self.response.ended, "ended after %d of %d bytes" % (
                len(self.decoder.content),
                size,
            )
            if isinstance(self.client, http1.Connection):
                self.client.piece()
            else:
                assert self.client.step(), "the connection ended"
            self.take()

    def take(self):
        for _, piece in self.response.pieces[self.taken :]:
            self.decoder.feed(piece)
            self.taken += 1

    def finish(self):
        if isinstance(self.client, http1.Connection):
            self.client.read()
        else:
            self.client.finish()
        return self.response


def read_in_turns(nginx, path, parts, turns, **options):
    """Returns the seconds that each part took from its release to the
    client's decoder."""
    delays = []
    size = 0
    with Reader(nginx, path, **options) as reader:
        for part, turn in zip(parts, turns):
            start = time.monotonic()
            size += len(part)
            reader.until(size)
            delays.append(time.monotonic() - start)
            turn.set()
        response = reader.finish()
    check_response(response, b"".join(parts))
    return delays


@pytest.mark.parametrize("protocol", ["h1", "h2"])
def test_b15_small_chunks(serve, mode, upstream, protocol):
    """Flush was honoured only when output was pending already."""
    nginx = serve(UNBUFFERED % upstream.address, mode)
    content = data.text(50 * 200)
    parts = [content[at : at + 200] for at in range(0, len(content), 200)]
    steps, turns = in_turns(parts)
    upstream.reply("/", steps)
    delays = read_in_turns(nginx, "/", parts, turns, protocol=protocol)
    assert statistics.median(delays) < seconds(0.1)


def test_b15_large_and_small_chunks(serve, mode, upstream):
    nginx = serve(UNBUFFERED % upstream.address, mode)
    content = data.text(4 * MIB)
    parts = []
    at = 0
    for size in (1, 300000, 1, 2, 65536, 131072, 131073, 19, 1500000, 1):
        parts.append(content[at : at + size])
        at += size
    steps, turns = in_turns(parts)
    upstream.reply("/", steps)
    read_in_turns(nginx, "/", parts, turns)


@pytest.mark.parametrize("level", [-5, 1, 9, 19])
def test_b15_levels(serve, mode, upstream, level):
    nginx = serve(
        UNBUFFERED % upstream.address,
        mode,
        http="zstd_comp_level %d;" % level,
    )
    content = data.text(10 * 3001)
    parts = [content[at : at + 3001] for at in range(0, len(content), 3001)]
    steps, turns = in_turns(parts)
    upstream.reply("/", steps)
    read_in_turns(nginx, "/", parts, turns)


def test_b15_many_streams_at_once(serve, mode, upstream):
    """More open streams than there are threads or encoders."""
    nginx = serve(UNBUFFERED % upstream.address, mode)
    count = pick(200, 40)
    content = data.text(3000)
    parts = [content[at : at + 100] for at in range(0, 1000, 100)]
    whole = b"".join(parts)
    plans = []
    for i in range(count):
        steps, turns = in_turns(parts)
        upstream.reply("/%d" % i, steps)
        plans.append(turns)
    readers = [Reader(nginx, "/%d" % i) for i in range(count)]
    size = 0
    for number, part in enumerate(parts):
        size += len(part)
        for reader, turns in zip(readers, plans):
            reader.until(size)
            turns[number].set()
    for reader in readers:
        check_response(reader.finish(), whole, command=False)
        reader.client.close()


def test_b16_idle_after_a_stream(serve, mode, upstream):
    """The worker span at 100 % CPU and did not see a reload."""
    nginx = serve(
        UNBUFFERED % upstream.address
        + "location /socket { %s proxy_set_header Upgrade $http_upgrade;"
        "  proxy_set_header Connection upgrade; proxy_buffering off; }"
        % (PROXY % upstream.address),
        mode,
    )
    content = data.text(50 * 200)
    parts = [content[at : at + 200] for at in range(0, len(content), 200)]
    steps, turns = in_turns(parts)
    upstream.reply("/", steps)
    more = threading.Event()
    upstream.reply(
        "/socket",
        [
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
            b"Connection: Upgrade\r\n\r\n",
            b"one",
            Wait(more),
            b"two",
            CLOSE,
        ],
    )
    with http1.Connection(nginx.port) as socket:
        socket.request(
            "/socket",
            fields={"Upgrade": "websocket", "Connection": "Upgrade"},
        )
        response = socket.head()
        assert response.status == 101
        assert response.get("Content-Encoding") is None
        read_in_turns(nginx, "/", parts, turns)
        while socket.pending != b"one":
            assert socket.receive()
        nginx.check_idle()
        more.set()
        while socket.receive():
            pass
        assert socket.pending == b"onetwo"
    nginx.reload()
    round_trip(nginx, "/gen/chunked/5000/100/0", data.text(5000))
    nginx.check_idle()


def test_b16_idle_while_a_stream_is_open(serve, mode, upstream):
    """Nor does it spin between two events."""
    nginx = serve(UNBUFFERED % upstream.address, mode)
    parts = [data.text(300), data.text(70000)]
    steps, turns = in_turns(parts)
    upstream.reply("/", steps)
    with Reader(nginx, "/") as reader:
        reader.until(300)
        nginx.check_idle()
        turns[0].set()
        reader.until(70300)
        nginx.check_idle()
        turns[1].set()
        check_response(reader.finish(), b"".join(parts))


def fetch_cut(nginx, protocol):
    """A response that has to end without a proper end; None if not even its
    head comes."""
    if protocol == "h2":
        stream = http2.get(nginx.h2_port, "/")
        assert not stream.ended, "ended as if it were whole"
        return stream if stream.fields else None
    with http1.Connection(nginx.port) as client:
        client.request("/")
        try:
            client.head()
        except http1.Cut:
            return None
        return client.read_cut()


@pytest.mark.parametrize("buffering", ["on", "off"])
@pytest.mark.parametrize("protocol", ["h1", "h2"])
def test_b17_upstream_sends_less(serve, mode, upstream, buffering, protocol):
    """It announced two bytes, sent one and closed: an endless loop."""
    nginx = serve(
        "location / { %s proxy_buffering %s; }"
        % (PROXY % upstream.address, buffering),
        mode,
    )
    content = data.text(MIB)
    for sent, announced in ((b"a", 2), (b"", 2), (content[:600000], MIB)):
        upstream.reply("/", short(sent, announced))
        response = fetch_cut(nginx, protocol)
        if sent:
            assert response.get("Content-Encoding") == "zstd"
            check_part(response.body, sent, len(sent))
        elif response:
            check_part(response.body, sent)
    nginx.check_idle()
    assert "upstream prematurely closed" in nginx.log()


def test_b17_chunked_upstream_is_cut(serve, mode, upstream):
    """Without a length: its last chunk does not come."""
    nginx = serve(UNBUFFERED % upstream.address, mode)
    content = data.text(300000)
    upstream.reply(
        "/",
        [
            head(content_type="text/plain", transfer_encoding="chunked"),
            Chunk(content),
            CLOSE,
        ],
    )
    with http1.Connection(nginx.port) as client:
        client.request("/")
        response = client.head()
        client.read_cut()
    check_part(response.body, content, len(content))
    nginx.check_idle()


LEVELS = [n for n in range(-7, 23) if n]


@pytest.mark.parametrize("buffers", ["1 1k", "2 4k", "2 128k"])
def test_b20_tail(serve, mode, buffers):
    """The last piece was missing at some levels."""
    content = data.text(128978)
    levels = pick(LEVELS, [-7, 1, 3, 9, 22])
    nginx = serve(
        "\n".join(
            "location /%d/ { zstd_comp_level %d; zstd_buffers %s; }"
            % (level, level, buffers)
            for level in levels
        ),
        mode,
        files={"%d/f" % level: content for level in levels},
    )
    for level in levels:
        round_trip(nginx, "/%d/f" % level, content)


EVENTS = [
    b"id: %d\ndata: %s\n\n" % (i, b"x" * (i * 7 % 50)) for i in range(40)
]


@pytest.mark.parametrize("protocol", ["h1", "h2"])
@pytest.mark.parametrize("by", ["directive", "field"])
def test_b22_event_stream(serve, mode, upstream, by, protocol):
    """Events were seen only when the stream ended."""
    nginx = serve(
        "location / { %s proxy_buffering %s; }"
        % (PROXY % upstream.address, "off" if by == "directive" else "on"),
        mode,
    )
    fields = {} if by == "directive" else {"X_Accel_Buffering": "no"}
    steps, turns = in_turns(EVENTS, content_type="text/event-stream", **fields)
    upstream.reply("/", steps)
    delays = read_in_turns(nginx, "/", EVENTS, turns, protocol=protocol)
    assert statistics.median(delays) < seconds(0.1)


@pytest.mark.parametrize("segment", ["64k", "1m", "auto"])
def test_b23_flushes_keep_the_order(serve, mode, upstream, segment):
    """A flush returned before earlier segments were out."""
    nginx = serve(
        "location / { %s proxy_buffering off; zstd_comp_level 9;"
        " zstd_parallel_segment_size %s; zstd_parallel_tasks 4; }"
        % (PROXY % upstream.address, segment),
        mode,
    )
    content = data.text(3 * MIB)
    parts = []
    at = 0
    for size in (300 * KIB, 10, 300 * KIB, 1, 64 * KIB, 900 * KIB, 7):
        parts.append(content[at : at + size])
        at += size
    steps, turns = in_turns(parts)
    upstream.reply("/", steps)
    read_in_turns(nginx, "/", parts, turns)


def test_long_poll(serve, mode, upstream):
    """The head comes at once; the body much later, on one connection."""
    nginx = serve(UNBUFFERED % upstream.address, mode)
    with http1.Connection(nginx.port) as client:
        for number in range(5):
            turn = threading.Event()
            upstream.reply(
                "/%d" % number,
                [
                    head(
                        content_type="application/json",
                        transfer_encoding="chunked",
                    ),
                    Wait(turn),
                    Chunk(b"[%d]" % number),
                    LAST_CHUNK,
                ],
            )
            client.request("/%d" % number)
            response = client.head()
            assert response.get("Content-Encoding") == "zstd"
            turn.set()
            client.read()
            check_response(response, b"[%d]" % number)


def test_client_goes_while_a_stream_is_open(serve, mode, upstream):
    """The worker has nothing left of it, and serves others."""
    nginx = serve(UNBUFFERED % upstream.address, mode)
    parts = [data.text(1000)] * 3
    before = nginx.connections()
    for number in range(10):
        steps, turns = in_turns(parts)
        upstream.reply("/%d" % number, steps)
        with Reader(nginx, "/%d" % number) as reader:
            reader.until(1000)
            reader.client.abort()
        for turn in turns:
            turn.set()
    wait_for(lambda: nginx.connections() <= before, "closed connections")
    round_trip(nginx, "/gen/chunked/5000/100/0", data.text(5000))
