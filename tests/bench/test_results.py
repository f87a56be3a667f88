#!/usr/bin/python3
"""The plan of bench/nginx, its medians, and its goals.

    test_results.py [unittest's arguments...]
"""

import argparse
import contextlib
import io
import pathlib
import sys
import tempfile
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / 'bench' / 'nginx'))

import goals  # noqa: E402
import options  # noqa: E402
import peers  # noqa: E402
import plan  # noqa: E402
import results  # noqa: E402

FILES = [{'name': plan.MIDDLE, 'bytes': 1080227, 'what': ''},
         {'name': plan.SMALL, 'bytes': 2127, 'what': ''}]


def asked(**changes):
    """What the command's options are without any."""
    options = {'quick': False, 'runs': plan.RUNS, 'peers': None,
               'levels': None, 'files': None, **changes}
    return argparse.Namespace(**options)


def closed(peer, level, file=plan.MIDDLE):
    return plan.Job('closed', peer, level, file, None, 8)


def judge(values, sizes=()):
    """The goals of such numbers, by what they are about."""
    found = goals.judge_all(results.rows_of(values), sizes, FILES, 2)
    return {(goal['what'], goal['goal']): goal for goal in found}


class PlanTest(unittest.TestCase):

    def test_jobs__without_options__are_all_runs_once(self):
        jobs = plan.jobs(asked(), peers.ALL, 2)
        self.assertEqual({job.run for job in jobs}, set(plan.RUNS))
        self.assertEqual({job.peer for job in jobs}, set(peers.ALL))
        self.assertEqual(len(jobs), len(set(jobs)))

    def test_jobs__of_a_peer_not_installed__are_left_out(self):
        known = {name: peer for name, peer in peers.ALL.items()
                 if name != 'packaged'}
        jobs = plan.jobs(asked(), known, 2)
        self.assertNotIn('packaged', {job.peer for job in jobs})

    def test_jobs__narrowed__are_those(self):
        jobs = plan.jobs(asked(runs=['closed'], peers=['pool', 'tasks-2'],
                               levels=[9], files=[plan.JSON]), peers.ALL, 2)
        self.assertEqual(jobs, [closed('pool', 9, plan.JSON),
                                closed('tasks-2', 9, plan.JSON)])

    def test_jobs__of_off__have_a_level_where_the_rate_has(self):
        jobs = plan.jobs(asked(quick=True, peers=['off']), peers.ALL, 2)
        for job in jobs:
            self.assertEqual(job.level is not None, job.run in plan.RATED)


PLACES = ('module', 'system-modules', 'corpus', 'load', 'results')


@unittest.mock.patch.dict(peers.ALL)
class VariantTest(unittest.TestCase):

    def parse(self, *arguments):
        places = [f'--{name}=/' for name in PLACES]
        with unittest.mock.patch('sys.argv', ['run.py', *places, *arguments]):
            return options.parse('')

    def test_variant__is_a_peer_beside_the_pool(self):
        args = self.parse('--variant', 'eager=zstd_inline 5ms;',
                          '--variant', 'same=', '--runs', 'closed',
                          '--levels', '3', '--files', plan.JSON)
        self.assertEqual(plan.jobs(args, peers.ALL, 2),
                         [closed(name, 3, plan.JSON)
                          for name in ('pool', 'eager', 'same')])
        self.assertEqual(
            peers.ALL['eager'].location(3),
            'zstd on; zstd_comp_level 3; zstd_types *; zstd_inline 5ms;')
        self.assertEqual(peers.ALL['same'].location(3),
                         peers.ALL['pool'].location(3))

    def test_variant__with_peers__is_one_of_them(self):
        args = self.parse('--variant', 'eager=zstd_inline 5ms',
                          '--peers', 'packaged,eager')
        self.assertEqual(args.peers, ['packaged', 'eager'])

    def test_variant__that_is_none__is_named(self):
        for text in ('eager', '=zstd_inline 0;', 'A b=', 'pool=gzip on;'):
            said = io.StringIO()
            with self.assertRaises(SystemExit), \
                    contextlib.redirect_stderr(said):
                self.parse('--variant', text)
            self.assertIn(f'"{text.partition("=")[0]}', said.getvalue())


class ResultsTest(unittest.TestCase):

    def test_row__has_the_median_and_the_spread(self):
        row, = results.rows_of({closed('pool', 9): {'cpu_ms': [3., 1., 8.]}})
        self.assertEqual((row['median'], row['min'], row['max']), (3, 1, 8))
        self.assertEqual(row['unit'], 'ms')
        self.assertEqual(row['values'], [3, 1, 8])

    def test_percentiles__end_with_the_greatest(self):
        curve = results.percentiles(range(1000, 0, -1))
        self.assertEqual(curve[0], [0, 1])
        self.assertEqual(curve[-1], [100, 1000])
        self.assertEqual(curve, sorted(curve))
        for percent, value in curve[1:-1]:
            self.assertAlmostEqual(value / 10, percent, delta=0.1)

    def test_percentiles__of_one_or_none(self):
        self.assertEqual(results.percentiles([5]), [[100, 5]])
        self.assertEqual(results.percentiles([]), [])

    def test_curve__is_of_the_small_requests_of_all_rounds(self):
        job = plan.Job('open', 'pool', 9, plan.MIDDLE, 8)
        with tempfile.TemporaryDirectory() as folder:
            paths = [pathlib.Path(folder, name) for name in ('1', '2', '3')]
            for path, last in zip(paths[:2], (7000, 9000)):
                path.write_text('stream,last_byte_us\nsmall,%d\nlarge,99000\n'
                                % last)
            curve, = results.curves_of({job: paths})
        self.assertEqual(curve['percentiles'][0], [0, 7])
        self.assertEqual(curve['percentiles'][-1], [100, 9])
        self.assertEqual((curve['peer'], curve['phase']), ('pool', 8))


class GoalsTest(unittest.TestCase):

    def test_cpu__no_more_than_packaged__is_met(self):
        for ours, met in ((10., True), (10.1, False)):
            found = judge({closed('pool', 9): {'cpu_ms': [ours]},
                           closed('packaged', 9): {'cpu_ms': [10.]}})
            goal = found['CPU per response', '<= 1 of packaged']
            self.assertEqual(goal['met'], met)
            self.assertAlmostEqual(goal['value'], ours / 10)

    def test_cpu__without_packaged__is_compared_with_the_loop(self):
        found = judge({closed('pool', 9): {'cpu_ms': [10.4]},
                       closed('loop', 9): {'cpu_ms': [10.]}})
        self.assertTrue(found['CPU per response', '<= 1.05 of loop']['met'])
        self.assertEqual(len(found), 1)

    def test_cpu__of_small_files__has_no_goal(self):
        self.assertEqual(judge({
            closed('pool', 9, plan.SMALL): {'cpu_ms': [10.]},
            closed('packaged', 9, plan.SMALL): {'cpu_ms': [1.]}}), {})

    def test_rate__is_to_be_higher__from_level_9_on(self):
        for level, count in ((3, 0), (9, 1)):
            found = judge({
                closed('pool', level): {'responses_per_s': [170.]},
                closed('packaged', level): {'responses_per_s': [100.]}})
            self.assertEqual(len(found), count)
            for goal in found.values():
                self.assertTrue(goal['met'])

    def test_latency__is_compared_with_off_at_the_same_rate(self):
        def job(peer):
            return plan.Job('open', peer, 19, plan.MIDDLE, 8)
        found = judge({job('pool'): {'p99_ms': [2.]},
                       job('packaged'): {'p99_ms': [30.]},
                       job('off'): {'p99_ms': [1.]}})
        what = 'p99 of small requests'
        self.assertTrue(found[what, '<= 0.1 of packaged']['met'])
        self.assertFalse(found[what, '<= 1.25 of off']['met'])

    def test_loop__is_compared_with_a_peer_that_has_no_level(self):
        found = judge({
            plan.Job('loop', 'pool', 9, plan.MIDDLE, None, 1):
                {'loop_cpu_ms': [1.]},
            plan.Job('loop', 'copied', None, plan.MIDDLE, None, 1):
                {'loop_cpu_ms': [2.]}})
        goal, = found.values()
        self.assertEqual((goal['value'], goal['met']), (0.5, True))

    def test_size__within_half_a_percent_at_level_9__is_met(self):
        for ours, met in ((1005, True), (1006, False)):
            found = judge({}, [
                {'peer': peer, 'level': 9, 'file': plan.MIDDLE, 'bytes': size}
                for peer, size in (('pool', ours), ('packaged', 1000))])
            goal, = found.values()
            self.assertEqual(goal['met'], met)


if __name__ == '__main__':
    unittest.main()
