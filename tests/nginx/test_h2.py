"""HTTP/2: section L of the reported faults."""

import random
import re
import subprocess

import pytest

from support import build, data, http2
from support.check import check_response
from support.limits import KIB, MIB, pick, seconds

PROXY = "proxy_pass http://%s; proxy_http_version 1.1;"

pytestmark = pytest.mark.skipif(
    not build.nginx_has("http_v2_module"), reason="this NGINX has no HTTP/2"
)


@pytest.fixture
def site(serve, mode, upstream, texts):
    return serve(
        "location /gen/ { %s } location /now/ { proxy_pass http://%s/;"
        " proxy_http_version 1.1; proxy_buffering off; }"
        % (PROXY % upstream.address, upstream.address),
        mode,
        http="http2_max_concurrent_streams 256;",
        files={"f%d" % size: content for size, content in texts.items()},
        tls=True,
    )


def paths_of(size):
    paths = ["/f%d" % size]
    if size:
        paths += [
            "/gen/chunked/%d/16384/0" % size,
            "/now/gen/length/%d/5000/0" % size,
        ]
    return paths


def test_b74_sizes(site, texts):
    """An empty or a second last buffer was a protocol error."""
    with http2.Connection(site.h2_port) as client:
        for size, content in texts.items():
            for path in paths_of(size):
                check_response(client.get(path), content, command=False)
        assert client.goaway is None


def test_b74_tls(site, texts):
    with http2.Connection(site.tls_port, tls=True) as client:
        for size, content in texts.items():
            check_response(
                client.get("/f%d" % size), content, command=False
            )


@pytest.mark.parametrize("window", [1, 100, 4096, 65535])
def test_b74_small_windows(site, window):
    """The client opens each stream's window by that much at a time."""
    size = min(window * 500, 300 * KIB) if window > 1 else 1500
    content = data.text(size)
    path = "/gen/length/%d/4096/0" % size
    with http2.Connection(
        site.h2_port, window=window, acknowledge=False
    ) as client:
        streams = [client.request(path) for _ in range(3)]
        credit = {stream.number: window for stream in streams}
        whole = 65535
        while not all(stream.over for stream in streams):
            assert client.step()
            for stream in streams:
                used = len(stream.body) - (credit[stream.number] - window)
                if used > 0 and not stream.over:
                    client.h2.increment_flow_control_window(
                        used, stream.number
                    )
                    credit[stream.number] += used
            total = sum(len(stream.body) for stream in streams)
            if total > whole - 40000:
                client.h2.increment_flow_control_window(65535)
                whole += 65535
            client.flush()
    for stream in streams:
        check_response(stream, content)


def test_b74_window_that_stays_shut(site):
    """A stream without window does not stop the others, and goes on when it
    gets one."""
    content = data.text(MIB)
    with http2.Connection(
        site.h2_port, window=0, acknowledge=False
    ) as client:
        shut = client.request("/f%d" % MIB)
        client.until(lambda: shut.fields)
        others = [client.request("/gen/length/900/900/0") for _ in range(5)]
        for stream in others:
            client.open(stream, 10000)
        client.finish(*others)
        for stream in others:
            check_response(stream, data.text(900), command=False)
        assert not shut.body
        client.open(shut, MIB)
        client.finish(shut)
        check_response(shut, content)


def test_b74_hundred_streams(site, texts):
    rnd = random.Random(74)
    sizes = [size for size in texts if size <= MIB + 1]
    with http2.Connection(site.h2_port) as client:
        streams = []
        for number in range(pick(100, 40)):
            size = rnd.choice(sizes)
            stream = client.request(rnd.choice(paths_of(size)))
            streams.append((stream, size))
        for stream, size in streams:
            client.finish(stream)
            check_response(stream, texts[size], command=False)
        assert client.goaway is None


def test_b74_priorities(site):
    """Reprioritised while they run."""
    content = data.text(MIB)
    with http2.Connection(site.h2_port) as client:
        streams = [client.request("/f%d" % MIB) for _ in range(12)]
        for number, stream in enumerate(streams[1:]):
            client.h2.prioritize(
                stream.number,
                weight=1 + number * 20,
                depends_on=streams[number].number,
                exclusive=bool(number % 2),
            )
            client.flush()
            client.step()
        client.finish()
        for stream in streams:
            check_response(stream, content, command=False)


def test_b74_some_streams_are_reset(site):
    """The others are whole, and the connection goes on."""
    rnd = random.Random(7)
    content = data.text(MIB)
    with http2.Connection(site.h2_port) as client:
        for _ in range(pick(10, 3)):
            streams = [client.request("/f%d" % MIB) for _ in range(8)]
            for stream in streams[::2]:
                for _ in range(rnd.randrange(6)):
                    if not stream.over:
                        client.step()
                if not stream.over:
                    client.reset(stream)
            kept = streams[1::2]
            client.finish(*kept)
            for stream in kept:
                check_response(stream, content, command=False)
        assert client.goaway is None


def test_b74_another_client(site, tmp_path):
    """nghttp, with windows of its own."""
    for window in ("14", "20"):
        done = subprocess.run(
            [
                "nghttp",
                "-w" + window,
                "-W" + window,
                "-v",
                "--no-dep",
                "-H",
                "accept-encoding: zstd",
                *(
                    "http://127.0.0.1:%d/f%d" % (site.h2_port, size)
                    for size in (1, 131073, MIB + 1)
                ),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds(30),
        )
        says = done.stdout.decode("latin-1")
        assert not done.returncode, says[-2000:]
        assert says.count("content-encoding: zstd") == 3
        bad = re.findall(r"recv RST_STREAM.*|error_code=(?!NO_ERROR).*", says)
        assert not bad
