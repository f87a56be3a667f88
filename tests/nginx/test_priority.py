"""The event loop comes first: what the threads of a pool run at."""

import os

import pytest

from support import build, data, http1
from support.check import round_trip
from support.limits import MIB
from support.server import wait_for


def threads_by_nice(pid):
    """How many threads have which niceness; the first is the loop's."""
    found = {}
    for thread in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/stat" % (pid, thread)) as f:
            nice = int(f.read().rpartition(")")[2].split()[16])
        name = "loop" if int(thread) == pid else "pool"
        found.setdefault(name, []).append(nice)
    return found


def test_thread_nice__own_pool__lowers_threads_that_compressed(serve):
    content = data.text(3 * MIB)
    nginx = serve(
        main="thread_pool zp threads=2;",
        http="zstd_thread_pool zp; zstd_thread_nice 7; zstd_inline 0;"
        "zstd_parallel_segment_size 256k;",
        files={"f": content},
    )
    # the worker has begun; nothing is compressed yet
    assert http1.get(nginx.port, "/f", accept=None).body == content
    before = threads_by_nice(nginx.worker())
    (base,) = before["loop"]
    assert before["pool"] == [base, base]
    for _ in range(5):
        round_trip(nginx, "/f", content, command=False)
    after = threads_by_nice(nginx.worker())
    assert after["loop"] == [base]
    assert set(after["pool"]) <= {base, 7} and 7 in after["pool"]


def test_thread_nice__pool_of_others__is_refused_with_the_reason(make_server):
    """A thread that was lowered could not be raised to read files."""
    nginx = make_server()
    nginx.configure(
        main="thread_pool zp threads=2;",
        http="zstd on; zstd_thread_pool zp; zstd_thread_nice 7;"
        "aio threads=zp;",
    )
    right, says = nginx.test()
    assert not right
    assert "zstd_thread_nice" in says and "aio threads" in says, says


def test_thread_nice__default_pool__is_refused_with_the_way_out(make_server):
    nginx = make_server()
    nginx.configure(http="zstd on; zstd_thread_nice 7;")
    right, says = nginx.test()
    assert not right
    if build.nginx_has("threads"):
        assert "zstd_thread_nice" in says and "thread_pool" in says, says
    else:
        assert '"zstd_thread_nice" needs nginx built with threads' in says


def test_thread_nice__bad_reload__keeps_what_runs(make_server):
    """What a start refuses, a reload refuses too, and nothing ends."""
    nginx = make_server()
    main = "thread_pool zp threads=2;"
    good = "zstd on; zstd_types *; zstd_thread_pool zp; zstd_thread_nice 7;"
    content = data.text(100000)
    nginx.file("f", content)
    nginx.configure(main=main, http=good)
    if not build.nginx_has("threads"):
        right, says = nginx.test()
        assert not right and "needs nginx built with threads" in says
        return
    nginx.start()
    workers = nginx.workers()
    for bad in (good + "aio threads=zp;", "zstd on; zstd_thread_nice 7;"):
        nginx.configure(main=main, http=bad)
        nginx.allow("zstd_thread_nice", "is refused")
        logged = nginx.log().count("zstd_thread_nice")
        nginx.signal("HUP")
        wait_for(
            lambda: nginx.log().count("zstd_thread_nice") > logged,
            "the refusal",
        )
        round_trip(nginx, "/f", content)
        assert nginx.workers() == workers
        assert nginx.process.poll() is None


def test_thread_nice__pool_from_a_variable__is_warned_of(make_server):
    """Which pools it will name cannot be known."""
    nginx = make_server()
    nginx.configure(
        main="thread_pool zp threads=2; thread_pool disk threads=2;",
        http="zstd on; zstd_thread_pool zp; zstd_thread_nice 7;"
        "map $uri $pool { default disk; }",
        server="location /a { aio threads=$pool; }"
        "location /b { aio threads=$pool; }",
    )
    if not build.nginx_has("threads"):
        pytest.skip("this NGINX has no threads")
    right, says = nginx.test()
    assert right, says
    assert says.count("[warn]") == 1, says
    assert "zstd_thread_nice" in says and "aio threads" in says, says
