"""Measures NGINX with several ways to compress; run by run.sh.

Each run is an nginx of its own with one peer, at one level. A round has all of
them, in an order that is shuffled anew.
"""

import os
import pathlib
import random
import shutil
import sys
import tempfile
import time

import decode
import goals
import options
import peers
import plan
import results
from client import Client, cross_check
from runs import Runs, Skipped
from server import Failure, Nginx, files_open_at_most

SHOWN = ('p99_ms', 'max_ms', 'responses_per_s', 'cpu_ms', 'loop_cpu_ms',
         'peak_rss_mib', 'first_byte_ms', 'last_byte_ms', 'memory_mib',
         'cpu_us_per_event')


class Setup:
    """Where everything is."""

    def __init__(self, args, folder):
        self.folder = pathlib.Path(folder)
        self.files = pathlib.Path(args.corpus)
        self.results = pathlib.Path(args.results)
        self.hdr = args.hdr
        system = pathlib.Path(args.system_modules)
        self.modules = {
            peers.OURS: pathlib.Path(args.module),
            peers.PACKAGED: system / 'ngx_http_zstd_filter_module.so',
            peers.BROTLI: system / 'ngx_http_brotli_filter_module.so'}

    def known(self, wanted):
        """The peers that can be measured here."""
        return {name: peer for name, peer in peers.ALL.items()
                if (not wanted or name in wanted)
                and (not peer.module or self.modules[peer.module].exists())
                and (peer.coding not in decode.DECODERS or
                     shutil.which(decode.DECODERS[peer.coding][0]))}


class Bench:
    """A whole measurement, and what came of it so far."""

    def __init__(self, args, setup):
        self.args = args
        self.setup = setup
        self.cpus = len(os.sched_getaffinity(0))
        self.known = setup.known(args.peers)
        # A stream takes two files of the client and two of NGINX.
        self.jobs = plan.jobs(args, self.known, self.cpus,
                              (files_open_at_most() - 100) // 2)
        self.client = Client(args.load, setup.folder)
        self.begun = time.monotonic()
        self.values = {}      # numbers by job, then by metric
        self.sizes = []
        self.times = {}
        self.errors = []
        self.skipped = {}
        self.crosscheck = []
        self.unmade = 0       # runs of the last round, for want of time
        self.libraries = {}
        self.module = ''
        self.rounds = 0
        self.runs = Runs(setup, self.client, 0.75 if args.quick else 1.5,
                         self.times)

    def minutes(self):
        return (time.monotonic() - self.begun) / 60

    def say(self, text):
        print(f'[{self.minutes():5.1f} min] {text}', flush=True)

    def note(self, what, error):
        """An error does not end the other runs, but it is not forgotten."""
        self.errors.append(f'{what}: {error}')
        self.say(f'ERROR {self.errors[-1]}')

    # Before the rounds

    def decode_all(self):
        """Every combination, decoded and compared."""
        self.say('decoding what each peer sends, and comparing it')
        wanted = {(job.peer, job.level if self.known[job.peer].zstd else None,
                   job.file or plan.MIDDLE) for job in self.jobs}
        wanted |= {('pool', job.level, plan.MIDDLE) for job in self.jobs
                   if job.level is not None and 'pool' in self.known}
        for peer, level in sorted({key[:2] for key in wanted}, key=str):
            self.decode_peer(peer, level, sorted(
                key[2] for key in wanted if key[:2] == (peer, level)))
        self.say(f'{len(self.sizes)} of {len(wanted)} came back the same')

    def decode_peer(self, name, level, files):
        with Nginx(self.setup, self.known[name], level) as nginx:
            for file in files:
                size, self.times[name, level, file] = decode.check(nginx, file)
                self.sizes.append({'peer': name, 'level': level, 'file': file,
                                   'bytes': size, 'sha256_same': True})
            if nginx.peer.zstd:
                self.libraries[name] = nginx.library()
            if nginx.ours:
                self.module = nginx.status()['version']

    def set_rates(self):
        levels = sorted({job.level for job in self.jobs
                         if job.run in plan.RATED})
        if not levels:
            return
        base = 'packaged' if 'packaged' in self.setup.known([]) else 'loop'
        self.say(f'what {base} and the pool sustain')
        self.runs.set_rates(levels, base, 2 * self.cpus)
        for (run, level), rate in sorted(self.runs.rates.items()):
            self.say(f'  {run}, level {level}: {rate:.1f} large responses/s')

    def cross_check(self):
        """The load client beside others, if everything is to be measured."""
        if set(self.args.runs) != set(plan.RUNS):
            return
        if not all(map(shutil.which, ('wrk', 'h2load'))):
            self.say('not installed: wrk or h2load, to compare our client with')
            return
        self.say('our load client beside wrk and h2load')
        with Nginx(self.setup, peers.ALL['off'], None) as nginx:
            self.crosscheck = cross_check(
                self.client, nginx, f'/plain/{plan.SMALL}', self.args.quick)
        for row in self.crosscheck:
            self.say(f'  {row["what"]}: ours {row["ours"]:.0f}, wrk '
                     f'{row["wrk"]:.0f}, h2load {row["h2load"]:.0f} '
                     f'{row["unit"]}')

    # Rounds

    def round(self, number):
        order = [job for job in self.jobs if job not in self.skipped]
        random.Random(number).shuffle(order)
        for count, job in enumerate(order, 1):
            if self.minutes() > self.args.minutes:
                self.unmade = len(order) - count + 1
                self.say(f'no time for {self.unmade} runs of round {number}')
                break
            self.run_one(job, f'round {number}, {count}/{len(order)} '
                              f'{job}: ')

    def run_one(self, job, text):
        try:
            numbers = self.runs(job)
        except Skipped as why:
            self.skipped[job] = str(why)
            self.say(f'{text}left out, {why}')
        except Failure as error:
            self.note(str(job), error)
        else:
            self.add(job, numbers)
            self.say(text + show(numbers))

    def add(self, job, numbers):
        metrics = self.values.setdefault(job, {})
        for name, value in numbers.items():
            metrics.setdefault(name, []).append(value)

    def all_rounds(self):
        """As many as are wanted, if there is time."""
        longest = 0
        for number in range(1, self.args.rounds + 1):
            if self.minutes() + longest > self.args.minutes:
                self.say(f'no time for round {number} within '
                         f'{self.args.minutes:g} minutes')
                break
            before = self.minutes()
            self.round(number)
            longest = max(longest, self.minutes() - before)
            self.rounds = number
            self.write()

    # Results

    def machine(self):
        return {
            **results.machine(self.module, self.libraries.get('pool', '')),
            'minutes': round(self.minutes(), 1), 'rounds': self.rounds,
            'quick': self.args.quick, 'command': self.args.command,
            'generator': {'realtime': self.client.realtime,
                          'busiest_by_run': self.client.busiest}}

    def write(self):
        files = sorted({size['file'] for size in self.sizes})
        rows = results.rows_of(self.values)
        files = results.describe_files(self.setup.files, files)
        self.goals = goals.judge_all(rows, self.sizes, files, self.cpus)
        results.write(self.setup.results, {
            'machine': self.machine(),
            'peers': results.describe_peers(self.known, self.libraries),
            'files': sorted(files, key=lambda file: file['bytes']),
            'sizes': self.sizes, 'rows': rows,
            'hdr': results.curves_of(self.runs.curves), 'goals': self.goals,
            'checks': {'decoded': len(self.sizes),
                       'errors': len(self.errors), 'messages': self.errors,
                       'skipped': [f'{job}: {why}' for job, why in
                                   self.skipped.items()],
                       'not_made': self.unmade,
                       'overload': self.runs.overload,
                       'crosscheck': self.crosscheck}})

    def summary(self):
        for what in dict.fromkeys(goal['what'] for goal in self.goals):
            mine = [goal for goal in self.goals if goal['what'] == what]
            self.say(f'{what}: {sum(goal["met"] for goal in mine)} of '
                     f'{len(mine)} goals met')
            for goal in mine:
                if not goal['met']:
                    self.say(f'  {goal["where"]}: {goal["value"]:.3f}, not '
                             f'{goal["goal"]}')
        left = f', {self.unmade} runs not made' if self.unmade else ''
        self.say(f'{self.rounds} rounds, {len(self.errors)} errors{left}')


def show(numbers):
    found = [f'{name} {numbers[name]:.4g}' for name in SHOWN
             if name in numbers]
    return ', '.join(found)


def main():
    args = options.parse(__doc__)
    with tempfile.TemporaryDirectory(prefix='segzstd-bench-') as folder:
        bench = Bench(args, Setup(args, folder))
        (bench.setup.results / 'samples').mkdir(parents=True, exist_ok=True)
        missing = [name for name in args.peers or peers.ALL
                   if name not in bench.known]
        if missing:
            bench.say(f'not installed: {", ".join(missing)}')
        bench.decode_all()
        bench.set_rates()
        bench.cross_check()
        bench.all_rounds()
        bench.summary()
        sys.exit(1 if bench.errors else 0)


if __name__ == '__main__':
    try:
        main()
    except Failure as error:
        sys.exit(f'run: {error}')
    except KeyboardInterrupt:
        sys.exit('run: interrupted; only whole rounds are in the results')
