#!/usr/bin/python3
"""bench/nginx/crosscheck.py with what wrk and h2load have written, and as a
command with programs that write as told.

    test_crosscheck.py [unittest's arguments...]
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / 'bench' / 'nginx')]

import crosscheck  # noqa: E402

WRK = '''Running 1s test @ http://127.0.0.1:8391/small.json
  1 threads and 8 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   380.30us    2.43ms  54.76ms   98.12%
    Req/Sec    42.97k    16.63k   63.65k    54.55%
  Latency Distribution
     50%   86.50us
     75%  121.00us
     90%  245.00us
     99%    3.87ms
  46929 requests in 1.10s, 95.78MB read
Requests/sec:  42621.62
Transfer/sec:     86.98MB
'''

H2LOAD = '''Application protocol: http/1.1
Stopped all clients for thread #0

finished in 1.00s, 23100.00 req/s, 47.14MB/s
requests: 23100 total, 23108 started, 23100 done, 23100 succeeded, 0 failed, \
0 errored, 0 timeout
status codes: 23100 2xx, 0 3xx, 0 4xx, 0 5xx
'''

LOG = '1796060868362277\t200\t341\n17\t200\t343\n18\t200\t99\n'

LOAD = '''import json, sys
file = sys.argv[sys.argv.index('--json') + 1]
with open(file, 'w') as f:
    json.dump({'large': {'per_second': 20000.5,
                         'last_byte_ms': {'p50': 0.1}}}, f)
'''

WRITE = '''import sys
for arg in sys.argv:
    if arg.startswith('--log-file='):
        open(arg.split('=')[1], 'w').write(%r)
print(%r)
'''


class CrosscheckTest(unittest.TestCase):

    def test_wrk__is_read_in_any_unit(self):
        self.assertEqual(crosscheck.parse_wrk(WRK), (42621.62, 86.5))
        for unit, us in (('1.50ms', 1500), ('2.00s', 2e6)):
            text = WRK.replace('86.50us', unit)
            self.assertEqual(crosscheck.parse_wrk(text)[1], us)

    def test_h2load__has_its_median_from_the_log(self):
        self.assertEqual(crosscheck.parse_h2load(H2LOAD, LOG), (23100, 341))

    def check_refused(self, words, parse, *texts):
        with self.assertRaisesRegex(crosscheck.Failure, words):
            parse(*texts)

    def test_answers__that_are_not_right__are_refused(self):
        for line in ('Non-2xx or 3xx responses: 42502', 'Socket errors: read'):
            self.check_refused('wrk had errors', crosscheck.parse_wrk,
                               WRK + '  ' + line + '\n')
        for old, new in (('http/1.1', 'h2'), ('0 failed', '3 failed'),
                         ('23100 done', '0 done')):
            self.check_refused('h2load had errors', crosscheck.parse_h2load,
                               H2LOAD.replace(old, new), LOG)
        self.check_refused('h2load had errors', crosscheck.parse_h2load,
                           H2LOAD, LOG.replace('200\t99', '404\t99'))

    def test_output__that_is_another__is_refused(self):
        self.check_refused('wrote no .*50%', crosscheck.parse_wrk,
                           WRK.replace('50%', '51%'))
        self.check_refused('wrote no .*req/s', crosscheck.parse_h2load,
                           'nothing', LOG)

    def check(self, status, *args, **programs):
        """Of the command, with programs that are Python texts."""
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            for name, text in programs.items():
                (folder / name).write_text('#!/usr/bin/python3\n' + text)
                (folder / name).chmod(0o755)
            done = subprocess.run(
                [sys.executable, ROOT / 'bench' / 'nginx' / 'crosscheck.py',
                 '--load', folder / 'load', '--address', '127.0.0.1:1',
                 '--path', '/', '--json', folder / 'json', *args],
                capture_output=True, text=True, check=False,
                env={**os.environ, 'PATH': str(folder)})
            self.assertEqual(done.returncode, status, done.stderr)
            if status == 0:
                done.rows = json.loads((folder / 'json').read_text())
        return done

    def test_command__compares_all_three(self):
        done = self.check(0, '--rounds', '2', load=LOAD,
                          wrk=WRITE % ('', WRK), h2load=WRITE % (LOG, H2LOAD))
        self.assertEqual([(row['ours'], row['wrk'], row['h2load'])
                          for row in done.rows],
                         2 * [(20000.5, 42621.62, 23100)] +
                         2 * [(100, 86.5, 341)])
        self.assertEqual(done.rows[1]['what'],
                         'requests per second, 8 connections')
        self.assertEqual(done.rows[1]['ours_values'], 2 * [20000.5])
        self.assertIn('42622', done.stdout)

    def test_program__that_is_missing__is_named(self):
        done = self.check(1, load=LOAD, wrk=WRITE % ('', WRK))
        self.assertIn('the command h2load is missing', done.stderr)

    def test_program__that_fails__is_told_with_its_reason(self):
        done = self.check(1, load='raise SystemExit("no server")',
                          wrk=WRITE % ('', WRK), h2load=WRITE % (LOG, H2LOAD))
        self.assertIn('no server', done.stderr)


if __name__ == '__main__':
    unittest.main()
