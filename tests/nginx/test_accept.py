"""Who gets zstd: Accept-Encoding, other codings, and the conditions that gzip
has, too: section D of the reported faults."""

import os
import re

import pytest

from support import build, data, http1
from support.check import check_plain, check_response, fetch, round_trip
from support.upstream import whole

CONTENT = data.text(20000, 4)
GZIP = "gzip on; gzip_types *; gzip_min_length 1;"
HAS_GZIP = "--without-http_gzip_module" not in build.nginx_says()
needs_gzip = pytest.mark.skipif(not HAS_GZIP, reason="NGINX without gzip")
PROXY = "proxy_pass http://%s; proxy_http_version 1.1;"


def rows():
    """Fields and whether zstd is acceptable, from the table of the unit
    test."""
    path = os.path.join(build.ROOT, "tests/test_shim_accept.c")
    with open(path, encoding="utf-8") as f:
        table = f.read().split("rows[] = {", 1)[1].split("};", 1)[0]
    found = re.findall(
        r'\{"((?:\\.|[^"\\])*)",\s*\d+,\s*\d+,\s*\d+,\s*(\w+),\s*\w+\}', table
    )
    return [
        (field.encode().decode("unicode_escape"), choice != "NO")
        for field, choice in found
    ]


def coding(response):
    return response.get("Content-Encoding")


def test_b34_b35_each_row_of_the_table(serve, mode):
    """Substrings were taken for names, and weights were not read."""
    table = [row for row in rows() if "\n" not in row[0]]
    assert len(table) > 90
    nginx = serve("", mode, files={"f": CONTENT})
    with http1.Connection(nginx.port) as connection:
        for field, accepted in table:
            response = connection.get("/f", accept=field)
            if accepted:
                check_response(response, CONTENT, command=False)
            else:
                check_plain(response, CONTENT)


def test_b34_several_lines_are_one_list(serve, mode):
    nginx = serve("", mode, files={"f": CONTENT})
    for lines, accepted in (
        (("gzip", "zstd"), True),
        (("zstd;q=0", "*"), False),
        (("*", "zstd;q=0"), False),
        (("gzip", "br", "deflate"), False),
    ):
        with http1.Connection(nginx.port) as connection:
            connection.socket.sendall(
                "\r\n".join(
                    ["GET /f HTTP/1.1", "Host: test"]
                    + ["Accept-Encoding: " + line for line in lines]
                    + ["", ""]
                ).encode()
            )
            connection.method = "GET"
            connection.head()
            response = connection.read()
        assert (coding(response) == "zstd") == accepted, lines


@needs_gzip
def test_b33_gzip_only(serve, mode, upstream):
    """What nginx had found about gzip was taken for an answer about zstd."""
    upstream.reply("/f", lambda *_: whole(CONTENT))
    nginx = serve(
        "%s location / { %s } location /any/ { gzip_proxied any; "
        "proxy_pass http://%s/; }"
        % (GZIP, PROXY % upstream.address, upstream.address),
        mode,
    )
    for path in ("/f", "/any/f"):
        for fields in ({}, {"Via": "1.1 cache"}):
            response = fetch(nginx, path, accept="gzip", fields=fields)
            if fields and path == "/f":
                check_plain(response, CONTENT)
            else:
                assert coding(response) == "gzip"
            round_trip(
                nginx, path, CONTENT, accept="gzip, zstd", fields=fields
            )


# Of a client that would take either, by the weights that it gives them.
WINNERS = (
    ("%s, zstd", "zstd", "other"),
    ("zstd, %s", "zstd", "other"),
    ("zstd;q=0.5, %s;q=0.5", "zstd", "other"),
    ("%s;q=1, zstd;q=0.5", "other", "other"),
    ("%s;q=0.5, zstd;q=1", "zstd", "zstd"),
    ("%s;q=0.5, zstd", "zstd", "zstd"),
    ("%s, zstd;q=0", "other", "other"),
    ("%s;q=0, zstd", "zstd", "zstd"),
    ("zstd, *;q=0", "zstd", "zstd"),
    ("identity, zstd;q=0.5", None, None),
    ("%s", "other", "other"),
    ("zstd", "zstd", "zstd"),
)


def check_winners(nginx, other):
    for path, column in (("/on/f", 1), ("/off/f", 2)):
        for row in WINNERS:
            accept = row[0] % other if "%s" in row[0] else row[0]
            expected = other if row[column] == "other" else row[column]
            response = fetch(nginx, path, accept=accept)
            assert coding(response) == expected, (path, accept)
            if expected == "zstd":
                check_response(response, CONTENT, command=False)


LOCATIONS = (
    "location /on/ { zstd_prefer on; alias {root}/; }"
    "location /off/ { zstd_prefer off; alias {root}/; }"
)


@needs_gzip
def test_b37_zstd_and_gzip(serve, mode):
    """The winner was decided by the order of the modules."""
    nginx = serve(GZIP + LOCATIONS, mode, files={"f": CONTENT})
    check_winners(nginx, "gzip")


BROTLI = build.nginx_module("ngx_http_brotli_filter_module")


@pytest.mark.skipif(not BROTLI, reason="no brotli module for this NGINX")
@pytest.mark.parametrize("first", ["brotli", "zstd"])
def test_b37_zstd_and_brotli(make_server, mode, first):
    """The winner was the module that was loaded last."""
    nginx = make_server()
    ours = list(nginx.load)
    brotli = ["load_module %s;" % BROTLI]
    nginx.load = brotli + ours if first == "brotli" else ours + brotli
    nginx.file("f", CONTENT)
    nginx.configure(
        GZIP + LOCATIONS,
        http="zstd on; zstd_types *; brotli on; brotli_types *; " + mode.http,
        main=mode.main,
    )
    nginx.start()
    check_winners(nginx, "br")
    check_winners(nginx, "gzip")


@needs_gzip
def test_prefer_is_on_by_default(serve, mode):
    nginx = serve(GZIP, mode, files={"f": CONTENT})
    round_trip(nginx, "/f", CONTENT, accept="gzip, deflate, br, zstd")


def test_second_choice_where_the_first_is_not_configured(serve, mode):
    nginx = serve("", mode, files={"f": CONTENT})
    round_trip(nginx, "/f", CONTENT, accept="br;q=1, gzip;q=1, zstd;q=0.1")


# Conditions


def test_http_version(serve, mode):
    nginx = serve(
        "location /11/ { zstd_http_version 1.1; alias {root}/; }",
        mode,
        files={"f": CONTENT},
    )
    for path, version, zstd in (
        ("/f", "1.0", True),
        ("/f", "1.1", True),
        ("/11/f", "1.0", False),
        ("/11/f", "1.1", True),
    ):
        response = fetch(nginx, path, version=version)
        assert (coding(response) == "zstd") == zstd, (path, version)
        assert response.get("Vary") == "Accept-Encoding"


def test_disable(serve, mode):
    nginx = serve(
        'zstd_disable "Old/[12]\\." curl;', mode, files={"f": CONTENT}
    )
    for agent, zstd in (
        ("Old/1.5", False),
        ("Old/3.0", True),
        ("x curl/8", False),
        (None, True),
    ):
        fields = {"User-Agent": agent} if agent else {}
        response = fetch(nginx, "/f", fields=fields)
        assert (coding(response) == "zstd") == zstd, agent
        assert response.get("Vary") == "Accept-Encoding"


def test_bypass(serve, mode):
    nginx = serve("zstd_bypass $arg_a $cookie_b;", mode, files={"f": CONTENT})
    for query, cookie, zstd in (
        ("", None, True),
        ("?a=0", "b=0", True),
        ("?a=", "c=1", True),
        ("?a=1", None, False),
        ("?a=00", None, False),
        ("", "b=no", False),
    ):
        fields = {"Cookie": cookie} if cookie else {}
        response = fetch(nginx, "/f" + query, fields=fields)
        assert (coding(response) == "zstd") == zstd, (query, cookie)


OLD = "Thu, 01 Jan 1998 00:00:00 GMT"
NEW = "Thu, 01 Jan 2098 00:00:00 GMT"
NEWER = "Fri, 02 Jan 2099 00:00:00 GMT"


@pytest.mark.parametrize(
    "value, fields, zstd",
    [
        ("any", {}, True),
        ("off", {}, False),
        ("off", {"Cache_Control": "no-cache"}, False),
        ("expired", {"Expires": OLD}, True),
        ("expired", {"Expires": NEW}, False),
        ("expired", {"Expires": "0"}, False),
        ("expired", {"Expires": NEW, "Date": NEWER}, True),
        ("expired", {"Expires": NEW, "Date": OLD}, False),
        ("no-cache", {"Expires": OLD}, False),
        ("no-cache", {"Cache_Control": "no-cache"}, True),
        ("no-cache", {"Cache_Control": "max-age=1, No-Cache"}, True),
        ("no-cache", {"Cache_Control": 'no-cache="Set-Cookie"'}, True),
        ("no-cache", {"Cache_Control": "no-store"}, False),
        ("no-store", {"Cache_Control": "no-store"}, True),
        ("no-store", {"Cache_Control": "x-no-store"}, False),
        ("private", {"Cache_Control": "private"}, True),
        ("private", {"Cache_Control": "public"}, False),
        ("no-cache no-store private", {"Cache_Control": "private"}, True),
        ("no_last_modified", {}, True),
        ("no_last_modified", {"Last_Modified": OLD}, False),
        ("no_etag", {}, True),
        ("no_etag", {"ETag": '"x"'}, False),
        ("auth", {"Cache_Control": "public"}, False),
    ],
)
def test_proxied(serve, upstream, value, fields, zstd):
    upstream.reply("/f", lambda *_: whole(CONTENT, **fields))
    nginx = serve(
        "location / { %s proxy_pass_header Date; zstd_proxied %s; }"
        % (PROXY % upstream.address, value)
    )
    round_trip(nginx, "/f", CONTENT)
    response = fetch(nginx, "/f", fields={"Via": "1.1 cache"})
    assert (coding(response) == "zstd") == zstd
    if value == "auth":
        round_trip(
            nginx,
            "/f",
            CONTENT,
            fields={"Via": "1.1 cache", "Authorization": "Basic eA=="},
        )


@pytest.mark.parametrize(
    "text, named",
    [
        ("zstd_http_version 1.2;", "1.2"),
        ("zstd_proxied some;", "some"),
        ("zstd_prefer maybe;", "maybe"),
        ("zstd_vary maybe;", "maybe"),
        ('zstd_disable "(";', "("),
        ("zstd_bypass $nothing_of_that_name;", "nothing_of_that_name"),
    ],
)
def test_wrong_values_are_named(make_server, text, named):
    nginx = make_server()
    nginx.configure(text)
    right, said = nginx.test()
    assert not right
    assert '"%s"' % named in said or '"$%s"' % named in said, said
