"""Which NGINX is tested, what it can do, and where our modules are.

SEGZSTD_NGINX          command that runs NGINX (nginx); "{prefix}" in it is the
                       test's own folder, for the logs of valgrind
SEGZSTD_NGINX_MODULES  folder with both modules for that NGINX; or "builtin" if
                       they are linked in; without it they are built
"""

import functools
import os
import re
import shlex
import shutil
import subprocess

import pytest

from support.limits import SCALE

FILTER = "ngx_http_zstd_filter_module"
STATIC = "ngx_http_zstd_static_module"

ROOT = os.path.join(os.path.dirname(__file__), "../../..")


def nginx_command(prefix):
    command = os.environ.get("SEGZSTD_NGINX", "nginx")
    command = shlex.split(command.replace("{prefix}", prefix))
    # an upgrade starts the program by the name by which it was called
    command[-1] = shutil.which(command[-1]) or command[-1]
    return command


@functools.lru_cache(maxsize=None)
def nginx_says():
    """What "nginx -V" prints."""
    done = subprocess.run(
        [nginx_command("/tmp")[-1], "-V"],
        stderr=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stderr


def is_checked():
    """A sanitizer or valgrind has memory of its own in the process."""
    return SCALE > 2 or "-fsanitize" in nginx_says()


@functools.lru_cache(maxsize=None)
def nginx_version():
    found = re.search(r"(?:nginx|openresty)/(\d+)\.(\d+)\.(\d+)", nginx_says())
    return tuple(map(int, found.groups()))


def nginx_has(option):
    """Of "configure", like "http_v2_module" or "threads"."""
    return re.search(r"--with-%s(?![\w=-])" % option, nginx_says()) is not None


needs_threads = pytest.mark.skipif(
    not nginx_has("threads"), reason="this NGINX has no threads"
)


def nginx_module(name):
    """Path of a dynamic module that came with this NGINX, or None."""
    found = re.search(r"--modules-path=(\S+)", nginx_says())
    if found:
        path = os.path.join(found.group(1), name + ".so")
        if os.path.exists(path):
            return path
    return None


def modules(folder):
    """The load_module lines for our modules; they are built in the folder if
    nobody has said where they are."""
    ready = os.environ.get("SEGZSTD_NGINX_MODULES")
    if ready == "builtin":
        return []
    if not ready:
        ready = folder
        script = os.path.join(ROOT, "scripts/build_nginx_module.sh")
        done = subprocess.run(
            [script, folder],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert not done.returncode, done.stdout[-4000:]
    paths = [
        os.path.join(os.path.abspath(ready), name + ".so")
        for name in (FILTER, STATIC)
    ]
    for path in paths:
        assert os.path.exists(path), "no " + path
    return ["load_module %s;" % path for path in paths]
