"""What may happen to a request, a connection or a worker while a response is
being compressed."""

import contextlib
import os
import random
import re
import subprocess
import threading
import time

import pytest

from support import build, data, http1, http2
from support.check import check_part, check_plain, check_response, fetch
from support.check import round_trip
from support.limits import KIB, MIB, SCALE, pick, seconds
from support.server import alive, children, title, wait_for
from support.upstream import RESET, Chunk, Wait, chunked, head, whole

PROXY = "proxy_pass http://%s; proxy_http_version 1.1;"
TEXT = data.text(300000)


def needs(option):
    return pytest.mark.skipif(
        not build.nginx_has(option), reason="this NGINX has no " + option
    )


# Connections


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_keepalive(serve, mode, upstream, tls):
    """One after the other on one connection, compressed and not."""
    sizes = (1, 3000, 200000, MIB + 5)
    nginx = serve(
        "location /gen/ { %s } location /plain { zstd off; alias {root}/f1; }"
        % (PROXY % upstream.address),
        mode,
        files={"f%d" % size: data.text(size) for size in sizes},
        tls=tls,
    )
    rnd = random.Random(1)
    port = nginx.tls_port if tls else nginx.port
    with http1.Connection(port, tls=tls) as client:
        for number in range(pick(150, 40)):
            size = rnd.choice(sizes)
            kind = rnd.choice(["file", "length", "chunked", "plain", "head"])
            if kind == "plain":
                check_plain(client.get("/plain"), data.text(1))
            elif kind == "head":
                client.get("/f%d" % size, method="HEAD")
                assert client.response.status == 200
            elif kind == "file":
                check_response(
                    client.get("/f%d" % size), data.text(size), command=False
                )
            else:
                path = "/gen/%s/%d/9000/0" % (kind, size)
                check_response(
                    client.get(path), data.text(size), command=False
                )


def test_pipelined(serve, mode, upstream):
    """The requests are all there before the first response."""
    sizes = (200000, 1, 3000, MIB, 0, 5, 700000, 20)
    nginx = serve(
        "location /gen/ { %s }" % (PROXY % upstream.address),
        mode,
        files={"f%d" % size: data.text(size) for size in sizes},
    )
    with http1.Connection(nginx.port) as client:
        for turn in range(3):
            for size in sizes:
                path = "/f%d" % size
                if turn % 2 and size:
                    path = "/gen/chunked/%d/5000/0" % size
                client.request(path)
            for size in sizes:
                client.head()
                check_response(
                    client.read(), data.text(size), command=False
                )


def test_http10(serve, mode):
    """Without chunks: the end of the connection is that of the body."""
    nginx = serve(
        "location /11 { zstd_http_version 1.1; alias {root}/f; }",
        mode,
        files={"f": TEXT},
    )
    check_plain(fetch(nginx, "/11", version="1.0"), TEXT)
    check_response(fetch(nginx, "/11"), TEXT)
    for fields in ({}, {"Connection": "keep-alive"}):
        response = fetch(nginx, "/f", version="1.0", fields=fields)
        check_response(response, TEXT)
        assert response.ended == "close"


def test_tls(serve, mode, upstream):
    nginx = serve(
        "location /gen/ { %s } ssl_buffer_size 4k;"
        % (PROXY % upstream.address),
        mode,
        files={"f": data.text(3 * MIB)},
        tls=True,
    )
    for protocol in ("h1s", "h2s"):
        round_trip(nginx, "/f", data.text(3 * MIB), protocol=protocol)
        path = "/gen/chunked/400000/3000/0"
        round_trip(nginx, path, data.text(400000), protocol=protocol)


def test_tls__error_page_that_is_not_compressed(serve, mode):
    """A filter behind ours begins the response anew, elsewhere: what NGINX
    asks for with TLS holds there."""
    # of a longer one NGINX 1.22 sends the first 64 KiB to HTTP/2 clients
    page = data.text(60000)
    nginx = serve(
        "error_page 412 /page; location = /page { zstd off; }",
        mode,
        files={"f": TEXT, "page": page},
        tls=True,
    )
    fields = {"If-Match": '"other"'}
    for protocol in ("h1s", "h2s"):
        response = fetch(nginx, "/f", protocol=protocol, fields=fields)
        check_plain(response, page, status=412)


@pytest.mark.parametrize("how", ["file", "proxied", "unbuffered"])
def test_abort_at_random_moments(serve, mode, upstream, how):
    """Before the head, in the middle, at the end; then the next one is
    whole, and nothing of the others is left."""
    nginx = serve(
        "location /gen/ { %s proxy_buffering %s; }"
        % (PROXY % upstream.address, "off" if how == "unbuffered" else "on"),
        mode,
        http="zstd_comp_level 6;",
        files={"f": data.text(2 * MIB)},
    )
    path = "/f" if how == "file" else "/gen/length/%d/30000/0" % (2 * MIB)
    rnd = random.Random(2)
    before = nginx.connections()
    for number in range(pick(100, 25)):
        with http1.Connection(nginx.port, receive_buffer=8192) as client:
            client.request(path)
            wanted = rnd.choice([0, 0, 1, 1000, 100000, 500000])
            if wanted:
                client.head()
                while len(client.response.body) < wanted:
                    if not client.piece():
                        break
            if rnd.random() < 0.5:
                client.abort()
    wait_for(lambda: nginx.connections() <= before + 2, "their end")
    round_trip(nginx, path, data.text(2 * MIB))


def test_half_closed_client(serve, mode):
    """It sends no more, and reads on. NGINX may take that for a client that
    has gone: then the end is not forged."""
    content = data.text(MIB)
    nginx = serve("", mode, files={"f": content})
    for _ in range(pick(20, 5)):
        with http1.Connection(nginx.port) as client:
            client.request("/f")
            client.head()
            client.socket.shutdown(1)
            try:
                client.read()
            except http1.Cut:
                check_part(client.response.body, content)
            else:
                check_response(client.response, content)


def test_upstream_resets(serve, mode, upstream):
    """In the middle of a body: what came is delivered, no end is forged."""
    content = data.text(500000)
    upstream.reply(
        "/",
        [
            head(content_type="text/plain", transfer_encoding="chunked"),
            Chunk(content),
            RESET,
        ],
    )
    nginx = serve(
        "location / { %s proxy_buffering off; }" % (PROXY % upstream.address),
        mode,
    )
    for _ in range(5):
        with http1.Connection(nginx.port) as client:
            client.request("/")
            client.head()
            client.read_cut()
            check_part(client.response.body, content)
    round_trip(nginx, "/gen/length/5000/900/0", data.text(5000))


def test_upstream_times_out(serve, mode, upstream):
    content = data.text(200000)
    never = threading.Event()
    upstream.reply("/", chunked(content, Wait(never)))
    nginx = serve(
        "location / { %s proxy_buffering off; proxy_read_timeout 300ms; }"
        % (PROXY % upstream.address),
        mode,
    )
    with http1.Connection(nginx.port) as client:
        client.request("/")
        client.head()
        client.read_cut()
        check_part(client.response.body, content, len(content))
    never.set()


# Requests that become others


def test_internal_redirects(serve, mode, upstream):
    upstream.reply(
        "/accel",
        lambda *_: whole(b"x" * 5000, X_Accel_Redirect="/internal/f"),
    )
    upstream.reply("/500", lambda *_: whole(b"", status="500 Bad"))
    nginx = serve(
        """
        location /accel { %(proxy)s }
        location /internal/ { internal; alias {root}/; }
        location /try/ { try_files /none /also/none /f; }
        location /rewrite { rewrite ^ /f last; }
        location /named { error_page 418 = @named; return 418; }
        location @named { root {root}; rewrite ^ /f break; }
        location /500 { %(proxy)s proxy_intercept_errors on;
                        error_page 500 502 /50x.html; }
        location /down { proxy_pass http://127.0.0.1:1;
                         error_page 502 =200 /f; }
        location /dir/ { index f; }
        location /loop { error_page 404 /loop404; return 404; }
        location /loop404 { return 404 %(text)s; }
        """
        % {"proxy": PROXY % upstream.address, "text": "t" * 900},
        mode,
        files={"f": TEXT, "50x.html": TEXT[:9000], "dir/f": TEXT[:70000]},
    )
    for path, content, status in (
        ("/accel", TEXT, 200),
        ("/try/x", TEXT, 200),
        ("/rewrite", TEXT, 200),
        ("/named", TEXT, 200),
        ("/500", TEXT[:9000], 500),
        ("/down", TEXT, 200),
        ("/dir/", TEXT[:70000], 200),
        ("/loop", b"t" * 900, 404),
    ):
        response = fetch(nginx, path)
        if status == 500:
            check_plain(response, content, status)
        else:
            check_response(response, content, status)


@needs("http_auth_request_module")
def test_auth_request_late(serve, mode, upstream):
    """The answer about the client comes later than the connection's other
    requests."""
    turn = threading.Event()
    upstream.reply("/auth", chunked(Wait(turn), b"ok"))
    nginx = serve(
        "location / { auth_request /auth; }"
        "location = /auth { %s }" % (PROXY % upstream.address),
        mode,
        files={"f": TEXT},
    )
    clients = [http1.Connection(nginx.port) for _ in range(10)]
    for client in clients:
        client.request("/f")
    clients[0].abort()
    turn.set()
    for client in clients[1:]:
        client.head()
        check_response(client.read(), TEXT, command=False)
        client.close()


def test_mirror(serve, mode, upstream):
    seen = threading.Event()
    upstream.reply("/copy", lambda *_: [seen.set, *whole(TEXT)])
    nginx = serve(
        "location / { mirror /copy; }"
        "location = /copy { internal; %s }" % (PROXY % upstream.address),
        mode,
        files={"f": TEXT},
    )
    with http1.Connection(nginx.port) as client:
        for _ in range(5):
            check_response(client.get("/f"), TEXT)
            wait_for(seen.is_set, "the copy of the request")
            seen.clear()


@needs("http_addition_module")
def test_addition(serve, mode, upstream):
    nginx = serve(
        "location /add { add_before_body /gen/chunked/90000/700/0;"
        "  add_after_body /gen/length/100/100/0; addition_types *; }"
        "location /gen/ { %s }" % (PROXY % upstream.address),
        mode,
        files={"add": TEXT},
    )
    wanted = data.text(90000) + TEXT + data.text(100)
    for protocol in ("h1", "h2"):
        round_trip(nginx, "/add", wanted, protocol=protocol)


# Cache


def test_cache_hit_miss_stale(serve, mode, upstream):
    answers = {"status": "200 OK", "body": TEXT}
    upstream.reply(
        "/c",
        lambda *_: whole(
            answers["body"],
            status=answers["status"],
            Cache_Control="max-age=1",
            ETag='"1"',
        ),
    )
    nginx = serve(
        """
        location / {
            %s
            proxy_cache c;
            proxy_cache_use_stale error timeout http_500 updating;
            proxy_cache_background_update on;
            proxy_cache_lock on;
            add_header X-Cache $upstream_cache_status always;
        }
        """
        % (PROXY % upstream.address),
        mode,
        http="proxy_cache_path {prefix}/cache keys_zone=c:1m;",
    )

    def get(accept="zstd"):
        response = fetch(nginx, "/c", accept=accept)
        if accept:
            check_response(response, TEXT)
        else:
            check_plain(response, TEXT)
        return response.get("X-Cache")

    assert get() == "MISS"
    assert get() == "HIT"
    assert get(None) == "HIT"
    answers.update(status="500 Bad", body=b"broken")
    states = set()

    def stale():
        states.add(get())
        return "STALE" in states

    wait_for(stale, "a stale response", step=0.2)
    get(None)


def test_cache_lock_with_many_clients(serve, mode, upstream):
    """All wait for the one that fills the cache."""
    turn = threading.Event()
    upstream.reply("/c", chunked(TEXT[:1000], Wait(turn), TEXT[1000:]))
    nginx = serve(
        "location / { %s proxy_cache c; proxy_cache_lock on;"
        "             proxy_cache_valid 200 1h; }"
        % (PROXY % upstream.address),
        mode,
        http="proxy_cache_path {prefix}/cache keys_zone=c:1m;",
    )
    clients = [http1.Connection(nginx.port) for _ in range(20)]
    for client in clients:
        client.request("/c")
    turn.set()
    for client in clients:
        client.head()
        check_response(client.read(), TEXT, command=False)
        client.close()
    assert upstream.requests.qsize() == 1


@pytest.mark.parametrize("where", ["cache", "store"])
def test_client_leaves_while_the_cache_is_filled(
    serve, mode, upstream, where
):
    """NGINX goes on reading what it stores; that a job was out when the
    client left changes nothing."""
    content = data.text(4 * MIB)
    rest = threading.Event()
    upstream.reply(
        "/c", chunked(content[: 3 * MIB], Wait(rest), content[3 * MIB :])
    )
    how = {
        "cache": "proxy_cache c; proxy_cache_valid 200 1h;",
        # without it NGINX ends it, where it sees the client leave
        "store": "proxy_store {prefix}/stored; proxy_ignore_client_abort on;",
    }
    nginx = serve(
        "location / { %s %s }" % (PROXY % upstream.address, how[where]),
        mode,
        http="zstd_comp_level 12; proxy_max_temp_file_size 0;"
        "proxy_cache_path {prefix}/cache keys_zone=c:1m;",
    )
    with http1.Connection(nginx.port) as client:
        client.request("/c")
        client.head()
        client.piece()
        client.abort()
    gone = re.compile(r"prematurely closed|(recv|send|writev)\(\) failed")
    wait_for(lambda: gone.search(nginx.log()), "NGINX to see it")
    rest.set()

    def is_stored():
        for folder, _, names in os.walk(nginx.prefix):
            for name in names:
                path = os.path.join(folder, name)
                if "temp" not in path and os.path.getsize(path) >= len(
                    content
                ):
                    return True
        return False

    wait_for(is_stored, "the whole content in the " + where)
    if where == "cache":
        round_trip(nginx, "/c", content, command=False)
    assert upstream.requests.qsize() == 1


# Files and sending


@pytest.mark.parametrize("protocol", ["h1", "h2", "h1s"])
def test_limit_rate(serve, mode, protocol):
    """The compressed bytes are what is limited: about 360 KB, of which the
    first second's may go at once."""
    nginx = serve(
        "limit_rate 150k; limit_rate_after 10k;",
        mode,
        files={"f": data.text(900 * KIB)},
        tls=True,
    )
    start = time.monotonic()
    round_trip(nginx, "/f", data.text(900 * KIB), protocol=protocol)
    assert 0.9 < time.monotonic() - start < seconds(15)


def test_file_that_shrinks(serve, mode):
    """While it is read: the response ends as an error."""
    size = 30 * MIB
    nginx = serve(
        "", mode, http="zstd_comp_level 9;", files={"f": data.text(size)}
    )
    why = "the file is shorter than it was when it was opened"
    # NGINX's own words, or ours
    texts = ["ended early at ", "reading the input failed"]
    for text in ["only "] if mode.name == "loop" else texts:
        nginx.allow(text, why)
    with http1.Connection(nginx.port, receive_buffer=4096) as client:
        client.request("/f")
        client.head()
        while len(client.response.body) < 10000:
            client.piece()
        os.truncate(os.path.join(nginx.root, "f"), 2 * MIB)
        client.read_cut()
        check_part(client.response.body, data.text(size))
    assert '"%s/f"' % nginx.root in nginx.log()
    nginx.file("g", TEXT)
    round_trip(nginx, "/g", TEXT)


FAILING_DISK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/stat.h>
#include <sys/types.h>

/* A file of 5 MiB whose disk has a fault behind its first 2 MiB. */
static ssize_t read_at(const char *name, int fd, void *buf, size_t len,
                       off_t at)
{
    struct stat info;
    ssize_t (*next)(int, void *, size_t, off_t) =
        (ssize_t (*)(int, void *, size_t, off_t))dlsym(RTLD_NEXT, name);

    if (at >= 2 << 20 && fstat(fd, &info) == 0 && info.st_size == 5 << 20) {
        errno = EIO;
        return -1;
    }
    return next(fd, buf, len, at);
}

ssize_t pread(int fd, void *buf, size_t len, off_t at)
{
    return read_at("pread", fd, buf, len, at);
}

ssize_t pread64(int fd, void *buf, size_t len, off_t at)
{
    return read_at("pread64", fd, buf, len, at);
}
"""


@pytest.mark.skipif(build.is_checked(), reason="the sanitizer is first")
def test_file_that_cannot_be_read(make_server, mode, tmp_path):
    """The response ends as an error, and the log says of which file."""
    source = tmp_path / "disk.c"
    source.write_text(FAILING_DISK)
    library = str(tmp_path / "disk.so")
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-o", library, str(source), "-ldl"],
        check=True,
    )
    content = data.text(5 * MIB)
    nginx = make_server()
    nginx.file("f", content)
    nginx.file("g", TEXT)
    nginx.environment["LD_PRELOAD"] = library
    nginx.configure(
        http="zstd on; zstd_types *; sendfile on;" + mode.http, main=mode.main
    )
    nginx.start()
    nginx.allow("failed (5: ", "the file cannot be read")
    nginx.allow("reading the input failed", "the file cannot be read")
    for _ in range(3):
        with http1.Connection(nginx.port) as client:
            client.request("/f")
            # a job behind it may fail before the first output is there
            with contextlib.suppress(http1.Cut):
                client.head()
                client.read()
                raise AssertionError("the response ended as if it were whole")
            if client.response:
                check_part(client.response.body, content)
        round_trip(nginx, "/g", TEXT)
    log = nginx.log()
    assert re.search(r'"%s/f" failed \(5: ' % re.escape(nginx.root), log)


def test_file_that_is_replaced(serve, mode):
    """A new file of that name does not change a response that has begun."""
    size = 20 * MIB
    nginx = serve("", mode, files={"f": data.text(size)})
    with http1.Connection(nginx.port, receive_buffer=4096) as client:
        client.request("/f")
        client.head()
        os.unlink(os.path.join(nginx.root, "f"))
        nginx.file("f", TEXT)
        check_response(client.read(), data.text(size))
    round_trip(nginx, "/f", TEXT)


def test_open_file_cache(serve, mode):
    """The descriptor is shared with other requests."""
    nginx = serve(
        "open_file_cache max=10; open_file_cache_valid 1s;",
        mode,
        files={"f": data.text(4 * MIB)},
    )
    clients = [http1.Connection(nginx.port) for _ in range(8)]
    for _ in range(2):
        for client in clients:
            client.request("/f")
        for client in clients:
            client.head()
            check_response(client.read(), data.text(4 * MIB), command=False)
    for client in clients:
        client.close()


@pytest.mark.parametrize(
    "how",
    [
        "sendfile on;",
        "sendfile off;",
        "directio 512;",
        "sendfile on; tcp_nopush on;",
    ],
)
def test_small_output_buffers(serve, mode, how):
    nginx = serve(
        how + "zstd_buffers 1 1k; postpone_output 0; send_lowat 0;",
        mode,
        files={"f": data.text(MIB)},
    )
    for protocol in ("h1", "h2"):
        round_trip(nginx, "/f", data.text(MIB), protocol=protocol)


@needs("http_flv_module")
def test_other_handlers(serve, mode):
    """Handlers that send more than one buffer of a file."""
    content = data.text(500000)
    nginx = serve("location /f { flv; }", mode, files={"f": content})
    round_trip(nginx, "/f", content)
    round_trip(
        nginx,
        "/f?start=1000",
        b"FLV\x01\x05\0\0\0\x09\0\0\0\0" + content[1000:],
    )


# Workers


def slow_clients(nginx, count, path):
    clients = []
    for _ in range(count):
        client = http1.Connection(nginx.port, receive_buffer=8192)
        client.request(path)
        client.head()
        clients.append(client)
    return clients


@pytest.mark.parametrize("signal", ["HUP", "QUIT"])
def test_reload_and_quit_with_slow_clients(serve, mode, upstream, signal):
    content = data.text(6 * MIB)
    nginx = serve(
        "location /gen/ { %s }" % (PROXY % upstream.address),
        mode,
        files={"f": content},
    )
    old = nginx.workers()
    clients = slow_clients(nginx, 4, "/f")
    clients += slow_clients(
        nginx, 4, "/gen/length/%d/65536/0" % len(content)
    )
    nginx.reloaded = True
    nginx.signal(signal)
    if signal == "HUP":
        wait_for(lambda: set(nginx.workers()) - set(old), "new workers")
        round_trip(nginx, "/f", content)
    for client in clients:
        check_response(client.read(), content, command=False)
        client.close()
    wait_for(lambda: not any(map(alive, old)), "the old worker's end")
    if signal == "QUIT":
        nginx.process.wait(30)
        nginx.process = None
        nginx.check_logs()


def stop_with_jobs_out(nginx):
    nginx.allow("open socket", "TERM closes connections that are in use")
    if SCALE > 2:
        nginx.allow("signal 9", "the master waits only so long for a job")
    clients = []
    for _ in range(8):
        client = http1.Connection(nginx.port)
        client.request("/f")
        clients.append(client)
    clients[0].head()
    nginx.signal("TERM")
    nginx.process.wait(30)
    nginx.process = None
    for client in clients:
        client.close()
    nginx.check_logs()


def test_fast_stop_with_jobs_out(serve, mode):
    """TERM: the worker does not wait for requests, and does not crash."""
    stop_with_jobs_out(
        serve(
            "", mode, http="zstd_comp_level 19;", files={"f": data.text(8 * MIB)}
        )
    )


@build.needs_threads
def test_fast_stop_within_a_long_job(serve):
    """A worker that did not stop for as long as a segment took was killed by
    the master, after some 1.5 s."""
    segment = 1 if SCALE > 2 else 4
    stop_with_jobs_out(
        serve(
            http=f"zstd_parallel_segment_size {segment}m; zstd_comp_level 19;",
            files={"f": data.text(8 * MIB)},
        )
    )


def test_many_reloads_under_load(serve, mode):
    content = data.text(400000)
    nginx = serve(
        "", mode, http="zstd_comp_level 6;", files={"f": content}
    )
    stop = threading.Event()
    errors = []
    done = []

    def load():
        try:
            while not stop.is_set():
                response = fetch(nginx, "/f")
                check_response(response, content, command=False)
                done.append(1)
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(pick(8, 3)):
        count = len(done)
        nginx.reload(wait=False)
        wait_for(lambda: errors or len(done) > count + 4, "responses")
    stop.set()
    for thread in threads:
        thread.join()
    assert not errors, errors[0]
    nginx.reload()


def test_reload_changes_settings(serve, mode):
    """Pool, level and dictionary of another configuration."""
    content = data.text(MIB)
    nginx = serve("", mode, files={"f": content})
    for text in (
        "zstd_comp_level 9;",
        "zstd_thread_pool off;",
        "zstd_parallel_segment_size 256k;",
        "",
    ):
        nginx.configure(
            text, http="zstd on; zstd_types *; zstd_min_length 0;"
        )
        nginx.reload()
        round_trip(nginx, "/f", content)


def test_reload_with_a_wrong_configuration(serve, mode):
    """The old one goes on."""
    nginx = serve("", mode, files={"f": TEXT})
    nginx.configure("zstd_comp_level 99;")
    nginx.allow("zstd_comp_level", "a wrong value is written on purpose")
    nginx.signal("HUP")
    wait_for(lambda: "[emerg]" in nginx.log(), "the error")
    round_trip(nginx, "/f", TEXT)


def test_killed_worker(serve, mode):
    """The master starts another, which compresses."""
    nginx = serve(
        "", mode, http="zstd_comp_level 19;", files={"f": data.text(4 * MIB)}
    )
    nginx.allow("exited on signal 9", "the test kills it")
    clients = []
    for _ in range(4):
        client = http1.Connection(nginx.port)
        client.request("/f")
        clients.append(client)
    old = nginx.worker()
    nginx.reloaded = True
    nginx.signal("KILL", old)
    wait_for(lambda: set(nginx.workers()) - {old}, "another worker")
    for client in clients:
        client.close()
    nginx.file("g", TEXT)
    round_trip(nginx, "/g", TEXT)


def test_several_workers(serve, mode):
    content = data.text(500000)
    nginx = serve("", mode, files={"f": content}, workers=3)
    for _ in range(12):
        round_trip(nginx, "/f", content, command=False)
    nginx.reload()
    round_trip(nginx, "/f", content)


def test_binary_upgrade(serve, mode, upstream):
    """USR2: the new binary serves, the old one ends what it has begun."""
    content = data.text(6 * MIB)
    if build.nginx_command("")[0].endswith("valgrind"):
        pytest.skip("valgrind is not what NGINX would start again")
    nginx = serve("", mode, files={"f": content}, daemon=True)
    old_master = nginx.master
    old_workers = nginx.workers()
    clients = slow_clients(nginx, 3, "/f")
    nginx.signal("USR2")

    def new_master():
        found = [p for p in children(old_master) if "master" in title(p)]
        return found[0] if found and nginx.workers(found[0]) else None

    new = wait_for(new_master, "the new master")
    nginx.reloaded = True
    # both serve now
    for _ in range(4):
        round_trip(nginx, "/f", content, command=False)
    nginx.signal("WINCH", old_master)
    for client in clients:
        check_response(client.read(), content, command=False)
        client.close()
    wait_for(lambda: not any(map(alive, old_workers)), "the old workers' end")
    round_trip(nginx, "/f", content)
    nginx.signal("QUIT", old_master)
    nginx.process.wait(30)
    round_trip(nginx, "/f", content)
    nginx.signal("QUIT", new)
    wait_for(lambda: not alive(new), "the end of the new master")
    nginx.process = None
    nginx.check_logs()


def test_h2_connection_is_cut(serve, mode):
    """With many responses on it, all at once."""
    nginx = serve(
        "", mode, http="zstd_comp_level 6;", files={"f": data.text(3 * MIB)}
    )
    for _ in range(pick(15, 5)):
        client = http2.Connection(nginx.h2_port)
        for _ in range(12):
            client.request("/f")
        client.step()
        client.socket.close()
    round_trip(nginx, "/f", data.text(3 * MIB))
    with http2.Connection(nginx.h2_port) as client:
        check_response(client.get("/f"), data.text(3 * MIB), command=False)
