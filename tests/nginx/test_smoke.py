from support.check import round_trip


def test_static(serve, texts, mode):
    nginx = serve(mode=mode, files={"f%d" % s: t for s, t in texts.items()})
    for size, content in texts.items():
        round_trip(nginx, "/f%d" % size, content)
        round_trip(nginx, "/f%d" % size, content, protocol="h2")


def test_proxied(serve, texts, mode, upstream):
    nginx = serve(
        "location /gen/ { proxy_pass http://%s; proxy_http_version 1.1; }"
        % upstream.address, mode=mode
    )
    for kind in "chunked", "length", "close":
        for size, content in texts.items():
            if size:
                round_trip(nginx, "/gen/%s/%d/8192/0" % (kind, size), content)
