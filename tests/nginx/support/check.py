"""Whether a response is what the client should get."""

from support import frame, http1, http2

NO_TRANSFORM_FIELDS = ("Content-Length", "Accept-Ranges")


def fetch(server, path, protocol="h1", **options):
    """A whole response, on a connection of its own: "h1", "h2", or either
    over TLS, "h1s" and "h2s"."""
    module = http2 if protocol.startswith("h2") else http1
    if protocol.endswith("s"):
        return module.get(server.tls_port, path, tls=True, **options)
    port = server.h2_port if module is http2 else server.port
    return module.get(port, path, **options)


def round_trip(server, path, content, status=200, command=True, **options):
    """Fetches, and checks all that check_response() does."""
    response = fetch(server, path, **options)
    return check_response(response, content, status, command)


def check_response(response, content, status=200, command=True):
    """One zstd frame, and for all decoders exactly this content, with a
    proper end; returns the fields of the frame. Nothing may be sent as it
    is: then there is no frame, and None is returned."""
    assert response.status == status
    check_end(response)
    if not content and response.get("Content-Encoding") is None:
        assert response.body == b""
        return None
    assert response.get("Content-Encoding") == "zstd"
    for name in NO_TRANSFORM_FIELDS:
        assert response.get(name) is None, name
    return frame.check_body(response.body, content, command)


def check_either(response, content):
    """Compressed, or as it is: what happens when memory is short."""
    if response.get("Content-Encoding") is None:
        check_plain(response, content)
    else:
        check_response(response, content, command=False)


def check_plain(response, content, status=200):
    """The content as it is, with a proper end."""
    assert response.status == status
    check_end(response)
    assert response.get("Content-Encoding") is None
    wrong = frame.difference(response.body, content)
    assert wrong is None, wrong


def check_end(response):
    assert response.ended, "no proper end"
    if isinstance(response, http2.Stream):
        assert response.ends == 1, "END_STREAM %d times" % response.ends
        assert response.reset in (None, 0), "reset %s" % response.reset


def check_part(body, content, at_least=0):
    """What a broken response may be: a frame without its end, which decodes
    to a part of the content; returns how much that is."""
    decoder = frame.Incremental()
    decoder.feed(body)
    assert not decoder.ended, "the end of the frame is forged"
    part = bytes(decoder.content)
    assert content.startswith(part), frame.difference(part, content)
    assert len(part) >= at_least, "only %d bytes" % len(part)
    return len(part)
