"""Levels, windows, sizes and segments: section J of the reported faults."""

import re

import pytest

from support import build, data, frame, http1
from support.check import check_part, check_response, fetch
from support.check import round_trip
from support.limits import KIB, MIB, WINDOW_MAX, pick
from support.upstream import short, whole

PROXY = "proxy_pass http://%s; proxy_http_version 1.1;"


def levels(numbers, more=""):
    return "\n".join(
        "location /%d/ { zstd_comp_level %d; %s }" % (n, n, more)
        for n in numbers
    )


@pytest.mark.parametrize("level", pick([17, 18, 19, 20, 21, 22], [19, 22]))
@pytest.mark.parametrize("kind", ["chunked", "length"])
def test_b66_window_of_high_levels(serve, mode, upstream, kind, level):
    """Browsers refuse a window over 8 MiB; level 20 and more have larger ones
    of their own. The window is in the first bytes."""
    nginx = serve(
        "location / { %s zstd_comp_level %d; }"
        % (PROXY % upstream.address, level),
        mode,
    )
    with http1.Connection(nginx.port) as client:
        client.request("/gen/%s/%d/65536/0" % (kind, 40 * MIB))
        response = client.head()
        assert response.get("Content-Encoding") == "zstd"
        while len(response.body) < 20:
            client.piece()
        assert window_at_the_start(response.body) <= WINDOW_MAX
        client.abort()


def window_at_the_start(body):
    """Of a frame of which there are only the first bytes."""
    assert body[:4] == frame.MAGIC
    if body[4] & 0x20:
        size_bytes = (1, 2, 4, 8)[body[4] >> 6]
        size = int.from_bytes(body[5 : 5 + size_bytes], "little")
        return size + (256 if size_bytes == 2 else 0)
    return frame.window_of(body[5])


@pytest.mark.slow
@pytest.mark.parametrize("level", [19, 22])
def test_b66_whole_content_beyond_the_window(serve, upstream, mode, level):
    """Decoded by what has no more than 8 MiB: repeats over more than that
    must not be used."""
    block = data.noise(3 * MIB)
    content = block + data.text(7 * MIB) + block + data.text(MIB, 9)
    upstream.reply("/", lambda *_: whole(content))
    nginx = serve(
        "location / { %s zstd_comp_level %d; }"
        % (PROXY % upstream.address, level),
        mode,
    )
    fields = round_trip(nginx, "/", content)
    assert fields.window <= WINDOW_MAX


@pytest.mark.parametrize("name", ["zstd_window_log", "zstd_window_bits"])
@pytest.mark.parametrize("number", [10, 17, 20, 23])
def test_b66_window_log(serve, mode, number, name):
    """The directive bounds it further."""
    content = data.text(3 * MIB)
    nginx = serve("%s %d;" % (name, number), mode, files={"f": content})
    fields = round_trip(nginx, "/f", content)
    assert fields.window <= 1 << number


def test_b67_exact_length_is_in_the_frame(serve, mode, upstream):
    """A certain size is told to the client."""
    nginx = serve(
        "location /gen/ { %s }" % (PROXY % upstream.address),
        mode,
        files={"f": data.text(300000)},
    )
    for path in ("/f", "/gen/length/300000/4096/0"):
        fields = round_trip(nginx, path, data.text(300000))
        assert fields.content_size == 300000
    # if it was not certain when the frame began, it says none, or the truth
    path = "/gen/chunked/300000/4096/0"
    round_trip(nginx, path, data.text(300000))


@pytest.mark.parametrize("buffering", ["on", "off"])
def test_b67_upstream_ends_early(serve, mode, upstream, buffering):
    """The bytes that had come were lost."""
    content = data.text(MIB)
    nginx = serve(
        "location / { %s proxy_buffering %s; }"
        % (PROXY % upstream.address, buffering),
        mode,
    )
    for sent in (600 * 1024, MIB - 1, 1, 128 * KIB):
        upstream.reply("/", short(content[:sent], MIB))
        with http1.Connection(nginx.port) as client:
            client.request("/")
            response = client.head()
            client.read_cut()
        check_part(response.body, content, sent)


def test_b67_length_that_changes(serve, mode, upstream):
    """A filter makes the body longer or shorter: what the upstream announced
    is not promised."""
    upstream.reply("/sub", lambda *_: whole(b"foo " * 50000))
    upstream.reply(
        "/ssi", lambda *_: whole(b'<!--#include virtual="/part" --> end')
    )
    part = data.text(70000)
    nginx = serve(
        "location / { %s ssi on; ssi_types *; sub_filter foo longer;"
        "  sub_filter_once off; sub_filter_types *; }"
        "location /short { proxy_pass http://%s/sub; sub_filter foo '';"
        "  sub_filter_once off; sub_filter_types *; }"
        "location /part { alias {root}/part; }"
        % (PROXY % upstream.address, upstream.address),
        mode,
        files={"part": part},
    )
    for path, content in (
        ("/sub", b"longer " * 50000),
        ("/short", b" " * 50000),
        ("/ssi", part + b" end"),
    ):
        round_trip(nginx, path, content)


def test_b67_upstream_sends_more(serve, mode, upstream):
    """More bytes than announced are not the response's."""
    content = data.text(100000)
    upstream.reply("/", lambda *_: [*whole(content), b"more" * 10])
    nginx = serve(
        "location / { %s }" % (PROXY % upstream.address), mode
    )
    round_trip(nginx, "/", content)


@pytest.mark.parametrize(
    "announced, is_what", [(5, "longer"), (100, "shorter")]
)
def test_b67_handler_says_another_length(serve, mode, announced, is_what):
    """A frame that declares one size and has another would be broken."""
    perl = build.nginx_module("ngx_http_perl_module")
    if not perl:
        pytest.skip("no perl module for this NGINX")
    nginx = serve(
        """
        location / {
            perl 'sub {
                my $r = shift;
                $r->header_out("Content-Length", %d);
                $r->send_http_header("text/plain");
                $r->print("0123456789");
                return OK;
            }';
        }
        """
        % announced,
        mode,
        load=["load_module %s;" % perl],
    )
    with http1.Connection(nginx.port) as client:
        client.request("/")
        response = client.head()
        client.read_cut()
    check_part(response.body, b"0123456789")
    assert re.search(
        r"\[error\].*the response is %s than its Content-Length" % is_what,
        nginx.log(),
    )


GOOD_LEVELS = [-131072, -7, -1, 1, 22]
BAD_LEVELS = ["0", "23", "-131073", "-200000", "abc", "1x", "", "99999999999"]


@pytest.mark.parametrize("value", BAD_LEVELS)
def test_b68_bad_level_is_named(make_server, value):
    nginx = make_server()
    nginx.configure(http='zstd on; zstd_comp_level "%s";' % value)
    right, says = nginx.test()
    assert not right
    assert "[emerg]" in says and "nginx.conf:" in says
    assert "zstd_comp_level" in says and (value or "zstd") in says


def test_b68_level_twice(make_server):
    nginx = make_server()
    nginx.configure(http="zstd_comp_level 3; zstd_comp_level 4;")
    right, says = nginx.test()
    assert not right
    assert "duplicate" in says


def test_b68_levels_are_used_and_inherited(serve, mode):
    """-1 was taken for "not set"."""
    content = data.text(400000)
    files = {"%d/f" % n: content for n in GOOD_LEVELS}
    nginx = serve(
        levels(GOOD_LEVELS)
        + "zstd_comp_level -1;"
        + "location /inherits { alias {root}/f; }",
        mode,
        http="zstd_comp_level 19;",
        files={**files, "f": content},
    )
    sizes = {}
    for level in GOOD_LEVELS:
        response = fetch(nginx, "/%d/f" % level)
        check_response(response, content)
        sizes[level] = len(response.body)
    inherited = fetch(nginx, "/inherits")
    check_response(inherited, content)
    assert len(inherited.body) == sizes[-1]
    assert sizes[-131072] > sizes[-7] > sizes[-1] > sizes[1] > sizes[22]


def test_b68_default_level_is_1(serve, mode):
    content = data.text(200000)
    nginx = serve(
        "location /one { alias {root}/f; zstd_comp_level 1; }",
        mode,
        files={"f": content},
    )
    assert fetch(nginx, "/f").body == fetch(nginx, "/one").body


@pytest.mark.parametrize(
    "directives",
    [
        "zstd maybe;",
        "zstd_min_length -1;",
        "zstd_min_length x;",
        "zstd_max_length x;",
        "zstd_buffers 0 4k;",
        "zstd_buffers 4;",
        "zstd_buffers 4294967296 4294967296;",
        "zstd_thread_pool;",
        "zstd_parallel_segment_size 1;",
        "zstd_parallel_segment_size x;",
        "zstd_parallel_tasks 0;",
        "zstd_parallel_tasks x;",
        "zstd_parallel_compressors x;",
        "zstd_retention_policy some;",
        "zstd_retention_policy bounded;",
        "zstd_retention_policy keep_all 1m;",
        "zstd_retention_policy bounded x;",
        "zstd_overlap x;",
        "zstd_window_log 9;",
        "zstd_window_log 24;",
        "zstd_window_bits 24;",
        "zstd_memory x;",
        "zstd_memory 1;",
        "zstd_inline x;",
        "zstd_inline -1;",
        "zstd_proxied sometimes;",
        "zstd_http_version 2.0;",
        "zstd_disable (;",
        "zstd_vary maybe;",
        "zstd_prefer maybe;",
        "zstd_thread_nice 20;",
        "zstd_thread_nice x;",
    ],
)
def test_b68_bad_values_are_refused(make_server, directives):
    """By "nginx -t", with an error that names the value; never by failing
    responses."""
    nginx = make_server()
    name, _, values = directives.rstrip(";").partition(" ")
    nginx.configure(http=("" if name == "zstd" else "zstd on; ") + directives)
    right, says = nginx.test()
    assert not right, directives
    assert "[emerg]" in says and "nginx.conf:" in says, says
    # where their number is wrong NGINX names the directive, not them
    if "invalid number of arguments" in says:
        assert name in says
    else:
        assert any('"%s' % v in says for v in values.split()), says


def test_overlap(serve):
    """What each of four segments may refer to of the one before. The content
    repeats after 12 KiB, and within these nothing does."""
    content = (data.noise(12 * KIB) * 86)[:MIB]
    literals = {"0": 4 * 12, "4k": 12 + 3 * 8, "16k": 12, "auto": 12}
    nginx = serve(
        "zstd_parallel_segment_size 256k;"
        + "".join(
            "location /%s { zstd_overlap %s; alias {root}/f; }" % (v, v)
            for v in literals
        ),
        files={"f": content},
    )
    for value, wanted in literals.items():
        response = fetch(nginx, "/" + value)
        check_response(response, content)
        assert abs(len(response.body) / KIB - wanted) < 1, value
    assert fetch(nginx, "/f").body == fetch(nginx, "/auto").body


@pytest.mark.parametrize(
    "level, memory, warns",
    [
        (1, "8m", False),
        (12, "40m", True),
        (12, "60m", False),
        (19, "85m", True),
        (19, "90m", False),
        (22, "130m", True),
        (22, "140m", False),
    ],
)
def test_too_little_memory_is_warned_of(
    make_server, level, memory, warns
):
    """For one response of the level, whatever its length."""
    nginx = make_server()
    nginx.configure(
        http="zstd on; zstd_comp_level %d; zstd_memory %s;" % (level, memory)
    )
    right, says = nginx.test()
    assert right, says
    assert ("[warn]" in says) == warns, says
    assert ('"zstd_comp_level" %d' % level in says) == warns, says


def test_b68_unknown_pool_is_named(make_server):
    nginx = make_server()
    nginx.configure(http="zstd on; zstd_thread_pool nowhere;")
    right, says = nginx.test()
    assert not right
    assert "nowhere" in says


def in_loop_and_pool(server):
    """A server block twice: every response by both ways."""
    return (
        "location /loop/ { zstd_thread_pool off; alias {root}/; %(more)s }"
        "location /pool/ { zstd_thread_pool zp; zstd_inline 0;"
        "                  alias {root}/; %(more)s }" % {"more": server}
    )


@pytest.mark.parametrize("level", [1, 3, 9])
def test_b70_one_segment_is_not_split(serve, level):
    """What fits a segment is the very bytes that the loop makes; and what is
    a little more is not worse by more than the design says."""
    segment = 512 * KIB
    step = pick(segment // 16, segment // 4)
    sizes = range(segment // 2, 3 * segment + 1, step)
    content = data.text(3 * segment)
    nginx = serve(
        in_loop_and_pool(
            "zstd_comp_level %d; zstd_parallel_segment_size 512k;" % level
        )
        + "location /single/ { zstd_thread_pool off; alias {root}/;"
        "  zstd_comp_level %d; zstd_parallel_segment_size 16m; }" % level,
        main="thread_pool zp threads=4;",
        files={str(size): content[:size] for size in sizes},
    )
    for size in sizes:
        bodies = {}
        for how in ("loop", "pool", "single"):
            response = fetch(nginx, "/%s/%d" % (how, size))
            check_response(response, content[:size], command=False)
            bodies[how] = response.body
        assert bodies["loop"] == bodies["pool"]
        if size <= segment:
            assert bodies["pool"] == bodies["single"]
        assert len(bodies["pool"]) <= len(bodies["single"]) * 1.05 + 64


def test_b70_same_bytes_in_any_order(serve, mode):
    """Of fixed segments: however the threads run."""
    content = data.text(5 * MIB)
    nginx = serve(
        "zstd_parallel_segment_size 512k; zstd_comp_level 6;",
        mode,
        files={"f": content},
    )
    bodies = {fetch(nginx, "/f").body for _ in range(pick(6, 3))}
    assert len(bodies) == 1


def test_real_files(serve, mode, upstream):
    """Files as sites have them, at the levels that sites use."""
    files = dict(data.real_files())
    numbers = (1, 3, 6, 12)
    nginx = serve(
        levels(numbers, "alias {root}/;"), mode, files=files
    )
    for level in numbers:
        for name, content in files.items():
            round_trip(nginx, "/%d/%s" % (level, name), content)


def test_incompressible_and_extreme(serve, mode):
    """Bytes without any pattern, and one pattern only."""
    files = {
        "noise": data.noise(3 * MIB + 17),
        "zeros": bytes(3 * MIB + 17),
        "period": (b"abcdefg" * MIB)[: 3 * MIB],
        "mixed": b"".join(
            data.noise(70000, i) + bytes(70001) for i in range(20)
        ),
    }
    nginx = serve(levels((1, 9, 19), "alias {root}/;"), mode, files=files)
    for level in (1, 9, 19):
        for name, content in files.items():
            response = fetch(nginx, "/%d/%s" % (level, name))
            check_response(response, content)
            assert len(response.body) <= len(content) * 1.01 + 100
            if name in ("zeros", "period"):
                assert len(response.body) < 20000
