"""Every way by which a response comes, over both protocols, at levels from
the fastest to the slowest, at the borders of sizes: decoded and compared."""

import pytest

from support import build, data, http1, http2
from support.check import check_response
from support.limits import KIB, MIB, SHORT, pick

LEVELS = (1, 3, 9, 19, 22)

SMALL = (0, 1, 19, 20, 4095, 4096, 4097)
MIDDLE = (128 * KIB - 1, 128 * KIB, 128 * KIB + 1)
LARGE = (MIB - 1, MIB, MIB + 1, 10 * MIB)

WAYS = ("file", "length", "chunked", "close", "unbuffered", "cached")

LOCATIONS = """
    location /%(level)d/ {
        zstd_comp_level %(level)d;
        proxy_http_version 1.1;
        location /%(level)d/file/ { alias {root}/; }
        location /%(level)d/length/ {
            proxy_pass http://%(up)s/gen/length/;
        }
        location /%(level)d/chunked/ {
            proxy_pass http://%(up)s/gen/chunked/;
        }
        location /%(level)d/close/ {
            proxy_pass http://%(up)s/gen/close/;
        }
        location /%(level)d/unbuffered/ {
            proxy_buffering off;
            proxy_pass http://%(up)s/gen/chunked/;
        }
        location /%(level)d/cached/ {
            proxy_cache c;
            proxy_cache_key $request_uri;
            proxy_cache_valid 200 1h;
            proxy_pass http://%(up)s/gen/length/;
        }
    }
"""


def sizes_of(level, way, protocol):
    """All of them where that is quick; at the slowest levels the largest come
    only once, and in the short form only one."""
    large = LARGE
    if level >= 19 and (SHORT or (way, protocol) != ("file", "h1")):
        large = (MIB + 1,)
    if level >= 19 and way not in ("file", "chunked"):
        large = pick((MIB + 1,), ())
    sizes = SMALL + MIDDLE + large
    return pick(sizes, [s for s in sizes if s <= MIB + 1 or level <= 3])


def urls(level, way, protocol):
    """Pairs of path and size; what is cached comes twice."""
    for size in sizes_of(level, way, protocol):
        if way == "file":
            yield "/%d/file/f%d" % (level, size), size
            continue
        chunk = {"chunked": 3000, "unbuffered": 9000}.get(way, 65536)
        if size > MIB + 1:
            chunk = 65536
        path = "/%d/%s/%d/%d/0" % (level, way, size, chunk)
        yield path, size
        if way == "cached":
            yield path, size


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("protocol", ["h1", "h2"])
def test_matrix(serve, mode, upstream, protocol, level):
    if protocol == "h2" and not build.nginx_has("http_v2_module"):
        pytest.skip("this NGINX has no HTTP/2")
    sizes = set(SMALL + MIDDLE + LARGE)
    contents = {size: data.text(size) for size in sizes}
    nginx = serve(
        LOCATIONS % {"level": level, "up": upstream.address},
        mode,
        http="proxy_cache_path {prefix}/cache keys_zone=c:1m;",
        files={"f%d" % size: text for size, text in contents.items()},
    )
    client = (
        http1.Connection(nginx.port, timeout=120)
        if protocol == "h1"
        else http2.Connection(nginx.h2_port, timeout=120)
    )
    with client:
        for way in WAYS:
            for path, size in urls(level, way, protocol):
                response = client.get(path)
                try:
                    check_response(
                        response, contents[size], command=size < 2 * MIB
                    )
                except AssertionError as e:
                    raise AssertionError("%s: %s" % (path, e)) from e
