"""A private nginx for a measurement: its configuration, start and end."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time
import urllib.request

# How a location answers, and under which directory name.
OFF, LOOP, POOL, COPIED = 'off', 'loop', 'pool', 'copied'


class Failure(Exception):
    """The server did something that makes the measurement worthless."""


def free_port():
    """A port that nobody listens on at this moment."""
    with socket.socket() as sock:
        sock.bind(('127.0.0.1', 0))
        return sock.getsockname()[1]


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


def locations(files, levels, ways):
    """The same files plain, and at each level in each of the ways."""
    plain = 'location /%s/ { alias %s/; zstd off; %s }\n'
    packed = ('location /%s/%d/ { alias %s/; zstd on; zstd_comp_level %d;'
              ' %s }\n')
    text = plain % (OFF, files, 'sendfile on;')
    text += plain % (COPIED, files, 'sendfile off;')
    for level in levels:
        if LOOP in ways:
            text += packed % (LOOP, level, files, level,
                              'zstd_thread_pool off;')
        if POOL in ways:
            text += packed % (POOL, level, files, level, '')
    return text


class Nginx:
    """One worker with the module; to be used in a with statement."""

    def __init__(self, module, files, levels, ways, listen=''):
        self.module = module
        self.files = files
        self.levels = levels
        self.ways = ways
        self.listen = listen

    def config(self):
        """As an operator would have it, but for paths and port."""
        user = 'user root;' if os.geteuid() == 0 else ''
        paths = ''.join(
            f'{name}_temp_path {self.folder}/{name};\n' for name in
            ('client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'))
        return f'''
load_module {self.module};
{user}
worker_processes 1;
daemon off;
pid {self.folder}/pid;
error_log {self.folder}/error.log warn;
events {{ worker_connections 4096; }}
http {{
{paths}
access_log off;
sendfile on;
tcp_nopush on;
keepalive_requests 1000000;
zstd_types *;
zstd_min_length 0;
server {{
listen 127.0.0.1:{self.port} {self.listen};
location = /zstd_status {{ zstd_status; }}
{locations(self.files, self.levels, self.ways)}
}}
}}
'''

    def __enter__(self):
        self.folder = pathlib.Path(os.environ['LOAD_TMP']) / 'nginx'
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.port = free_port()
        self.address = f'127.0.0.1:{self.port}'
        conf = self.folder / 'nginx.conf'
        conf.write_text(self.config())
        self.process = subprocess.Popen(
            ['nginx', '-p', self.folder, '-c', conf, '-e',
             self.folder / 'error.log'], stderr=subprocess.PIPE)
        try:
            self.worker = self.wait_for_worker()
        except BaseException:
            self.process.kill()
            self.process.wait()
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
        """What the module counts."""
        url = f'http://{self.address}/zstd_status'
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)

    def library(self):
        """The libzstd that the worker has mapped."""
        with open(f'/proc/{self.worker}/maps') as maps:
            found = {line.split()[-1] for line in maps if 'libzstd' in line}
        return ', '.join(sorted(found)) or 'none'

    def __exit__(self, kind, value, trace):
        try:
            if kind is None:
                self.check()
        finally:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                for child in children_of(self.process.pid):
                    os.kill(child, signal.SIGKILL)
                self.process.kill()
                self.process.wait()
            self.process.stderr.close()
