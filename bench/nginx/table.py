"""The results of goals.py as text for a terminal, Markdown and JSON."""

import json


def number(value):
    """Three digits that mean something, in 8 columns."""
    if value is None:
        return '-'
    if value >= 100:
        return f'{value:.0f}'
    return f'{value:.1f}' if value >= 10 else f'{value:.2f}'


def verdict(row):
    if row['met'] is None:
        return ''
    return 'yes' if row['met'] else 'NO'


def _columns(what, off, loop, pool, result, goal, met):
    return (f'{what:<34} {off:>6} {loop:>7} {pool:>7} {result:>5} '
            f'{goal:<12} {met}')


def head():
    return _columns('', 'off', 'loop', 'pool', 'x', 'goal', 'met')


def line(row):
    """A row in 79 columns; what it is about, if that fits, else where."""
    name = f'{row["what"]}, {row["where"]}'
    if len(name) > 34:
        name = f'{SHORT[row["what"]]}, {row["where"]}'
    return _columns(name[:34], number(row['off']), number(row['loop']),
                    number(row['pool']), f'{row["result"]:.2f}', row['goal'],
                    verdict(row))


SHORT = {
    'p99 of small requests': 'p99',
    'p99, cores saturated': 'p99',
    'CPU per response': 'CPU',
    'responses per second': '1/s',
    'peak RSS': 'RSS',
    "loop thread's CPU": 'loop CPU',
    'time to last byte': 'last',
    'time to first byte': 'first',
    'CPU per small response': 'CPU us',
    'small responses per second': '1/s',
    'memory per slow client': 'MiB each',
}


def describe(machine):
    return (f'{machine["date"]}; {machine["cpu"]}, {machine["cpus"]} CPUs; '
            f'{machine["kernel"]}; load {machine["load"]:.2f}\n'
            f'nginx {machine["nginx"]}; {machine["libzstd"]}; '
            f'rounds: {machine["rounds"]}')


def summary(rows):
    judged = [row for row in rows if row['met'] is not None]
    met = sum(row['met'] for row in judged)
    return f'{met} of {len(judged)} goals met'


def _markdown(machine, rows):
    text = describe(machine).replace('\n', '; ') + '.\n\n'
    text += ('| what | where | unit | off | loop | pool | ratio | goal | met |'
             ' spread |\n'
             '|:--|:--|:--|--:|--:|--:|--:|:--|:--|--:|\n')
    for row in rows:
        text += '| ' + ' | '.join([
            row['what'], row['where'], row['unit'], number(row['off']),
            number(row['loop']), number(row['pool']), f'{row["result"]:.2f}',
            row['goal'], verdict(row), f'{100 * row["spread"]:.0f} %']
            ) + ' |\n'
    text += ('\noff: uncompressed; loop: `zstd_thread_pool off`; pool: the '
             'default. The ratio is that of the goal: pool to off or to loop. '
             'Medians of the rounds; the spread is that of the pool, from its '
             'least to its most, as a part of the median. ' + summary(rows)
             + '.\n')
    return text


def write(folder, machine, rows, runs):
    """goals.txt, goals.md and goals.json; the last has all runs too."""
    text = describe(machine) + '\n\n' + head() + '\n'
    text += ''.join(line(row) + '\n' for row in rows)
    text += '\n' + summary(rows) + '\n'
    (folder / 'goals.txt').write_text(text)
    (folder / 'goals.md').write_text(_markdown(machine, rows))
    (folder / 'goals.json').write_text(json.dumps(
        {'machine': machine, 'rows': rows, 'runs': runs}, indent=1) + '\n')
