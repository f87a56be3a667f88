"""Subrequests, SSI, sub_filter and the like: section C of the reported
faults."""

import itertools
import threading

import pytest

from support import build, data, http1
from support.check import check_plain, check_response, fetch, round_trip
from support.frame import Incremental
from support.limits import MIB
from support.upstream import LAST_CHUNK, Chunk, Wait, chunked, head, whole

PROXY = "proxy_pass http://%s; proxy_http_version 1.1;"

needs_ssi = pytest.mark.skipif(
    "--without-http_ssi_module" in build.nginx_says(),
    reason="this NGINX has no ssi module",
)


def needs(option):
    return pytest.mark.skipif(
        not build.nginx_has(option), reason="this NGINX has no " + option
    )


def other_module(name):
    path = build.nginx_module(name)
    if not path:
        pytest.skip("no %s for this NGINX" % name)
    return "load_module %s;" % path


PAGE_SUB = b"<p>foo</p>\n" * 30000
PAGE_SSI = (
    b'begin <!--#include virtual="/part/a" -->'
    b'<!--#include virtual="/part/empty" -->'
    b'<!--#include virtual="/gen/chunked/70000/1000/0" --> end\n'
)

TEXT_FILTERS = """
    location /sub { sub_filter foo bar; sub_filter_once off;
                    sub_filter_types *; }
    location /ssi { ssi on; ssi_types *; }
    location /both { ssi on; ssi_types *; sub_filter foo bar;
                     sub_filter_once off; sub_filter_types *; }
    location /add { add_before_body /part/before; add_after_body /part/after;
                    addition_types *; }
    location /charset { charset utf-8; source_charset koi8-r;
                        charset_types *; override_charset on; }
    location /gen/ { %s }
"""

CHARSET_MAP = """
    charset_map koi8-r utf-8 {
        F0 D09F; D2 D180; C9 D0B8; D7 D0B2; C5 D0B5; D4 D182;
    }
"""

PARTS = {
    "part/a": b"included " * 20000,
    "part/empty": b"",
    "part/before": b"before\n",
    "part/after": b"after\n" * 3000,
}

SSI_RESULT = PAGE_SSI.replace(
    b'<!--#include virtual="/part/a" -->', PARTS["part/a"]
).replace(b'<!--#include virtual="/part/empty" -->', b"")
INCLUDE_PROXIED = b'<!--#include virtual="/gen/chunked/70000/1000/0" -->'


def check_text_filters(nginx):
    included = SSI_RESULT.replace(INCLUDE_PROXIED, data.text(70000))
    plain = fetch(nginx, "/ssi", accept=None)
    check_plain(plain, included)
    round_trip(nginx, "/sub", PAGE_SUB.replace(b"foo", b"bar"))
    round_trip(nginx, "/ssi", included)
    round_trip(nginx, "/both", b"bar" + included + b"bar")
    round_trip(
        nginx,
        "/add",
        PARTS["part/before"] + PAGE_SUB + PARTS["part/after"],
    )
    russian = "Привет\n" * 5000
    round_trip(nginx, "/charset", russian.encode())


@needs_ssi
@needs("http_sub_module")
@needs("http_addition_module")
@pytest.mark.parametrize("with_brotli", ["alone", "brotli_1st", "brotli_2nd"])
def test_b25_after_the_text_filters(serve, mode, upstream, with_brotli, load):
    """sub_filter had no effect: it saw compressed bytes."""
    server = TEXT_FILTERS % (PROXY % upstream.address)
    files = {
        "sub": PAGE_SUB,
        "ssi": PAGE_SSI,
        "both": b"foo" + PAGE_SSI + b"foo",
        "add": PAGE_SUB,
        "charset": ("Привет\n" * 5000).encode("koi8-r"),
        **PARTS,
    }
    options = {"mode": mode, "files": files, "http": CHARSET_MAP}
    if with_brotli != "alone":
        brotli = other_module("ngx_http_brotli_filter_module")
        options["http"] += "brotli on; brotli_types *; gzip on; gzip_types *;"
        if with_brotli == "brotli_1st":
            options["load"] = [brotli]
        else:
            options["main"] = brotli
    check_text_filters(serve(server, **options))


@needs_ssi
def test_b26_included_parts(serve, mode, upstream, fetch_both):
    """With zstd on for the whole server each part was encoded by itself."""
    nginx = serve(
        "ssi on; ssi_types *; location /gen/ { %s }"
        % (PROXY % upstream.address),
        mode,
        files={"page": PAGE_SSI, **PARTS},
    )
    wanted = SSI_RESULT.replace(INCLUDE_PROXIED, data.text(70000))
    for protocol in fetch_both:
        for _ in range(3):
            round_trip(nginx, "/page", wanted, protocol=protocol)


@pytest.fixture
def fetch_both():
    if not build.nginx_has("http_v2_module"):
        return ["h1"]
    return ["h1", "h2"]


@needs("http_auth_request_module")
def test_b27_auth_request_and_mirror(serve, mode, upstream):
    """Their responses are nobody's but NGINX's."""
    allowed = data.text(3000)
    upstream.reply(
        "/auth", lambda *_: whole(allowed, X_User="me")
    )
    upstream.reply("/mirror", lambda *_: whole(data.text(400000)))
    nginx = serve(
        """
        location / { auth_request /auth; mirror /mirror;
                     auth_request_set $user $upstream_http_x_user;
                     add_header X-User $user; }
        location = /auth { %(proxy)s proxy_pass_request_body off; }
        location = /mirror { internal; %(proxy)s }
        location = /denied { auth_request /no; }
        location = /no { return 401; }
        """
        % {"proxy": PROXY % upstream.address},
        mode,
        files={"f": data.text(200000)},
    )
    for _ in range(5):
        response = fetch(nginx, "/f")
        check_response(response, data.text(200000))
        assert response.get("X-User") == "me"
    assert fetch(nginx, "/denied").status == 401


NJS = """
    async function whole(r) {
        let reply = await r.subrequest('/part');
        r.headersOut['X-Encoding'] =
            reply.headersOut['Content-Encoding'] || 'none';
        r.headersOut['X-Length'] = reply.responseBuffer.length;
        r.return(200, reply.responseBuffer);
    }
    async function three(r) {
        let replies = await Promise.all(
            ['/part', '/gen/chunked/50000/999/0', '/part']
            .map(path => r.subrequest(path)));
        r.return(200, replies.map(reply => reply.responseText).join('|'));
    }
    export default {whole, three};
"""


def serve_njs(serve, mode, upstream, part, **options):
    return serve(
        """
        subrequest_output_buffer_size 8m;
        location /whole { js_content main.whole; }
        location /three { js_content main.three; }
        location /gen/ { %s }
        """
        % (PROXY % upstream.address),
        mode,
        http="js_import main from {root}/main.js;" + options.pop("http", ""),
        files={"main.js": NJS.encode(), "part": part},
        load=[other_module("ngx_http_js_module")],
        **options,
    )


def test_b27_njs_subrequests(serve, mode, upstream):
    """A script received compressed bytes."""
    part = data.text(150000)
    nginx = serve_njs(serve, mode, upstream, part)
    for _ in range(5):
        response = fetch(nginx, "/whole")
        check_response(response, part)
        assert response.get("X-Encoding") == "none"
        assert response.get("X-Length") == str(len(part))
    wanted = b"|".join([part, data.text(50000), part])
    round_trip(nginx, "/three", wanted)


@pytest.mark.parametrize(
    "reading", ["", "aio threads; sendfile off; output_buffers 2 64k;"]
)
def test_b28_subrequests_in_memory_with_aio(serve, mode, upstream, reading):
    """Finalised while an operation was in progress, it hung."""
    part = data.text(3 * MIB)
    nginx = serve_njs(serve, mode, upstream, part, http=reading)
    for _ in range(3):
        round_trip(nginx, "/whole", part)


@needs_ssi
def test_b30_first_part_flows_while_the_second_waits(serve, mode, upstream):
    """The completion woke the subrequest that was active, not the request
    whose task it was."""
    size = 4 * MIB
    late = threading.Event()
    upstream.reply(
        "/late",
        [
            head(content_type="text/plain", transfer_encoding="chunked"),
            Wait(late),
            Chunk(b"late"),
            LAST_CHUNK,
        ],
    )
    nginx = serve(
        "ssi on; ssi_types *; location /gen/ { %(proxy)s }"
        "location /late { %(proxy)s }"
        % {"proxy": PROXY % upstream.address},
        mode,
        http="zstd_parallel_segment_size 64k;" if mode.name != "pool" else "",
        files={
            "page": (
                '<!--#include virtual="/gen/length/%d/65536/0" -->'
                '<!--#include virtual="/late" -->' % size
            ).encode()
        },
    )
    with http1.Connection(nginx.port) as client:
        client.request("/page")
        response = client.head()
        decoder = Incremental()
        while decoder.feed(client.piece()) < size // 2:
            assert not response.ended
        late.set()
        client.read()
        check_response(response, data.text(size) + b"late")


@needs_ssi
def test_parts_that_fail_or_wait(serve, mode, upstream):
    """An included part that is not there, one that is cut, and several at
    once that end in another order than they began."""
    turns = [threading.Event() for _ in range(4)]
    parts = [data.text(100000, i) for i in range(4)]
    for i, (part, turn) in enumerate(zip(parts, turns)):
        upstream.reply("/%d" % i, chunked(Wait(turn), part))
    include = '<!--#include virtual="/p/%d" -->'
    includes = "".join(include % i for i in range(4))
    nginx = serve(
        "ssi on; ssi_types *; ssi_silent_errors on;"
        "location /p/ { proxy_pass http://%s/; proxy_http_version 1.1; }"
        % upstream.address,
        mode,
        files={
            "page": includes.encode(),
            "missing": b'a<!--#include virtual="/nothing" -->b',
        },
    )
    for order in itertools.islice(itertools.permutations(range(4)), 0, 24, 5):
        for turn in turns:
            turn.clear()
        with http1.Connection(nginx.port) as client:
            client.request("/page")
            for i in order:
                turns[i].set()
            client.head()
            check_response(client.read(), b"".join(parts))
    response = fetch(nginx, "/missing")
    assert response.get("Content-Encoding") == "zstd"
    content = Incremental()
    content.feed(response.body)
    assert content.ended
    assert content.content.startswith(b"a") and content.content.endswith(b"b")
