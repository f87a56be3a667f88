"""What a compressed response says of itself, and which responses are not to
be touched: section E of the reported faults."""

import gzip
import os
import re

import pytest

from support import data, http1
from support.build import nginx_has, nginx_says
from support.check import check_plain, check_response, fetch, round_trip
from support.limits import KIB, MIB
from support.upstream import whole

PROXY = "proxy_pass http://%s; proxy_http_version 1.1;"
SIZE = 50000
CONTENT = data.text(SIZE)


def vary_of(response):
    """The members of Vary, in lower case."""
    members = []
    for value in response.all("Vary"):
        members += [m.strip().lower() for m in value.split(",")]
    return members


def two_tier(serve, mode):
    """A caching proxy, /edge/, in front of what compresses, in one NGINX."""
    return serve(
        """
        location /edge/ {
            zstd off;
            proxy_pass http://127.0.0.1:{port}/inner/;
            proxy_set_header Accept-Encoding $http_accept_encoding;
            proxy_cache c; proxy_cache_valid 200 1h;
            add_header X-Cache $upstream_cache_status;
        }
        location /inner/ { alias {root}/; }
        """,
        mode,
        http="proxy_cache_path {prefix}/cache keys_zone=c:1m;",
        files={"f": CONTENT},
    )


def test_b40_shared_cache(serve, mode):
    """A cache handed zstd to a client without it. gzip_vary is not set."""
    nginx = two_tier(serve, mode)
    for accept in ("zstd", None, "gzip", "identity", "zstd", None, "br, zstd"):
        response = fetch(nginx, "/edge/f", accept=accept)
        if accept and "zstd" in accept:
            check_response_through_cache(response)
        else:
            check_plain(response, CONTENT)
        assert vary_of(response) == ["accept-encoding"]
    # those who came first and second asked for the two variants; the cache
    # has an entry for each value of the field, and used what it had
    assert nginx.access_log().count("/inner/") >= 2
    assert fetch(nginx, "/edge/f").get("X-Cache") == "HIT"


def check_response_through_cache(response):
    """The cache may have given it a length."""
    response.fields = [
        (n, v) for n, v in response.fields if n.lower() != "content-length"
    ]
    check_response(response, CONTENT)


@pytest.mark.parametrize(
    "accept", ["zstd", None, "gzip", "identity;q=0, zstd"]
)
def test_b40_vary_once_on_all_variants(serve, mode, upstream, accept):
    upstream.reply("/vary", lambda *_: whole(CONTENT, Vary="Origin"))
    upstream.reply(
        "/has", lambda *_: whole(CONTENT, Vary="accept-encoding, Origin")
    )
    upstream.reply("/star", lambda *_: whole(CONTENT, Vary="*"))
    nginx = serve(
        "location / { %s } location /f { }"
        "location /gzip { alias {root}/f; gzip on; gzip_vary on;"
        "                 gzip_types *; gzip_min_length 0; }"
        "location /off { alias {root}/f; zstd_vary off; }"
        "location /none { alias {root}/f; zstd off; }"
        "location /type { alias {root}/f; types { } default_type image/png;"
        "                 zstd_types text/css; }" % (PROXY % upstream.address),
        mode,
        files={"f": CONTENT},
    )
    expected = {
        "/f": 1,
        "/vary": 1,
        "/has": 1,
        "/gzip": 1,
        "/none": 0,
        "/off": 0,
        "/type": 0,
    }
    for path, count in expected.items():
        response = fetch(nginx, path, accept=accept)
        members = vary_of(response)
        assert members.count("accept-encoding") == count, (path, members)
        if path in ("/vary", "/has"):
            assert members.count("origin") == 1
    assert "*" in vary_of(fetch(nginx, "/star", accept=accept))


def test_b43_partial_content(serve, mode, upstream):
    """A 206 was recoded, and its Content-Range then lied."""
    upstream.reply(
        "/206",
        lambda *_: whole(
            CONTENT[1000:3000],
            status="206 Partial Content",
            Content_Range="bytes 1000-2999/%d" % SIZE,
        ),
    )
    nginx = serve(
        "location /206 { %(proxy)s }"
        "location /gen/ { %(proxy)s }"
        "location /forced/ { proxy_pass http://%(address)s/gen/;"
        "                    proxy_force_ranges on; }"
        % {"proxy": PROXY % upstream.address, "address": upstream.address},
        mode,
        files={"f": CONTENT},
    )
    response = fetch(nginx, "/206")
    check_plain(response, CONTENT[1000:3000], 206)
    assert response.get("Content-Range") == "bytes 1000-2999/%d" % SIZE
    for path in ("/f", "/forced/length/%d/1000/0" % SIZE):
        response = fetch(nginx, path, fields={"Range": "bytes=10-19"})
        assert response.get("Content-Range") is None
        check_response(response, CONTENT)
    response = fetch(
        nginx, "/f", accept=None, fields={"Range": "bytes=10-19"}
    )
    check_plain(response, CONTENT[10:20], 206)


@pytest.mark.skipif(
    not nginx_has("http_slice_module"), reason="this NGINX has no slices"
)
def test_b43_slices(serve, mode):
    """A response made of slices is compressed as a whole, or given in the
    range that was asked for."""
    content = data.text(3 * MIB + 5)
    nginx = serve(
        """
        location /sliced/ {
            slice 256k;
            proxy_pass http://127.0.0.1:{port}/inner/;
            proxy_set_header Range $slice_range;
            proxy_cache c;
            proxy_cache_key $uri$slice_range;
            proxy_cache_valid 200 206 1h;
        }
        location /inner/ { zstd off; alias {root}/; }
        """,
        mode,
        http="proxy_cache_path {prefix}/cache keys_zone=c:1m;",
        files={"f": content},
    )
    for _ in range(2):
        round_trip(nginx, "/sliced/f", content)
    response = fetch(
        nginx, "/sliced/f", fields={"Range": "bytes=300000-900000"}
    )
    if response.status == 200:
        check_response(response, content)
    else:
        check_plain(response, content[300000:900001], 206)
        assert response.get("Content-Range") == "bytes 300000-900000/%d" % len(
            content
        )


def test_etag_becomes_weak(serve, mode, upstream):
    """Two variants have not the same bytes; revalidation works."""
    upstream.reply("/strong", lambda *_: whole(CONTENT, ETag='"a-b"'))
    upstream.reply("/weak", lambda *_: whole(CONTENT, ETag='W/"a-b"'))
    upstream.reply("/bad", lambda *_: whole(CONTENT, ETag="a-b"))
    nginx = serve(
        "location / { %s } location /f { }" % (PROXY % upstream.address),
        mode,
        files={"f": CONTENT},
    )
    tag = fetch(nginx, "/f").get("ETag")
    strong = fetch(nginx, "/f", accept=None).get("ETag")
    assert tag == "W/" + strong
    for accept in ("zstd", None):
        response = fetch(
            nginx, "/f", accept=accept, fields={"If-None-Match": tag}
        )
        assert response.status == 304
        assert response.get("Content-Encoding") is None
        assert response.body == b""
    assert fetch(nginx, "/strong").get("ETag") == 'W/"a-b"'
    assert fetch(nginx, "/weak").get("ETag") == 'W/"a-b"'
    assert fetch(nginx, "/bad").get("ETag") is None


def test_not_modified_has_the_headers_of_what_it_stands_for(
    serve, mode, upstream
):
    """RFC 9110, 15.4.5: its Vary, and its ETag."""
    upstream.reply("/up", lambda *_: whole(CONTENT, ETag='"a-b"'))
    nginx = serve(
        "location /up { %s proxy_cache c; proxy_cache_valid 200 1h; }"
        % (PROXY % upstream.address)
        + """
        location /off/ { zstd off; alias {root}/; }
        location /no_vary/ { zstd_vary off; alias {root}/; }
        location /type/ { types { } default_type a/b; zstd_types c/d;
                          alias {root}/; }
        location /bypass/ { zstd_bypass 1; alias {root}/; }
        """,
        mode,
        http="proxy_cache_path {prefix}/cache keys_zone=c:1m;"
        "log_format z '$status $zstd_reason';"
        "access_log {prefix}/z.log z;",
        files={"f": CONTENT},
    )
    places = ("/f", "/up", "/off/f", "/no_vary/f", "/type/f", "/bypass/f")
    for place in places:
        for accept in ("zstd", "gzip;q=0.1, zstd", "zstd;q=0", None):
            response = fetch(nginx, place, accept=accept)
            assert response.status == 200
            tag = response.get("ETag")
            again = fetch(
                nginx, place, accept=accept, fields={"If-None-Match": tag}
            )
            assert again.status == 304 and again.body == b""
            assert again.get("Content-Encoding") is None
            assert again.get("ETag") == tag, (place, accept)
            assert vary_of(again) == vary_of(response), (place, accept)
    # a client's other copy is not told by it
    fields = {"If-None-Match": '"another"'}
    round_trip(nginx, "/f", CONTENT, fields=fields)
    with open(os.path.join(nginx.prefix, "z.log")) as f:
        reasons = [line.split()[1] for line in f if line.startswith("304 ")]
    assert reasons.count("no_body") == 20 and reasons.count("off") == 4


@pytest.mark.parametrize(
    "status", [200, 201, 202, 203, 207, 403, 404, 226]
)
def test_statuses_that_are_compressed(serve, mode, upstream, status):
    upstream.reply(
        "/", lambda *_: whole(CONTENT, status="%d Some" % status)
    )
    nginx = serve("location / { %s }" % (PROXY % upstream.address), mode)
    round_trip(nginx, "/", CONTENT, status=status)


@pytest.mark.parametrize("status", [205, 300, 302, 400, 401, 410, 500, 503])
def test_statuses_that_are_not(serve, mode, upstream, status):
    upstream.reply(
        "/", lambda *_: whole(CONTENT, status="%d Some" % status)
    )
    nginx = serve("location / { %s }" % (PROXY % upstream.address), mode)
    check_plain(fetch(nginx, "/"), CONTENT, status)


def test_responses_without_a_body(serve, mode, upstream):
    upstream.reply(
        "/204", lambda *_: [b"HTTP/1.1 204 No Content\r\n\r\n"]
    )
    upstream.reply("/head", lambda *_: [whole_head()])
    nginx = serve(
        "location / { %s } location /f { } location /e { return 204; }"
        % (PROXY % upstream.address),
        mode,
        files={"f": CONTENT},
    )
    with http1.Connection(nginx.port) as client:
        for path in ("/204", "/e"):
            response = client.get(path)
            assert response.status == 204 and response.body == b""
            assert response.get("Content-Encoding") is None
        for path in ("/f", "/head"):
            response = client.get(path, method="HEAD")
            assert response.status == 200 and response.body == b""
        # the connection is still in step
        check_response(client.get("/f"), CONTENT)


def whole_head():
    return next(iter(whole(CONTENT)))


@pytest.mark.parametrize(
    "fields",
    [
        {"Content_Encoding": "gzip"},
        {"Content_Encoding": "zstd"},
        {"Content_Encoding": "br"},
        {"Content_Encoding": "aes128gcm"},
        {"Cache_Control": "no-transform"},
        {"Cache_Control": "public, no-transform, max-age=5"},
        {"Cache_Control": "public, NO-TRANSFORM"},
    ],
    ids=str,
)
def test_left_as_it_is(serve, mode, upstream, fields):
    body = data.noise(40000)
    upstream.reply("/", lambda *_: whole(body, **fields))
    nginx = serve("location / { %s }" % (PROXY % upstream.address), mode)
    response = fetch(nginx, "/")
    assert response.status == 200
    assert response.body == body
    assert response.get("Content-Length") == str(len(body))
    for name, value in fields.items():
        assert response.get(name.replace("_", "-")) == value


def test_no_transform_is_a_word(serve, mode, upstream):
    """Other directives with these letters do not forbid anything."""
    for number, value in enumerate(
        ("max-age=5", "x-no-transform", "no-transformer", 'ext="a"')
    ):
        upstream.reply(
            "/%d" % number, lambda *_, v=value: whole(CONTENT, Cache_Control=v)
        )
    nginx = serve("location / { %s }" % (PROXY % upstream.address), mode)
    for number in range(4):
        round_trip(nginx, "/%d" % number, CONTENT)


def test_content_length_and_ranges_are_dropped(serve, mode):
    nginx = serve("", mode, files={"f": CONTENT})
    response = fetch(nginx, "/f")
    check_response(response, CONTENT)
    response = fetch(nginx, "/f", version="1.0")
    if response.get("Content-Encoding"):
        check_response(response, CONTENT)
        assert response.ended == "close"
    plain = fetch(nginx, "/f", accept=None)
    assert plain.get("Content-Length") == str(SIZE)
    assert plain.get("Accept-Ranges") == "bytes"


def test_min_length(serve, mode):
    """20 bytes, if nothing is said."""
    sizes = (0, 1, 19, 20, 21, 99, 100)
    nginx = serve(
        "default_type text/html; location /set/ { zstd_min_length 100; }",
        mode,
        zstd="zstd on;",
        files={
            folder + str(size): CONTENT[:size]
            for size in sizes
            for folder in ("", "set/")
        },
    )
    for size in sizes:
        for folder, least in (("/", 20), ("/set/", 100)):
            response = fetch(nginx, folder + str(size))
            if size >= least:
                check_response(response, CONTENT[:size])
            else:
                check_plain(response, CONTENT[:size])


def test_default_types(serve, mode):
    """Only text/html, as of all such modules, until it is said otherwise."""
    nginx = serve(
        "location /b { zstd_types text/css application/JSON; }",
        mode,
        zstd="zstd on;",
        http="types { text/html html; text/css css; application/json json;"
        " image/png png; }",
        files={
            folder + name: CONTENT
            for folder in ("", "b/")
            for name in ("a.html", "a.css", "a.json", "a.png", "a.bin")
        },
    )
    compressed = {"/a.html", "/b/a.html", "/b/a.css", "/b/a.json"}
    for folder in ("/", "/b/"):
        for name in ("a.html", "a.css", "a.json", "a.png", "a.bin"):
            response = fetch(nginx, folder + name)
            if folder + name in compressed:
                check_response(response, CONTENT)
            else:
                check_plain(response, CONTENT)
                assert vary_of(response) == []


def test_b83_generated_pages(serve, mode):
    """Decided by gzip's own conditions, they were not compressed."""
    files = {"dir/%s%d" % ("n" * 40, i): b"" for i in range(200)}
    nginx = serve(
        "location /dir/ { autoindex on; } location /ret { return 200 %s; }"
        "location /denied { return 403; } error_page 404 /404.html;"
        % ("x" * 300),
        mode,
        http="gzip off;",
        files={"404.html": CONTENT, **files},
    )
    round_trip(nginx, "/ret", b"x" * 300)
    round_trip(nginx, "/nothing", CONTENT, status=404)
    for path, status in (("/dir/", 200), ("/denied", 403)):
        plain = fetch(nginx, path, accept=None)
        assert plain.status == status and len(plain.body) > 100
        round_trip(nginx, path, plain.body, status=status)


def test_b86_headers_as_variables(serve, mode):
    """Lists of fields of one name had a wild end; valgrind sees it too."""
    nginx = serve(
        "",
        mode,
        http="log_format f escape=none '$sent_http_content_encoding|"
        "$sent_http_vary|$sent_http_etag'; access_log {prefix}/f.log f;",
        files={"f": CONTENT},
    )
    round_trip(nginx, "/f", CONTENT)
    nginx.stop()
    with open(nginx.prefix + "/f.log") as f:
        assert re.match(r'zstd\|Accept-Encoding\|W/"[^"]+"$', f.read().strip())


def test_b76_bypass_and_types(serve, mode, upstream):
    """A secret page must not be compressed, and a cache must not mix."""
    nginx = serve(
        "location / { zstd_bypass $cookie_secret $arg_no; }",
        mode,
        files={"f": CONTENT},
    )
    round_trip(nginx, "/f", CONTENT)
    for path, fields in (
        ("/f", {"Cookie": "secret=1"}),
        ("/f?no=1", {}),
    ):
        response = fetch(nginx, path, fields=fields)
        check_plain(response, CONTENT)
        assert vary_of(response) == ["accept-encoding"]
    for path, fields in (
        ("/f", {"Cookie": "secret=0"}),
        ("/f?no=0", {}),
        ("/f?no=", {}),
    ):
        round_trip(nginx, path, CONTENT, fields=fields)


def test_b77_max_length(serve, mode, upstream):
    """The limit looked at Content-Length only, or cut the body."""
    nginx = serve(
        "location / { %s zstd_max_length 1m; } location /f { }"
        % (PROXY % upstream.address),
        mode,
        files={"f": CONTENT},
    )
    for size in (MIB - 1, MIB):
        path = "/gen/length/%d/65536/0" % size
        round_trip(nginx, path, data.text(size))
    for size in (MIB + 1, 2 * MIB):
        path = "/gen/length/%d/65536/0" % size
        check_plain(fetch(nginx, path), data.text(size))
    # of unknown length: whole, whatever the coding
    size = 10 * MIB
    response = fetch(nginx, "/gen/chunked/%d/65536/0" % size)
    if response.get("Content-Encoding"):
        check_response(response, data.text(size))
    else:
        check_plain(response, data.text(size))


def test_b99_edge_compresses_what_is_cached(serve, mode, upstream):
    """The cache has it as it is; each client gets what it can read."""
    nginx = serve(
        """
        location /gen/ {
            %s
            proxy_set_header Accept-Encoding "";
            proxy_cache c; proxy_cache_valid 200 1h;
            add_header X-Cache $upstream_cache_status;
        }
        """
        % (PROXY % upstream.address),
        mode,
        http="proxy_cache_path {prefix}/cache keys_zone=c:1m;",
    )
    for size in (1000, 300 * KIB):
        path = "/gen/length/%d/4096/0" % size
        wanted = data.text(size)
        for number, accept in enumerate(("zstd", None, "gzip", "zstd")):
            response = fetch(nginx, path, accept=accept)
            assert response.get("X-Cache") == ("HIT" if number else "MISS")
            if accept == "zstd":
                check_response(response, wanted)
            else:
                check_plain(response, wanted)


@pytest.mark.skipif(
    "--without-http_gzip_module" in nginx_says(), reason="NGINX without gzip"
)
def test_b99_a_copy_for_each_coding(serve, mode, upstream):
    """As docs/nginx.md has it: each is compressed once, then cached."""
    nginx = serve(
        """
        location /gen/ {
            proxy_pass           http://inner;
            proxy_http_version   1.1;
            proxy_set_header     Accept-Encoding $coding;
            proxy_cache          c;
            proxy_cache_key      $scheme$host$request_uri$coding;
            proxy_ignore_headers Vary;
            proxy_cache_valid    200 1h;
            add_header           X-Cache $upstream_cache_status;
        }
        """,
        mode,
        http="proxy_cache_path {prefix}/cache keys_zone=c:1m;"
        "map $http_accept_encoding $coding"
        " { default ''; ~zstd zstd; ~gzip gzip; }",
        servers="upstream inner { server 127.0.0.1:{port}; }"
        "server { listen 127.0.0.1:{port}; server_name inner; location / { %s"
        ' proxy_set_header Accept-Encoding "";'
        " zstd_comp_level 12; gzip on; gzip_types *; } }"
        % (PROXY % upstream.address),
    )
    path = "/gen/length/300000/4096/0"
    wanted = data.text(300000)
    for state in ("MISS", "HIT"):
        for accept in ("gzip, zstd", "gzip", None):
            response = fetch(nginx, path, accept=accept)
            assert response.get("X-Cache") == state
            if accept is None:
                check_plain(response, wanted)
            elif accept == "gzip":
                assert response.get("Content-Encoding") == "gzip"
                assert gzip.decompress(response.body) == wanted
            else:
                check_response(response, wanted)
    assert upstream.requests.qsize() == 3


def test_b99_inner_zstd_is_not_encoded_again(serve, mode, upstream):
    """The upstream compresses, the edge passes it on, also from its cache;
    Vary is ignored by a cache that keys by the coding itself."""
    nginx = serve(
        """
        location /edge/ {
            proxy_pass http://127.0.0.1:{port}/inner/;
            proxy_set_header Accept-Encoding $coding;
            proxy_ignore_headers Vary;
            proxy_cache c; proxy_cache_valid 200 1h;
            proxy_cache_key $uri$coding;
        }
        location /inner/ { alias {root}/; }
        """,
        mode,
        http="proxy_cache_path {prefix}/cache keys_zone=c:1m;"
        "map $http_accept_encoding $coding { default ''; ~zstd zstd; }",
        files={"f": CONTENT},
    )
    for accept in ("zstd", None, "gzip, zstd", "zstd", None):
        response = fetch(nginx, "/edge/f", accept=accept)
        if accept:
            check_response_through_cache(response)
        else:
            check_plain(response, CONTENT)
