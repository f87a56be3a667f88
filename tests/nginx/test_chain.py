"""Filter chain and buffers: section A of the reported faults."""

import threading

import pytest

from support import build, data, http1, http2
from support.check import check_response, fetch, round_trip
from support.frame import Incremental
from support.limits import KIB, MIB, pick
from support.server import wait_for
from support.upstream import Wait, chunked

PROXY = "proxy_pass http://%s; proxy_http_version 1.1;"

# Both ways by which a static file comes into the filter.
AS_FILE = "sendfile on;"
IN_MEMORY = "directio 512; output_buffers 1 512k;"


@pytest.mark.parametrize("how", [AS_FILE, IN_MEMORY], ids=["file", "memory"])
def test_b01_static_sizes(serve, mode, texts, how):
    """Cut to 131072 bytes: drained was taken for finished."""
    files = {"f%d" % size: content for size, content in texts.items()}
    nginx = serve(how, mode, files=files)
    for size, content in texts.items():
        round_trip(nginx, "/f%d" % size, content)


def test_b01_one_memory_buffer(serve, mode):
    """One buffer of memory, larger than the encoder's unit, is the last."""
    part = data.text(3900).replace(b'"', b"'").replace(b"\n", b" ").decode()
    nginx = serve(
        'set $p "%s"; set $q "$p$p$p$p$p$p$p$p$p$p";'
        'location /1 { return 200 "$q$q$q$p"; }'
        'location /2 { return 200 "$q$q$q$q"; }'
        'location /3 { return 200 "$q$q$q$q$q$q$q$q$q$q$q$q$q"; }' % part,
        mode,
    )
    for path, count in (("/1", 31), ("/2", 40), ("/3", 130)):
        round_trip(nginx, path, (part * count).encode())


@pytest.mark.parametrize("buffering", ["on", "off"])
def test_b02_few_large_buffers(serve, mode, upstream, buffering):
    """The output buffer was used again after it had been recycled."""
    nginx = serve(
        "location / { %s proxy_buffering %s; zstd_buffers 2 128k; }"
        % (PROXY % upstream.address, buffering),
        mode,
    )
    for size in (290 * KIB, 262144, 3 * MIB + 1):
        round_trip(nginx, "/gen/chunked/%d/16384/0" % size, data.text(size))


def test_b03_end_after_a_flush(serve, mode, upstream, texts):
    """The end of the frame has nothing new to say, and has to come."""
    nginx = serve(
        "location / { %s proxy_buffering off; }" % (PROXY % upstream.address),
        mode,
    )
    for size, content in texts.items():
        if size > pick(2 * MIB, MIB):
            continue
        seen = threading.Event()
        parts = [content[at : at + 8192] for at in range(0, size, 8192)]
        upstream.reply("/", chunked(*parts, Wait(seen)))
        with http1.Connection(nginx.port) as client:
            client.request("/")
            response = client.head()
            decoder = Incremental()
            while len(decoder.content) < size:
                decoder.feed(client.piece())
                assert not response.ended, "ended after %d of %d bytes" % (
                    len(decoder.content),
                    size,
                )
            seen.set()
            client.read()
        check_response(response, content, command=False)


def test_b04_tiny_chunks(serve, mode, upstream):
    """An empty buffer went downstream where a flush had nothing to give."""
    nginx = serve(
        "location / { %s proxy_buffering off; }" % (PROXY % upstream.address),
        mode,
    )
    for size, chunk, gap in (
        (pick(35000, 5000), 1, 0),
        (300, 1, 1),
        (128 * KIB - 1, 4096, 0),
        (128 * KIB, 4096, 0),
        (128 * KIB + 1, 4096, 0),
        (20000, 19, 0),
    ):
        path = "/gen/chunked/%d/%d/%d" % (size, chunk, gap)
        round_trip(nginx, path, data.text(size))
    assert "zero size buf" not in nginx.log()


def test_b10_foreign_buffers_on_http2(serve, mode, upstream):
    """A buffer of another owner blocked the busy chain for ever."""
    nginx = serve(
        "location / { %s aio threads; aio_write on; proxy_buffers 4 8k;"
        "             proxy_busy_buffers_size 16k; }"
        % (PROXY % upstream.address),
        mode,
    )
    path = "/gen/length/%d/65536/0" % (2 * MIB)
    content = data.text(2 * MIB)
    with http2.Connection(nginx.h2_port) as client:
        streams = [client.request(path) for _ in range(pick(20, 8))]
        client.finish()
    for stream in streams:
        check_response(stream, content, command=False)


def test_b13_few_input_buffers(serve, mode, upstream):
    """Input buffers were never given back, and the upstream had no more."""
    nginx = serve(
        "location / { %s proxy_buffers 4 4k; proxy_busy_buffers_size 8k;"
        "             proxy_buffer_size 4k; proxy_max_temp_file_size 0; }"
        % (PROXY % upstream.address),
        mode,
    )
    size = 10 * MIB
    for kind in ("chunked", "length", "close"):
        path = "/gen/%s/%d/65536/0" % (kind, size)
        round_trip(nginx, path, data.text(size))


@pytest.mark.parametrize(
    "how",
    [
        "sendfile on; aio threads; directio 1m;",
        "sendfile on; aio threads;",
        "sendfile off; aio threads; output_buffers 2 32k;",
        "sendfile off; aio threads; directio 512; output_buffers 2 32k;",
        "sendfile off; directio 512;",
        "sendfile on;",
        "sendfile on; sendfile_max_chunk 64k;",
    ],
)
def test_b14_file_buffers(serve, mode, how):
    """Input that is a part of a file, however it is to be read."""
    content = data.text(5 * MIB + 3)
    nginx = serve(how, mode, files={"f": content, "small": content[:777]})
    round_trip(nginx, "/f", content)
    round_trip(nginx, "/small", content[:777])


@pytest.mark.parametrize("aio", ["", "aio threads; aio_write on;"])
def test_b14_temporary_file_of_the_proxy(serve, mode, upstream, aio):
    """The client is slow, so most of the body comes from a file."""
    size = 20 * MIB
    nginx = serve(
        "location / { %s proxy_buffers 4 4k; %s"
        "             proxy_max_temp_file_size 100m; }"
        % (PROXY % upstream.address, aio),
        mode,
        log="debug",
    )
    with http1.Connection(nginx.port, receive_buffer=4096) as client:
        client.request("/gen/length/%d/65536/0" % size)
        wait_for(lambda: upstream.sent >= size, "the upstream")
        response = client.head()
        client.read()
    check_response(response, data.text(size))
    assert "temporary file" in nginx.log()


@pytest.mark.parametrize("protocol", ["h1", "h2"])
def test_b08_flushes_without_input(serve, mode, protocol, tmp_path):
    """Called with nothing new to compress, and with nothing at all."""
    perl = build.nginx_module("ngx_http_perl_module")
    if not perl:
        pytest.skip("no perl module for this NGINX")
    go = tmp_path / "go"
    nginx = serve(
        """
        location /once {
            perl 'sub {
                my $r = shift;
                $r->send_http_header("text/plain");
                return OK if $r->header_only;
                $r->print("first"); $r->flush; $r->flush; $r->flush;
                $r->print("second"); $r->flush; $r->print("third");
                return OK;
            }';
        }
        location /steps {
            perl 'sub {
                my $r = shift;
                $r->send_http_header("text/plain");
                $r->print("first"); $r->flush; $r->flush;
                my $wait;
                $wait = sub {
                    my $r = shift;
                    $r->flush;
                    if (!-e "%s") { $r->sleep(10, $wait); return OK; }
                    $r->print("second");
                    $r->flush;
                    return OK;
                };
                $r->sleep(10, $wait);
                return OK;
            }';
        }
        """
        % go,
        mode,
        load=["load_module %s;" % perl],
    )
    round_trip(nginx, "/once", b"firstsecondthird", protocol=protocol)
    if protocol == "h2":
        with http2.Connection(nginx.h2_port) as client:
            stream = client.request("/steps")
            decoder = Incremental()

            def first():
                decoder.__init__()
                return decoder.feed(stream.body) >= 5 or stream.over

            client.until(first)
            assert bytes(decoder.content) == b"first"
            go.touch()
            client.finish()
            check_response(stream, b"firstsecond")
        return
    with http1.Connection(nginx.port) as client:
        client.request("/steps")
        response = client.head()
        decoder = Incremental()
        while decoder.feed(client.piece()) < 5:
            assert not response.ended
        assert bytes(decoder.content) == b"first"
        go.touch()
        client.read()
        check_response(response, b"firstsecond")


def test_b08_flush_that_waits_keeps_its_buffer(serve, mode):
    """The second flush has nothing to send, and waits behind limit_rate
    while the next content comes."""
    perl = build.nginx_module("ngx_http_perl_module")
    if not perl:
        pytest.skip("no perl module for this NGINX")
    nginx = serve(
        """
        limit_rate 1k;
        location / {
            perl 'sub {
                my $r = shift;
                $r->send_http_header("text/plain");
                $r->print("a" x 99, "\\n", 100 .. 200);
                $r->flush;
                $r->flush;
                $r->print("and the rest");
                $r->flush;
                return OK;
            }';
        }
        """,
        mode,
        load=["load_module %s;" % perl],
    )
    numbers = "".join(map(str, range(100, 201)))
    content = ("a" * 99 + "\n" + numbers + "and the rest").encode()
    for protocol in ("h1", "h2"):
        round_trip(nginx, "/", content, protocol=protocol)


def test_b79_one_frame_whatever_the_flushes(serve, mode, upstream):
    """Clients stop after the first frame."""
    nginx = serve(
        "location / { %s proxy_buffering off; }" % (PROXY % upstream.address),
        mode,
    )
    size = 3 * MIB
    for chunk in (777, 65536):
        path = "/gen/chunked/%d/%d/0" % (size, chunk)
        response = fetch(nginx, path)
        check_response(response, data.text(size))
