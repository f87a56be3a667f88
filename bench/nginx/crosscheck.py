#!/usr/bin/python3
"""Does segzstd_load measure what wrk and h2load measure?

    crosscheck.py --load PROGRAM --address 127.0.0.1:PORT --path /off/small.json
                  [--json FILE] [--rounds N] [--seconds S]

All three load the same uncompressed file in a closed loop, one after the other
in each round, on 1 and on 8 connections. Prints the medians of the rounds. The
server has to run already. wrk and h2load must be in PATH.
"""

import argparse
import json
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

CONNECTIONS = (1, 8)
TOOLS = ('ours', 'wrk', 'h2load')
UNITS = {'us': 1, 'ms': 1e3, 's': 1e6}


class Failure(Exception):
    """A client could not be run, or got other answers than it should."""


def run(*command):
    """What it writes to stdout."""
    done = subprocess.run([str(part) for part in command], text=True,
                          capture_output=True, check=False)
    if done.returncode != 0:
        raise Failure(f'{command[0]} ended with {done.returncode}: '
                      f'{(done.stderr or done.stdout).strip()}')
    return done.stdout


def number_after(pattern, text, tool):
    """The groups of what has to be there."""
    found = re.search(pattern, text, re.MULTILINE)
    if found is None:
        raise Failure(f'{tool} wrote no "{pattern}": {text.strip()}')
    return found.groups()


def parse_wrk(text):
    """Requests per second and the median latency in us."""
    if re.search(r'Socket errors|Non-2xx', text):
        raise Failure(f'wrk had errors: {text.strip()}')
    rate, = number_after(r'^Requests/sec:\s+([0-9.]+)', text, 'wrk')
    median, unit = number_after(r'^\s+50%\s+([0-9.]+)(us|ms|s)\s', text, 'wrk')
    return float(rate), float(median) * UNITS[unit]


def parse_h2load(text, log):
    """The same; log: a line for each request, with its status and us."""
    rate, = number_after(r'^finished in .*, ([0-9.]+) req/s', text, 'h2load')
    protocol, = number_after(r'^Application protocol: (\S+)', text, 'h2load')
    total, failed = number_after(
        r'^requests: .*, ([0-9]+) done, .* ([0-9]+) failed', text, 'h2load')
    rows = [line.split('\t') for line in log.splitlines()]
    bad = [row for row in rows if row[1] != '200']
    if protocol != 'http/1.1' or failed != '0' or total == '0' or bad:
        raise Failure(f'h2load had errors: {text.strip()}')
    return float(rate), statistics.median(int(row[2]) for row in rows)


class Check:
    """Runs the three against one server."""

    def __init__(self, args, folder):
        self.args = args
        self.folder = pathlib.Path(folder)
        self.url = f'http://{args.address}{args.path}'

    def ours(self, connections):
        """Of segzstd_load."""
        file = self.folder / 'load.json'
        run(self.args.load, '--large', self.args.path, '--large-connections',
            connections, '--seconds', self.args.seconds, '--json', file,
            self.args.address)
        large = json.loads(file.read_text())['large']
        return large['per_second'], large['last_byte_ms']['p50'] * 1e3

    def wrk(self, connections):
        """Of wrk, on one thread as the others."""
        return parse_wrk(run('wrk', '--threads', 1, '--connections',
                             connections, '--duration', self.args.seconds,
                             '--latency', self.url))

    def h2load(self, connections):
        """Of h2load, told to speak HTTP/1.1."""
        log = self.folder / 'h2load.log'
        log.unlink(missing_ok=True)
        text = run('h2load', '--h1', '--threads', 1, '--clients', connections,
                   '--duration', self.args.seconds, f'--log-file={log}',
                   self.url)
        return parse_h2load(text, log.read_text())

    def measure(self):
        """All results, by connections and tool, of all rounds."""
        found = {(n, tool): [] for n in CONNECTIONS for tool in TOOLS}
        for turn in range(self.args.rounds):
            for connections in CONNECTIONS:
                for i in range(len(TOOLS)):
                    tool = TOOLS[(i + turn) % len(TOOLS)]
                    result = getattr(self, tool)(connections)
                    found[connections, tool].append(result)
        return found


def rows_of(found):
    """The medians, as they go to the JSON."""
    rows = []
    for what, unit, index in (('requests per second', '1/s', 0),
                              ('median latency', 'us', 1)):
        for connections in CONNECTIONS:
            row = {'what': f'{what}, {connections} connection'
                           f'{"s" if connections > 1 else ""}', 'unit': unit}
            for tool in TOOLS:
                values = [v[index] for v in found[connections, tool]]
                row[tool] = statistics.median(values)
                row[tool + '_values'] = values
            rows.append(row)
    return rows


def print_table(rows):
    """For people."""
    print(f'{"":36}' + ''.join(f'{tool:>12}' for tool in TOOLS))
    for row in rows:
        name = f'{row["what"]}, {row["unit"]}'
        print(f'{name:36}' + ''.join(f'{row[tool]:12.0f}' for tool in TOOLS))


def parse_args():
    """The command line."""
    parser = argparse.ArgumentParser(
        description='Compares segzstd_load with wrk and h2load.')
    parser.add_argument('--load', required=True, type=pathlib.Path,
                        metavar='PROGRAM', help='segzstd_load')
    parser.add_argument('--address', required=True, help='127.0.0.1:PORT')
    parser.add_argument('--path', required=True, help='of a small plain file')
    parser.add_argument('--json', type=pathlib.Path, metavar='FILE',
                        help='write a list of what was compared')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--seconds', type=int, default=2,
                        help='of each run (2)')
    args = parser.parse_args()
    if args.rounds < 1 or args.seconds < 1:
        parser.error('--rounds and --seconds are 1 at least')
    return args


def main():
    """The exit status."""
    args = parse_args()
    args.load = args.load.resolve()
    try:
        for tool in (args.load, 'wrk', 'h2load'):
            if shutil.which(tool) is None:
                raise Failure(f'the command {tool} is missing')
        with tempfile.TemporaryDirectory() as folder:
            rows = rows_of(Check(args, folder).measure())
    except Failure as failure:
        print(f'crosscheck: {failure}', file=sys.stderr)
        return 1
    print_table(rows)
    if args.json is not None:
        args.json.write_text(json.dumps(rows, indent=1) + '\n')
    return 0


if __name__ == '__main__':
    sys.exit(main())
