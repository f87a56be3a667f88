"""zstd_static: files that are compressed already."""

import os
import re
import struct
import subprocess

import pytest
import zstandard

from support import build, data, frame, http1
from support.check import check_end, check_plain, fetch

ON = "zstd_static on;"
TEXT = data.text(300000, 3)
BROWSER = "gzip, deflate, br, zstd"


HAS_GZIP = "--without-http_gzip_module" not in build.nginx_says()
needs_gzip = pytest.mark.skipif(not HAS_GZIP, reason="NGINX without gzip")

needs_gzip_static = pytest.mark.skipif(
    not build.nginx_has("http_gzip_static_module"),
    reason="this NGINX has no gzip_static",
)

PROTOCOLS = ["h1", "h2"] if build.nginx_has("http_v2_module") else ["h1"]


def compressed(content=TEXT, **options):
    options.setdefault("level", 3)
    return zstandard.ZstdCompressor(**options).compress(content)


def skippable(size, kind=0):
    return struct.pack("<II", 0x184D2A50 + kind, size) + bytes(size)


ZST = compressed()


@pytest.fixture
def site(serve):
    """site(directives, files) with zstd_static alone, if not said otherwise;
    a.txt and a.txt.zst are there."""

    def start(server=ON, files=None, **options):
        options.setdefault("zstd", "")
        files = {"a.txt": TEXT, "a.txt.zst": ZST, **(files or {})}
        return serve(server, files=files, **options)

    return start


def is_zst(response, content=ZST):
    """The file as it is on disk, and all that is said of it."""
    check_end(response)
    assert response.status == 200
    assert response.get("Content-Encoding") == "zstd"
    assert response.get("Content-Length") == str(len(content))
    assert response.body == content


def check_coding(nginx, path, accept, coding):
    response = fetch(nginx, path, accept=accept)
    assert response.get("Content-Encoding") == coding, (path, accept)


# Where it serves


def test_b91_zst_is_served_as_the_original(site):
    nginx = site(ON + "types { application/json txt; }")
    zst = os.path.join(nginx.root, "a.txt.zst")
    os.utime(zst, (1000000000, 1000000000))
    for protocol in PROTOCOLS:
        response = fetch(nginx, "/a.txt", protocol, accept=BROWSER)
        is_zst(response)
        assert response.get("Content-Type") == "application/json"
        assert response.get("Last-Modified") == "Sun, 09 Sep 2001 01:46:40 GMT"
        assert response.get("ETag") == '"3b9aca00-%x"' % len(ZST)
        frame.check_body(response.body, TEXT)


def test_off_is_the_default(site):
    nginx = site(
        "location /off/ { alias {root}/; }"
        "location /on/ { %s alias {root}/; }" % ON
    )
    response = fetch(nginx, "/off/a.txt")
    check_plain(response, TEXT)
    assert response.get("Vary") is None
    is_zst(fetch(nginx, "/on/a.txt"))


def test_head_has_the_fields_and_no_body(site):
    nginx = site()
    response = fetch(nginx, "/a.txt", method="HEAD")
    assert response.status == 200
    assert response.get("Content-Encoding") == "zstd"
    assert response.get("Content-Length") == str(len(ZST))
    assert response.body == b""


def test_post_is_not_for_files(site):
    nginx = site()
    response = fetch(nginx, "/a.txt", method="POST", body=b"x")
    assert response.status == 405
    assert response.get("Content-Encoding") is None


def test_not_modified(site):
    nginx = site()
    tag = fetch(nginx, "/a.txt").get("ETag")
    plain = fetch(nginx, "/a.txt", accept=None).get("ETag")
    assert tag != plain
    response = fetch(nginx, "/a.txt", fields={"If-None-Match": tag})
    assert response.status == 304
    assert response.get("Vary") == "Accept-Encoding"
    response = fetch(nginx, "/a.txt", fields={"If-None-Match": plain})
    is_zst(response)


def test_b91_index_and_try_files(site):
    index = compressed(b"index" * 100)
    nginx = site(
        ON + "location /try/ { try_files $uri.txt /dir/index.html; }",
        {
            "dir/index.html": b"index" * 100,
            "dir/index.html.zst": index,
            "try/b.txt": b"b" * 1000,
            "try/b.txt.zst": compressed(b"b" * 1000),
            # must not be looked at: try_files says another name
            "try/b.zst": compressed(b"wrong"),
        },
    )
    is_zst(fetch(nginx, "/dir/"), index)
    is_zst(fetch(nginx, "/try/b"), compressed(b"b" * 1000))
    is_zst(fetch(nginx, "/try/none"), index)


@pytest.mark.parametrize("name", ["a.TXT", "a.b.Js", "noext"])
def test_b91_type_is_that_of_the_original(site, name):
    nginx = site(
        ON + "types { application/json txt; text/javascript js; "
        "application/octet-stream zst; }",
        {name: TEXT, name + ".zst": ZST},
    )
    response = fetch(nginx, "/" + name)
    is_zst(response)
    plain = fetch(nginx, "/" + name, accept=None)
    check_plain(plain, TEXT)
    assert response.get("Content-Type") == plain.get("Content-Type")


WAYS = {
    "root": ("{uri}", ""),
    "alias": ("/alias{uri}", "location /alias/ { alias {root}/; }"),
    "regex": ("/re{uri}", "location ~ ^/re/(.*)$ { alias {root}/$1; }"),
    "variable": (
        "{uri}?name={root}",
        "location / { root $arg_name; }",
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_b89_names_of_all_lengths(site, way):
    """The name with its suffix is made in the memory of that without."""
    names = ["n" * n for n in (1, 2, 3, 4, 5, 8, 250, 251, 252, 255)]
    # to the longest path that the system takes, and beyond
    deep = ["/".join(["d" * 200] * n) + "/f" for n in (5, 10, 18, 21)]
    uri, location = WAYS[way]
    # a component has 255 bytes at most, and here its suffix needs four
    fits = {name: len(name) <= 251 or "/" in name for name in names + deep}
    nginx = site(ON + location)
    for name in names + deep:
        try:
            nginx.file(name, TEXT)
            if fits[name]:
                nginx.file(name + ".zst", ZST)
        except OSError:
            fits[name] = None
    assert set(fits.values()) == {True, False, None}

    def get(name):
        asked = uri.replace("{uri}", "/" + name)
        return fetch(nginx, asked.replace("{root}", nginx.root))

    for name, found in fits.items():
        response = get(name)
        if found:
            is_zst(response)
        elif found is None:
            assert response.status in (404, 414)
        else:
            check_plain(response, TEXT)
    for length in range(256, 4000, 499):
        assert get("n" * length).status in (404, 414)


def test_original_need_not_be_there(site):
    nginx = site(files={"only.js.zst": ZST})
    is_zst(fetch(nginx, "/only.js"))
    response = fetch(nginx, "/only.js", accept="gzip")
    assert response.status == 404
    nginx.allow("No such file", "the original of only.js is missing")


def test_error_page_is_served_from_zst(site):
    page = compressed(b"gone" * 1000)
    nginx = site(
        ON + "error_page 404 /404.html;",
        {"404.html": b"gone" * 1000, "404.html.zst": page},
    )
    response = fetch(nginx, "/none")
    assert response.status == 404
    assert response.get("Content-Encoding") == "zstd"
    assert response.body == page


def test_locations_with_handlers_of_their_own_serve_no_files(site):
    nginx = site(
        ON + "location = /a.txt { proxy_pass http://127.0.0.1:{port}/up; }"
        "location = /up { return 200 up; }"
    )
    response = fetch(nginx, "/a.txt")
    check_plain(response, b"up")
    assert response.get("Vary") is None


def test_denied_is_denied(site):
    nginx = site(ON + "location = /a.txt { deny all; }")
    assert fetch(nginx, "/a.txt").status == 403


def test_subrequests_get_the_plain_file(site):
    if not build.nginx_has("http_addition_module"):
        pytest.skip("this NGINX has no addition module")
    nginx = site(
        ON + "addition_types *; location /main { add_before_body /a.txt; }"
        "location = /a.txt { zstd_static always; }",
        {"main/b.txt": b"end"},
    )
    check_plain(fetch(nginx, "/main/b.txt"), TEXT + b"end")


def test_open_file_cache(site):
    nginx = site(
        ON + "open_file_cache max=100; open_file_cache_valid 1h;"
        "open_file_cache_errors on;"
    )
    for _ in range(3):
        is_zst(fetch(nginx, "/a.txt"))
        check_plain(fetch(nginx, "/a.txt", accept="br"), TEXT)
        response = fetch(nginx, "/none.txt")
        assert response.status == 404


def test_disable_symlinks(site):
    nginx = site(
        ON + "location /no/ { disable_symlinks on; }",
        {"no/b.txt": b"b" * 100, "yes/b.txt": b"b" * 100},
    )
    for name in ("no", "yes"):
        os.symlink(
            os.path.join(nginx.root, "a.txt.zst"),
            os.path.join(nginx.root, name, "b.txt.zst"),
        )
    is_zst(fetch(nginx, "/yes/b.txt"))
    response = fetch(nginx, "/no/b.txt")
    check_plain(response, b"b" * 100)
    assert response.get("Vary") is None


@pytest.mark.parametrize(
    "how",
    [
        "sendfile off;",
        "sendfile on;",
        "sendfile on; aio threads; directio 4k;",
    ],
    ids=["read", "sendfile", "directio"],
)
def test_reading(site, how):
    nginx = site(
        ON + how,
        {
            "skip.txt": TEXT,
            "skip.txt.zst": skippable(5000) + skippable(3) + ZST,
            "bad.txt": TEXT,
            "bad.txt.zst": skippable(5000) + TEXT,
        },
    )
    is_zst(fetch(nginx, "/a.txt"))
    is_zst(fetch(nginx, "/skip.txt"), skippable(5000) + skippable(3) + ZST)
    check_plain(fetch(nginx, "/bad.txt"), TEXT)


def test_range_that_is_not_there(site):
    """The error page is no zstd; one that is a file has its own coding."""
    nginx = site(
        ON + "location /page/ { error_page 416 /e.txt; alias {root}/; }"
        "location /late/ { zstd_prefer off; alias {root}/; }",
        {"e.txt": b"sorry" * 100, "e.txt.zst": compressed(b"sorry" * 100)},
    )
    fields = {"Range": "bytes=9999999-"}
    for protocol in PROTOCOLS:
        for path in ("/a.txt", "/late/a.txt"):
            response = fetch(
                nginx, path, protocol, accept=BROWSER, fields=fields
            )
            assert response.status == 416
            assert response.get("Content-Encoding") is None
            assert response.get("ETag") is None
            assert b"416 Requested Range Not Satisfiable" in response.body
        response = fetch(
            nginx, "/page/a.txt", protocol, accept="zstd", fields=fields
        )
        assert response.status == 416
        assert response.get("Content-Encoding") == "zstd"
        decoder = zstandard.ZstdDecompressor()
        assert decoder.decompress(response.body) == b"sorry" * 100


# Who gets it


@needs_gzip_static
def test_b37_first_choice_comes_before_other_siblings(site):
    """Which sibling won was decided by the order of modules."""
    nginx = site(ON + "gzip_static on;", {"a.txt.gz": b"gzipped"})
    for accept, coding in (
        ("gzip, zstd", "zstd"),
        ("zstd, gzip", "zstd"),
        ("gzip;q=0.5, zstd;q=0.6", "zstd"),
        ("gzip;q=0.7, zstd;q=0.6", "gzip"),
        ("gzip, zstd;q=0", "gzip"),
        ("gzip, identity;q=0.9, zstd;q=0.5", "gzip"),
        ("identity, zstd;q=0.5", None),
        ("identity;q=0.5, zstd", "zstd"),
        ("*", "zstd"),
        ("br", None),
    ):
        check_coding(nginx, "/a.txt", accept, coding)


@needs_gzip_static
def test_b37_prefer_decides_between_siblings(site):
    """At equal weights, as it does for the filter."""
    nginx = site(
        ON + "gzip_static on; zstd_prefer off;"
        "location /on/ { zstd_prefer on; alias {root}/; }",
        {"a.txt.gz": b"gzipped", "b.txt": TEXT, "b.txt.zst": ZST},
    )
    for path, accept, coding in (
        ("/a.txt", "gzip, zstd", "gzip"),
        ("/a.txt", "zstd", "zstd"),
        ("/a.txt", "gzip;q=0.5, zstd;q=0.6", "zstd"),
        ("/on/a.txt", "gzip, zstd", "zstd"),
        # there is no .gz of it
        ("/b.txt", "gzip, zstd", "zstd"),
    ):
        check_coding(nginx, path, accept, coding)


BROTLI = build.nginx_module("ngx_http_brotli_static_module")


@pytest.mark.skipif(not BROTLI, reason="no brotli module for this NGINX")
@pytest.mark.parametrize("first", ["brotli", "zstd"])
def test_b37_brotli_in_each_load_order(make_server, first):
    """The module that was loaded last won."""
    nginx = make_server()
    ours = list(nginx.load)
    brotli = ["load_module %s;" % BROTLI]
    nginx.load = brotli + ours if first == "brotli" else ours + brotli
    for name, content in (
        ("a.txt", TEXT),
        ("a.txt.zst", ZST),
        ("a.txt.br", b"brotli"),
        ("b.txt", TEXT),
        ("b.txt.zst", ZST),
    ):
        nginx.file(name, content)
    nginx.configure(ON + "brotli_static on;")
    nginx.start()
    for path, accept, coding in (
        ("/a.txt", "br, zstd", "zstd"),
        ("/a.txt", "zstd, br", "zstd"),
        ("/a.txt", "br;q=1, zstd;q=0.5", "br"),
        ("/a.txt", "zstd;q=1, br;q=0.5", "zstd"),
        ("/a.txt", "zstd;q=0, br", "br"),
        # there is no .br of it, so the second choice it is
        ("/b.txt", "br;q=1, zstd;q=0.5", "zstd"),
    ):
        check_coding(nginx, path, accept, coding)


def test_second_choice_is_served_before_the_original(site):
    nginx = site()
    is_zst(fetch(nginx, "/a.txt", accept="gzip;q=1, zstd;q=0.5"))
    is_zst(fetch(nginx, "/a.txt", accept="gzip, br, zstd;q=0.001"))


@needs_gzip
@pytest.mark.parametrize("how", ["on", "always"])
def test_b38_gzip_stays_where_there_is_no_sibling(site, how):
    """The question "does the client take zstd?" turned gzip off."""
    nginx = site(
        "zstd_static %s; gzip on; gzip_types *; gzip_min_length 1;" % how,
        {"b.txt": TEXT},
    )
    response = fetch(nginx, "/b.txt", accept="gzip, zstd")
    check_end(response)
    assert response.get("Content-Encoding") == "gzip"
    is_zst(fetch(nginx, "/a.txt", accept="gzip, zstd"))


def test_always_asks_nobody(site):
    nginx = site("zstd_static always;")
    for accept in (None, "gzip", "zstd;q=0", "identity"):
        response = fetch(nginx, "/a.txt", accept=accept)
        is_zst(response)
        assert response.get("Vary") is None


# Vary


def test_b41_vary_only_where_the_sibling_is_usable(site):
    """Vary came with every file of a server."""
    nginx = site(
        files={
            "none.jpg": b"jpg" * 100,
            "dir.txt": TEXT,
            "dir.txt.zst/x": b"",
            "bad.txt": TEXT,
            "bad.txt.zst": b"not zstd at all",
        }
    )
    for accept in ("zstd", "gzip", None):
        response = fetch(nginx, "/a.txt", accept=accept)
        assert response.get("Vary") == "Accept-Encoding", accept
        for path in ("/none.jpg", "/dir.txt", "/bad.txt", "/missing.txt"):
            response = fetch(nginx, path, accept=accept)
            assert response.get("Vary") is None, path
            assert response.get("Content-Encoding") is None


@pytest.mark.parametrize("gzip_vary", ["on", "off"])
@pytest.mark.parametrize("accept", ["zstd", "gzip", None])
def test_vary_comes_once(site, gzip_vary, accept):
    others = ""
    if HAS_GZIP:
        others = "gzip on; gzip_types *; gzip_vary %s;" % gzip_vary
    if build.nginx_has("http_gzip_static_module"):
        others += "gzip_static on;"
    for path, value in (
        ("/h/", "Accept-Encoding"),
        ("/c/", "Cookie"),
        ("/s/", "*"),
    ):
        others += "location %s { add_header Vary %s; alias {root}/; }" % (
            path,
            value,
        )
    nginx = site(ON + others)
    for protocol in PROTOCOLS:
        for path in ("/a.txt", "/h/a.txt", "/c/a.txt"):
            response = fetch(nginx, path, protocol, accept=accept)
            named = ", ".join(response.all("Vary")).lower().split(", ")
            assert named.count("accept-encoding") == 1, named
            assert ("cookie" in named) == path.startswith("/c/")
            if gzip_vary == "off":
                assert len(response.all("Vary")) == 1, "not merged"
        response = fetch(nginx, "/s/a.txt", protocol, accept=accept)
        assert response.get("Vary") == "*"


# Ranges


def test_b45_ranges_of_the_compressed_bytes(site):
    """A download of such a file could not be resumed."""
    big = compressed(data.noise(5 << 20))
    nginx = site(files={"big.bin": b"x", "big.bin.zst": big})
    whole = fetch(nginx, "/big.bin")
    is_zst(whole, big)
    assert whole.get("Accept-Ranges") == "bytes"

    def ranged(value, **fields):
        fields = {name.replace("_", "-"): v for name, v in fields.items()}
        return fetch(nginx, "/big.bin", fields={"Range": value, **fields})

    for value, start, end in (
        ("bytes=1000-1999", 1000, 2000),
        ("bytes=0-0", 0, 1),
        ("bytes=-7", len(big) - 7, len(big)),
        ("bytes=%d-" % (len(big) - 5), len(big) - 5, len(big)),
    ):
        response = ranged(value)
        assert response.status == 206, value
        assert response.get("Content-Encoding") == "zstd"
        assert response.get("Vary") == "Accept-Encoding"
        assert response.get("Content-Range") == "bytes %d-%d/%d" % (
            start,
            end - 1,
            len(big),
        )
        assert response.body == big[start:end]

    response = ranged("bytes=10-19,100-199")
    assert response.status == 206
    kind = response.get("Content-Type")
    assert kind.startswith("multipart/byteranges; boundary=")
    parts = response.body.split(b"--" + kind.split("=")[1].encode())
    ranges = [
        part.split(b"\r\n\r\n", 1)[1].removesuffix(b"\r\n")
        for part in parts[1:-1]
    ]
    assert ranges == [big[10:20], big[100:200]]

    response = ranged("bytes=%d-" % len(big))
    assert response.status == 416
    assert response.get("Content-Range") == "bytes */%d" % len(big)

    response = ranged("bytes=5-9", If_Range=whole.get("ETag"))
    assert (response.status, response.body) == (206, big[5:10])
    response = ranged("bytes=5-9", If_Range='"other"')
    is_zst(response, big)


# Files that no browser could decode


def stream(content, window_log, **options):
    """A frame that declares its window, as of content of unknown length."""
    parameters = zstandard.ZstdCompressionParameters.from_level(
        1, window_log=window_log, **options
    )
    compressor = zstandard.ZstdCompressor(
        compression_params=parameters
    ).compressobj()
    return compressor.compress(content) + compressor.flush()


def frame_header(descriptor, rest=b""):
    """And one empty block, the last."""
    return struct.pack("<IB", 0xFD2FB528, descriptor) + rest + b"\1\0\0"


MIB = 1 << 20


def test_b52_usable(site):
    usable = {
        "window": stream(TEXT, 23),
        "small": stream(TEXT, 10),
        "single": frame_header(0x20 | 0x80, struct.pack("<I", 8 * MIB)),
        "size8": frame_header(0xC0, b"\x68" + struct.pack("<Q", 1 << 40)),
        "skips": b"".join(skippable(i, i) for i in range(8)) + ZST,
        "checksum": compressed(write_checksum=True),
        "no_dict": frame_header(0x23, b"\0\0\0\0\0"),
        "unused_bit": frame_header(0x10, b"\0"),
        "tiny": compressed(b""),
    }
    files = {}
    for name, content in usable.items():
        files[name] = b"original"
        files[name + ".zst"] = content
    nginx = site(files=files)
    for name, content in usable.items():
        response = fetch(nginx, "/" + name)
        is_zst(response, content)
    assert "is not served" not in nginx.log()


@pytest.mark.parametrize("how", ["on", "always"])
def test_b52_not_usable(site, how):
    """All browsers refused what the command decodes."""
    bad = {
        "empty": (b"", "not a zstd file"),
        "short": (ZST[:3], "not a zstd file"),
        "magic": (b"\x1f\x8b" + ZST, "not a zstd file"),
        "other": (TEXT, "not a zstd file"),
        "cut": (ZST[:5], "the frame's header is cut"),
        "window": (stream(TEXT, 24), "needs a window of 16777216 bytes"),
        "window9": (
            frame_header(0, bytes([(23 - 10) << 3 | 1])),
            "needs a window of 9437184 bytes",
        ),
        "single": (
            frame_header(0xA0, struct.pack("<I", 8 * MIB + 1)),
            "needs a window of 8388609 bytes",
        ),
        "single8": (
            frame_header(0xE0, struct.pack("<Q", 1 << 63)),
            "needs a window of 9223372036854775808 bytes",
        ),
        "dict": (
            frame_header(0x22, struct.pack("<HB", 4660, 0)),
            "needs dictionary 4660",
        ),
        "reserved": (frame_header(0x08, b"\0"), "reserved bit"),
        "skip": (skippable(100) + b"PK\3\4" * 9, "not a zstd file"),
        "skip_only": (skippable(100), "not a zstd file"),
        "skip_cut": (skippable(100)[:50], "not a zstd file"),
        "skip_huge": (
            struct.pack("<II", 0x184D2A5F, 0xFFFFFFFF) + ZST,
            "not a zstd file",
        ),
        "skips": (skippable(1) * 9 + ZST, "more than 8 skippable frames"),
    }
    files = {}
    for name, (content, _) in bad.items():
        files[name] = name.encode()
        files[name + ".zst"] = content
    nginx = site("zstd_static %s;" % how, files)
    for name, (_, why) in bad.items():
        response = fetch(nginx, "/" + name)
        check_plain(response, name.encode())
        assert response.get("Vary") is None
        lines = [s for s in nginx.log().splitlines() if why in s]
        assert any('/html/%s.zst"' % name in line for line in lines), name


def zstd_command(content, *options):
    done = subprocess.run(
        ["zstd", "-c", *options],
        input=content,
        stdout=subprocess.PIPE,
        check=True,
    )
    return done.stdout


def test_b52_as_they_are_made(site):
    """With --long=27 of a stream; 20 MB in a single segment."""
    large = TEXT * 70
    single = zstandard.ZstdCompressor(
        compression_params=zstandard.ZstdCompressionParameters.from_level(
            1, window_log=25
        )
    ).compress(large)
    good = zstd_command(TEXT, "-19")
    nginx = site(
        files={
            "long.js": large,
            "long.js.zst": zstd_command(large, "-1", "--long=27"),
            "single.js": large,
            "single.js.zst": single,
            "good.js": TEXT,
            "good.js.zst": good,
        }
    )
    check_plain(fetch(nginx, "/long.js"), large)
    check_plain(fetch(nginx, "/single.js"), large)
    is_zst(fetch(nginx, "/good.js"), good)
    for name, window in (("long", 1 << 27), ("single", len(large))):
        assert (
            '%s.js.zst" is not served: needs a window of %d bytes'
            % (name, window)
            in nginx.log()
        )


@needs_gzip
def test_bad_sibling_leaves_the_response_to_gzip(site):
    nginx = site(
        ON + "gzip on; gzip_types *; gzip_min_length 1;",
        {"bad.txt": TEXT, "bad.txt.zst": b"bad"},
    )
    response = fetch(nginx, "/bad.txt", accept=BROWSER)
    assert response.get("Content-Encoding") == "gzip"


def test_fifo_is_not_served(site):
    nginx = site(files={"p.txt": b"plain"})
    os.mkfifo(os.path.join(nginx.root, "p.txt.zst"))
    check_plain(fetch(nginx, "/p.txt"), b"plain")
    assert "is not a regular file" in nginx.log()


def test_b91_unreadable_is_not_served(make_server, monkeypatch):
    nginx = make_server()
    nginx.configure(ON)
    nginx.file("a.txt", TEXT)
    os.chmod(nginx.file("a.txt.zst", ZST), 0)
    # root can read all, but not without these
    without = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    command = nginx.command()
    if os.geteuid() == 0:
        monkeypatch.setattr(nginx, "command", lambda: without + command)
    nginx.start()
    response = fetch(nginx, "/a.txt")
    check_plain(response, TEXT)
    assert response.get("Vary") is None
    assert re.search(r"\[error\].*a\.txt\.zst.*Permission denied", nginx.log())


# Configuration


@pytest.mark.parametrize("value", ["bogus", "ON1", "1", "o", "alwayss"])
def test_b51_wrong_value_is_named(make_server, value):
    """The table of values had no end."""
    nginx = make_server()
    nginx.configure("zstd_static %s;" % value)
    right, said = nginx.test()
    assert not right
    assert 'invalid value "%s"' % value in said


@pytest.mark.parametrize(
    "text, why",
    [
        ("zstd_static;", "invalid number of arguments"),
        ("zstd_static on off;", "invalid number of arguments"),
        ("zstd_static on; zstd_static on;", "is duplicate"),
    ],
)
def test_b51_wrong_use_is_refused(make_server, text, why):
    nginx = make_server()
    nginx.configure(text)
    right, said = nginx.test()
    assert not right
    assert why in said


def test_inheritance(site):
    nginx = site(
        "zstd_static always; location /on/ { zstd_static on; alias {root}/; }"
        "location /off/ { zstd_static off; alias {root}/; }",
        http="zstd_static off;",
    )
    is_zst(fetch(nginx, "/a.txt", accept=None))
    check_plain(fetch(nginx, "/on/a.txt", accept=None), TEXT)
    is_zst(fetch(nginx, "/on/a.txt"))
    check_plain(fetch(nginx, "/off/a.txt"), TEXT)


def test_many_requests_on_one_connection(site):
    nginx = site(files={"b.txt": TEXT})
    with http1.Connection(nginx.port) as connection:
        for i in range(50):
            is_zst(connection.get("/a.txt"))
            check_plain(connection.get("/a.txt", accept="gzip"), TEXT)
            check_plain(connection.get("/b.txt"), TEXT)
