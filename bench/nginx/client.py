"""Runs segzstd_load against an NGINX, and reads its report."""

import json
import os
import pathlib
import subprocess
import sys

from server import Failure


def may_be_realtime():
    """Whether this process may give itself a realtime priority."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except OSError:
        return False
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    return True


class Client:
    """The load client, and how busy it was at most."""

    def __init__(self, program, folder):
        self.program = program
        self.folder = pathlib.Path(folder)
        self.realtime = may_be_realtime()
        self.busiest = {}   # by run: its part of a CPU

    def __call__(self, nginx, *options, run='', open_loop=False):
        """One run of the client; its report. An error in it is ours."""
        result = self.folder / 'load.json'
        command = [self.program, '--pid', str(nginx.worker), '--json',
                   str(result), '--timeout', '120', *map(str, options)]
        if open_loop and self.realtime:
            command.append('--realtime')
        done = subprocess.run(command + [nginx.address], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            raise Failure(f'{" ".join(command)}\n{done.stdout}')
        report = json.loads(result.read_text())
        share = report['generator']['cpu_share']
        self.busiest[run] = max(share, self.busiest.get(run, 0))
        return report


def large(peer, name):
    """The options that ask for a large response of this peer."""
    return ['--large', f'/packed/{name}', '--large-encoding', peer.coding]


def small(name, rate=200):
    """The options for small requests, uncompressed, at a constant rate."""
    return ['--small', f'/plain/{name}', '--small-rate', rate]


def cross_check(client, nginx, path, quick):
    """What wrk and h2load measure of the same, see crosscheck.py."""
    result = client.folder / 'crosscheck.json'
    command = [sys.executable, pathlib.Path(__file__).with_name(
        'crosscheck.py'), '--load', client.program, '--address', nginx.address,
        '--path', path, '--json', result, '--rounds', '1' if quick else '3',
        '--seconds', '1' if quick else '2']
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise Failure(done.stdout)
    return json.loads(result.read_text())
