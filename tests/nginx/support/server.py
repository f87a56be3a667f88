"""An NGINX of one test: its own folder, ports and configuration."""

import glob
import os
import random
import re
import signal
import socket
import subprocess
import time

import pytest

from support import build
from support.limits import HANG

TEMPLATE = """
daemon {daemon};
{user}
# for the sanitizers, in an upgraded binary too
env ASAN_OPTIONS;
env LSAN_OPTIONS;
worker_processes {workers};
pid {prefix}/nginx.pid;
error_log {prefix}/error.log {log};
{environment}
{load}
{main}
events {{
    worker_connections 8192;
    {events}
}}
http {{
    access_log {prefix}/access.log;
    client_body_temp_path {prefix}/temp/client;
    proxy_temp_path {prefix}/temp/proxy;
    fastcgi_temp_path {prefix}/temp/fastcgi;
    uwsgi_temp_path {prefix}/temp/uwsgi;
    scgi_temp_path {prefix}/temp/scgi;
    default_type text/plain;
    keepalive_requests 100000;
    {http}
    server {{
        listen 127.0.0.1:{port}{listen_options};
        {listen}
        server_name test;
        root {root};
        {server}
    }}
    {servers}
}}
"""

BAD_LOG = re.compile(r"\[(alert|crit|emerg)\]")
# NGINX itself has undefined behaviour of a harmless kind; of that sanitizer
# only what is said of our files counts.
BAD_REPORT = re.compile(
    r"(Address|Leak|Thread|Memory)Sanitizer"
    r"|(shim-nginx|lib)/\w+\.[ch]:\d+:\d+: runtime error:"
    r"|==\d+== (ERROR SUMMARY: [1-9]|Invalid|Conditional jump|Use of uninit"
    r"|Syscall param|Mismatched|Source and dest|Argument|Process terminating)"
)

LEAKS = os.path.join(os.path.abspath(os.path.dirname(__file__)), "lsan.supp")


def wait_for(condition, what, timeout=HANG, step=0.01):
    """Until the condition holds; what it returned then."""
    limit = time.monotonic() + timeout
    while True:
        result = condition()
        if result:
            return result
        assert time.monotonic() < limit, "waited too long for " + what
        time.sleep(step)


def free_port():
    """Below the ports that the system gives to clients, so that no outgoing
    connection takes it before NGINX does."""
    while True:
        port = random.SystemRandom().randrange(10000, 32000)
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


class Server:
    """Write configuration with conf(), start(), and in the end stop(), which
    checks the logs."""

    def __init__(self, prefix, load):
        self.prefix = prefix
        self.load = load
        self.allowed = []
        self.process = None
        self.first_workers = None
        self.reloaded = False
        self.environment = {}
        self.root = os.path.join(prefix, "html")
        for name in ("html", "temp", "logs", "cache"):
            os.makedirs(os.path.join(prefix, name), exist_ok=True)

    def allow(self, text, why):
        """Lines of the error log with this text are right in this test."""
        assert why
        self.allowed.append(text)

    def file(self, name, content):
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(content)
        return path

    def configure(
        self,
        server="",
        http="",
        main="",
        events="",
        servers="",
        load=(),
        workers=1,
        log="info",
        tls=False,
        listen_options="",
        daemon=False,
    ):
        """The texts may contain {prefix}, {root} and {port}."""
        if not hasattr(self, "port"):
            self.port, self.h2_port, self.tls_port = (
                free_port() for _ in range(3)
            )
        self.daemon = daemon
        self.count = workers
        listen = []
        if build.nginx_has("http_v2_module"):
            listen.append("listen 127.0.0.1:%d http2;" % self.h2_port)
        if tls:
            listen += self.listen_tls()
        environment = [
            "env %s;" % name
            for name in os.environ
            if re.match(r"(A|UB|T|L)SAN_OPTIONS$", name)
        ]
        place = {
            "prefix": self.prefix,
            "root": self.root,
            "port": str(self.port),
        }
        fill = lambda s: re.sub(  # noqa: E731
            r"\{(prefix|root|port)\}", lambda m: place[m.group(1)], s
        )
        text = TEMPLATE.format(
            user="user root;" if os.geteuid() == 0 else "",
            daemon="on" if daemon else "off",
            workers=workers,
            listen_options=" " + listen_options if listen_options else "",
            log=log,
            environment="\n".join(environment),
            load="\n".join([*load, *self.load]),
            listen="\n        ".join(listen),
            server=fill(server),
            http=fill(http),
            main=fill(main),
            events=fill(events),
            servers=fill(servers),
            **place,
        )
        if not build.nginx_has("threads") and re.search(
            r"^\s*thread_pool |\baio threads", text, re.M
        ):
            pytest.skip("this NGINX has no threads")
        self.path = os.path.join(self.prefix, "nginx.conf")
        with open(self.path, "w") as f:
            f.write(text)

    def listen_tls(self):
        names = [os.path.join(self.prefix, n) for n in ("cert", "key")]
        if not os.path.exists(names[0]):
            subprocess.run(
                "openssl req -x509 -newkey ec -pkeyopt "
                "ec_paramgen_curve:prime256v1 -nodes -days 2 "
                "-subj /CN=test -out %s -keyout %s" % tuple(names),
                shell=True,
                check=True,
                capture_output=True,
            )
        http2 = "http2" if build.nginx_has("http_v2_module") else ""
        return [
            "listen 127.0.0.1:%d ssl %s;" % (self.tls_port, http2),
            "ssl_certificate %s;" % names[0],
            "ssl_certificate_key %s;" % names[1],
        ]

    def command(self, *arguments):
        command = build.nginx_command(self.prefix)
        command += ["-p", self.prefix + "/", "-c", self.path]
        if build.nginx_version() >= (1, 19, 5):
            command += ["-e", os.path.join(self.prefix, "error.log")]
        return command + list(arguments)

    def test(self):
        """Of "nginx -t": whether it is right, and what it says."""
        done = subprocess.run(
            self.command("-t"),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=HANG,
            # of a test of the configuration NGINX frees nothing
            env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"},
        )
        return done.returncode == 0, done.stdout

    def start(self):
        with open(os.path.join(self.prefix, "stderr"), "ab") as f:
            self.process = subprocess.Popen(
                self.command(),
                stdin=subprocess.DEVNULL,
                stderr=f,
                env={
                    "LSAN_OPTIONS": "print_suppressions=0:suppressions="
                    + LEAKS,
                    **os.environ,
                    **self.environment,
                },
            )
        self.master = self.process.pid
        wait_for(self.answers, "the start of NGINX")
        if self.daemon:
            self.process.wait()
            self.process = Daemon(self.prefix)
            self.master = self.process.pid
        self.first_workers = wait_for(self.all_workers, "workers")
        return self

    def all_workers(self):
        """The workers, as soon as all that were asked for have begun."""
        found = self.workers()
        return found if len(found) >= self.count else None

    def answers(self):
        if self.process.poll() not in (None, 0 if self.daemon else None):
            self.process = None
            raise AssertionError("NGINX does not start:\n" + self.log())
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0

    def log(self):
        text = ""
        for name in ("error.log", "stderr"):
            path = os.path.join(self.prefix, name)
            if os.path.exists(path):
                with open(path, errors="replace") as f:
                    text += f.read()
        return text

    def access_log(self):
        with open(os.path.join(self.prefix, "access.log")) as f:
            return f.read()

    def workers(self, master=None):
        """The pids of the master's workers that do not end already, by what
        they have logged: under valgrind a process has no title."""
        with open(os.path.join(self.prefix, "error.log"), "rb") as f:
            log = f.read()
        started = re.findall(
            rb" (\d+)#\d+: start worker process (\d+)", log
        )
        ending = re.findall(rb" (\d+)#\d+: gracefully shutting down", log)
        return sorted(
            int(pid)
            for parent, pid in started
            if int(parent) == (master or self.master)
            and pid not in ending
            and alive(int(pid))
        )

    def worker(self):
        (pid,) = self.workers()
        return pid

    def signal(self, name, pid=None):
        os.kill(pid or self.master, getattr(signal, "SIG" + name))

    def reload(self, wait=True):
        """New workers; with wait until the old ones have gone."""
        self.reloaded = True
        old = self.workers()
        self.signal("HUP")
        wait_for(
            lambda: self.workers() and not set(self.workers()) & set(old),
            "new workers",
        )
        if wait:
            wait_for(lambda: not any(map(alive, old)), "the old workers' end")
        return old

    def cpu(self):
        """Seconds of CPU time that the workers have used."""
        ticks = 0
        for pid in self.workers():
            with open("/proc/%d/stat" % pid) as f:
                fields = f.read().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def check_idle(self):
        """The workers do not spin: two ticks in half a second at most."""
        before = self.cpu()
        time.sleep(0.5)
        used = self.cpu() - before
        assert used <= 0.05, "idle workers use %.2f s in 0.5 s" % used

    def memory(self, field="VmRSS"):
        """Bytes of the only worker: VmRSS now, VmHWM at most."""
        with open("/proc/%d/status" % self.worker()) as f:
            found = re.search(field + r":\s+(\d+)", f.read())
        return int(found.group(1)) << 10

    def loop_read(self):
        """Bytes that the event loop's thread of the only worker has read."""
        pid = self.worker()
        with open("/proc/%d/task/%d/io" % (pid, pid)) as f:
            return int(re.search(r"rchar: (\d+)", f.read()).group(1))

    def connections(self):
        """Sockets that the only worker has open."""
        folder = "/proc/%d/fd" % self.worker()
        count = 0
        for name in os.listdir(folder):
            try:
                count += os.readlink(os.path.join(folder, name)).startswith(
                    "socket:"
                )
            except OSError:
                pass
        return count

    def stop(self):
        """Ends NGINX gracefully and checks what it leaves."""
        if not self.process:
            return
        crashed = self.process.poll() is not None
        changed = None
        if not crashed:
            changed = self.reloaded or self.workers() == self.first_workers
            self.signal("QUIT")
        hangs = False
        try:
            self.process.wait(HANG)
        except subprocess.TimeoutExpired:
            hangs = True
            for pid in [*children(self.master), self.master]:
                self.signal("KILL", pid)
            self.process.wait()
        self.process = None
        self.check_logs()
        assert not crashed, "NGINX was gone before its end"
        assert changed, "a worker was replaced"
        assert not hangs, "NGINX does not quit"

    def check_logs(self):
        bad = [
            line
            for line in self.log().splitlines()
            if (BAD_LOG.search(line) or BAD_REPORT.search(line))
            and not any(text in line for text in self.allowed)
        ]
        for pattern in ("valgrind.*", "asan.*", "tsan.*", "ubsan.*"):
            for path in glob.glob(os.path.join(self.prefix, pattern)):
                with open(path, errors="replace") as f:
                    text = f.read()
                if BAD_REPORT.search(text):
                    bad.append("%s:\n%s" % (path, text))
        assert not bad, "\n".join(bad)[:20000]


class Daemon:
    """A master that is not our child, with what Popen has."""

    def __init__(self, prefix):
        path = os.path.join(prefix, "nginx.pid")

        def number():
            try:
                with open(path) as f:
                    return f.read().strip()
            except OSError:
                return None

        self.pid = int(wait_for(number, "the pid file"))

    def poll(self):
        return None if alive(self.pid) else 0

    def wait(self, timeout=HANG):
        limit = time.monotonic() + timeout
        while alive(self.pid):
            if time.monotonic() > limit:
                raise subprocess.TimeoutExpired("nginx", timeout)
            time.sleep(0.01)
        return 0


def alive(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def title(pid):
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as f:
            return f.read().decode(errors="replace")
    except OSError:
        return ""


def children(pid):
    """Of a process, by the system's table."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open("/proc/%s/stat" % name) as f:
                parent = int(f.read().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == pid:
            found.append(int(name))
    return found


