"""Measures the goals of the NGINX module; run by goals.sh.

Each measurement is a run of segzstd_load against an nginx of its own. Runs of
the ways that are compared (plain, on the loop, on the pool) alternate, in an
order that changes from round to round; shown are medians.
"""

import argparse
import datetime
import hashlib
import itertools
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time

import table
from server import COPIED, LOOP, OFF, POOL, Failure, Nginx

SMALL = 'small.json'      # 2 KB
SCRIPT = 'jquery.min.js'  # 88 KB
MIDDLE = 'react-dom.js'   # 1.08 MB
JSON = 'emoji.json'       # 2.2 MB
LARGE = 'typescript.js'   # 9.1 MB

SLOW_CLIENTS = 512

# What the packaged event-loop filter (myguard-labs 0.90.9, libzstd 1.5.7,
# nginx 1.30.6) served of a 1.9 KB body on another machine of two cores.
PACKAGED_SMALL = {3: 71000, 9: 31000, 15: 5200, 19: 2800}


class Bench:
    """What all measurements share, and the rows that they have made."""

    def __init__(self, args):
        self.args = args
        self.levels = [9, 19] if args.quick else [3, 9, 15, 19]
        if args.levels:
            self.levels = args.levels
        self.rounds = args.rounds or (1 if args.quick else 3)
        self.seconds = 2 if args.quick else 4
        self.rows = []
        self.runs = []
        self.cpus = len(os.sched_getaffinity(0))
        self.began = time.monotonic()

    def nginx(self, way, level, **options):
        """With one way and level alone: what is on elsewhere might matter."""
        return Nginx(self.args.module, self.args.files, [level], [way],
                     **options)

    def load(self, nginx, *options, name=''):
        """One run of the load client; its report."""
        result = pathlib.Path(os.environ['LOAD_TMP']) / 'load.json'
        command = [self.args.load, '--pid', str(nginx.worker), '--json',
                   str(result), '--timeout', '120', *map(str, options),
                   nginx.address]
        done = subprocess.run(command, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise Failure(f'{" ".join(command)}\n{done.stdout}')
        report = json.loads(result.read_text())
        report['status'] = nginx.status()
        self.runs.append({'name': name, 'options': command[7:-1],
                          'report': report})
        return report

    def alternate(self, ways, measure):
        """measure(way) in each round for each of them: lists of results."""
        results = {way: [] for way in ways}
        for turn in range(self.rounds):
            first = turn % len(ways)
            for way in ways[first:] + ways[:first]:
                results[way].append(measure(way))
        return results

    def add(self, **row):
        """A row: what, where, goal, result, met (or None), ..."""
        self.rows.append(row)
        print(table.line(row), flush=True)

    def start(self, title):
        minutes = (time.monotonic() - self.began) / 60
        print(f'\n{title}  [{minutes:.1f} min]', flush=True)
        print(table.head(), flush=True)


def path_of(way, level, name):
    if way in (OFF, COPIED):
        return f'/{way}/{name}'
    return f'/{way}/{level}/{name}'


def coding_of(way):
    return 'identity' if way in (OFF, COPIED) else 'zstd'


def large(way, level, name):
    """The options that ask for a large response in this way."""
    return ['--large', path_of(way, level, name), '--large-encoding',
            coding_of(way)]


def spread(values):
    """From the least to the most, as a part of the median."""
    middle = statistics.median(values)
    return (max(values) - min(values)) / middle if middle else 0


def within(ratio, limit):
    return ratio <= limit


def verify(bench, nginx, names):
    """Every file in every way, decoded by stock zstd and compared."""
    count = 0
    for name, level, way in itertools.product(names, bench.levels,
                                              (OFF, LOOP, POOL)):
        body = subprocess.run(
            ['curl', '-sS', '--fail', '-H',
             f'Accept-Encoding: {coding_of(way)}',
             f'http://{nginx.address}{path_of(way, level, name)}'],
            check=True, stdout=subprocess.PIPE).stdout
        if way != OFF:
            body = subprocess.run(['zstd', '-dc', '--memory=8MB'], input=body,
                                  check=True, stdout=subprocess.PIPE).stdout
        expected = pathlib.Path(bench.args.files, name).read_bytes()
        if (hashlib.sha256(body).digest()
                != hashlib.sha256(expected).digest()):
            raise Failure(f'{name} came back changed: {way}, level {level}')
        count += 1
    print(f'{count} responses decoded and compared')


# p99 of small requests

def loop_capacity(bench, level, name):
    """What the loop sustains, per second, of one file."""
    with bench.nginx(LOOP, level) as nginx:
        report = bench.load(nginx, *large(LOOP, level, name), '--seconds',
                            bench.seconds, name=f'capacity level {level}')
    return report['large']['per_second']


def p99_runs(bench, level, phase, rate, seconds):
    """Small requests beside the same stream, in three ways."""
    def measure(way):
        with bench.nginx(way, level) as nginx:
            # the first find no encoders
            bench.load(nginx, *large(way, level, MIDDLE),
                       '--large-connections', 2, '--large-count', 2,
                       name=f'p99 {way} level {level} phase {phase}, first')
            return bench.load(
                nginx, '--small', f'/{OFF}/{SMALL}', '--small-rate', 200,
                *large(way, level, MIDDLE), '--large-rate', rate,
                '--large-phase', phase, '--seconds', seconds,
                name=f'p99 {way} level {level} phase {phase}')
    return bench.alternate((OFF, LOOP, POOL), measure)


def p99(reports):
    return statistics.median(r['small']['last_byte_ms']['p99']
                             for r in reports)


def add_p99(bench, what, where, reports, limit):
    base, pool = p99(reports[OFF]), p99(reports[POOL])
    late = statistics.median(r['small']['sent_late_ms']['p99']
                             for r in reports[POOL])
    p99s = [r['small']['last_byte_ms']['p99'] for r in reports[POOL]]
    bench.add(what=what, where=where, unit='ms', off=base,
              loop=p99(reports[LOOP]) if LOOP in reports else None, pool=pool,
              goal=f'<= {limit} off', result=pool / base,
              met=within(pool / base, limit), spread=spread(p99s),
              generator_late_p99_ms=late)


def measure_p99(bench):
    bench.start(f'p99 of small requests, 200/s, beside {MIDDLE}')
    for level in bench.levels:
        rate = loop_capacity(bench, level, MIDDLE) / 2
        for phase in (1, 8):
            bursts = 2 if bench.args.quick else 3
            seconds = max(5 if bench.args.quick else 7, bursts * phase / rate)
            if bench.args.quick:
                seconds = min(seconds, 9)
            reports = p99_runs(bench, level, phase, rate, round(seconds, 2))
            add_p99(bench, 'p99 of small requests',
                    f'level {level}, {phase} at once', reports, 1.25)


def measure_saturated(bench):
    """More large clients than cores, as fast as they can."""
    clients = 2 * bench.cpus
    bench.start(f'The same with {clients} large clients in a closed loop')
    small = ['--small', f'/{OFF}/{SMALL}', '--small-rate', 200, '--warmup', 1,
             '--seconds', 2.5 * bench.seconds]
    for level in bench.levels:
        def measure(way):
            with bench.nginx(way, level) as nginx:
                packed = bench.load(nginx, *small,
                                    *large(way, level, MIDDLE),
                                    '--large-connections', clients,
                                    name=f'saturated {way} level {level}')
            if way == LOOP:
                return packed, None
            # the same number of responses, uncompressed
            rate = max(packed['large']['per_second'], 0.1)
            with bench.nginx(OFF, level) as nginx:
                plain = bench.load(nginx, *small, *large(OFF, level, MIDDLE),
                                   '--large-rate', rate, '--large-phase',
                                   clients,
                                   name=f'saturated off level {level}')
            return packed, plain
        both = bench.alternate((LOOP, POOL), measure)
        reports = {LOOP: [packed for packed, _ in both[LOOP]],
                   POOL: [packed for packed, _ in both[POOL]],
                   OFF: [plain for _, plain in both[POOL]]}
        add_p99(bench, 'p99, cores saturated', f'level {level}', reports, 2)


# Throughput, CPU and memory

def cpu_ms(report):
    """The worker's CPU time of one large response."""
    return 1e3 * report['worker']['total']['cpu_s'] / \
        report['large']['answered']


def peak_mib(report):
    return report['worker']['peak_rss_bytes'] / 1048576


def median_of(reports, value):
    return statistics.median(map(value, reports))


def closed_loop(bench, level, name, connections=8, ways=(LOOP, POOL)):
    def measure(way):
        with bench.nginx(way, level) as nginx:
            return bench.load(
                nginx, *large(way, level, name), '--large-connections',
                connections, '--seconds', bench.seconds,
                name=f'closed {way} level {level} {name}')
    return bench.alternate(ways, measure)


def compare(reports, value):
    """Medians of both ways, their ratio, and the pool's spread."""
    loop = median_of(reports[LOOP], value)
    pool = median_of(reports[POOL], value)
    return {'loop': loop, 'pool': pool, 'off': None,
            'result': pool / loop if loop else 0,
            'spread': spread([value(r) for r in reports[POOL]])}


def measure_closed(bench):
    bench.start('Closed loop, 8 connections')
    names = (MIDDLE,) if bench.args.quick else (SCRIPT, MIDDLE, JSON)
    for name, level in itertools.product(names, bench.levels):
        reports = closed_loop(bench, level, name)
        where = f'level {level}, {name}'
        row = compare(reports, cpu_ms)
        bench.add(what='CPU per response', where=where, unit='ms',
                  goal='<= 1.05 loop', met=within(row['result'], 1.05), **row)
        row = compare(reports, lambda r: r['large']['per_second'])
        wanted = level >= 9
        bench.add(what='responses per second', where=where, unit='1/s',
                  goal='>= 1.6 loop' if wanted else '',
                  met=row['result'] >= 1.6 if wanted else None, **row)
        row = compare(reports, peak_mib)
        bench.add(what='peak RSS', where=where, unit='MiB',
                  goal=f'<= {bench.cpus} loop',
                  met=within(row['result'], bench.cpus), **row)


def measure_loop_cpu(bench):
    """What is left to do for the loop's thread, per static response."""
    bench.start("The loop thread's own CPU")

    def loop_ms(report):
        return 1e3 * report['worker']['threads'][0]['cpu_s'] / \
            report['large']['answered']
    for level in bench.levels:
        reports = closed_loop(bench, level, MIDDLE, 1, (COPIED, POOL))
        off = median_of(reports[COPIED], loop_ms)
        pool = median_of(reports[POOL], loop_ms)
        bench.add(what="loop thread's CPU", where=f'level {level}, {MIDDLE}',
                  unit='ms', off=off, loop=None, pool=pool,
                  goal='<= 0.6 off', result=pool / off,
                  met=within(pool / off, 0.6),
                  spread=spread([loop_ms(r) for r in reports[POOL]]))


def measure_one(bench):
    bench.start('One large response at a time')
    names = (JSON,) if bench.args.quick else (JSON, LARGE)
    for name, level in itertools.product(names, bench.levels):
        def measure(way):
            with bench.nginx(way, level) as nginx:
                # the first of them finds no encoder and cold tables
                bench.load(nginx, *large(way, level, name), '--large-count', 2,
                           name=f'one {way} level {level} {name}, first')
                return bench.load(
                    nginx, *large(way, level, name), '--large-count', 20,
                    '--seconds', bench.seconds / 2,
                    name=f'one {way} level {level} {name}')
        reports = bench.alternate((LOOP, POOL), measure)
        where = f'level {level}, {name}'
        row = compare(reports, lambda r: r['large']['last_byte_ms']
                      ['p50'])
        bench.add(what='time to last byte', where=where, unit='ms',
                  goal='<= 0.6 loop', met=within(row['result'], 0.6), **row)
        row = compare(reports, lambda r: r['large']['first_byte_ms']
                      ['p50'])
        wanted = level >= 9
        bench.add(what='time to first byte', where=where, unit='ms',
                  goal='<= 0.2 loop' if wanted else '',
                  met=within(row['result'], 0.2) if wanted else None, **row)


def measure_small(bench):
    bench.start(f'{SMALL}, 8 connections; the goal was measured elsewhere')
    for level in bench.levels:
        reports = closed_loop(bench, level, SMALL)
        row = compare(reports, lambda r: 1e3 * cpu_ms(r))
        bench.add(what='CPU per small response', where=f'level {level}',
                  unit='us', goal='', met=None, **row)
        row = compare(reports, lambda r: r['large']['per_second'])
        goal = PACKAGED_SMALL.get(level)
        bench.add(what='small responses per second', where=f'level {level}',
                  unit='1/s', goal=f'>= {goal}' if goal else '',
                  met=row['pool'] >= goal if goal else None, **row)


def measure_slow(bench):
    """Memory that each of many slow clients costs."""
    bench.start(f'{SLOW_CLIENTS} slow clients, 4 KiB/s each, of {MIDDLE}')
    level = 9
    encoder = []

    def measure(way):
        with bench.nginx(LOOP, level, listen='sndbuf=16k') as nginx:
            base = bench.load(nginx, '--small', f'/{OFF}/{SMALL}',
                              '--seconds', 0.2, name='idle')
            one = bench.load(nginx, *large(LOOP, level, MIDDLE),
                             '--large-count', 4, name='one encoder')
            cache = one['status']['all']['cache']
            encoder.append(cache['encoder_bytes'] / cache['encoders_live']
                           / 1048576)
        with bench.nginx(way, level, listen='sndbuf=16k') as nginx:
            report = bench.load(
                nginx, '--slow', path_of(way, level, MIDDLE),
                '--slow-encoding', 'zstd', '--slow-connections', SLOW_CLIENTS,
                '--slow-rate', 4096, '--seconds', 15,
                name=f'slow {way} level {level}')
            begun = report['slow']['begun']
            if begun < SLOW_CLIENTS:
                print(f'{way}: only {begun} of {SLOW_CLIENTS} clients had '
                      'something of their answer in 15 s')
            return (peak_mib(report) - peak_mib(base)) / max(begun, 1)
    ways = (POOL,) if bench.args.quick else (LOOP, POOL)
    results = bench.alternate(ways, measure)
    pool = statistics.median(results[POOL])
    one = statistics.median(encoder)
    bench.add(what='memory per slow client', where=f'level {level}',
              unit='MiB', off=None, pool=pool,
              loop=(statistics.median(results[LOOP])
                    if LOOP in results else None),
              goal=f'<= {one / 10:.2f} MiB', result=pool / one,
              met=pool <= one / 10, spread=spread(results[POOL]),
              one_encoder_mib=one)


PARTS = {
    'p99': measure_p99,
    'saturated': measure_saturated,
    'closed': measure_closed,
    'loop': measure_loop_cpu,
    'one': measure_one,
    'small': measure_small,
    'slow': measure_slow,
}


def machine(bench, nginx):
    """Without this, numbers mean nothing."""
    version = subprocess.run(['nginx', '-v'], stderr=subprocess.PIPE,
                             text=True).stderr.strip().rpartition('/')[2]
    cpu = 'unknown'
    with open('/proc/cpuinfo') as info:
        for entry in info:
            if entry.startswith('model name'):
                cpu = entry.partition(':')[2].strip()
    now = datetime.datetime.now(datetime.timezone.utc)
    return {'date': now.strftime('%Y-%m-%d %H:%M UTC'), 'cpu': cpu,
            'cpus': bench.cpus,
            'kernel': f'{platform.system()} {platform.release()}',
            'load': os.getloadavg()[0], 'nginx': version,
            'libzstd': nginx.library(), 'rounds': bench.rounds,
            'quick': bench.args.quick}


def parse_args():
    def numbers(text):
        return [int(part) for part in text.split(',')]
    parser = argparse.ArgumentParser(prog='goals.py', description=__doc__)
    for name, about in (
            ('module', 'ngx_http_zstd_filter_module.so'),
            ('files', 'the folder that corpus.sh filled'),
            ('load', 'segzstd_load'), ('results', 'folder for the results')):
        parser.add_argument(f'--{name}', required=True, help=about)
    parser.add_argument('--quick', action='store_true',
                        help='two levels, one round, fewer files')
    parser.add_argument('--levels', type=numbers, help='as in 3,9')
    parser.add_argument('--rounds', type=int, help='of each measurement')
    parser.add_argument('--parts', default=','.join(PARTS),
                        help='which to measure (%(default)s)')
    args = parser.parse_args()
    args.parts = args.parts.split(',')
    for part in args.parts:
        if part not in PARTS:
            parser.error(f'there is no part "{part}"')
    return args


def main():
    args = parse_args()
    bench = Bench(args)
    with Nginx(args.module, args.files, bench.levels,
               (LOOP, POOL)) as nginx:
        where = machine(bench, nginx)
        print(table.describe(where))
        verify(bench, nginx, [SMALL, SCRIPT, MIDDLE, JSON]
               + ([] if args.quick else [LARGE]))
    for part in args.parts:
        PARTS[part](bench)
    where['minutes'] = (time.monotonic() - bench.began) / 60
    table.write(pathlib.Path(args.results), where, bench.rows, bench.runs)
    print(f'\n{table.summary(bench.rows)}; {where["minutes"]:.1f} minutes')


if __name__ == '__main__':
    try:
        main()
    except (Failure, subprocess.CalledProcessError) as error:
        sys.exit(f'goals: {error}')
