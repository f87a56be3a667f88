"""How the modules are built and linked."""

import os
import re
import shutil
import subprocess

import pytest

from support import build

SCRIPT = os.path.join(build.ROOT, "scripts/build_nginx_module.sh")
SHIM = os.path.join(build.ROOT, "shim-nginx")
NGINX_DEV = "/usr/share/nginx/src"
NAMES = (build.FILTER, build.STATIC)

needs_dev = pytest.mark.skipif(
    not os.path.exists(NGINX_DEV), reason="no package nginx-dev"
)


def run(*command, ok=True, **environment):
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **environment},
    )
    assert (done.returncode == 0) == ok, done.stdout[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def paths(load):
    """Of both modules, by name."""
    if not load:
        pytest.skip("the modules are linked into this NGINX")
    found = [re.search(r"load_module (.*);", line).group(1) for line in load]
    return dict(zip(NAMES, found))


def test_b72_only_nginx_names_are_exported(paths):
    """NGINX loads modules so that all others see their names."""
    for path in paths.values():
        lines = run("nm", "-D", "--defined-only", path).splitlines()
        assert sorted(line.split()[-1] for line in lines) == [
            "ngx_module_names",
            "ngx_module_order",
            "ngx_modules",
        ]


def needed(path):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", path))


def test_b72_libzstd_stays_shared(paths):
    libraries = needed(paths[build.FILTER])
    assert "libzstd.so.1" in libraries
    usual = re.compile(r"(lib(zstd|c|pthread|asan|ubsan)\.so|ld-linux)")
    assert all(usual.match(library) for library in libraries), libraries
    assert not any("zstd" in lib for lib in needed(paths[build.STATIC]))
    for path in paths.values():
        dynamic = run("readelf", "-d", path)
        assert "RPATH" not in dynamic and "RUNPATH" not in dynamic


def test_b72_only_stable_names_of_libzstd(paths):
    """Others may be weak: they are looked at at run time."""
    names = os.path.join(build.ROOT, "scripts/checks/libzstd-1.4.0.names")
    with open(names) as f:
        stable = f.read().split()
    lines = run("nm", "-D", "--undefined-only", paths[build.FILTER])
    strong = re.findall(r" U (ZSTD_\w+)", lines)
    assert "ZSTD_compressStream2" in strong
    assert set(strong) <= set(stable)


def test_b72_each_loads_alone_and_both_in_each_order(paths, make_server):
    one, other = paths.values()
    for chosen in ([one], [other], [one, other], [other, one]):
        nginx = make_server()
        nginx.load = ["load_module %s;" % path for path in chosen]
        nginx.configure("")
        right, said = nginx.test()
        assert right, said


@needs_dev
@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("cmake"), reason="no cmake")
def test_b73_cmake_builds_them_too(tmp_path, paths):
    """By the same way, so they export and need the same."""
    run(
        "cmake",
        *("-S", build.ROOT, "-B", str(tmp_path)),
        *("-DSEGZSTD_BUILD_NGINX=ON", "-DSEGZSTD_BUILD_TOOLS=OFF"),
    )
    run("cmake", "--build", str(tmp_path), "--target", "nginx_modules")
    for name, path in paths.items():
        made = str(tmp_path / "nginx" / os.path.basename(path))
        for what in (("-D", "--defined-only"), ("-D", "--undefined-only")):
            assert names_of(made, *what) == names_of(path, *what)
        assert needed(made) == needed(path)


def names_of(path, *options):
    lines = run("nm", *options, path).splitlines()
    return sorted(line.split()[-1] for line in lines)


DUMMY = """
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

static ngx_http_module_t  ngx_http_dummy_module_ctx;

ngx_module_t  ngx_http_dummy_module = {
    NGX_MODULE_V1, &ngx_http_dummy_module_ctx, NULL, NGX_HTTP_MODULE,
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, NGX_MODULE_V1_PADDING
};
"""


@needs_dev
@pytest.mark.slow
@pytest.mark.parametrize("first", ["dummy", "zstd"])
def test_b73_other_modules_are_left_alone(tmp_path, first):
    """libzstd was linked into all modules of the build, and flags changed."""
    dummy = tmp_path / "dummy"
    dummy.mkdir()
    (dummy / "dummy.c").write_text(DUMMY)
    (dummy / "config").write_text(
        "ngx_addon_name=dummy\n"
        "ngx_module_type=HTTP\n"
        "ngx_module_name=ngx_http_dummy_module\n"
        'ngx_module_srcs="$ngx_addon_dir/dummy.c"\n'
        ". auto/module\n"
        'echo "FLAGS $CFLAGS | $NGX_LD_OPT | $CORE_LIBS" >>%s/flags\n'
        % tmp_path
    )
    if first == "dummy":
        order = [str(dummy), SHIM]
    else:
        order = [SHIM, str(dummy)]
    configured = run(
        "bash",
        "-c",
        'cd %s && . ./conf_flags && ./configure --builddir="$0" '
        '"${NGX_CONF_FLAGS[@]}" "$@"' % NGINX_DEV,
        str(tmp_path / "build"),
        *["--add-dynamic-module=" + folder for folder in order],
    )
    assert " + ngx_http_zstd was configured" in configured
    makefile = (tmp_path / "build/Makefile").read_text()
    target = str(tmp_path / "build/ngx_http_dummy_module.so")
    path = str(tmp_path / "build/Makefile")
    run("make", "-C", NGINX_DEV, "-f", path, target)
    assert not any("zstd" in library for library in needed(target))
    assert "zstd" not in (tmp_path / "flags").read_text()
    # of the Makefile's variables only the folders of headers know of us
    for name in ("CFLAGS", "LINK", "CC"):
        line = re.search(r"^%s\s*=(.*)$" % name, makefile, re.M).group(1)
        assert "zstd" not in line


def configure(tmp_path, ok=True, **environment):
    """Of the dynamic modules; what it says."""
    return run(
        "bash",
        "-c",
        'cd %s && . ./conf_flags && ./configure --builddir="$0" '
        '"${NGX_CONF_FLAGS[@]}" --add-dynamic-module="$1"' % NGINX_DEV,
        str(tmp_path / "build"),
        SHIM,
        ok=ok,
        **environment,
    )


@needs_dev
def test_b72_old_libzstd_is_refused(tmp_path):
    (tmp_path / "zstd.h").write_text(
        "#define ZSTD_VERSION_NUMBER 10308\n"
        "typedef int ZSTD_EndDirective;\n"
        "int ZSTD_compressStream2();\nenum { ZSTD_e_end };\n"
    )
    said = configure(tmp_path, ok=False, ZSTD_INC=str(tmp_path), ZSTD_LIB="")
    assert "needs libzstd 1.4.0 or newer" in said
    assert "not found" in said


@needs_dev
@pytest.mark.slow
def test_b72_folders_that_are_named_are_used(tmp_path):
    """ZSTD_INC and ZSTD_LIB win over what the system has."""
    include = tmp_path / "include"
    library = tmp_path / "lib"
    include.mkdir()
    library.mkdir()
    real = run("gcc", "-print-file-name=libzstd.so").strip()
    shutil.copy(real, library / "libzstd.so.1")
    (library / "libzstd.so").symlink_to("libzstd.so.1")
    (include / "zstd.h").write_text("#include_next <zstd.h>\n")
    run(
        SCRIPT,
        str(tmp_path / "out"),
        ZSTD_INC=str(include),
        ZSTD_LIB=str(library),
    )
    path = str(tmp_path / "out" / (build.FILTER + ".so"))
    assert "libzstd.so.1" in needed(path)
    # and found at run time
    assert str(library) in run("ldd", path)
    makefile = (tmp_path / "out/nginx-build/Makefile").read_text()
    assert str(include) in makefile


@needs_dev
def test_b72_without_pkg_config(tmp_path):
    said = configure(tmp_path, PKG_CONFIG="/nowhere/pkg-config")
    assert "libzstd >= 1.4.0 ... found" in said


@needs_dev
def test_b72_nothing_is_found(tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "zstd.h").write_text("#error not this one\n")
    said = configure(tmp_path, ok=False, ZSTD_INC=str(empty))
    assert "needs libzstd 1.4.0 or newer" in said
    assert "libzstd-dev" in said


@needs_dev
def test_b73_nothing_is_run_by_configure(tmp_path):
    """A cross compiler's programs do not run here."""
    compiler = tmp_path / "cc"
    compiler.write_text(
        "#!/bin/sh\n"
        "# what is linked with libzstd must never be started\n"
        'gcc "$@" || exit\n'
        'case " $* " in *" -lzstd "*)\n'
        '    while [ "$1" != -o ]; do shift; done\n'
        '    printf "#!/bin/sh\\ntouch %s/ran\\nexit 1\\n" >"$2"\n'
        "esac\n" % tmp_path
    )
    compiler.chmod(0o755)
    said = run(
        "bash",
        "-c",
        'cd %s && . ./conf_flags && ./configure --builddir="$0" '
        '--with-cc="$2" "${NGX_CONF_FLAGS[@]}" --add-dynamic-module="$1"'
        % NGINX_DEV,
        str(tmp_path / "build"),
        SHIM,
        str(compiler),
    )
    assert "libzstd >= 1.4.0 by pkg-config ... found" in said
    assert not (tmp_path / "ran").exists()


WARNINGS = "-O1 -Wall -Wextra -Wno-unused-parameter -Werror"


@needs_dev
def test_b73_compiles_without_threads(tmp_path):
    """What only pools need was used where there are none."""
    run(
        "bash",
        "-c",
        'cd %s && ./configure --builddir="$0" --with-cc-opt="%s" '
        '--add-dynamic-module="$1"' % (NGINX_DEV, WARNINGS),
        str(tmp_path),
        SHIM,
    )
    run("make", "-C", NGINX_DEV, "-f", str(tmp_path / "Makefile"), "modules")
    assert "#ifndef NGX_THREADS" not in (
        tmp_path / "ngx_auto_config.h"
    ).read_text()


@pytest.mark.skipif(
    not os.environ.get("SEGZSTD_NGINX_SOURCE"),
    reason="SEGZSTD_NGINX_SOURCE, a folder of NGINX's sources, is not set",
)
@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--with-threads"],
        ["--without-http_gzip_module"],
        ["--without-http_rewrite_module", "--without-pcre"],
    ],
)
@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_b73_builds_without_a_warning(tmp_path, options, static, compiler):
    """And nothing is there twice where the modules are linked in."""
    run(
        SCRIPT,
        *(["--static"] if static else []),
        str(tmp_path),
        os.environ["SEGZSTD_NGINX_SOURCE"],
        "--without-http_charset_module",
        *options,
        CC=compiler,
        CFLAGS=WARNINGS,
    )
    said = run(str(tmp_path / "nginx"), "-V")
    assert "--add-%smodule=" % ("" if static else "dynamic-") in said
