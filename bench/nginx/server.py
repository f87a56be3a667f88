"""An NGINX of its own for a run: its configuration, start and end."""

import json
import os
import pathlib
import resource
import shutil
import signal
import socket
import subprocess
import time
import urllib.request

import peers


class Failure(Exception):
    """Something that makes a measurement worthless."""


def free_port():
    """A port that nobody listens on at this moment."""
    with socket.socket() as sock:
        sock.bind(('127.0.0.1', 0))
        return sock.getsockname()[1]


def files_open_at_most(wanted=65536):
    """How many files a process may have open here, once that is raised."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, wanted))
        except (ValueError, OSError):    # not even root may do so everywhere
            return hard
    return wanted


def children_of(pid):
    """The processes that `pid` has started."""
    found = []
    for entry in pathlib.Path('/proc').iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / 'stat').read_text()
        except OSError:
            continue
        if int(stat.rpartition(')')[2].split()[1]) == pid:
            found.append(int(entry.name))
    return found


def stop(process):
    """Ends a master process and what it has started."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        for child in children_of(process.pid):
            os.kill(child, signal.SIGKILL)
        process.kill()
        process.wait()
    process.stderr.close()


CONFIG = '''{load}
{user}
worker_processes 1;
worker_rlimit_nofile {files_open};
daemon off;
pid {folder}/pid;
error_log {folder}/error.log warn;
events {{ worker_connections {connections}; }}
http {{
{paths}
access_log off;
sendfile on;
tcp_nopush on;
keepalive_requests 1000000;
default_type text/plain;
server {{
listen 127.0.0.1:{port} backlog=4096 {listen};
location /plain/ {{ alias {files}/; }}
location /packed/ {{ alias {files}/; {directives} }}
location /events/ {{ proxy_pass http://127.0.0.1:{origin};
proxy_http_version 1.1; proxy_set_header Connection "";
proxy_buffering off; proxy_read_timeout 600; {directives} }}
{status}
}}
}}
'''


class Nginx:
    """One worker that answers as one peer does; for a with statement.

    /plain/FILE is never compressed, /packed/FILE as the peer does it, and what
    is below /events/ comes from the server on port `origin`.
    """

    def __init__(self, setup, peer, level, listen='', connections=4096):
        self.modules = setup.modules
        self.files = setup.files
        self.folder = pathlib.Path(setup.folder) / 'nginx'
        self.peer = peer
        self.level = level
        self.listen = listen
        self.connections = connections
        self.port = free_port()
        self.origin = free_port()
        self.address = f'127.0.0.1:{self.port}'

    @property
    def ours(self):
        return self.peer.module == peers.OURS

    def config(self):
        """The same for all, but for module and directives of the peer."""
        return CONFIG.format(
            load=(f'load_module {self.modules[self.peer.module]};'
                  if self.peer.module else ''),
            user='user root;' if os.geteuid() == 0 else '',
            paths='\n'.join(
                f'{name}_temp_path {self.folder}/{name};' for name in
                ('client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi')),
            directives=self.peer.location(self.level),
            status=('location = /zstd_status { zstd_status; }'
                    if self.ours else ''),
            files_open=files_open_at_most(), connections=self.connections,
            folder=self.folder, port=self.port, listen=self.listen,
            files=self.files, origin=self.origin)

    def __enter__(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        conf = self.folder / 'nginx.conf'
        conf.write_text(self.config())
        self.process = subprocess.Popen(
            ['nginx', '-p', self.folder, '-c', conf, '-e',
             self.folder / 'error.log'], stderr=subprocess.PIPE)
        try:
            self.worker = self.wait_for_worker()
        except BaseException:
            stop(self.process)
            raise
        return self

    def wait_for_worker(self):
        """Until it accepts connections; its process id."""
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise Failure('nginx did not start: ' +
                              self.process.stderr.read().decode())
            workers = children_of(self.process.pid)
            try:
                socket.create_connection(('127.0.0.1', self.port), 1).close()
            except OSError:
                workers = []
            if workers:
                return workers[0]
            time.sleep(0.02)
        raise Failure('nginx has no worker after 10 s')

    def check(self):
        """No error was logged, and the worker is the one that it was."""
        log = (self.folder / 'error.log').read_text()
        bad = [line for line in log.splitlines()
               if any(f'[{word}]' in line for word in
                      ('alert', 'crit', 'emerg', 'error'))]
        if bad:
            raise Failure('nginx logged: ' + bad[0])
        if children_of(self.process.pid) != [self.worker]:
            raise Failure('the worker of nginx has ended or was replaced')

    def status(self):
        """What our module counts."""
        url = f'http://{self.address}/zstd_status'
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)

    def resident_mib(self):
        """What the worker has in memory now."""
        with open(f'/proc/{self.worker}/status') as lines:
            for line in lines:
                if line.startswith('VmRSS:'):
                    return int(line.split()[1]) / 1024
        raise Failure('the worker has no VmRSS')

    def library(self):
        """The libzstd that the worker has mapped, as the kernel names it."""
        with open(f'/proc/{self.worker}/maps') as maps:
            found = {line.split()[-1] for line in maps if 'libzstd' in line}
        return ', '.join(sorted(found))

    def __exit__(self, kind, value, trace):
        try:
            if kind is None:
                self.check()
        finally:
            stop(self.process)
