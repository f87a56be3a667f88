"""HTTP/3: where NGINX and curl have it."""

import threading
import time

import pytest

from support import build, data, http3
from support.check import check_response
from support.frame import Incremental
from support.limits import KIB, MIB, pick, seconds
from support.server import free_port
from support.upstream import Wait, chunked

pytestmark = [
    pytest.mark.skipif(
        not build.nginx_has("http_v3_module"), reason="NGINX without HTTP/3"
    ),
    pytest.mark.skipif(
        not http3.curl_has_it(), reason="curl without HTTP/3"
    ),
]

PROXY = (
    "location /gen/ { proxy_pass http://%s; proxy_http_version 1.1; }"
    "location /now/ { proxy_pass http://%s/; proxy_http_version 1.1;"
    " proxy_buffering off; }"
)


@pytest.fixture
def site(serve, upstream, mode):
    """site(http, files) speaks HTTP/3 on nginx.quic."""

    def start(http="", files=None):
        port = free_port()
        nginx = serve(
            http3.listen(port) + PROXY % ((upstream.address,) * 2),
            mode,
            http=http,
            files=files,
            tls=True,
        )
        nginx.quic = port
        return nginx

    return start


def check(response, content):
    if content:
        assert response.get("Vary") == "Accept-Encoding"
    check_response(response, content, command=False)


def test_sizes(site, texts):
    nginx = site(files={"f%d" % n: text for n, text in texts.items()})
    for size, content in texts.items():
        paths = ["/f%d" % size]
        if size in (MIB, 10 * MIB):
            paths += [
                "/gen/chunked/%d/16384/0" % size,
                "/now/gen/length/%d/5000/0" % size,
            ]
        for path in paths:
            check(http3.get(nginx.quic, path), content)


@pytest.mark.parametrize("level", [1, 9, 19])
def test_levels(site, level):
    content = data.text(2 * MIB)
    nginx = site(http="zstd_comp_level %d;" % level, files={"f": content})
    check(http3.get(nginx.quic, "/f"), content)


def test_many_at_once(site):
    content = data.text(MIB)
    nginx = site(http="zstd_comp_level 9;", files={"f": content})
    clients = [http3.start(nginx.quic, "/f") for _ in range(pick(30, 12))]
    for client in clients:
        check(http3.response_of(client), content)


def test_slow_client(site):
    """Takes less than is made: the frame waits, and is whole."""
    content = data.noise(3 * MIB)
    nginx = site(files={"f": content})
    response = http3.get(nginx.quic, "/f", "--limit-rate", "1M")
    check(response, content)


def test_events(site, upstream):
    """Each event is there before the next one is sent."""
    nginx = site()
    events = [b"data: %d\n\n" % n for n in range(pick(50, 20))]
    seen = [threading.Event() for _ in events]
    steps = [
        step for event, done in zip(events, seen) for step in (event, Wait(done))
    ]
    upstream.reply(
        "/events", chunked(*steps, content_type="text/event-stream")
    )
    client = http3.start(nginx.quic, "/now/events")
    head = b""
    while b"\r\n\r\n" not in head:
        head += client.stdout.read(1)
    decoder = Incremental()
    for number, done in enumerate(seen):
        wanted = b"".join(events[: number + 1])
        while len(decoder.content) < len(wanted):
            piece = client.stdout.read(64 * KIB)
            assert piece, "ended after %d events" % number
            decoder.feed(piece)
        assert bytes(decoder.content) == wanted
        done.set()
    decoder.feed(client.stdout.read())
    assert decoder.ended
    assert client.wait(seconds(10)) == 0


def test_clients_go_away(site):
    """They say nothing: NGINX finds out when they do not take any more."""
    content = data.text(2 * MIB)
    nginx = site(http="zstd_comp_level 12;", files={"f": content})
    for number in range(pick(60, 12)):
        client = http3.start(nginx.quic, "/f", "--limit-rate", "200k")
        time.sleep(number % 5 * 0.03)
        client.kill()
        client.communicate()
    check(http3.get(nginx.quic, "/f"), content)
