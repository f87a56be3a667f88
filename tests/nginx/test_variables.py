"""The variables of a response, as an access log shows them."""

import os
import re

import pytest

from support import build, data, http1
from support.check import check_plain, round_trip
from support.limits import KIB, MIB
from support.server import wait_for
from support.upstream import whole

NAMES = (
    "ratio",
    "bytes_in",
    "bytes_out",
    "segments",
    "threads",
    "cpu_time",
    "reason",
)
LOG_FORMAT = "log_format vars '%s';" % " ".join(
    "%s=$zstd_%s" % (name, name) for name in NAMES
)
LOG = "access_log {prefix}/vars.log vars;"
PROXY = "proxy_pass http://%s; proxy_http_version 1.1;"


def logged(nginx, count=1):
    """The variables of each of the requests, when so many are logged."""
    path = os.path.join(nginx.prefix, "vars.log")

    def lines():
        with open(path) as f:
            found = f.read().splitlines()
        return found if len(found) >= count else None

    found = wait_for(lines, "%d lines of the log" % count)
    assert len(found) == count
    return [dict(p.split("=", 1) for p in line.split()) for line in found]


def ratio(size, sent):
    """As the ratio of gzip is written: two decimals, half goes up."""
    hundredths = (size * 1000 // sent + 5) // 10
    return "%d.%02d" % divmod(hundredths, 100)


def check_numbers(values, size, body):
    assert values["bytes_in"] == str(size)
    assert values["bytes_out"] == str(len(body))
    assert values["ratio"] == ratio(size, len(body))
    assert values["reason"] == "-"


def check_reason(values, reason):
    assert values == dict({name: "-" for name in NAMES}, reason=reason)


# By which a file is read by jobs or by NGINX.
READINGS = ["sendfile on", "sendfile off", "directio 512"]


@pytest.mark.parametrize("reading", READINGS)
def test_slow_client_gets_one_segment(serve, reading):
    """A client that had not taken all of the output lost the encoder and what
    it had seen each time: cuts, each of which costs size."""
    content = data.text(7 * MIB)
    nginx = serve(
        "%s; zstd_comp_level 3; zstd_parallel_tasks 1; %s" % (reading, LOG),
        http=LOG_FORMAT,
        files={"f": content},
        listen_options="sndbuf=32k",
    )
    client = http1.Connection(nginx.port, receive_buffer=4096)
    client.request("/f")
    client.head()
    client.read()
    (values,) = logged(nginx)
    assert values["bytes_in"] == str(len(content))
    assert values["segments"] == "1"


@pytest.mark.parametrize("reading", READINGS)
def test_numbers_of_a_file(serve, mode, reading):
    content = data.text(3 * MIB + 5)
    nginx = serve(
        "%s; %s" % (reading, LOG),
        mode,
        http=LOG_FORMAT,
        files={"f": content},
    )
    response = http1.get(nginx.port, "/f")
    (values,) = logged(nginx)
    check_numbers(values, len(content), response.body)
    assert re.fullmatch(r"\d+\.\d{6}", values["cpu_time"])
    assert 0 < float(values["cpu_time"]) < 60
    if mode.name == "pool":
        assert values["threads"] == "pool"
        # cut at each 1 MiB
        assert values["segments"] == "4"
    elif mode.name == "loop":
        assert values["threads"] == "loop"
        # nobody is idle whom a cut would help
        assert values["segments"] == "1"
    else:
        assert values["threads"] in ("pool", "loop")
        assert int(values["segments"]) >= 1


@pytest.mark.parametrize("size", [1, 19, 4096, 131073])
def test_numbers_of_proxied_contents(serve, mode, upstream, size):
    """Whose length is not known before their end."""
    nginx = serve(
        "location / { %s %s }" % (PROXY % upstream.address, LOG),
        mode,
        http=LOG_FORMAT,
    )
    path = "/gen/chunked/%d/1000/0" % size
    response = http1.get(nginx.port, path)
    (values,) = logged(nginx)
    check_numbers(values, size, response.body)


def test_numbers_are_of_each_request(serve, mode):
    """Requests of one connection do not see each other's."""
    sizes = (100, 300 * KIB, 100, 5000)
    files = {"f%d" % size: data.text(size) for size in sizes}
    nginx = serve(LOG, mode, http=LOG_FORMAT, files=files)
    bodies = []
    with http1.Connection(nginx.port) as client:
        for size in sizes:
            bodies.append(client.get("/f%d" % size).body)
        client.get("/f100", accept="gzip")
    found = logged(nginx, len(sizes) + 1)
    for size, body, values in zip(sizes, bodies, found):
        check_numbers(values, size, body)
    check_reason(found[-1], "accept")


@pytest.mark.slow
def test_numbers_beyond_32_bits(serve, mode):
    size = (5 << 30) + 1
    nginx = serve(LOG, mode, http=LOG_FORMAT, files={"f": b""})
    os.truncate(os.path.join(nginx.root, "f"), size)
    response = http1.get(nginx.port, "/f")
    (values,) = logged(nginx)
    check_numbers(values, size, response.body)
    assert float(values["ratio"]) > 1000


def test_aborted_response_has_the_numbers_so_far(serve, mode):
    size = 8 * MIB
    nginx = serve(
        LOG,
        mode,
        http=LOG_FORMAT,
        files={"f": data.noise(size)},
    )
    with http1.Connection(nginx.port, receive_buffer=16 * KIB) as client:
        client.request("/f")
        client.head()
        client.piece()
        client.abort()
    (values,) = logged(nginx)
    assert values["reason"] == "-"
    assert 0 < int(values["bytes_out"])
    assert 0 < int(values["bytes_in"]) <= size
    assert re.fullmatch(r"\d+\.\d\d", values["ratio"])


# location, path, what else is asked for; zstd is on for all types and lengths
REASONS = {
    "off": ("zstd off;", {}),
    "status": ("return 410 'this is gone';", {}),
    "no_body": ("return 204;", {}),
    "type": ("zstd_types text/css; default_type image/x-none;", {}),
    "length": ("zstd_min_length 100000;", {}),
    "bypass": ("zstd_bypass $arg_none $http_x_skip;", {"X-Skip": "1"}),
    "version": ("zstd_http_version 1.1;", {"version": "1.0"}),
    "proxied": ("zstd_proxied off;", {"Via": "1.1 other"}),
    "disable": ("zstd_disable 'Old [0-4]';", {"User-Agent": "Old 3"}),
    "accept": ("", {"accept": "gzip, zstd;q=0"}),
    "preference": ("gzip on; gzip_types *;", {"accept": "gzip, zstd;q=0.5"}),
}
OPTIONS = ("version", "accept")


@pytest.mark.parametrize("reason", REASONS)
def test_reason(serve, mode, reason):
    location, asked = REASONS[reason]
    if reason == "disable" and not build.nginx_has("pcre-jit"):
        pytest.skip("this NGINX has no regular expressions")
    nginx = serve(
        "location / { %s %s }" % (location, LOG),
        mode,
        http=LOG_FORMAT,
        files={"f": data.text(5000)},
    )
    options = {k: v for k, v in asked.items() if k in OPTIONS}
    fields = {k: v for k, v in asked.items() if k not in OPTIONS}
    response = http1.get(nginx.port, "/f", fields=fields, **options)
    assert response.get("Content-Encoding") != "zstd"
    (values,) = logged(nginx)
    check_reason(values, reason)


def test_reason_length_of_a_long_response(serve, mode):
    nginx = serve(
        "location / { zstd_max_length 4k; %s }" % LOG,
        mode,
        http=LOG_FORMAT,
        files={"f": data.text(4097)},
    )
    check_plain(http1.get(nginx.port, "/f"), data.text(4097))
    (values,) = logged(nginx)
    check_reason(values, "length")


@pytest.mark.parametrize(
    "reason, fields",
    [
        ("encoded", {"Content-Encoding": "br"}),
        ("no_transform", {"Cache-Control": "public, no-transform"}),
    ],
)
def test_reason_of_proxied_responses(serve, mode, upstream, reason, fields):
    content = data.text(3000)
    upstream.reply("/", whole(content, **fields))
    nginx = serve(
        "location / { %s %s }" % (PROXY % upstream.address, LOG),
        mode,
        http=LOG_FORMAT,
    )
    response = http1.get(nginx.port, "/")
    assert response.body == content
    (values,) = logged(nginx)
    check_reason(values, reason)


def test_nothing_is_known_of_a_request_without_response(serve, mode):
    nginx = serve("location / { return 444; %s }" % LOG, mode, http=LOG_FORMAT)
    with http1.Connection(nginx.port) as client:
        client.request("/")
        client.expect_end()
    (values,) = logged(nginx)
    assert values == {name: "-" for name in NAMES}


def test_asked_for_too_early(serve, mode):
    """A value that add_header, "set" and "if" asked for when there was none
    is not kept for the log."""
    nginx = serve(
        "location / {"
        " if ($zstd_ratio) { return 418; }"
        ' set $early "<$zstd_reason$zstd_bytes_in>";'
        ' add_header X-Early "$early";'
        ' add_header X-Reason "[$zstd_reason]";'
        ' add_header X-Ratio "[$zstd_ratio]";'
        " %s }" % LOG,
        mode,
        http=LOG_FORMAT,
        files={"f": data.text(70000)},
    )
    with http1.Connection(nginx.port) as client:
        body = round_trip_on(client, "/f")
        response = client.get("/f", accept=None)
    assert response.get("X-Early") == "<>"
    assert response.get("X-Reason") == "[]"
    assert response.get("X-Ratio") == "[]"
    first, second = logged(nginx, 2)
    check_numbers(first, 70000, body)
    check_reason(second, "accept")


def round_trip_on(client, path):
    response = client.get(path)
    assert response.get("Content-Encoding") == "zstd"
    return response.body


def test_error_page_and_internal_redirect(serve, mode):
    """The numbers are those of the response that was sent."""
    nginx = serve(
        "error_page 404 /missing; location = /missing { internal; }"
        "location /a { rewrite ^ /b last; } %s" % LOG,
        mode,
        http=LOG_FORMAT,
        files={"missing": data.text(9000), "b": data.text(8000, 1)},
    )
    round_trip(nginx, "/none", data.text(9000), status=404)
    round_trip(nginx, "/a", data.text(8000, 1))
    found = logged(nginx, 2)
    assert [values["bytes_in"] for values in found] == ["9000", "8000"]


def test_ssi_counts_what_was_sent(serve, mode):
    """Included parts are content of the page, not responses."""
    page = b'<p><!--# include virtual="/part" --></p>'
    nginx = serve(
        "ssi on; ssi_types *; %s" % LOG,
        mode,
        http=LOG_FORMAT,
        files={"page": page, "part": data.text(20000)},
    )
    content = b"<p>" + data.text(20000) + b"</p>"
    round_trip(nginx, "/page", content)
    (values,) = logged(nginx)
    assert values["bytes_in"] == str(len(content))


def test_reason_memory(serve, mode):
    """Clients that do not read hold what memory there is."""
    nginx = serve(
        "zstd_comp_level 3; " + LOG,
        mode,
        http=LOG_FORMAT + "zstd_memory 8m;",
        files={"f": data.noise(8 * MIB), "g": data.text(9000)},
    )
    plain = 0
    clients = []
    try:
        while not plain:
            assert len(clients) < 200, "memory is never short"
            client = http1.Connection(nginx.port, receive_buffer=4 * KIB)
            clients.append(client)
            client.request("/f")
            client.head()
            response = http1.get(nginx.port, "/g")
            if response.get("Content-Encoding") is None:
                check_plain(response, data.text(9000))
                plain += 1
        count = len(clients)
        found = logged(nginx, count)
    finally:
        for client in clients:
            client.abort()
    check_reason(found[-1], "memory")
