"""Growth of the worker: B06 and section I of the reported faults.

Memory is read from /proc; an NGINX under a sanitizer or valgrind has another
memory of its own, there the numbers are not compared.
"""

import threading
import time

import pytest

from support import build, data, http1
from support.check import check_response, fetch, round_trip
from support.frame import Incremental
from support.limits import KIB, MIB, pick
from support.server import wait_for
from support.upstream import chunked

PROXY = "proxy_pass http://%s; proxy_http_version 1.1;"

pytestmark = pytest.mark.skipif(
    build.is_checked(),
    reason="memory of a checked build is not the module's",
)


def endless(chunk, count, progress, lockstep):
    """The steps of a stream of equal chunks. With lockstep no chunk is sent
    before the client has the one before it."""
    gate = threading.Semaphore(1)
    progress.gate = gate

    def wait():
        gate.acquire(timeout=60)

    def steps():
        for _ in range(count):
            if lockstep:
                yield wait
            yield chunk

    return lambda *_: chunked(*steps())


class Progress:
    gate = None


# Of a stream's content this much may be kept, for what comes after it.
HISTORY = 16 * MIB


@pytest.mark.parametrize("lockstep", [True, False], ids=["turns", "burst"])
def test_b06_long_stream(serve, mode, upstream, lockstep):
    """Chain links of consumed input, or of sent output, were never given
    back: the worker grew with each chunk."""
    count = pick(20000, 4000) if lockstep else pick(400000, 280000)
    chunk = data.text(64)
    progress = Progress()
    upstream.reply("/", endless(chunk, count, progress, lockstep))
    nginx = serve(
        "location / { %s proxy_buffering off; }" % (PROXY % upstream.address),
        mode,
    )
    sizes = []  # at each eighth, without what is kept of the content
    decoder = Incremental()
    with http1.Connection(nginx.port) as client:
        client.request("/")
        response = client.head()
        freed = 1
        while not response.ended:
            decoder.feed(client.piece())
            arrived = len(decoder.content) // 64
            for _ in range(arrived + 1 - freed if lockstep else 0):
                progress.gate.release()
                freed += 1
            if arrived >= len(sizes) * count // 8:
                kept = min(len(decoder.content), HISTORY)
                sizes.append(nginx.memory() - kept)
    assert bytes(decoder.content) == chunk * count
    assert decoder.ended
    grown = [later - size for size, later in zip(sizes[3:], sizes[4:])]
    # one link for each chunk would be more, in each part
    assert min(grown) < count // 8 * 12, grown


def test_no_growth_over_many_requests(serve, mode, upstream):
    """10,000 responses of all kinds; aborted ones too."""
    nginx = serve(
        "location /gen/ { %(proxy)s }"
        "location /unbuffered/ { proxy_pass http://%(address)s/;"
        "                        proxy_buffering off; }"
        % {"proxy": PROXY % upstream.address, "address": upstream.address},
        mode,
        files={
            "small": data.text(1900),
            "middle": data.text(90000),
            "large": data.text(600000),
        },
    )
    paths = ["/small"] * 6 + [
        "/middle",
        "/small?x",
        "/gen/length/1500/1500/0",
        "/unbuffered/gen/chunked/3000/1000/0",
    ]

    def burst(count):
        with http1.Connection(nginx.port) as client:
            for number in range(count):
                client.get(paths[number % len(paths)])
                assert client.response.status == 200
                if number % 50 == 0:
                    with http1.Connection(nginx.port) as other:
                        other.request("/large")
                        other.abort()

    # How many were compressed at once at most, and on which threads, is a
    # matter of chance, and memory that was once needed is kept. What leaks
    # never comes to rest.
    part = pick(2500, 1000)
    sizes = []
    while len(sizes) < 4 or sizes[-1] - sizes[-4] > 256 * KIB:
        assert len(sizes) < 40, "it does not come to rest: %s" % sizes
        burst(part)
        sizes.append(nginx.memory())
    round_trip(nginx, "/large", data.text(600000))


def test_b63_many_connections_at_a_high_level(serve, mode):
    """Killed for lack of memory: a workspace for each request."""
    content = data.text(100 * KIB)
    nginx = serve(
        "",
        mode,
        # the first has to wait until the last has been answered
        http="zstd_comp_level 16; send_timeout 600s;",
        files={"f": content},
    )
    count = pick(1000, 200)
    before = nginx.memory()
    clients = []
    for _ in range(count):
        client = http1.Connection(nginx.port, receive_buffer=4096)
        client.request("/f")
        clients.append(client)
    for client in clients:
        client.head()
    for number, client in enumerate(clients):
        client.read()
        if number % 50 == 0:
            check_response(client.response, content)
        client.close()
    used = nginx.memory("VmHWM") - before
    # a workspace of that level for 100 KB has about 4 MiB
    assert used < count * 300 * KIB + 64 * MIB, "%.0f MiB" % (used / MIB)


def test_b63_small_known_sizes_take_little(serve, mode):
    """The level's full tables for a body of 2 KB cost 85 MB."""
    nginx = serve(
        "", mode, http="zstd_comp_level 19;", files={"f": data.text(2000)}
    )
    before = nginx.memory()
    for _ in range(20):
        round_trip(nginx, "/f", data.text(2000))
    used = nginx.memory("VmHWM") - before
    assert used < 16 * MIB, "%.0f MiB" % (used / MIB)


def test_b63_open_streams_hold_no_encoder(serve, mode, upstream):
    """Many streams that wait for their next event."""
    count = pick(300, 100)
    events = [threading.Event() for _ in range(count)]
    done = threading.Event()

    def steps(number):
        yield data.text(2000, number)
        yield lambda: events[number].set()
        yield lambda: done.wait(60)
        yield b"end"

    for number in range(count):
        upstream.reply(
            "/%d" % number, lambda *_, n=number: chunked(*steps(n))
        )
    nginx = serve(
        "location / { %s proxy_buffering off; }" % (PROXY % upstream.address),
        mode,
        http="zstd_comp_level 9;",
    )
    fetch(nginx, "/gen/chunked/100000/1000/0")
    before = nginx.memory()
    clients = []
    for number in range(count):
        client = http1.Connection(nginx.port)
        client.request("/%d" % number)
        clients.append((client, Incremental()))
    for client, decoder in clients:
        client.head()
        while decoder.feed(client.piece()) < 2000:
            pass
    used = nginx.memory("VmHWM") - before
    done.set()
    for number, (client, _) in enumerate(clients):
        check_response(
            client.read(), data.text(2000, number) + b"end", command=False
        )
        client.close()
    # an encoder of that level has 10 MiB or more
    assert used / count < 512 * KIB, "%.0f KiB for each" % (used / count / KIB)


def test_b94_slow_clients_hold_no_workspace(serve, mode):
    """It was held until the slow client had all."""
    count = pick(300, 100)
    content = data.text(700 * KIB)
    nginx = serve(
        "", mode, http="zstd_comp_level 9;", files={"f": content}
    )
    fetch(nginx, "/f")
    before = nginx.memory()
    clients = []
    for _ in range(count):
        client = http1.Connection(nginx.port, receive_buffer=4096)
        client.request("/f")
        clients.append(client)
    for client in clients:
        client.head()
    wait_for(lambda: calm(nginx), "the end of the compression", 60)
    each = (nginx.memory("VmHWM") - before) / count
    check_response(clients[0].read(), content, command=False)
    for client in clients:
        client.close()
    # the content and its result, but not 10 MiB of tables
    assert each < 1.6 * MIB, "%.2f MiB for each" % (each / MIB)


def calm(nginx):
    before = nginx.cpu()
    time.sleep(0.3)
    return nginx.cpu() - before < 0.03
