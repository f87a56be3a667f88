"""Fixtures of the tests of the NGINX modules; see README.md."""

import os
import sys

sys.dont_write_bytecode = True

import pytest  # noqa: E402

pytest.register_assert_rewrite("support")

from support import build, data  # noqa: E402
from support.limits import SHORT  # noqa: E402
from support.server import Server  # noqa: E402
from support.upstream import Upstream  # noqa: E402


class Mode:
    """How the compression runs, as configuration."""

    def __init__(self, name, main="", http=""):
        self.name = name
        self.main = main
        self.http = http

    def __repr__(self):
        return self.name


MODES = {
    # every job on a pool, cut into fixed segments
    "pool": Mode(
        "pool",
        "thread_pool zp threads=4;",
        "zstd_thread_pool zp; zstd_parallel_segment_size 1m; zstd_inline 0;",
    ),
    # every job on the event loop
    "loop": Mode("loop", "", "zstd_thread_pool off;"),
    # what somebody has who sets nothing
    "adaptive": Mode("adaptive"),
}


def pytest_collection_modifyitems(items):
    if SHORT:
        skip = pytest.mark.skip(reason="slow, and SEGZSTD_TEST_SHORT is set")
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(skip)


# all, or those that were asked for
WANTED = os.environ.get("SEGZSTD_NGINX_MODES", ",".join(MODES)).split(",")


@pytest.fixture(params=WANTED)
def mode(request):
    if request.param == "pool" and not build.nginx_has("threads"):
        pytest.skip("this NGINX has no threads")
    return MODES[request.param]


@pytest.fixture(scope="session")
def load(tmp_path_factory):
    return build.modules(str(tmp_path_factory.mktemp("modules")))


@pytest.fixture
def make_server(tmp_path, load):
    """make_server() is a Server without configuration; each is checked and
    stopped at the end."""
    servers = []

    def make():
        prefix = tmp_path / ("nginx%d" % len(servers))
        prefix.mkdir()
        servers.append(Server(str(prefix), load))
        return servers[-1]

    yield make
    for server in servers:
        server.stop()


@pytest.fixture
def upstream(make_server):
    """Ends before the servers do, so that nothing keeps NGINX waiting."""
    server = Upstream()
    yield server
    server.close()


@pytest.fixture
def serve(make_server):
    """serve(server_block, mode=..., ...) is a running Server with zstd on for
    all types and lengths, if not said otherwise."""

    def start(
        server="",
        mode=None,
        http="",
        main="",
        zstd="zstd on; zstd_types *; zstd_min_length 0;",
        files=None,
        **options,
    ):
        nginx = make_server()
        for name, content in (files or {}).items():
            nginx.file(name, content)
        nginx.configure(
            server,
            http="\n    ".join([zstd, mode.http if mode else "", http]),
            main="\n".join([mode.main if mode else "", main]),
            **options,
        )
        return nginx.start()

    return start


@pytest.fixture(scope="session")
def texts():
    """Contents of all sizes at the borders, by size."""
    return {size: data.text(size) for size in data.SIZES}
