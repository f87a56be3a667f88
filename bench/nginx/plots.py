"""The plots of results: which lines, panels and axes."""

import gnuplot
from gnuplot import Axis, Figure, Panel, Series, Style

# One style for a peer in every plot. Colors differ in lightness too, and
# markers and dashes tell apart what is alike to a color-blind reader. The two
# that matter most are so wide that they show below another line.
STYLES = {
    'off': Style('#8a8a8a', 4, '6,9'),
    'copied': Style('#b0b0b0', 1, '2,7'),
    'gzip': Style('#e69f00', 8, '10,9'),
    'brotli': Style('#cc79a7', 12, '10,9'),
    'packaged': Style('#d55e00', 5, width=4.0),
    'loop': Style('#202020', 10),
    'pool': Style('#0072b2', 7, width=4.0),
    'pool-1m': Style('#56b4e9', 9),
    'pool-4m': Style('#009e73', 11),
    'tasks-1': Style('#332288', 6, '5,8'),
    'tasks-2': Style('#882255', 13, '5,8'),
    'tasks-4': Style('#999933', 14, '5,8'),
}
OTHERS = [Style('#661100', 2), Style('#6699cc', 3), Style('#117733', 15)]

PERCENTILES = (50, 90, 99, 99.9, 99.99)
ZSTD_ONLY = 'the peers that make zstd'


def style_of(results, peer):
    if peer in STYLES:
        return STYLES[peer]
    others = [p for p in results.peers if p not in STYLES]
    return OTHERS[others.index(peer) % len(OTHERS)]


def series_of(results, peer, points, markers=None):
    return Series(results.label(peer), style_of(results, peer), points,
                  markers)


def tail(percentile):
    """Where a percentile is on the axis, as HdrHistogram draws it."""
    return 1 / (1 - percentile / 100)


def latency_points(percentiles):
    """The line from the median on, and markers at the named percentiles."""
    points = sorted((p, ms) for p, ms in percentiles
                    if 50 <= p <= 99.995 and ms > 0)
    line = thinned([(tail(p), ms) for p, ms in points])
    marks = [next(((tail(named), ms) for p, ms in points if p >= named), None)
             for named in PERCENTILES]
    return line, [m for m in marks if m]


def thinned(line):
    """Without points that would be less than 1 % from the one before, of
    which a distribution can have thousands; the last stays."""
    kept = []
    for point in line:
        if not kept or point[0] > kept[-1][0] * 1.01 or point == line[-1]:
            kept.append(point)
    return kept


def latency(results, phase):
    panels = []
    for level in results.hdr_values('level'):
        lines = []
        for peer in results.peers:
            found = results.percentiles(peer, level, phase)
            line, marks = latency_points(found or [])
            if line:
                lines.append(series_of(results, peer, line, marks))
        panels.append(Panel(f'level {level}', lines))
    beside = ('8 large ones at the same instant' if phase == 8
              else 'large ones, one at a time')
    return Figure(
        f'latency-phase{phase}',
        'Latency of small requests: lower is better',
        f'small uncompressed requests beside {beside}',
        Axis('percentile of the small requests, %', True,
             [(f'{p:g}', tail(p)) for p in PERCENTILES], (1.6, 16000)),
        Axis('latency, ms', True), panels, same_y=True)


def by_level(results, run, metric, file, peers, value):
    """A line for each peer over the levels, whose places are 0, 1, 2..."""
    lines = []
    for peer in peers:
        points = []
        for place, level in enumerate(results.values(run, metric, 'level')):
            y = value(run, metric, peer, level=level, file=file,
                      clients=clients_of(results, run, metric))
            if y and y > 0:
                points.append((place, y))
        if points:
            lines.append(series_of(results, peer, points))
    return lines


def clients_of(results, run, metric):
    found = results.values(run, metric, 'clients')
    return found[0] if found else None


def level_axis(levels):
    return Axis('compression level', False,
                [(level, place) for place, level in enumerate(levels)],
                (-0.3, len(levels) - 0.7))


def cpu(results):
    levels = results.values('closed', 'cpu_ms', 'level')
    files = results.values('closed', 'cpu_ms', 'file')
    peers = results.peers_of('closed', 'cpu_ms')
    panels = [Panel(file, by_level(results, 'closed', 'cpu_ms', file, peers,
                                   results.median)) for file in files]
    return Figure('cpu', 'CPU per response: lower is better',
                  'user and system time of the worker, 8 connections',
                  level_axis(levels), Axis('CPU per response, ms', True),
                  panels)


def cpu_relative(results):
    levels = results.values('closed', 'cpu_ms', 'level')
    peers = zstd_peers(results, 'closed', 'cpu_ms')
    panels = [Panel(file, by_level(results, 'closed', 'cpu_ms', file, peers,
                                   results.ratio))
              for file in results.values('closed', 'cpu_ms', 'file')]
    base = results.label(results.base)
    return Figure('cpu-relative',
                  f'CPU per response, relative to {base}: lower is better',
                  f'user and system time of the worker, 8 connections; '
                  f'{ZSTD_ONLY}',
                  level_axis(levels), Axis('ratio of CPU', True),
                  panels, reference=1)


def zstd_peers(results, run, metric):
    return [p for p in results.peers_of(run, metric) if p in results.zstd]


def memory(results):
    metric = 'memory_mib'
    clients = results.values('slow', metric, 'clients')
    file = (results.values('slow', metric, 'file') or [None])[0]
    panels = []
    for level in results.values('slow', metric, 'level') or [None]:
        lines = []
        for peer in results.peers_of('slow', metric):
            points = [(n, results.median('slow', metric, peer, level=level,
                                         file=file, clients=n))
                      for n in clients]
            points = [(n, mib) for n, mib in points if mib and mib > 0]
            if points:
                lines.append(series_of(results, peer, points))
        panels.append(Panel('' if level is None else f'level {level}', lines))
    return Figure('memory', 'Memory of the worker: lower is better',
                  'beyond that of an idle worker; all clients read slowly, '
                  'each with a response in flight'
                  + (f' ({file})' if file else ''),
                  Axis('clients', True, [(n, n) for n in clients],
                       (min(clients) / 1.4, max(clients) * 1.4)),
                  Axis('memory, MiB', True), panels, same_y=True)


def speed_up(results, name, run, metric, what, inverse):
    """How many times as fast as the base, by the size of the file."""
    files = [f for f in results.values(run, metric, 'file')
             if results.bytes_of(f)]
    clients = clients_of(results, run, metric)
    panels = []
    for level in results.values(run, metric, 'level'):
        lines = []
        for peer in zstd_peers(results, run, metric):
            points = []
            for file in files:
                ratio = results.ratio(run, metric, peer, level=level,
                                      file=file, clients=clients)
                if ratio and ratio > 0:
                    points.append((results.bytes_of(file),
                                   1 / ratio if inverse else ratio))
            if points:
                lines.append(series_of(results, peer, points))
        panels.append(Panel(f'level {level}', lines))
    base = results.label(results.base)
    sizes = [results.bytes_of(f) for f in files] or [1]
    return Figure(name, f'{what}, relative to {base}: higher is better',
                  f'how many times as fast; {ZSTD_ONLY}',
                  Axis('size of the file', True, size_ticks(sizes),
                       (min(sizes) / 2, max(sizes) * 2)),
                  Axis('times as fast', True), panels, same_y=True,
                  reference=1)


def size_ticks(sizes):
    named = (('1 kB', 1e3), ('10 kB', 1e4), ('100 kB', 1e5), ('1 MB', 1e6),
             ('10 MB', 1e7), ('100 MB', 1e8))
    return [(text, value) for text, value in named
            if min(sizes) / 2 <= value <= max(sizes) * 2]


# Name: how it is made, and whether it needs something to be relative to.
PLOTS = {
    'latency-phase1': (lambda r: latency(r, 1), False),
    'latency-phase8': (lambda r: latency(r, 8), False),
    'cpu': (cpu, False),
    'cpu-relative': (cpu_relative, True),
    'speedup-last-byte': (lambda r: speed_up(
        r, 'speedup-last-byte', 'one', 'last_byte_ms',
        'Time to last byte of one response', True), True),
    'speedup-responses': (lambda r: speed_up(
        r, 'speedup-responses', 'closed', 'responses_per_s',
        'Responses per second', False), True),
    'memory': (memory, False),
}

NEEDS = {'cpu': ('closed', 'cpu_ms'), 'cpu-relative': ('closed', 'cpu_ms'),
         'speedup-last-byte': ('one', 'last_byte_ms'),
         'speedup-responses': ('closed', 'responses_per_s'),
         'memory': ('slow', 'memory_mib')}


def figure(results, name):
    """The figure, or None where its data are not there."""
    make, relative = PLOTS[name]
    if name in NEEDS and not results.peers_of(*NEEDS[name]):
        return None
    if relative and results.base is None:
        return None
    found = make(results)
    found.panels = [panel for panel in found.panels if panel.series]
    return found if found.panels else None


def draw_all(results, folder):
    """Draws what can be drawn; the names of the plots that were, and
    sentences about what was not."""
    found, notes = gnuplot.terminals()
    if not found:
        return [], notes
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for name in PLOTS:
        for old in folder.glob(f'{name}.*'):
            old.unlink()
        made = figure(results, name)
        if made is not None:
            gnuplot.draw(made, folder, found)
            drawn.append(name)
    missing = [name for name in PLOTS if name not in drawn]
    if missing:
        notes.append('Plots for which this run has no data: '
                     + ', '.join(missing) + '.')
    return drawn, notes
