"""Dictionaries: section F of the reported faults."""

import os

import pytest
import zstandard

from support import data, frame
from support.check import fetch, round_trip
from support.frame import FrameError, the_frame
from support.limits import KIB, MIB, WINDOW_MAX
from support.upstream import whole

PROXY = "proxy_pass http://%s; proxy_http_version 1.1;"
CONTENT = data.text(30000, 3)
RAW = data.text(40000, 3)[10000:]  # has two thirds of the content
OTHER = data.text(30000, 77)
MAGIC = b"\x37\xa4\x30\xec"


@pytest.fixture(scope="module")
def trained():
    samples = [data.text(1000, seed) for seed in range(200)]
    return zstandard.train_dictionary(16 * KIB, samples, k=200, d=8)


def raw_dictionary(content):
    return zstandard.ZstdCompressionDict(
        content, dict_type=zstandard.DICT_TYPE_RAWCONTENT
    )


def check_with(response, content, dictionary, path):
    """Decodes with this dictionary, by both decoders; the frame's fields."""
    assert response.status == 200
    assert response.get("Content-Encoding") == "zstd"
    body = response.body
    fields = the_frame(body)
    got = frame.decode_by_library(body, dictionary)
    assert frame.difference(got, content) is None
    got = frame.decode_by_command(body, path)
    assert frame.difference(got, content) is None
    return fields


def test_b46_only_where_it_is_said(serve, mode, trained):
    """A private dictionary was used for clients that do not have it: it is
    where zstd_dict_file is, and nowhere else."""
    nginx = serve(
        "location /dict { zstd_dict_file {root}/d; alias {root}/f; }"
        "location /plain { alias {root}/f; }",
        mode,
        files={"f": CONTENT, "d": trained.as_bytes()},
    )
    path = os.path.join(nginx.root, "d")
    fields = check_with(fetch(nginx, "/dict"), CONTENT, trained, path)
    assert fields.dict_id == trained.dict_id()
    with pytest.raises((FrameError, zstandard.ZstdError)):
        frame.decode_by_library(fetch(nginx, "/dict").body)
    assert round_trip(nginx, "/plain", CONTENT).dict_id == 0


def test_b46_it_helps(serve, mode, trained):
    """A dictionary that makes nothing smaller is not used."""
    small = data.text(900, 4321)
    nginx = serve(
        "location /dict { zstd_dict_file {root}/d; alias {root}/f; }"
        "location /raw { zstd_dict_file {root}/r; alias {root}/f; }"
        "location /plain { alias {root}/f; }",
        mode,
        files={"f": small, "d": trained.as_bytes(), "r": small * 3},
    )
    plain = len(fetch(nginx, "/plain").body)
    assert len(fetch(nginx, "/dict").body) < plain * 0.9
    assert len(fetch(nginx, "/raw").body) < plain * 0.2


def test_b47_inheritance(serve, make_server, mode, trained):
    """Merged before it was known whether zstd is on there, the dictionary
    was not used, or the parent's level was kept."""
    nginx = serve(
        """
        zstd off;
        location /a { zstd on; alias {root}/f; }
        location /b { zstd on; zstd_comp_level 9; alias {root}/f; }
        location /c { zstd on; zstd_comp_level 19; alias {root}/f; }
        location /off { zstd on; zstd_dict_file off; alias {root}/f;
            location /off/inner { alias {root}/f; }
            location /off/again { zstd_dict_file {root}/d; alias {root}/f; }
        }
        location /none { alias {root}/f; }
        """,
        mode,
        zstd="zstd_types *; zstd_min_length 0; zstd_dict_file {root}/d;",
        files={"f": CONTENT, "d": trained.as_bytes()},
    )
    path = os.path.join(nginx.root, "d")
    sizes = []
    for location in ("/a", "/b", "/c", "/off/again"):
        response = fetch(nginx, location)
        fields = check_with(response, CONTENT, trained, path)
        assert fields.dict_id == trained.dict_id()
        sizes.append(len(response.body))
    assert sizes[0] > sizes[1] > sizes[2]
    for location in ("/off", "/off/inner"):
        assert round_trip(nginx, location, CONTENT).dict_id == 0
    response = fetch(nginx, "/none")
    assert response.get("Content-Encoding") is None


@pytest.mark.parametrize("kind", ["length", "chunked"])
def test_b49_raw_dictionary_is_checked(serve, mode, upstream, kind):
    """Raw content has no id: with another file of the same size the frame
    decoded to wrong bytes. So it carries a checksum."""
    nginx = serve(
        "location / { proxy_pass http://%s; proxy_http_version 1.1;"
        "  zstd_dict_file {root}/d; }" % upstream.address,
        mode,
        files={"d": RAW, "other": OTHER},
    )
    upstream.reply("/text", lambda *_: whole(CONTENT))
    path = os.path.join(nginx.root, "d")
    response = fetch(nginx, "/text")
    fields = check_with(response, CONTENT, raw_dictionary(RAW), path)
    assert fields.checksum and fields.dict_id == 0
    assert len(response.body) < len(CONTENT) / 5
    with pytest.raises((FrameError, zstandard.ZstdError)):
        frame.decode_by_library(response.body, raw_dictionary(OTHER))
    with pytest.raises(FrameError):
        frame.decode_by_command(
            response.body, os.path.join(nginx.root, "other")
        )
    for size in (0, 1, 5000, 300000):
        generated = "/gen/%s/%d/3000/0" % (kind, size)
        response = fetch(nginx, generated)
        if size or response.get("Content-Encoding"):
            fields = check_with(
                response, data.text(size), raw_dictionary(RAW), path
            )
            assert fields.checksum


def test_b49_no_checksum_without_a_raw_dictionary(serve, mode, trained):
    nginx = serve(
        "location /t { zstd_dict_file {root}/d; alias {root}/f; }"
        "location /p { alias {root}/f; }",
        mode,
        files={"f": CONTENT, "d": trained.as_bytes()},
    )
    path = os.path.join(nginx.root, "d")
    assert not check_with(
        fetch(nginx, "/t"), CONTENT, trained, path
    ).checksum
    assert not round_trip(nginx, "/p", CONTENT).checksum


@pytest.mark.parametrize(
    "name, content",
    [
        ("empty", b""),
        ("seven", b"1234567"),
        ("broken", MAGIC + b"\x01\0\0\0" + data.noise(500)),
        ("cut", None),
        ("missing", None),
        ("folder", None),
        ("unset", None),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_b87_bad_files_are_named(make_server, name, content, trained):
    """Accepted and then ignored."""
    nginx = make_server()
    if name == "cut":
        content = trained.as_bytes()[:100]
    if content is not None:
        nginx.file(name, content)
    elif name == "folder":
        os.mkdir(os.path.join(nginx.root, name))
    value = '""' if name == "unset" else "{root}/" + name
    nginx.configure(http="zstd on; zstd_dict_file %s;" % value)
    right, says = nginx.test()
    assert not right
    assert "[emerg]" in says
    if name != "unset":
        assert os.path.join(nginx.root, name) in says, says
    assert "zstd_dict_file" in says or "dictionary" in says or "open" in says
    assert "nginx.conf:" in says or name == "missing", says


def test_b87_large_file(make_server):
    """100 MB: refused with a clear error, or used; not ignored."""
    nginx = make_server()
    path = nginx.file("large", b"")
    with open(path, "wb") as f:
        f.truncate(100 * MIB)
    nginx.configure(
        http="zstd on; zstd_types *; zstd_min_length 0;"
        "zstd_dict_file {root}/large;"
    )
    right, says = nginx.test()
    if not right:
        assert "[emerg]" in says and path in says
        return
    nginx.file("f", CONTENT)
    nginx.start()
    response = fetch(nginx, "/f")
    assert frame.Frame(response.body).checksum


@pytest.mark.parametrize("kind", ["trained", "raw"])
def test_b88_long_content(serve, mode, upstream, trained, kind):
    """Only the first segment may use the dictionary; window and history of
    the others must be right."""
    dictionary = trained if kind == "trained" else raw_dictionary(RAW)
    content = trained.as_bytes() if kind == "trained" else RAW
    nginx = serve(
        "location / { %s zstd_comp_level 5; zstd_dict_file {root}/d;"
        "             zstd_parallel_segment_size 1m; }"
        % (PROXY % upstream.address),
        mode,
        files={"d": content, "f": data.text(8 * MIB + 1)},
    )
    path = os.path.join(nginx.root, "d")
    for url in (
        "/gen/length/%d/65536/0" % (8 * MIB + 1),
        "/gen/chunked/%d/65536/0" % (8 * MIB + 1),
    ):
        fields = check_with(
            fetch(nginx, url), data.text(8 * MIB + 1), dictionary, path
        )
        assert fields.window <= WINDOW_MAX


def test_many_dictionaries_and_reloads(serve, mode):
    """Each location has its own; a changed file is used after a reload."""
    count = 8
    texts = [data.text(3000, 100 + i) for i in range(count)]
    nginx = serve(
        "".join(
            "location /%d { zstd_dict_file {root}/d%d; }" % (i, i)
            for i in range(count)
        ),
        mode,
        files={
            **{"d%d" % i: t for i, t in enumerate(texts)},
            **{"%d" % i: t for i, t in enumerate(texts)},
        },
    )
    for turn in range(3):
        for i, content in enumerate(texts):
            response = fetch(nginx, "/%d" % i)
            path = os.path.join(nginx.root, "d%d" % i)
            with open(path, "rb") as f:
                dictionary = raw_dictionary(f.read())
            check_with(response, content, dictionary, path)
        texts_of_dicts = texts[turn + 1 :] + texts[: turn + 1]
        for i, text in enumerate(texts_of_dicts):
            nginx.file("d%d" % i, text)
        nginx.reload()


def test_wrong_client_gets_an_error_not_garbage(serve, mode, trained):
    """What a client without the dictionary sees is an error."""
    nginx = serve(
        "zstd_dict_file {root}/d;",
        mode,
        files={"f": CONTENT, "d": trained.as_bytes()},
    )
    body = fetch(nginx, "/f").body
    with pytest.raises(FrameError, match="zstd:"):
        frame.decode_by_command(body)
