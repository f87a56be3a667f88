#!/usr/bin/python3
"""The report of bench/nginx, of results that are known.

    test_report.py [unittest's arguments...]
"""

import copy
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / 'bench' / 'nginx'), str(ROOT / 'tests' / 'bench')]

import gnuplot  # noqa: E402
import plots  # noqa: E402
import report  # noqa: E402
import report_data  # noqa: E402
import sample_results  # noqa: E402
import tables  # noqa: E402

WHOLE = sample_results.sample()
HAS_GNUPLOT = shutil.which('gnuplot') is not None
NO_GNUPLOT = 'the command gnuplot is missing (package gnuplot-nox)'
SVG = '{http://www.w3.org/2000/svg}'


def without(raw, **unwanted):
    """The results without rows in which any of these is so."""
    left = dict(raw)
    for part in ('rows', 'hdr', 'sizes'):
        left[part] = [row for row in left[part] if not any(
            row.get(key) == value for key, value in unwanted.items())]
    return left


def brief(raw):
    """The results at one level, which is enough to see what is missing."""
    for level in sample_results.LEVELS[:-1]:
        raw = without(raw, level=level)
    return raw


def cells(text, title, first):
    """Cells of the row that begins with `first`, below a heading."""
    part = text.split(title, 1)[1].split('\n#', 1)[0]
    for line in part.splitlines():
        found = [cell.strip() for cell in line.strip('|').split(' | ')]
        if found[:len(first)] == list(first):
            return found[len(first):]
    raise AssertionError(f'no row {first} below {title!r} in {part}')


def words_of(svg):
    root = xml.etree.ElementTree.parse(svg).getroot()
    return [''.join(text.itertext()).strip()
            for text in root.iter(SVG + 'text')]


class Folder(unittest.TestCase):
    longMessage = False  # a whole report is too long for one

    def setUp(self):
        self.tmp = tempfile.TemporaryDirectory()
        self.addCleanup(self.tmp.cleanup)
        self.folder = pathlib.Path(self.tmp.name)

    def make(self, raw, docs=None):
        (self.folder / 'results.json').write_text(json.dumps(raw))
        notes = report.make(self.folder, docs)
        return (self.folder / 'results.md').read_text(), notes

    def hide_gnuplot(self):
        path, os.environ['PATH'] = os.environ['PATH'], str(self.folder)
        self.addCleanup(os.environ.__setitem__, 'PATH', path)

    def assert_has(self, text, words):
        self.assertTrue(words in text, f'{words!r} is not in the report')


class Text(Folder):
    def setUp(self):
        super().setUp()
        self.hide_gnuplot()

    def test_without_gnuplot__says_so_and_links_no_plot(self):
        text, notes = self.make(WHOLE)
        self.assertIn(NO_GNUPLOT, ' '.join(notes))
        self.assert_has(text, NO_GNUPLOT)
        self.assertNotIn('![', text)
        self.assertFalse((self.folder / 'plots').exists())

    def test_value__has_median_spread_and_ratio(self):
        raw = copy.deepcopy(WHOLE)
        for row in raw['rows']:
            if (row['run'], row['metric'], row['level'], row['file']) == (
                    'closed', 'cpu_ms', 9, 'emoji.json'):
                row.update({'packaged': {'median': 50, 'min': 40, 'max': 60},
                            'pool': {'median': 40, 'min': 39, 'max': 41}}
                           .get(row['peer'], {}))
        results = report_data.Results(raw)
        at = {'level': 9, 'file': 'emoji.json', 'clients': 8}
        self.assertEqual(tables.cell(results, 'closed', 'cpu_ms', 'pool', at),
                         '40.0 ±2% (0.80x)')
        self.assertEqual(
            tables.cell(results, 'closed', 'cpu_ms', 'packaged', at),
            '50.0 ±20% (1.00x)')

    def test_numbers__stand_in_the_row_of_their_peer(self):
        text, _ = self.make(WHOLE)
        found = cells(text, '### Time to last byte', (
            '', 'libsegzstd, pool, 4m segments'))
        expected = [0.2 + sample_results.cpu_ms('pool-4m', level, 'small.json')
                    / 1.5 for level in sample_results.LEVELS]
        self.assertEqual([cell.split()[0] for cell in found],
                         [tables.number(value) for value in expected])

    def test_memory__has_a_column_for_each_number_of_clients(self):
        text, _ = self.make(WHOLE)
        self.assert_has(text, '| where | peer | 8 clients | 64 clients '
                        '| 512 clients |')
        found = cells(text, '### Memory', ('', 'packaged zstd filter'))
        self.assertEqual(found[2], '1,863 ±10% (1.00x)')

    def test_peer_without_levels__has_its_value_at_each(self):
        text, _ = self.make(WHOLE)
        found = cells(text, '### Responses per second', ('', 'gzip 6'))
        self.assertEqual(len({cell.split()[0] for cell in found}), 1)
        self.assertEqual(len(found), 4)
        self.assertEqual(len(set(found)), 4)  # ratios differ

    def test_better__decides_whether_there_are_ratios(self):
        text, _ = self.make(WHOLE)
        found = cells(text, '### Small requests sent late',
                      ('', 'gzip 6'))
        self.assertEqual(found[0], '0.08 ±10%')

    def test_latency__is_of_events_where_those_are_measured(self):
        raw = brief(WHOLE)
        raw['rows'].append(sample_results.row('events', 'pool', 'p99_ms', 'ms',
                                              0.7, clients=10000))
        text, _ = self.make(raw)
        self.assert_has(text, '### Events, p99 (ms')
        self.assert_has(text, '### Small requests, p99 (ms')

    def test_goal__has_digits_enough_for_its_limit(self):
        raw = brief(WHOLE)
        raw['goals'] = [{'what': 'size', 'where': 'level 3', 'goal': '<= 1.005',
                         'value': 1.0063, 'limit': 1.005, 'met': False}]
        self.assert_has(self.make(raw)[0],
                        '| size | level 3 | <= 1.005 | 1.006 | 1.005 |')

    def test_goals__missed_ones_come_first(self):
        text, _ = self.make(WHOLE)
        self.assert_has(text, '1 of 2 goals met, 1 could not be judged.')
        part = text.split('## Goals', 1)[1].split('\n## ', 1)[0]
        marks = re.findall(r'^\| (\*\*missed\*\*|met|not judged)', part, re.M)
        self.assertEqual(marks, ['**missed**', 'not judged', 'met'])

    def test_sizes__are_exact_and_a_difference_is_shown(self):
        raw = copy.deepcopy(WHOLE)
        for size in raw['sizes']:
            if size['file'] == 'random.bin' and size['peer'] == 'pool':
                size.update(bytes=1048000, sha256_same=False)
        text, _ = self.make(raw)
        packaged = sample_results.compressed('packaged', 3, 'random.bin')
        part = text.split('random.bin', 2)[2]
        ratio = 1048000 / packaged['bytes']
        self.assert_has(text, f'| 1,048,000 ({ratio:.3f}x) **differs** |')
        self.assertIn(f'{packaged["bytes"]:,} (1.000x)', part)
        self.assertEqual(text.count('**differs**'), 4)

    def test_unknown_metric_and_run__are_shown(self):
        raw = copy.deepcopy(WHOLE)
        raw['rows'].append(sample_results.row('odd', 'pool', 'wild_geese',
                                              'birds', 7))
        text, _ = self.make(raw)
        self.assert_has(text, '## Run "odd"')
        self.assertEqual(cells(text, '### wild geese (birds)',
                               ('libsegzstd, pool',)), ['7.00 ±10%'])

    def test_missing_run__is_named(self):
        raw = brief(sample_results.sample(('copied', *sample_results.FEW)))
        raw['rows'] += [r for r in WHOLE['rows'] if r['run'] == 'events']
        for run in tables.RUNS:
            text, notes = self.make(without(raw, run=run))
            self.assertIn(f'Run "{run}" was not made.', notes)
            self.assertNotIn(tables.RUNS[run][0], text)

    def test_missing_peer__is_named(self):
        raw = brief(WHOLE)
        for peer in sample_results.PEERS:
            text, _ = self.make(without(raw, peer=peer))
            self.assert_has(text, f'Peers that were not measured: {peer}.')

    def test_without_packaged__ratios_are_to_the_loop(self):
        text, _ = self.make(without(WHOLE, peer='packaged'))
        self.assert_has(text, 'Ratios are to "libsegzstd, event loop"')
        found = cells(text, '### Responses per second',
                      ('', 'libsegzstd, event loop'))
        self.assertIn('(1.00x)', found[0])

    def test_no_base__no_ratios(self):
        raw = without(without(WHOLE, peer='packaged'), peer='loop')
        text, _ = self.make(raw)
        self.assert_has(text, 'No ratios: neither')
        self.assertNotRegex(text, r'\([0-9.]+x\)')

    def test_nothing_measured__is_a_report(self):
        text, notes = self.make({'rows': []})
        self.assert_has(text, 'No goals were judged')
        self.assertEqual(sum('was not made' in note for note in notes),
                         len(tables.RUNS))

    def test_skipped_and_errors__are_told(self):
        raw = copy.deepcopy(WHOLE)
        raw['checks'].update(skipped=['slow packaged: 512 might need 9 GiB'],
                             errors=1, messages=['pool: 502 not 200'])
        text, notes = self.make(raw)
        self.assertIn('Skipped: slow packaged: 512 might need 9 GiB', notes)
        self.assert_has(text, '- Skipped: slow packaged: 512 might')
        self.assert_has(text, 'errors: 1.\n- pool: 502 not 200\n')

    def test_machine__tells_how_busy_the_client_was(self):
        text, _ = self.make(WHOLE)
        self.assert_has(text, '| generator | realtime yes, busiest_by_run '
                        '(open 0.021, closed 0.3) |')


class Page(Folder):
    def page(self, text):
        page = self.folder / 'docs' / 'page.md'
        page.parent.mkdir(exist_ok=True)
        page.write_text(text)
        return page

    def test_docs__only_the_part_between_markers_changes(self):
        self.hide_gnuplot()
        page = self.page(
            f'before\n{report.BEGIN}\nold\n{report.END}\nafter\n')
        self.make(WHOLE, page)
        text = page.read_text()
        self.assertTrue(text.startswith(f'before\n{report.BEGIN}\n'))
        self.assertTrue(text.endswith(f'{report.END}\nafter\n'))
        self.assertFalse('\nold\n' in text)
        self.assert_has(text, '1 of 2 goals met')

    def test_docs__twice_is_as_once(self):
        self.hide_gnuplot()
        page = self.page(f'{report.BEGIN}\n{report.END}\n')
        self.make(WHOLE, page)
        once = page.read_text()
        self.make(WHOLE, page)
        self.assertTrue(page.read_text() == once)

    def test_docs__its_plots_are_there_and_no_others(self):
        page = self.page(f'{report.BEGIN}\n{report.END}\n')
        old = page.parent / 'plots' / 'memory.svg'
        old.parent.mkdir()
        old.write_text('of a run before')
        self.make(without(WHOLE, run='slow'), page)
        linked = re.findall(r'!\[.*?\]\((.*?)\)', page.read_text())
        there = [f'plots/{p.name}' for p in old.parent.glob('*')]
        self.assertEqual(sorted(linked), sorted(there))
        self.assertEqual(bool(linked), HAS_GNUPLOT)

    def test_docs__without_markers_is_refused_and_not_touched(self):
        self.hide_gnuplot()
        for text in ('', report.BEGIN, report.END, report.END + report.BEGIN,
                     (report.BEGIN + report.END) * 2):
            page = self.page(text)
            with self.assertRaisesRegex(ValueError, 'page.md: '):
                self.make(WHOLE, page)
            self.assertEqual(page.read_text(), text)

    def test_docs__the_page_of_the_project_has_its_markers(self):
        report.replace_part((ROOT / 'docs/benchmarks.md').read_text(), '',
                            'docs/benchmarks.md')


class Command(Folder):
    def run_report(self):
        return subprocess.run(
            [sys.executable, '-B', str(ROOT / 'bench/nginx/report.py'),
             str(self.folder)], capture_output=True, text=True)

    def test_faults__are_named_in_one_line(self):
        row = sample_results.row('closed', 'pool', 'cpu_ms', 'ms', 1)
        del row['median']
        for text, fault in ((None, 'No such file'), ('{', 'not JSON'),
                            ('[]', 'no "rows"'),
                            (json.dumps({'rows': [row]}),
                             'row 0 has no "median"')):
            if text is not None:
                (self.folder / 'results.json').write_text(text)
            done = self.run_report()
            self.assertEqual(done.returncode, 1)
            self.assertIn(fault, done.stderr)
            self.assertIn('results.json', done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1)


class Figures(unittest.TestCase):
    def figure(self, name, raw=WHOLE):
        return plots.figure(report_data.Results(raw), name)

    def test_all__name_what_is_better_and_label_axes(self):
        for name in plots.PLOTS:
            figure = self.figure(name)
            self.assertRegex(figure.title, '(lower|higher) is better$')
            self.assertTrue(figure.x.label and figure.y.label)

    def test_peer__looks_the_same_in_all(self):
        seen = {}
        for name in plots.PLOTS:
            for label, style in self.figure(name).legend():
                self.assertEqual(seen.setdefault(label, style), style)
        looks = [(style.color, style.marker) for style in seen.values()]
        self.assertEqual(len(set(looks)), len(looks))

    def test_percentiles__are_at_their_places(self):
        line, marks = plots.latency_points(
            [[0, 1], [50, 2], [90, 3], [99, 4], [99.9, 5], [99.99, 6],
             [100, 7]])
        self.assertEqual([round(x) for x, _ in marks],
                         [2, 10, 100, 1000, 10000])
        self.assertEqual([ms for _, ms in marks], [2, 3, 4, 5, 6])
        self.assertEqual([ms for _, ms in line], [2, 3, 4, 5, 6])

    def test_percentiles__end_where_the_samples_do(self):
        _, marks = plots.latency_points([[50, 2], [90, 3], [100, 7]])
        self.assertEqual([ms for _, ms in marks], [2, 3])

    def test_speed_up__is_the_inverse_of_a_time(self):
        panel = self.figure('speedup-last-byte').panels[-1]
        pool = next(s for s in panel.series if s.label == 'libsegzstd, pool')
        size, times = pool.points[-1]
        cost = sample_results.cpu_ms('pool', 19, 'typescript.js')
        self.assertEqual(size, sample_results.FILES['typescript.js'])
        self.assertAlmostEqual(times, (0.2 + cost) / (0.2 + cost / 1.8))

    def test_speed_up__is_that_of_a_rate(self):
        panel = self.figure('speedup-responses').panels[-1]
        pool = next(s for s in panel.series if s.label == 'libsegzstd, pool')
        self.assertAlmostEqual(pool.points[-1][1], 1.8)

    def test_missing_data__no_figure(self):
        for name in plots.PLOTS:
            self.assertIsNone(self.figure(name, {'rows': []}))
        raw = without(without(WHOLE, peer='packaged'), peer='loop')
        for name, (_, relative) in plots.PLOTS.items():
            self.assertEqual(self.figure(name, raw) is None, relative)


@unittest.skipUnless(HAS_GNUPLOT, NO_GNUPLOT)
class Drawn(Folder):
    def test_run__has_all_plots_whole_and_of_the_planned_size(self):
        self.make(WHOLE)
        results = report_data.Results(WHOLE)
        for name in plots.PLOTS:
            figure = plots.figure(results, name)
            path = self.folder / 'plots' / name
            self.check_svg(path.with_suffix('.svg'), figure)
            self.check_png(path.with_suffix('.png'), figure)

    def check_svg(self, path, figure):
        """It is XML, and has all words."""
        wanted = {figure.title, figure.note, figure.x.label, figure.y.label,
                  *(panel.title for panel in figure.panels),
                  *(label for label, _ in figure.legend())}
        self.assertLessEqual(wanted, set(words_of(path)))

    def check_png(self, path, figure):
        data = path.read_bytes()
        self.assertEqual(data[:8], b'\x89PNG\r\n\x1a\n')
        size = tuple(int.from_bytes(data[at:at + 4], 'big')
                     for at in (16, 20))
        self.assertEqual(size, gnuplot.size_of(figure)[:2])

    def test_label__may_have_any_characters(self):
        raw = copy.deepcopy(WHOLE)
        label = "it's <b> & \"x_y^2\" {a} $0 % | \\n é"
        next(p for p in raw['peers'] if p['name'] == 'pool')['label'] = label
        self.make(raw)
        said = words_of(self.folder / 'plots' / 'memory.svg')
        self.assertIn(label, said)

    def test_run_with_less__leaves_no_plot_of_the_one_before(self):
        old = self.folder / 'plots' / 'memory.svg'
        old.parent.mkdir()
        old.write_text('of a run before')
        text, notes = self.make(without(WHOLE, run='slow'))
        self.assertFalse(old.exists())
        self.assertFalse('memory.svg' in text)
        self.assertIn('Plots for which this run has no data: memory.', notes)

    def test_few_values__are_drawn(self):
        raw = sample_results.sample(('pool', 'packaged'))
        for key, value in (('level', 3), ('level', 9), ('level', 15),
                           ('clients', 64), ('clients', 512)):
            raw = without(raw, **{key: value})
        _, notes = self.make(raw)
        self.assertFalse([n for n in notes if n.startswith('Plots')])

    def test_fault_of_gnuplot__is_named_with_the_plot(self):
        figure = plots.figure(report_data.Results(WHOLE), 'memory')
        figure.x.ticks = [('one', float('nan'))]
        figure.title = 'not\nclosed'
        with self.assertRaisesRegex(RuntimeError,
                                    r'gnuplot, memory\.svg: line \d+: '):
            gnuplot.draw(figure, self.folder, {'svg': 'svg'})


if __name__ == '__main__':
    unittest.main()
