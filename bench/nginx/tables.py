"""Results as Markdown tables."""

import report_data

RUNS = {
    'open': ('Small requests beside large ones (open loop)',
             'Small uncompressed requests at a constant rate, beside a stream '
             'of large ones at half of the rate that compression on the event '
             'loop sustains; phase 8: 8 at the same instant, phase 1: one at '
             'a time. Latency counts from the time at which a request was '
             'due.'),
    'saturated': ('Small requests, all cores busy',
                  'The same small requests, beside more clients than CPUs '
                  'that each ask again at once.'),
    'closed': ('Throughput and cost (closed loop)',
               '8 connections that each ask again at once. CPU and memory '
               'are the worker\'s, all its threads together.'),
    'loop': ("The event loop's own thread",
             'What one response costs the thread of the event loop alone.'),
    'one': ('One response at a time',
            'One connection, nothing else on the server.'),
    'slow': ('Memory with slow clients',
             'Clients that read slowly, all with a response in flight.'),
    'events': ('Event streams',
               'Streams that stay open; each event is flushed.'),
}

MARK = {True: 'met', False: '**missed**', None: 'not judged'}


def number(value):
    """Three digits that mean something."""
    if value is None:
        return ''
    if value == 0 or abs(value) >= 1e6:
        return f'{value:,.0f}'
    if abs(value) >= 100:
        return f'{value:,.0f}'
    if abs(value) >= 1:
        return f'{value:.2f}' if abs(value) < 10 else f'{value:.1f}'
    return f'{value:.3g}'


def times(ratio):
    return f'{ratio:.2f}x' if ratio >= 0.095 else f'{ratio:.2g}x'


def table(head, rows, left=1):
    """The first `left` columns are text, the others numbers."""
    def line(cells):
        return '| ' + ' | '.join(escape(cell) for cell in cells) + ' |\n'
    rule = [':--'] * left + ['--:'] * (len(head) - left)
    return (line(head) + '|' + '|'.join(rule) + '|\n'
            + ''.join(line(row) for row in rows))


def escape(cell):
    return str(cell).replace('|', '\\|').replace('\n', ' ')


def spread(row):
    """Half of the distance from the least to the most, in % of the median."""
    if not row['median']:
        return 0.0
    return 50 * (row['max'] - row['min']) / abs(row['median'])


def cell(results, run, metric, peer, where):
    row = results.row(run, metric, peer, **where)
    if row is None:
        return ''
    text = f'{number(row["median"])} ±{spread(row):.0f}%'
    ratio = results.ratio(run, metric, peer, **where)
    if ratio is not None and results.about(run, metric).better:
        text += f' ({times(ratio)})'
    return text


def column_key(results, run, metric):
    """Clients if they vary, as in the runs about memory, else levels."""
    if len(results.values(run, metric, 'clients')) > 1:
        return 'clients'
    return 'level'


def groups(results, run, metric, key):
    """What a group of rows has in common: each combination of the keys that
    are not the columns', as far as it was measured."""
    others = [k for k in report_data.KEYS if k != key]
    seen = report_data.unique(
        tuple(r.get(k) for k in others) for r in results.rows
        if r['run'] == run and r['metric'] == metric)
    if key == 'level':
        combinations = seen
    else:  # peers without levels are shown at each level
        at = others.index('level')
        combinations = [c for c in seen if c[at] is not None] or seen
    combinations.sort(key=lambda c: order_of(results, others, c))
    return [dict(zip(others, c)) for c in combinations]


def order_of(results, keys, values):
    return [results.bytes_of(v) if k == 'file' else v or 0
            for k, v in zip(keys, values)]


def name_of(group, varying):
    words = []
    for key in varying:
        value = group[key]
        if value is not None:
            words.append(value if key == 'file' else f'{key} {value}')
    return ', '.join(words) or 'all'


def matrix(results, run, metric):
    """One metric: peers below each other in groups, levels or numbers of
    clients beside each other. '' where nothing was measured."""
    peers = results.peers_of(run, metric)
    if not peers:
        return ''
    key = column_key(results, run, metric)
    columns = results.values(run, metric, key) or [None]
    found = groups(results, run, metric, key)
    varying = [k for k in report_data.KEYS if k != key
               and len({g.get(k) for g in found}) > 1]
    rows = []
    for group in found:
        first = name_of(group, varying)
        for peer in peers:
            cells = [cell(results, run, metric, peer, {**group, key: c})
                     for c in columns]
            if any(cells):
                rows.append([first, results.label(peer), *cells])
                first = ''
    head = ['where', 'peer', *(heading(key, c) for c in columns)]
    if not varying:
        head, rows = head[1:], [row[1:] for row in rows]
    return table(head, rows, 2 if varying else 1)


def heading(key, value):
    if value is None:
        return 'value'
    return f'{value} clients' if key == 'clients' else f'level {value}'


def titled_matrix(results, run, metric, depth='###'):
    about = results.about(run, metric)
    notes = [about.unit, about.better and f'{about.better} is better']
    notes = ', '.join(note for note in notes if note)
    title = f'{depth} {about.title}' + (f' ({notes})' if notes else '')
    return f'{title}\n\n{matrix(results, run, metric)}\n'


def exact(value):
    """Digits enough to tell a value from a limit such as 1.005."""
    if value is None:
        return '-'
    return f'{value:.3f}' if abs(value) < 10 else f'{value:,.1f}'


def goals(results):
    """The missed ones first, then those that could not be judged."""
    order = {False: 0, None: 1, True: 2}
    found = sorted(results.goals, key=lambda g: order[g['met']])
    if not found:
        return 'No goals were judged in this run.\n'
    return goals_summary(found) + '\n\n' + table(
        ['', 'what', 'where', 'goal', 'value', 'limit'],
        [[MARK[g['met']], g['what'], g['where'], g['goal'],
          exact(g['value']), exact(g['limit'])] for g in found], 4)


def goals_summary(found):
    met = sum(g['met'] is True for g in found)
    judged = sum(g['met'] is not None for g in found)
    text = f'{met} of {judged} goals met'
    if judged < len(found):
        text += f', {len(found) - judged} could not be judged'
    return text + '.'


def sizes(results):
    """Compressed sizes, with the ratio to the base at the same level."""
    found = {(s['peer'], s.get('level'), s['file']): s for s in results.sizes}
    files = sorted({s['file'] for s in results.sizes}, key=results.bytes_of)
    if not files:
        return ''
    levels = report_data.in_order(s.get('level') for s in results.sizes)
    rows = []
    for file in files:
        first = file
        for peer in results.peers:
            cells = [size_cell(results, found, peer, level, file)
                     for level in levels or [None]]
            if any(cells):
                rows.append([first, results.label(peer), *cells])
                first = ''
    head = [heading('level', level) for level in levels or [None]]
    return table(['file', 'peer', *head], rows, 2)


def size_cell(results, found, peer, level, file):
    def size(name):
        return found.get((name, level, file)) or (
            None if name in results.leveled else found.get((name, None, file)))
    row = size(peer)
    if row is None:
        return ''
    base = size(results.base)
    text = f'{row["bytes"]:,}'
    if base:
        text += f' ({row["bytes"] / base["bytes"]:.3f}x)'
    return text + ('' if row.get('sha256_same') else ' **differs**')


def machine(results):
    rows = []
    for key, value in results.machine.items():
        if value not in (None, ''):
            value = f'`{value}`' if key == 'command' else plain(value)
            rows.append([key, value])
    return table(['machine', ''], rows, 2) if rows else ''


def plain(value):
    """Short numbers, words for booleans, what is in a dictionary in a row."""
    if isinstance(value, dict):
        return ', '.join(f'{key} ({plain(part)})' if isinstance(part, dict)
                         else f'{key} {plain(part)}'
                         for key, part in value.items())
    if isinstance(value, bool):
        return 'yes' if value else 'no'
    return number(value) if isinstance(value, float) else str(value)


def checks(results):
    if not results.checks:
        return ''
    text = (f'Responses decoded and compared: '
            f'{results.checks.get("decoded", 0)}; errors: '
            f'{results.checks.get("errors", 0)}.\n')
    text += ''.join(f'- {message}\n'
                    for message in results.checks.get('messages') or [])
    if results.checks.get('overload'):
        text += ('\nOverload, counted by our module: '
                 + plain(results.checks['overload']) + '.\n')
    rows = results.checks.get('crosscheck') or []
    if rows:
        text += '\n' + table(
            ['cross-check of the load client', 'ours', 'wrk', 'h2load'],
            [[r['what']] + [number(r.get(k)) or '-'
                            for k in ('ours', 'wrk', 'h2load')]
             for r in rows])
    return text


def peers(results):
    rows = [[results.label(p['name']), p['name'], p.get('libzstd') or '']
            for p in results.raw.get('peers') or []
            if p['name'] in results.peers]
    return table(['peer', 'short', 'libzstd in its worker'], rows, 3)


def files(results):
    rows = [[f['name'], f.get('what', ''), f'{f["bytes"]:,}']
            for f in sorted(results.files.values(), key=lambda f: f['bytes'])]
    return table(['file', 'what', 'bytes'], rows, 2) if rows else ''
