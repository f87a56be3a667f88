"""Jobs on threads, and requests that end before them: section H of the
reported faults."""

import collections
import json
import os
import random
import threading
import time

import pytest

from support import build, data, http1, http2
from support.check import check_either, check_part, check_plain
from support.check import check_response, fetch, round_trip
from support.frame import Incremental
from support.limits import KIB, MIB, pick, seconds
from support.server import alive, wait_for
from support.upstream import Wait, chunked

PROXY = "proxy_pass http://%s; proxy_http_version 1.1;"


def at_once(count, function):
    """Calls it with each number in a thread of its own, and raises what one
    of them raised."""
    errors = []

    def call(number):
        try:
            function(number)
        except BaseException as e:
            errors.append(e)

    threads = [
        threading.Thread(target=call, args=(i,), daemon=True)
        for i in range(count)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def is_compressed(nginx, path):
    return fetch(nginx, path).get("Content-Encoding") == "zstd"


def abort_h1(nginx, rnd, paths, tls=False):
    port = nginx.tls_port if tls else nginx.port
    with http1.Connection(port, tls=tls) as client:
        client.request(rnd.choice(paths))
        time.sleep(rnd.random() * seconds(0.03))
        client.abort()


def abort_h2(nginx, rnd, paths, tls=False):
    port = nginx.tls_port if tls else nginx.h2_port
    with http2.Connection(port, tls=tls) as client:
        streams = [client.request(rnd.choice(paths)) for _ in range(3)]
        for _ in range(rnd.randrange(4)):
            if not all(stream.over for stream in streams):
                client.step()
        for stream in streams:
            if not stream.over:
                client.reset(stream)
        # the connection is alive
        check_either(client.get("/small"), data.text(3000))


@pytest.mark.parametrize("level", [1, 19])
@pytest.mark.parametrize("how", ["h1", "h2", "h1s", "h2s"])
def test_b54_client_resets(serve, mode, upstream, how, level):
    """The task's memory was freed before the task ended."""
    tls = how.endswith("s")
    nginx = serve(
        "location /gen/ { %s } location /unbuffered/ "
        "{ proxy_pass http://%s/; proxy_buffering off; }"
        % (PROXY % upstream.address, upstream.address),
        mode,
        http="zstd_comp_level %d;" % level,
        files={
            "small": data.text(3000),
            "large": data.text(pick(20, 3) * MIB),
            "middle": data.text(300 * KIB),
        },
        tls=tls,
    )
    paths = [
        "/small",
        "/large",
        "/middle",
        "/gen/chunked/2000000/30000/0",
        "/unbuffered/gen/chunked/2000000/30000/0",
        "/gen/length/1000000/100000/5",
    ]
    rnd = random.Random(level)
    abort = abort_h1 if how.startswith("h1") else abort_h2
    at_once(
        4,
        lambda _: [
            abort(nginx, rnd, paths, tls) for _ in range(pick(30, 5))
        ],
    )
    # nothing is left of them
    wait_for(lambda: nginx.connections() <= 8, "the end of the requests", 60)
    wait_for(lambda: is_compressed(nginx, "/small"), "memory for a response")
    round_trip(nginx, "/small", data.text(3000))


@pytest.mark.slow
def test_b54_client_resets_a_thousand_times(serve, mode):
    nginx = serve(
        "", mode, http="zstd_comp_level 9;", files={"f": data.text(MIB)}
    )
    rnd = random.Random(54)

    def some(_):
        for _ in range(250):
            with http1.Connection(nginx.port) as client:
                client.request("/f")
                if rnd.random() < 0.5:
                    client.head()
                if rnd.random() < 0.5:
                    time.sleep(rnd.random() * 0.01)
                client.abort()

    at_once(4, some)
    round_trip(nginx, "/f", data.text(MIB))


def long_requests(nginx, count):
    """Connections on which a response has begun."""
    clients = []
    for _ in range(count):
        client = http1.Connection(nginx.port)
        client.request("/f")
        clients.append(client)
    for client in clients:
        client.head()
    return clients


@pytest.mark.parametrize("signal", ["HUP", "QUIT"])
@pytest.mark.parametrize("limit", ["", "60s"])
def test_b55_graceful_with_jobs_out(serve, mode, signal, limit):
    """Connections were cut, and "open socket left" logged, when the worker
    went while tasks ran."""
    content = data.text(MIB)
    nginx = serve(
        "",
        mode,
        main="worker_shutdown_timeout %s;" % limit if limit else "",
        http="zstd_comp_level 15;",
        files={"f": content},
    )
    old = nginx.workers()
    clients = long_requests(nginx, pick(50, 12))
    nginx.reloaded = True
    nginx.signal(signal)
    for client in clients:
        check_response(client.read(), content, command=False)
        client.close()
    wait_for(lambda: not any(map(alive, old)), "the old worker's end")
    if signal == "HUP":
        round_trip(nginx, "/f", content)
    else:
        nginx.process.wait(30)
        nginx.process = None
        nginx.check_logs()


def test_b55_worker_shutdown_timeout(serve, mode, upstream):
    """Connections are cut then, but nothing crashes or leaks."""
    nginx = serve(
        "location /gen/ { %s } zstd_parallel_segment_size 64k;"
        % (PROXY % upstream.address),
        mode,
        main="worker_shutdown_timeout 1s;",
        http="zstd_comp_level 19;",
    )
    content = data.text(20 * MIB)
    old = nginx.workers()
    clients = []
    for _ in range(pick(20, 6)):
        client = http1.Connection(nginx.port, receive_buffer=8192)
        client.request("/gen/length/%d/65536/0" % (20 * MIB))
        clients.append(client)
    for client in clients:
        client.head()
    start = time.monotonic()
    nginx.reloaded = True
    nginx.signal("HUP")
    wait_for(lambda: not any(map(alive, old)), "the old worker's end")
    # the time that is allowed, and the jobs that were running
    assert time.monotonic() - start < seconds(15)
    for client in clients:
        client.read_cut()
        check_part(client.response.body, content)
        client.close()
    path = "/gen/length/100000/65536/0"
    round_trip(nginx, path, data.text(100000))


def test_b55_timeout_while_one_job_runs(serve, mode):
    """One request that takes long, and a worker that has to go."""
    nginx = serve(
        "zstd_parallel_segment_size 16m;",
        mode,
        main="worker_shutdown_timeout 100ms;",
        http="zstd_comp_level 22;",
        files={"f": data.text(pick(12, 4) * MIB)},
    )
    old = nginx.workers()
    with http1.Connection(nginx.port) as client:
        client.request("/f")
        time.sleep(seconds(0.2))
        nginx.reloaded = True
        nginx.signal("HUP")
        wait_for(lambda: not any(map(alive, old)), "the old worker's end", 60)


def test_b57_full_queue(serve, upstream):
    """Responses failed or were cut when the pool's queue was full."""
    nginx = serve(
        "location /gen/ { %s }" % (PROXY % upstream.address),
        main="thread_pool zp threads=1 max_queue=1;",
        http="zstd_thread_pool zp; zstd_inline 0; zstd_comp_level 6;"
        "zstd_parallel_segment_size 256k;",
        files={"f": data.text(pick(4, 1) * MIB)},
    )
    content = data.text(pick(4, 1) * MIB)
    count = pick(100, 24)

    def one(number):
        path = "/f"
        if number % 2:
            path = "/gen/length/%d/65536/0" % len(content)
        check_response(
            http1.get(nginx.port, path, timeout=120), content, command=False
        )

    at_once(count, one)
    # a response has 16 jobs, and NGINX logs each that its queue refuses
    assert nginx.log().count("queue") < 50 * count, "the log is flooded"
    nginx.check_idle()


def test_b57_pool_without_room(serve):
    """max_queue=0: no job is ever accepted."""
    content = data.text(MIB)
    nginx = serve(
        "location = /status { zstd off; zstd_status; }",
        main="thread_pool zp threads=1 max_queue=0;",
        http="zstd_thread_pool zp; zstd_inline 0;",
        files={"f": content, "small": content[:3000]},
    )
    for _ in range(3):
        round_trip(nginx, "/f", content)
        round_trip(nginx, "/small", content[:3000])
    at_once(8, lambda _: round_trip(nginx, "/f", content, command=False))
    assert status(nginx)["queue_full"] > 0


# A pool that takes a job only while its thread waits for one.
NO_QUEUE = {
    "main": "thread_pool zp threads=1 max_queue=0;",
    "http": "zstd_thread_pool zp; zstd_inline 0;",
}


def test_b57_pool_without_room_for_what_is_read(serve):
    """What jobs would read cannot be stored: the loop runs them at last."""
    content = data.text(MIB)
    nginx = serve("sendfile on;", files={"f": content}, **NO_QUEUE)
    round_trip(nginx, "/f", content)
    at_once(4, lambda _: round_trip(nginx, "/f", content, command=False))


def test_b57_worker_ends_right_after_a_job(serve):
    """A pool that takes nothing more is not waited for by NGINX: a thread used
    memory that the worker had freed."""
    content = data.text(MIB)
    nginx = serve("", files={"f": content}, **NO_QUEUE)
    nginx.reloaded = True
    for _ in range(pick(100, 20)):
        with http1.Connection(nginx.port) as client:
            client.request("/f")
            client.head()
            old = nginx.worker()
            nginx.signal("QUIT", old)
            check_response(client.read(), content, command=False)
        wait_for(lambda: set(nginx.workers()) - {old}, "another worker")


@pytest.mark.parametrize("reading", ["", "directio 512;"])
def test_b59_reading_by_threads_too(serve, mode, reading):
    """One flag of the request was used for two: reading and compressing
    blocked each other."""
    size = pick(50, 8) * MIB
    nginx = serve(
        "aio threads; sendfile off; output_buffers 2 32k; " + reading,
        mode,
        files={"f": data.text(size)},
    )
    round_trip(nginx, "/f", data.text(size))
    at_once(
        4, lambda _: round_trip(nginx, "/f", data.text(size), command=False)
    )


@pytest.mark.parametrize("reading", ["sendfile off;", "directio 512;"])
def test_b59_same_pool_for_reading(serve, reading):
    """Our jobs and NGINX's reads stand in one queue of one thread."""
    content = data.text(5 * MIB)
    nginx = serve(
        "aio threads=zp; output_buffers 2 32k;" + reading
        + "location /sendfile { aio threads=zp; sendfile on; alias {root}/f; }",
        main="thread_pool zp threads=1;",
        http="zstd_thread_pool zp; zstd_inline 0;",
        files={"f": content},
    )

    def one(number):
        path = ("/f", "/sendfile")[number % 2]
        round_trip(nginx, path, content, command=False)

    at_once(8, one)


@build.needs_threads
@pytest.mark.parametrize("sendfile", ["on", "off"])
def test_loop_does_not_read_files(serve, sendfile):
    """A slow disk must not stall others, also where nginx would not send files
    by sendfile()."""
    content = data.text(5 * MIB)
    nginx = serve(
        "sendfile %s; location /raw { zstd off; alias {root}/f; }" % sendfile,
        http="zstd_inline 0;",
        files={"f": content},
    )
    before = nginx.loop_read()
    round_trip(nginx, "/f", content)
    assert nginx.loop_read() - before < MIB
    if sendfile == "off":
        # the next request on a connection has the mode that is configured
        with http1.Connection(nginx.port) as client:
            client.get("/f")
            before = nginx.loop_read()
            assert client.get("/raw").body == content
            assert nginx.loop_read() - before >= len(content)


@pytest.mark.parametrize("kind", ["file", "proxied", "unbuffered"])
def test_b61_slow_readers(serve, mode, upstream, kind):
    """Finished segments piled up: the window was not bounded by output that
    nobody took."""
    size = 50 * MIB
    count = pick(100, 20)
    nginx = serve(
        "location /gen/ { %s proxy_max_temp_file_size 0; proxy_buffering %s; }"
        "location = /status { zstd off; zstd_status; }"
        % (
            PROXY % upstream.address,
            "off" if kind == "unbuffered" else "on",
        ),
        mode,
        http="zstd_comp_level 3;",
        files={"f": data.text(size) if kind == "file" else b""},
        listen_options="sndbuf=32k",
    )
    path = "/f" if kind == "file" else "/gen/length/%d/65536/0" % size
    # one encoder is warm
    fetch(nginx, "/gen/length/1000000/65536/0")
    before = nginx.memory()
    clients = []
    for _ in range(count):
        client = http1.Connection(nginx.port, receive_buffer=4096)
        client.request(path)
        clients.append(client)
    for client in clients:
        client.head()
    settle(lambda: nginx.memory())
    each = (nginx.memory("VmHWM") - before) / count
    allotted = status(nginx)["cache"]["bytes_peak"] / count
    if kind != "file":
        # the upstream waits as well: it could send no more than what the
        # sockets and the worker hold
        assert upstream.sent < count * 9 * MIB
    # a client that reads on gets it all
    for client in clients[:2]:
        check_response(client.read(), data.text(size), command=False)
    for client in clients:
        client.abort()
    # what docs/nginx.md says: 16 MiB of what comes from an upstream, 1 MiB that
    # waits, and buffers for the result
    assert allotted < 18 * MIB, "%.2f MiB for each" % (allotted / MIB)
    # two segments, each with room for its result, and buffers
    if not build.is_checked():
        assert each < 4.5 * MIB, "%.2f MiB for each" % (each / MIB)


def status(nginx):
    """Of all workers, from a location /status."""
    return json.loads(http1.get(nginx.port, "/status", accept=None).body)["all"]


def settle(value, calm=0.5):
    """Until a number has not changed for this long."""
    last, since = value(), time.monotonic()
    limit = time.monotonic() + 60
    while time.monotonic() - since < calm and time.monotonic() < limit:
        time.sleep(0.05)
        now = value()
        if now != last:
            last, since = now, time.monotonic()


def delays_of_small(nginx, count, gap):
    delays = []
    with http1.Connection(nginx.port) as client:
        for _ in range(count):
            start = time.monotonic()
            client.get("/small")
            delays.append(time.monotonic() - start)
            time.sleep(gap)
    return sorted(delays)


def test_b62_small_ones_beside_a_large(serve, upstream):
    """Small responses waited behind the jobs of one large response."""
    nginx = serve(
        "location /gen/ { %s zstd_comp_level 19; }"
        "location /small { zstd_comp_level 3; }"
        % (PROXY % upstream.address),
        main="thread_pool zp threads=2;",
        http="zstd_thread_pool zp;",
        files={"small": data.text(20 * KIB)},
    )
    count = pick(300, 100)
    idle = delays_of_small(nginx, count, 0.01)
    client = http1.Connection(nginx.port)
    client.request("/gen/length/%d/65536/0" % (200 * MIB))
    client.head()
    stop = threading.Event()
    reader = threading.Thread(target=read_until, args=(client, stop))
    reader.start()
    busy = delays_of_small(nginx, count, 0.01)
    stop.set()
    reader.join()
    client.abort()
    # not a measurement, only far from waiting behind a job of level 19,
    # which takes tens of milliseconds, on a machine that others use too
    middle = len(busy) // 2
    assert busy[middle] < idle[middle] * 3 + seconds(0.01), (
        "median %.1f ms instead of %.1f"
        % (busy[middle] * 1e3, idle[middle] * 1e3)
    )


def read_until(client, stop):
    """Takes all that comes and looks at nothing of it."""
    client.socket.settimeout(0.2)
    while not stop.is_set():
        try:
            if not client.receive():
                return
            client.pending = b""
        except http1.Hangs:
            pass


def test_b62_no_response_takes_all_tasks(serve):
    """Of two large ones the second is not starved by the first."""
    size = 8 * MIB
    nginx = serve(
        "",
        main="thread_pool zp threads=2;",
        http="zstd_thread_pool zp; zstd_comp_level 12; zstd_parallel_tasks 2;"
        "zstd_parallel_segment_size 256k;",
        files={"f": data.text(size), "g": data.text(size)},
    )
    decoded = collections.Counter()
    both = threading.Barrier(2)
    seen = {}

    def one(number):
        decoder = Incremental()
        with http1.Connection(nginx.port) as client:
            both.wait()
            client.request("/" + "fg"[number])
            client.head()
            while not client.response.ended:
                decoded[number] = decoder.feed(client.piece())
                if decoded[number] >= size // 2 and number not in seen:
                    seen[number] = decoded[1 - number]
        check_response(client.response, data.text(size), command=False)

    at_once(2, one)
    # when one was half way, the other had begun
    assert min(seen.values()) > 0, seen


def test_no_send_timeout_before_there_is_output(serve):
    """More responses than threads at a slow level: those that waited for a
    thread longer than send_timeout were closed, as if their clients did not
    read."""
    content = data.text(MIB)
    nginx = serve(
        "send_timeout 3s;",
        http="zstd_comp_level 19; zstd_parallel_tasks 1;",
        files={"f": content},
    )

    def one(_):
        check_response(http1.get(nginx.port, "/f"), content, command=False)

    at_once(pick(32, 16), one)


def test_no_send_timeout_within_a_long_job(serve):
    """One job that took longer than send_timeout had the same end."""
    content = data.text(pick(6, 3) * MIB)
    nginx = serve(
        "send_timeout 600ms;",
        http="zstd_comp_level 22; zstd_parallel_segment_size 16m;",
        files={"f": content},
    )
    begun = time.monotonic()
    response = http1.get(nginx.port, "/f")
    check_response(response, content, command=False)
    assert time.monotonic() - begun > 0.9, "the job was not long enough"


def test_short_one_behind_long_ones(serve):
    """More long responses than threads at a slow level: a short one, which came
    later, has its turn before they are done."""
    long, short = data.text(pick(9, 6) * MIB), data.text(150000)
    nginx = serve(
        "location = /status { zstd off; zstd_status; }",
        http="zstd_comp_level 19; zstd_parallel_tasks 1;",
        files={"long": long, "short": short},
    )
    done = []

    def cache():
        return status(nginx)["cache"]

    def all_wait():
        return cache()["streams_open"] == 4

    def one(path, content):
        response = http1.get(nginx.port, path)
        done.append(path)
        check_response(response, content, command=False)

    longs = [
        threading.Thread(target=one, args=("/long", long)) for _ in range(4)
    ]
    for thread in longs:
        thread.start()
    wait_for(all_wait, "four responses that have begun")
    one("/short", short)
    ended = done.index("/short")
    for thread in longs:
        thread.join()
    assert done.count("/long") == 4
    # two threads: the third and the fourth begin when others end, and it came
    # after these
    assert ended <= 2, done
    # who is as long as the first does not take turns with it
    assert cache()["encoders_peak"] <= 3


def test_pool_of_many_threads_and_requests(serve):
    """More requests than threads, in all sizes, all whole."""
    sizes = (1, 3000, 131073, MIB, 3 * MIB + 1)
    nginx = serve(
        "location /auto/ { zstd_parallel_segment_size auto; alias {root}/; }",
        main="thread_pool zp threads=8;",
        http="zstd_thread_pool zp; zstd_inline 0; zstd_comp_level 6;"
        "zstd_parallel_segment_size 64k;",
        files={str(size): data.text(size) for size in sizes},
    )

    def one(number):
        rnd = random.Random(number)
        with http1.Connection(nginx.port) as client:
            for _ in range(pick(20, 6)):
                size = rnd.choice(sizes)
                path = rnd.choice(["/%d", "/auto/%d"]) % size
                client.get(path)
                check_response(
                    client.response, data.text(size), command=False
                )

    at_once(16, one)


def test_overload_is_counted(serve, upstream):
    """Content that is stored for want of memory, and a response that is not
    compressed at all."""
    size = 3 * MIB
    go = threading.Event()
    content = data.text(size)
    upstream.reply("/", chunked(content[:100000], Wait(go), content[100000:]))
    nginx = serve(
        "location / { %s } location = /status { zstd off; zstd_status; }"
        "location = /small { zstd_comp_level 19; }"
        % (PROXY % upstream.address),
        http="zstd_memory 9m; zstd_comp_level 5;",
        files={"small": data.text(MIB)},
    )
    clients = [http1.Connection(nginx.port) for _ in range(24)]
    for client in clients:
        client.request("/")
    wait_for(lambda: upstream.requests.qsize() == 24, "all requests")
    go.set()

    def one(number):
        clients[number].head()
        check_either(clients[number].read(), content)
        clients[number].close()

    at_once(24, one)
    check_plain(fetch(nginx, "/small"), data.text(MIB))
    values = status(nginx)
    assert values["no_memory"] > 0, values
    assert values["cache"]["stored_bytes"] > 0, values
    assert values["not_compressed"]["memory"] > 0, values
    assert values["failed"] == 0


@pytest.mark.parametrize("cpus", [1, 2])
def test_all_workers_together_run_as_many_jobs_as_cpus(serve, cpus):
    """But one each. What another has begun may not run yet, so for a moment
    there may be more, if never more than each could have alone."""
    if len(os.sched_getaffinity(0)) < cpus:
        pytest.skip("there are fewer CPUs")
    nginx = serve(
        "location = /status { zstd off; zstd_status; }",
        main="thread_pool zp threads=8; worker_cpu_affinity %s %s;"
        % ("0" * (2 - cpus) + "1" * cpus, "0" * (2 - cpus) + "1" * cpus),
        http="zstd_thread_pool zp; zstd_comp_level 15; zstd_inline 0;"
        "zstd_parallel_segment_size 256k;",
        workers=2,
        listen_options="reuseport",
        files={"f": data.text(4 * MIB)},
    )
    stop = threading.Event()

    def load(_):
        while not stop.is_set():
            http1.get(nginx.port, "/f", timeout=120)

    threads = [threading.Thread(target=load, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    seen = []
    for _ in range(pick(200, 60)):
        seen.append(status(nginx)["jobs_running"])
        time.sleep(0.02)
    stop.set()
    for thread in threads:
        thread.join()
    seen.sort()
    assert 1 <= seen[len(seen) // 2] <= 2, seen
    assert seen[-1] <= 2 * cpus, seen


def test_memory_bound_of_the_worker(serve, mode):
    """zstd_memory: more requests than it has room for are answered, stored
    or as they are; none fails, none waits for ever, and few jobs are tried for
    which there is no memory."""
    content = data.text(2 * MIB)
    count = pick(60, 24)
    nginx = serve(
        "location = /status { zstd off; zstd_status; }",
        mode,
        http="zstd_memory 24m; zstd_comp_level 9;",
        files={"f": content},
    )
    codings = collections.Counter()

    def one(_):
        response = http1.get(nginx.port, "/f", timeout=120)
        codings[response.get("Content-Encoding")] += 1
        check_either(response, content)

    before = nginx.memory()
    at_once(count, one)
    assert codings["zstd"], codings
    worker = status(nginx)
    assert worker["cache"]["bytes_peak"] <= 24 * MIB
    # some two for each response; without an end to it there were thousands
    assert worker["no_memory"] < 10 * count
    if not build.is_checked():
        # what was given back is not kept by the process
        assert nginx.memory("VmHWM") - before < 36 * MIB
    # and afterwards there is room again
    wait_for(lambda: is_compressed(nginx, "/f"), "room for a response")
