"""The pages of zstd_status, as JSON and for Prometheus, and the counters that
all workers share."""

import json
import os
import re
import threading

import pytest

from support import build, data, frame, http1, http2
from support.check import fetch, round_trip
from support.limits import KIB, MIB
from support.server import alive, wait_for
from support.upstream import Wait, chunked

# Where the page itself is not counted.
PAGES = """
    location = /json { zstd off; zstd_status; }
    location = /json2 { zstd off; zstd_status json; }
    location = /prometheus { zstd off; zstd_status prometheus; }
"""
PROXY = "proxy_pass http://%s; proxy_http_version 1.1;"


def status(nginx, path="/json"):
    response = http1.get(nginx.port, path, accept=None)
    assert response.status == 200
    return json.loads(response.body)


def settled(nginx, **wanted):
    """The page as soon as the counters of all workers are these."""
    found = {}

    def there():
        found.update(status(nginx))
        return all(found["all"][name] == wanted[name] for name in wanted)

    try:
        wait_for(there, "counters", timeout=10)
    except AssertionError:
        seen = {name: found["all"][name] for name in wanted}
        raise AssertionError("%s instead of %s" % (seen, wanted)) from None
    return found


def current_workers(nginx):
    """The page as soon as it shows the current workers, and no others: a new
    one is not there until it has begun, and a dead one is there until the
    master has taken note of its death."""

    def there():
        page = status(nginx)
        pids = sorted(w["pid"] for w in page["workers"])
        return page if pids == nginx.workers() else None

    return wait_for(there, "the page to show %s" % nginx.workers())


def serve_by(count, serve, mode, files):
    """A server with so many workers, when they are all there."""
    nginx = serve(PAGES, mode, workers=count, files=files)
    nginx.first_workers = wait_for(
        lambda: nginx.workers() if len(nginx.workers()) == count else None,
        "%d workers" % count,
    )
    current_workers(nginx)
    return nginx


def numbers(values, prefix=()):
    """All numbers of a page's object by their path."""
    found = {}
    for name, value in values.items():
        if isinstance(value, dict):
            found.update(numbers(value, (*prefix, name)))
        else:
            assert isinstance(value, (int, float)), name
            found[(*prefix, name)] = value
    return found


# ---------------------------------------------------------------------------
# A strict reader of the text exposition format, version 0.0.4
# ---------------------------------------------------------------------------

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"'
SAMPLE = re.compile(
    r"(%s)(?:\{(%s(?:,%s)*)\})? (\d+(?:\.\d+)?)" % (NAME, LABEL, LABEL)
)
HELP = re.compile(r"# HELP (%s) (\S.*)" % NAME)
TYPE = re.compile(r"# TYPE (%s) (counter|gauge)" % NAME)


class Family:
    def __init__(self, name, text):
        self.name = name
        self.help = text
        self.type = None
        self.samples = {}  # by the labels, as a tuple of pairs


def parse_exposition(text):
    """Families by name. More is refused than a scraper would: each family has
    help, type and samples, in this order and in one place."""
    assert text.endswith("\n") and "\n\n" not in text and "\r" not in text
    families = {}
    family = None
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            name, words = HELP.fullmatch(line).groups()
            assert name not in families, name + " in two places"
            assert family is None or family.samples, family.name
            family = families[name] = Family(name, words)
        elif line.startswith("#"):
            name, kind = TYPE.fullmatch(line).groups()
            assert family and name == family.name, "type of another: " + line
            assert family.type is None and not family.samples, line
            family.type = kind
        else:
            found = SAMPLE.fullmatch(line)
            assert found, "no sample: %r" % line
            assert family and found.group(1) == family.name, line
            assert family.type, "no type before " + line
            labels = tuple(re.findall(LABEL, found.group(2) or ""))
            names = [name for name, _ in labels]
            assert len(set(names)) == len(names), line
            assert labels not in family.samples, "twice: " + line
            family.samples[labels] = float(found.group(len(found.groups())))
    assert family.samples
    return families


def check_conventions(families):
    for family in families.values():
        name = family.name
        assert name.startswith("nginx_zstd_"), name
        assert family.help.endswith("."), name
        assert (family.type == "counter") == name.endswith("_total"), name
        base = name[: -len("_total")] if name.endswith("_total") else name
        if "bytes" in base:
            assert base.endswith("_bytes"), name
        if "seconds" in base:
            assert base.endswith("_seconds"), name
        keys = {tuple(n for n, _ in labels) for labels in family.samples}
        assert len(keys) == 1, "different labels: " + name


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "x 1\n",
        "# HELP x X.\n# TYPE x counter\n",
        "# HELP x X.\nx 1\n",
        "# TYPE x gauge\n# HELP x X.\nx 1\n",
        "# HELP x X.\n# TYPE x gauge\nx 1",
        "# HELP x X.\n# TYPE x gauge\nx 1\nx 2\n",
        "# HELP x X.\n# TYPE x gauge\ny 1\n",
        "# HELP x X.\n# TYPE x gauge\nx{a=1} 1\n",
        '# HELP x X.\n# TYPE x gauge\nx{a="1",a="2"} 1\n',
        '# HELP x X.\n# TYPE x gauge\nx{a="1"b="2"} 1\n',
        '# HELP x X.\n# TYPE x gauge\nx{a="\\x"} 1\n',
        "# HELP x X.\n# TYPE x gauge\nx  1\n",
        "# HELP x X.\n# TYPE x gauge\nx -\n",
        "# HELP x X.\n# TYPE x gauge\nx 1\n\n",
    ],
)
def test_reader_of_the_exposition_refuses(wrong):
    """Or else it would show nothing."""
    with pytest.raises((AssertionError, AttributeError)):
        parse_exposition(wrong)


def test_reader_of_the_exposition_reads():
    (family,) = parse_exposition(
        "# HELP x X.\n# TYPE x gauge\n"
        'x{a="1",b="\\"\\\\\\n"} 1\nx{a="2",b=""} 2.5\n'
    ).values()
    assert list(family.samples.values()) == [1, 2.5]
    assert list(family.samples)[0] == (("a", "1"), ("b", '\\"\\\\\\n'))


# ---------------------------------------------------------------------------
# The pages
# ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path, content_type",
    [
        ("/json", "application/json"),
        ("/json2", "application/json"),
        ("/prometheus", "text/plain; version=0.0.4"),
    ],
)
@pytest.mark.parametrize("protocol", ["h1", "h2"])
def test_head_and_body(serve, path, content_type, protocol):
    if protocol == "h2" and not build.nginx_has("http_v2_module"):
        pytest.skip("this NGINX has no HTTP/2")
    nginx = serve(PAGES)
    seen = []
    for method in ("GET", "HEAD"):
        response = fetch(nginx, path, protocol, method=method, accept=None)
        assert response.status == 200
        assert response.get("Content-Type") == content_type
        assert response.get("Cache-Control") == "no-store"
        assert response.get("ETag") is None
        assert response.get("Last-Modified") is None
        assert response.get("Content-Encoding") is None
        seen.append((int(response.get("Content-Length")), response.body))
    assert seen[0][0] == len(seen[0][1]) > 1000
    assert seen[1][1] == b""
    # counters may get a digit in between
    assert abs(seen[1][0] - seen[0][0]) < 100


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_other_methods_are_refused(serve, method):
    nginx = serve(PAGES)
    with http1.Connection(nginx.port) as client:
        for _ in range(2):
            client.request("/json", method=method, body=b"x" * 1000)
            client.head()
            assert client.read().status == 405


def test_compressed_page(serve, mode):
    """Nothing is special about the page: it can be compressed as well."""
    nginx = serve("location = /s { zstd_status; }", mode)
    for count in range(3):
        response = http1.get(nginx.port, "/s")
        assert response.get("Content-Encoding") == "zstd"
        page = json.loads(frame.decode_by_library(response.body))
        # it is made before its own compression begins
        assert page["all"]["responses"] == count


def test_page_in_a_subrequest(serve):
    """It is not the end of the page that it is part of."""
    nginx = serve(
        PAGES + "location /page { ssi on; ssi_types *; zstd off; }",
        files={"page": b'[<!--# include virtual="/json" -->, 7]'},
    )
    page = json.loads(http1.get(nginx.port, "/page", accept=None).body)
    assert page[0]["version"] and page[1] == 7


def test_without_zstd_anywhere(serve):
    """No worker has anything to count."""
    nginx = serve(PAGES.replace("zstd off;", ""), zstd="")
    page = status(nginx)
    assert page["workers"] == []
    assert page["all"]["responses"] == 0
    text = http1.get(nginx.port, "/prometheus").body.decode()
    families = parse_exposition(text)
    assert families["nginx_zstd_workers"].samples == {(): 0}


@pytest.mark.parametrize(
    "directive, text",
    [
        ("zstd_status xml;", 'invalid value "xml" in "zstd_status"'),
        ('zstd_status "";', 'invalid value "" in "zstd_status"'),
        ("zstd_status JSON;", 'invalid value "JSON" in "zstd_status"'),
        ("zstd_status json json;", "invalid number of arguments"),
        ("zstd_status; zstd_status prometheus;", "is duplicate"),
    ],
)
def test_wrong_arguments(make_server, directive, text):
    nginx = make_server()
    nginx.configure("location /s { %s }" % directive)
    fine, says = nginx.test()
    assert not fine
    assert text in says


@pytest.mark.parametrize("place", ["http", "server", "if"])
def test_only_in_a_location(make_server, place):
    nginx = make_server()
    if place == "http":
        nginx.configure(http="zstd_status;")
    elif place == "server":
        nginx.configure("zstd_status;")
    else:
        nginx.configure("location / { if ($arg_a) { zstd_status; } }")
    fine, says = nginx.test()
    assert not fine
    assert '"zstd_status" directive is not allowed here' in says


def test_memory_limit_that_was_not_set(serve, mode):
    """The worker's own choice is shown."""
    nginx = serve(PAGES, mode)
    assert status(nginx)["memory_limit"] >= 64 * MIB


def test_no_memory_limit(serve):
    nginx = serve(PAGES, http="zstd_memory off;")
    assert status(nginx)["memory_limit"] == 0


def test_versions_and_settings(serve, mode):
    nginx = serve(PAGES, mode, http="zstd_memory 64m;")
    page = status(nginx)
    assert re.fullmatch(r"\d+\.\d+\.\d+", page["version"])
    assert re.fullmatch(r"1\.\d+\.\d+", page["libzstd"])
    assert page["memory_limit"] == 64 * MIB
    assert len(page["workers"]) == 1
    if mode.name != "adaptive":
        assert page["threads"] == mode.name
    elif not build.nginx_has("threads"):
        assert page["threads"] == "loop"
    text = http1.get(nginx.port, "/prometheus", accept=None).body.decode()
    families = parse_exposition(text)
    labels = dict(list(families["nginx_zstd_info"].samples)[0])
    assert labels == {
        name: page[name] for name in ("version", "libzstd", "threads")
    }
    limit = families["nginx_zstd_memory_limit_bytes"]
    assert limit.samples == {(): 64 * MIB}


CPUS = len(os.sched_getaffinity(0))
POOLS = build.nginx_has("threads")


@pytest.mark.parametrize(
    "directive, effect",
    [
        (
            "zstd_parallel_compressors 0;",
            lambda all: all["cache"]["encoders_limit"] == (POOLS and CPUS or 1),
        ),
        (
            "zstd_parallel_compressors 3;",
            lambda all: all["cache"]["encoders_limit"]
            == 3 + (POOLS and CPUS or 1),
        ),
        (
            "zstd_parallel_compressors auto;",
            lambda all: all["cache"]["encoders_limit"]
            == 2 * (POOLS and CPUS or 1),
        ),
        (
            "zstd_retention_policy keep_all;",
            lambda all: all["cache"]["idle_bytes"] > 300 * KIB,
        ),
        (
            "zstd_retention_policy bounded 300k;",
            lambda all: 0 < all["cache"]["idle_bytes"] <= 300 * KIB,
        ),
        (
            "zstd_retention_policy release_all;",
            lambda all: all["cache"]["idle_bytes"] == 0,
        ),
        (
            "zstd_inline 0;",
            lambda all: all["jobs_loop"] == 0 or not POOLS,
        ),
        ("zstd_inline 1s;", lambda all: all["jobs_pool"] == 0),
        ("zstd_inline 500ms;", lambda all: all["jobs_pool"] == 0),
    ],
)
def test_settings_take_effect(serve, directive, effect):
    """As far as the counters show it. The cache's are copied at most twice in
    a second."""
    content = data.text(200 * KIB)
    nginx = serve(PAGES, http=directive, files={"f": content})

    def is_seen():
        round_trip(nginx, "/f", content, command=False)
        counters = status(nginx)["all"]
        return counters["cache"]["jobs"] >= 3 and effect(counters)

    wait_for(is_seen, "the effect of " + directive, step=0.1)


# ---------------------------------------------------------------------------
# What is counted
# ---------------------------------------------------------------------------


def test_counts_of_responses(serve, mode):
    sizes = (1, 4096, 300 * KIB, 2 * MIB + 1)
    files = {"f%d" % size: data.text(size) for size in sizes}
    nginx = serve(PAGES, mode, files=files)
    sent = 0
    for size in sizes:
        sent += len(http1.get(nginx.port, "/f%d" % size).body)
    page = settled(nginx, finished=len(sizes))
    values = page["all"]
    assert values["responses"] == len(sizes)
    assert values["failed"] == values["queue_full"] == 0
    assert values["no_memory"] == 0
    assert values["jobs_running"] == 0
    assert values["bytes_in"] == sum(sizes)
    assert values["bytes_out"] == sent
    assert 0 < values["cpu_seconds"] < 60
    jobs = values["jobs_pool"] + values["jobs_loop"]
    assert jobs >= len(sizes)
    if mode.name == "pool":
        assert values["jobs_loop"] == 0
    elif mode.name == "loop":
        assert values["jobs_pool"] == 0
    cache = values["cache"]
    assert cache["jobs"] == jobs
    assert cache["bytes_in"] == sum(sizes)
    assert cache["bytes_out"] == sent
    assert cache["streams_open"] == cache["jobs_out"] == 0
    assert cache["encoders_running"] == cache["encoders_held"] == 0
    assert cache["encoders_live"] == cache["encoders_idle"] >= 1
    assert cache["bytes_peak"] >= cache["bytes"] >= cache["encoder_bytes"] > 0
    assert cache["stream_bytes"] <= cache["bytes"] - cache["encoder_bytes"]
    assert cache["misses"] >= 1


def test_counts_of_reasons(serve, mode):
    nginx = serve(
        PAGES + "location = /gone { return 410 'this is gone'; }"
        "location = /none { return 204; }",
        mode,
        files={"f": data.text(5000)},
    )
    for _ in range(3):
        http1.get(nginx.port, "/f", accept="gzip")
    for _ in range(2):
        http1.get(nginx.port, "/none")
    http1.get(nginx.port, "/gone")
    values = status(nginx)["all"]
    found = values["not_compressed"]
    assert found["accept"] == 3
    assert found["no_body"] == 2
    assert found["status"] == 1
    assert sum(found.values()) == 6
    # the pages themselves, where zstd is off, are not counted
    assert "off" not in found
    assert status(nginx)["all"]["not_compressed"] == found
    assert values["responses"] == 0


def test_failed_response_is_counted(serve, mode):
    """The file is cut while it is sent."""
    size = 48 * MIB
    nginx = serve("sendfile on;" + PAGES, mode, files={"f": data.noise(size)})
    nginx.allow("zstd: ", "the file is cut")
    with http1.Connection(nginx.port, receive_buffer=16 * KIB) as client:
        client.request("/f")
        client.head()
        client.piece()
        os.truncate(os.path.join(nginx.root, "f"), size // 2)
        client.read_cut()
    page = settled(nginx, failed=1)
    assert page["all"]["responses"] == 1
    assert page["all"]["finished"] == 0


def test_aborted_response_is_counted_so_far(serve, mode):
    nginx = serve(PAGES, mode, files={"f": data.noise(8 * MIB)})
    with http1.Connection(nginx.port, receive_buffer=16 * KIB) as client:
        client.request("/f")
        client.head()
        client.piece()
        client.abort()

    def ended():
        values = status(nginx)["all"]
        return values if values["bytes_in"] else None

    values = wait_for(ended, "the end of the response")
    assert values["responses"] == 1
    assert values["finished"] == values["failed"] == 0
    assert 0 < values["bytes_in"] <= 8 * MIB
    assert values["bytes_out"] > 0


def test_counters_follow_the_work(serve, mode):
    """Not what a file has, and not when a response ends: a stream of events
    may take days."""
    size = 40 * MIB
    nginx = serve(
        PAGES,
        mode,
        http="log_format z '$zstd_bytes_in $zstd_bytes_out';"
        "access_log {prefix}/z.log z;",
        files={"f": data.text(size)},
        listen_options="sndbuf=32k",
    )
    with http1.Connection(nginx.port, receive_buffer=4096) as client:
        client.request("/f")
        client.head()

        def worked():
            values = status(nginx)["all"]
            return values if values["cpu_seconds"] else None

        values = wait_for(worked, "work to be counted")
        assert values["finished"] == 0
        assert 0 < values["bytes_in"] < size // 2
        assert 0 < values["bytes_out"] < values["bytes_in"]
        client.abort()

    def logged():
        with open(os.path.join(nginx.prefix, "z.log")) as f:
            return [line for line in f if not line.startswith("- ")]

    (line,) = wait_for(logged, "the log")
    assert int(line.split()[0]) < size // 2
    assert int(line.split()[0]) < 5 * int(line.split()[1])


def test_counters_of_an_event_stream(serve, mode, upstream):
    """It is short work, which the loop does at once, and never ends."""
    end = threading.Event()
    upstream.reply("/", chunked(b"an event\n" * 10, Wait(end)))
    nginx = serve(
        PAGES
        + "location / { %s proxy_buffering off; }" % (PROXY % upstream.address),
        mode,
    )
    with http1.Connection(nginx.port) as client:
        client.request("/")
        client.head()
        client.piece()
        values = settled(nginx, bytes_in=90)["all"]
        assert values["finished"] == 0
        assert values["bytes_out"] > 0 and values["cpu_seconds"] > 0
        end.set()
        client.read()


# outside of the cache: the series of a number in the JSON page
SERIES = {
    "jobs_running": "jobs_running",
    "jobs_pool": "pool_jobs_total",
    "jobs_loop": "loop_jobs_total",
    "responses": "responses_total",
    "finished": "responses_finished_total",
    "failed": "responses_failed_total",
    "queue_full": "queue_full_total",
    "no_memory": "memory_limit_reached_total",
    "bytes_in": "input_bytes_total",
    "bytes_out": "output_bytes_total",
    "cpu_seconds": "cpu_seconds_total",
}


def test_both_pages_say_the_same(serve, mode):
    nginx = serve_by(2, serve, mode, {"f": data.text(200 * KIB)})
    for _ in range(4):
        http1.get(nginx.port, "/f")
        http1.get(nginx.port, "/f", accept="br")
    page = settled(nginx, finished=4)
    text = http1.get(nginx.port, "/prometheus", accept=None).body.decode()
    families = parse_exposition(text)
    check_conventions(families)

    pages = [((), "", page["all"])]
    for worker in page["workers"]:
        label = ("worker", str(worker.pop("worker")))
        pid = ("pid", str(worker.pop("pid")))
        info = families["nginx_zstd_worker_info"].samples
        assert info.pop((label, pid)) == 1
        pages.append(((label,), "worker_", worker))
    assert info == {}
    assert families["nginx_zstd_workers"].samples == {(): 2}

    for labels, prefix, values in pages:
        for path, value in numbers(values).items():
            if path[0] == "cache":
                continue  # may have changed since then
            if path[0] == "not_compressed":
                family = prefix + "not_compressed_total"
                key = (*labels, ("reason", path[1]))
            else:
                family, key = prefix + SERIES[path[0]], labels
            sample = families["nginx_zstd_" + family].samples[key]
            assert sample == pytest.approx(value, abs=1e-9), family


def test_all_is_the_sum_of_the_workers(serve, mode):
    nginx = serve_by(4, serve, mode, {"f": data.text(5000)})
    for _ in range(40):
        http1.get(nginx.port, "/f")
    page = settled(nginx, finished=40)
    workers = page["workers"]
    assert sorted(w["pid"] for w in workers) == sorted(nginx.workers())
    assert len({w["worker"] for w in workers}) == 4
    for path, value in numbers(page["all"]).items():
        parts = []
        for worker in workers:
            part = worker
            for name in path:
                part = part[name]
            parts.append(part)
        if path[-1] in ("bytes_peak", "encoders_peak"):
            assert value == max(parts), path
        else:
            assert value == pytest.approx(sum(parts), abs=1e-8), path


# ---------------------------------------------------------------------------
# Workers that come and go
# ---------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 3])
def test_totals_go_on_over_reloads(serve, mode, workers):
    nginx = serve_by(workers, serve, mode, {"f": data.text(5000)})
    for count in range(1, 5):
        sent = len(http1.get(nginx.port, "/f").body)
        page = settled(nginx, finished=count)
        assert page["all"]["bytes_in"] == count * 5000
        assert page["all"]["bytes_out"] == count * sent
        nginx.reload()
        page = current_workers(nginx)
        assert page["all"]["finished"] == count
        assert sum(w["finished"] for w in page["workers"]) == 0


def test_old_worker_counts_on_after_a_reload(serve, mode, upstream):
    """A response that began before the reload ends after it."""
    go_on = threading.Event()
    content = data.text(50 * KIB)
    upstream.reply("/", chunked(content, Wait(go_on), content))
    nginx = serve(
        PAGES
        + "location = / { %s proxy_buffering off; }"
        % (PROXY % upstream.address),
        mode,
        files={"f": data.text(5000)},
    )
    with http1.Connection(nginx.port) as client:
        client.request("/")
        client.head()
        client.piece()
        (old,) = nginx.reload(wait=False)
        page = status(nginx)
        assert old in [w["pid"] for w in page["workers"]]
        assert page["all"]["responses"] == 1
        http1.get(nginx.port, "/f")
        go_on.set()
        client.read()
    wait_for(lambda: not alive(old), "the old worker's end")
    page = settled(nginx, finished=2)
    assert page["all"]["bytes_in"] == 2 * len(content) + 5000
    current_workers(nginx)


def killed(nginx):
    """Before a worker is killed: what the test's end then is to accept."""
    nginx.reloaded = True
    nginx.allow("exited on signal 9", "a worker is killed")


def test_killed_worker_leaves_its_counts(serve, mode):
    nginx = serve(PAGES, mode, files={"f": data.text(5000)})
    killed(nginx)
    for count in range(1, 4):
        http1.get(nginx.port, "/f")
        before = settled(nginx, finished=count)
        pid = nginx.worker()
        nginx.signal("KILL", pid)
        wait_for(lambda: nginx.workers() not in ([], [pid]), "a new worker")
        page = current_workers(nginx)
        assert page["all"]["finished"] == count
        assert page["all"]["bytes_in"] == count * 5000
        (worker,) = page["workers"]
        assert worker["pid"] != pid
        # the same place, but nothing of what was there
        assert worker["worker"] == before["workers"][0]["worker"]
        assert worker["finished"] == 0


@pytest.mark.parametrize("how", ["current", "old"])
def test_killed_worker_leaves_no_running_jobs(serve, mode, how):
    """A count of jobs that nobody will ever end would keep the others from
    running theirs."""
    if mode.name == "loop":
        pytest.skip("no job runs beside the loop")
    level = "zstd_comp_level 19; zstd_inline 0;"
    nginx = serve(
        PAGES + level, mode, files={"f": data.text(8 * MIB), "g": b"g" * 9000}
    )
    killed(nginx)
    with http1.Connection(nginx.port) as client:
        client.request("/f")
        page = wait_for(lambda: running(nginx), "jobs")
        (worker,) = page["workers"]
        if how == "old":
            nginx.reload(wait=False)
            page = status(nginx)
            assert worker["pid"] in [w["pid"] for w in page["workers"]]
        nginx.signal("KILL", worker["pid"])
        wait_for(
            lambda: not alive(worker["pid"])
            and nginx.workers() not in ([], [worker["pid"]]),
            "a new worker",
        )
    page = current_workers(nginx)
    assert page["all"]["jobs_running"] == 0
    assert page["all"]["responses"] == 1
    assert page["all"]["finished"] == 0
    round_trip(nginx, "/g", b"g" * 9000)
    settled(nginx, finished=1, jobs_running=0)


def running(nginx):
    page = status(nginx)
    return page if page["all"]["jobs_running"] else None


def test_fewer_workers_after_a_reload(serve, mode):
    nginx = serve_by(3, serve, mode, {"f": data.text(5000)})
    for _ in range(12):
        http1.get(nginx.port, "/f")
    settled(nginx, finished=12)
    with open(nginx.path) as f:
        text = f.read()
    with open(nginx.path, "w") as f:
        f.write(text.replace("worker_processes 3", "worker_processes 1"))
    nginx.reload()
    page = current_workers(nginx)
    assert len(page["workers"]) == 1
    assert page["all"]["finished"] == 12
    http1.get(nginx.port, "/f")
    settled(nginx, finished=13)


def test_status_can_go_and_come_back(serve, mode):
    """The zone is there as long as the module is."""
    nginx = serve(PAGES, mode, files={"f": data.text(5000)})
    http1.get(nginx.port, "/f")
    settled(nginx, finished=1)
    with open(nginx.path) as f:
        text = f.read()
    with open(nginx.path, "w") as f:
        f.write(re.sub(r"\bzstd\w* [^;{]*;|\bzstd_status;", "", text))
    nginx.reload()
    assert http1.get(nginx.port, "/json").status == 404
    assert http1.get(nginx.port, "/f").get("Content-Encoding") is None
    with open(nginx.path, "w") as f:
        f.write(text)
    nginx.reload()
    assert status(nginx)["all"]["responses"] == 1
    http1.get(nginx.port, "/f")
    settled(nginx, finished=2)


def test_h2_streams_are_counted(serve, mode):
    if not build.nginx_has("http_v2_module"):
        pytest.skip("this NGINX has no HTTP/2")
    nginx = serve(PAGES, mode, files={"f": data.text(60 * KIB)})
    with http2.Connection(nginx.h2_port) as client:
        streams = [client.request("/f") for _ in range(20)]
        client.finish()
    sent = sum(len(stream.body) for stream in streams)
    page = settled(nginx, finished=20)
    assert page["all"]["bytes_in"] == 20 * 60 * KIB
    assert page["all"]["bytes_out"] == sent
