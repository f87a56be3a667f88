"""Makes of a run's results.json the text and the plots for people.

    report.py FOLDER [--docs docs/benchmarks.md]

reads FOLDER/results.json and writes FOLDER/results.md, and FOLDER/plots if
gnuplot is there. With --docs, the part of that page between its two markers
becomes the tables and plots of this run; the plots are copied, as SVG, into
the folder plots beside it.
"""

import argparse
import pathlib
import shutil
import sys

import plots
import report_data
import tables

BEGIN = '<!-- results: begin -->'
END = '<!-- results: end -->'

# Runs and their plots; the runs are shown in this order.
PLOTS_OF = {
    'open': ('latency-phase8', 'latency-phase1'),
    'closed': ('cpu-relative', 'cpu', 'speedup-responses'),
    'one': ('speedup-last-byte',),
    'slow': ('memory',),
}

# What the page for readers shows of a run; results.md has all of it.
DOCS_METRICS = {
    'open': ('p99_ms',), 'saturated': ('p99_ms',),
    'closed': ('responses_per_s', 'cpu_ms', 'peak_rss_mib', 'body_kib'),
    'loop': ('loop_cpu_ms',), 'one': ('first_byte_ms', 'last_byte_ms'),
    'slow': ('memory_mib',), 'events': ('memory_mib', 'cpu_us_per_event'),
}
DOCS_PLOTS = {
    'open': ('latency-phase8',),
    'closed': ('cpu-relative', 'speedup-responses'),
    'one': ('speedup-last-byte',),
    'slow': ('memory',),
}


def legend(results):
    text = ('Each value is the median of the rounds, then half of the '
            'distance from the least to the most, as a part of the median')
    if results.base is not None:
        text += (f'; in parentheses, how many times that of '
                 f'"{results.label(results.base)}"')
    text += '. Peers that know no levels have the same value at each.'
    return text


def left_out(results):
    """Sentences about what this run has not."""
    notes = [f'Run "{run}" was not made.' for run in tables.RUNS
             if run not in results.runs()]
    missing = [peer for peer in plots.STYLES if peer not in results.peers]
    if missing:
        notes.append('Peers that were not measured: ' + ', '.join(missing)
                     + '.')
    if results.base is None:
        notes.append('No ratios: neither of the peers '
                     + ' and '.join(report_data.BASES) + ' was measured.')
    elif results.base != report_data.BASES[0]:
        notes.append(f'Ratios are to "{results.label(results.base)}", as '
                     f'{report_data.BASES[0]} was not measured.')
    return notes + [f'Skipped: {why}' for why in
                    results.checks.get('skipped') or []]


def images(names, drawn, kind, folder='plots'):
    return ''.join(f'![{name}]({folder}/{name}.{kind})\n\n'
                   for name in names if name in drawn)


def section(results, run, metrics, pictures, depth):
    title, text = tables.RUNS.get(run, (f'Run "{run}"', ''))
    parts = [f'{depth} {title}\n', text + '\n' if text else '', pictures]
    parts += [tables.titled_matrix(results, run, metric, depth + '#')
              for metric in metrics]
    return '\n'.join(part.strip('\n') + '\n' for part in parts if part)


def all_runs(results):
    found = results.runs()
    return ([run for run in tables.RUNS if run in found]
            + [run for run in found if run not in tables.RUNS])


def size_section(results, depth):
    found = tables.sizes(results)
    if not found:
        return ''
    return (f'{depth} Compressed size (bytes, lower is better)\n\n'
            'With nothing else to do on the server. "differs": what was '
            'decoded was not the file.\n\n' + found)


def whole(results, drawn, notes):
    """results.md: everything."""
    parts = ['# Results\n', tables.machine(results),
             '## Goals\n', tables.goals(results)]
    if notes:
        parts += ['## Left out\n', ''.join(f'- {n}\n' for n in notes)]
    checked = tables.checks(results)
    parts += ['## Checks\n', checked] if checked else []
    parts += ['## Peers and files\n', tables.peers(results),
              tables.files(results), legend(results) + '\n']
    for run in all_runs(results):
        pictures = images(PLOTS_OF.get(run, ()), drawn, 'svg')
        parts.append(section(results, run, results.metrics(run), pictures,
                             '##'))
    parts.append(size_section(results, '##'))
    return '\n'.join(part for part in parts if part)


def excerpt(results, drawn, notes):
    """What the page for readers shows."""
    parts = [tables.machine(results), '### Goals\n', tables.goals(results),
             ''.join(f'- {n}\n' for n in notes), legend(results) + '\n']
    for run in all_runs(results):
        metrics = [m for m in DOCS_METRICS.get(run, ())
                   if m in results.metrics(run)]
        pictures = images(DOCS_PLOTS.get(run, ()), drawn, 'svg')
        if metrics:
            parts.append(section(results, run, metrics, pictures, '###'))
    parts.append(size_section(results, '###'))
    return '\n'.join(part for part in parts if part)


def replace_part(text, part, name):
    """The text with another part between the markers."""
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise ValueError(f'{name}: needs the lines {BEGIN} and {END} once')
    before, rest = text.split(BEGIN)
    if END not in rest:
        raise ValueError(f'{name}: {END} stands before {BEGIN}')
    return before + BEGIN + '\n\n' + part.strip('\n') + '\n\n' + END + (
        rest.split(END)[1])


def update_docs(page, folder, results, drawn, notes):
    text = replace_part(page.read_text(), excerpt(results, drawn, notes), page)
    for name in [name for run in DOCS_PLOTS.values() for name in run]:
        copied = page.parent / 'plots' / f'{name}.svg'
        if name in drawn:
            copied.parent.mkdir(exist_ok=True)
            shutil.copyfile(folder / 'plots' / copied.name, copied)
        else:
            copied.unlink(missing_ok=True)
    page.write_text(text)


def make(folder, docs=None):
    """Reads the results of the folder, writes all that is made of them."""
    results = report_data.load(folder / 'results.json')
    drawn, notes = plots.draw_all(results, folder / 'plots')
    notes = left_out(results) + notes
    (folder / 'results.md').write_text(whole(results, drawn, notes))
    if docs:
        update_docs(docs, folder, results, drawn, notes)
    return notes


def main():
    parser = argparse.ArgumentParser(
        description='Makes results.md and plots of results.json.')
    parser.add_argument('folder', type=pathlib.Path,
                        help='has results.json, and gets the rest')
    parser.add_argument('--docs', type=pathlib.Path, metavar='PAGE',
                        help='also puts a part of it into this page')
    args = parser.parse_args()
    try:
        notes = make(args.folder, args.docs)
    except (OSError, ValueError, RuntimeError) as error:
        sys.exit(f'report: {error}')
    for note in notes:
        print(f'report: {note}', file=sys.stderr)
    print(args.folder / 'results.md')


if __name__ == '__main__':
    main()
