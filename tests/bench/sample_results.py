"""A results.json of a run that never was: plausible, the same each time.

    sample_results.py FILE [--few]      as a file, to look at its report

What is measured of a peer is a simple function of level and size, so that
tests know which numbers the report must have.
"""

import json
import math
import pathlib
import random
import sys

LEVELS = (3, 9, 15, 19)
FILES = {'small.json': 1900, 'jquery.min.js': 87533, 'random.bin': 1048576,
         'react-dom.js': 1080227, 'data.json': 1400000,
         'emoji.json': 2187712, 'typescript.js': 9141067}

# Name: label, zstd, speed with several tasks, tail of small requests in ms.
PEERS = {
    'off': ('no compression', False, 1.0, 1.0),
    'copied': ('no compression, sendfile off', False, 1.0, 1.0),
    'gzip': ('gzip 6', False, 1.0, 20.0),
    'brotli': ('brotli 5', False, 1.0, 30.0),
    'packaged': ('packaged zstd filter', True, 1.0, 60.0),
    'loop': ('libsegzstd, event loop', True, 1.05, 58.0),
    'pool': ('libsegzstd, pool', True, 1.8, 1.3),
    'pool-1m': ('libsegzstd, pool, 1m segments', True, 1.7, 1.5),
    'pool-4m': ('libsegzstd, pool, 4m segments', True, 1.5, 1.4),
    'tasks-1': ('libsegzstd, pool, 1 task', True, 1.0, 1.2),
    'tasks-2': ('libsegzstd, pool, 2 tasks', True, 1.75, 1.35),
    'tasks-4': ('libsegzstd, pool, 4 tasks', True, 1.7, 1.6),
}
FEW = ('off', 'packaged', 'pool')
COSTS = {3: 1.0, 9: 5.0, 15: 30.0, 19: 120.0}


def cpu_ms(peer, level, file):
    """CPU time of one response."""
    cost = {'off': 0.05, 'gzip': 9.0, 'brotli': 8.0}.get(peer, COSTS[level])
    if peer in ('pool-1m', 'tasks-4'):
        cost *= 1.12
    return 0.02 + cost * FILES[file] / 300000


def row(run, peer, metric, unit, median, **where):
    keys = dict.fromkeys(('level', 'file', 'phase', 'clients'))
    keys.update(where)
    return {'run': run, 'peer': peer, **keys, 'metric': metric, 'unit': unit,
            'median': median, 'min': median * 0.9, 'max': median * 1.1,
            'values': [median, median * 0.9, median * 1.1]}


def latency(peer, level, phase, percentile):
    """In ms: a head that is fast, a tail that is the peer's."""
    worst = PEERS[peer][3] * (1 if peer in ('off', 'gzip', 'brotli')
                              else COSTS[level] ** 0.5)
    worst *= 1 + (phase == 8)
    share = min(1, math.log10(1 / (1 - percentile / 100) + 1) / 4)
    return 0.15 + worst * share ** 3


def open_rows(peer, level, phase):
    for metric, percentile in (('p50_ms', 50), ('p99_ms', 99),
                               ('p999_ms', 99.9), ('max_ms', 99.99)):
        yield row('open', peer, metric, 'ms',
                  latency(peer, level, phase, percentile), level=level,
                  phase=phase, file='react-dom.js')
    yield row('open', peer, 'late_p99_ms', 'ms', 0.08, level=level,
              phase=phase, file='react-dom.js')


def closed_rows(peer, level, file):
    at = {'level': level if PEERS[peer][1] else None, 'file': file}
    cpu = cpu_ms(peer, level, file)
    speed = PEERS[peer][2]
    yield row('closed', peer, 'responses_per_s', '1/s', 1000 * speed / cpu,
              clients=8, **at)
    yield row('closed', peer, 'cpu_ms', 'ms', cpu, clients=8, **at)
    yield row('closed', peer, 'peak_rss_mib', 'MiB', 20 + level * speed * 4,
              clients=8, **at)
    yield row('one', peer, 'first_byte_ms', 'ms', 0.1 + cpu / speed / 4, **at)
    yield row('one', peer, 'last_byte_ms', 'ms', 0.2 + cpu / speed, **at)


def slow_rows(peer, level, clients):
    each = 1.2 if peer in ('packaged', 'loop') else 0.05
    yield row('slow', peer, 'memory_mib', 'MiB', 20 + each * clients * level,
              level=level if PEERS[peer][1] else None, clients=clients,
              file='react-dom.js')


def other_rows(peer, level):
    at = {'level': level if PEERS[peer][1] else None}
    yield row('saturated', peer, 'p99_ms', 'ms', 2 * PEERS[peer][3],
              level=level, file='react-dom.js')
    if level == LEVELS[0]:
        yield row('events', peer, 'memory_mib', 'MiB', 300, file='',
                  clients=10000, **at)
        yield row('events', peer, 'cpu_us_per_event', 'us', 12, file='',
                  clients=10000, **at)


def loop_rows(peer):
    for level in LEVELS if PEERS[peer][1] else (None,):
        yield row('loop', peer, 'loop_cpu_ms', 'ms', 0.3, level=level,
                  file='react-dom.js', clients=1)


def rows(peer):
    if peer in ('copied', 'pool'):
        yield from loop_rows(peer)
    if peer == 'copied':
        return
    for level in LEVELS:
        for phase in (1, 8):
            yield from open_rows(peer, level, phase)
        if PEERS[peer][1] or level == LEVELS[0]:
            for file in FILES:
                yield from closed_rows(peer, level, file)
            for clients in (8, 64, 512):
                yield from slow_rows(peer, level, clients)
        yield from other_rows(peer, level)


def distribution(peer, level, phase):
    found = [100 * (1 - 10 ** (-i / 20)) for i in range(81)]
    noise = random.Random(f'{peer} {level} {phase}')
    points, ms = [], 0
    for percentile in found:
        ms = max(ms, latency(peer, level, phase, percentile)
                 * noise.uniform(0.97, 1.03))
        points.append([percentile, ms])
    return {'run': 'open', 'peer': peer, 'level': level, 'phase': phase,
            'percentiles': points + [[100.0, ms * 1.1]]}


def compressed(peer, level, file):
    part = {'off': 1.0, 'gzip': 0.28, 'brotli': 0.26}.get(
        peer, 0.30 - 0.004 * level)
    return {'peer': peer, 'level': level if PEERS[peer][1] else None,
            'file': file, 'bytes': round(FILES[file] * part),
            'sha256_same': True}


def goals():
    return [
        {'what': 'CPU per response', 'where': 'level 19, emoji.json',
         'goal': 'at most 1.00 of packaged', 'value': 1.02, 'limit': 1.0,
         'met': False},
        {'what': 'p99 of small requests', 'where': 'level 19, phase 8',
         'goal': 'at most 0.10 of packaged', 'value': 0.021, 'limit': 0.1,
         'met': True},
        {'what': 'memory of slow clients', 'where': '512 clients',
         'goal': 'at most 0.10 of packaged', 'value': None, 'limit': 0.1,
         'met': None}]


def machine():
    return {'date': '2026-01-02 03:04 UTC', 'cpu': 'A CPU of no kind',
            'cpus': 2, 'kernel': 'Linux 6.1.0', 'nginx': '1.30.6',
            'libzstd': '1.5.7', 'module': '0.1.0', 'packaged': '0.90.9',
            'brotli': '1.0.0~rc', 'minutes': 48.2, 'rounds': 3,
            'quick': False, 'command': 'bench/nginx/run.sh',
            'generator': {'realtime': True,
                          'busiest_by_run': {'open': 0.021, 'closed': 0.3}}}


def sample(peers=tuple(PEERS)):
    zstd = [p for p in peers if PEERS[p][1]]
    return {
        'machine': machine(),
        'peers': [{'name': p, 'label': PEERS[p][0], 'zstd': PEERS[p][1],
                   'levels': list(LEVELS) if PEERS[p][1] else [],
                   'libzstd': 'libzstd.so.1.5.7' if PEERS[p][1] else None}
                  for p in peers],
        'files': [{'name': n, 'bytes': b, 'what': 'a file of the test'}
                  for n, b in FILES.items()],
        'sizes': [compressed(p, level, f) for p in peers if p != 'copied'
                  for f in FILES
                  for level in (LEVELS if p in zstd else LEVELS[:1])],
        'rows': [r for p in peers for r in rows(p)],
        'hdr': [distribution(p, level, phase) for p in peers
                if p != 'copied'
                for level in LEVELS for phase in (1, 8)],
        'goals': goals(),
        'checks': {'decoded': 196, 'errors': 0, 'crosscheck': [
            {'what': 'requests a second, 8 connections', 'ours': 41900,
             'wrk': 40400, 'h2load': None}]}}


if __name__ == '__main__':
    chosen = FEW if '--few' in sys.argv else tuple(PEERS)
    pathlib.Path(sys.argv[1]).write_text(
        json.dumps(sample(chosen), indent=1) + '\n')
