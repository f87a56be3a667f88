"""The goals, judged over the rows of the results."""

# Of the output, by level.
SIZES = {3: 1.005, 9: 1.005, 15: 1.02, 19: 1.02}
# With all CPUs busy nothing is cut; that which began before they were shows in
# the mean of few responses.
SIZE_UNDER_LOAD = 1.001
# Bytes of files.
MIDDLE = 85e3
BIG = 1e6


class Table:
    """Medians of rows, by what was measured."""

    def __init__(self, rows, sizes, files):
        self.rows = {self.key(row): row['median'] for row in rows}
        self.sizes = {(size['peer'], size['level'], size['file']):
                      size['bytes'] for size in sizes}
        self.bytes = {file['name']: file['bytes'] for file in files}

    @staticmethod
    def key(row):
        return tuple(row[name] for name in (
            'run', 'peer', 'level', 'file', 'phase', 'clients', 'metric'))

    def places(self, run, peer, metric):
        """Level, file, phase and clients of all such rows, in order."""
        found = [key[2:6] for key in self.rows
                 if (key[0], key[1], key[6]) == (run, peer, metric)]
        return sorted(found, key=lambda place: tuple(
            (part is None, part if part is not None else 0)
            for part in (place[0], self.bytes.get(place[1], 0), *place[2:])))

    def get(self, run, peer, place, metric):
        return self.rows.get((run, peer, *place, metric))


def where(place):
    """As in: level 9, emoji.json, 8 at once."""
    level, file, phase, clients = place
    parts = [f'level {level}' if level is not None else '', file or '']
    if phase:
        parts.append('8 at once' if phase == 8 else 'one at a time')
    if clients and clients > 8:
        parts.append(f'{clients} clients')
    return ', '.join(part for part in parts if part)


def judge(what, place, ours, theirs, limit, other, least=False):
    """One goal: ours to theirs, at most `limit`, or at least."""
    if ours is None or not theirs:
        return None
    value = ours / theirs
    sign = '>=' if least else '<='
    return {'what': what, 'where': where(place),
            'goal': f'{sign} {limit:g} of {other}', 'value': value,
            'limit': limit,
            'met': value >= limit if least else value <= limit}


def compare(table, run, metric, what, limit, other, wanted=None, least=False):
    """The pool against another peer, wherever both were measured; a limit
    may depend on the place."""
    found = []
    for place in table.places(run, 'pool', metric):
        if wanted and not wanted(table, place):
            continue
        theirs = table.get(run, other, place, metric)
        if theirs is None:    # its place has no level
            theirs = table.get(run, other, (None, *place[1:]), metric)
        found.append(judge(what, place, table.get(run, 'pool', place, metric),
                           theirs, limit, other, least))
    return found


def longer_than(least_bytes, least_level=0):
    def wanted(table, place):
        return (place[0] >= least_level
                and table.bytes[place[1]] >= least_bytes)
    return wanted


def at_level(level):
    return lambda table, place: place[0] == level


def with_clients(*counts):
    return lambda table, place: place[3] in counts


def compare_sizes(table, other):
    found = []
    for (peer, level, file), size in sorted(table.sizes.items(), key=str):
        if peer == 'pool' and level in SIZES:
            found.append(judge('size', (level, file, None, None), size,
                               table.sizes.get((other, level, file)),
                               SIZES[level], other))
    return found


def latency_goals(table, base):
    p99 = 'p99 of small requests'
    busy = 'p99 of small requests, CPUs busy'
    return (compare(table, 'open', 'p99_ms', p99, 0.1, base, at_level(19))
            + compare(table, 'open', 'p99_ms', p99, 1.25, 'off')
            + compare(table, 'saturated', 'p99_ms', busy, 2, 'off')
            + compare(table, 'one', 'first_byte_ms', 'first byte', 0.2, base,
                      longer_than(2e6, 9))
            + compare(table, 'one', 'last_byte_ms', 'last byte', 0.6, base,
                      longer_than(2e6, 9)))


def cost_goals(table, base, cpus):
    cpu, rate = 'CPU per response', 'responses per second'
    goals = compare(table, 'loop', 'loop_cpu_ms', "event loop's own CPU", 0.6,
                    'copied')
    goals += compare(table, 'closed', 'peak_rss_mib', 'peak memory', cpus,
                     base, longer_than(MIDDLE))
    goals += compare(table, 'closed', 'body_kib', 'size, CPUs busy',
                     SIZE_UNDER_LOAD, base, longer_than(MIDDLE))
    limits = {'packaged': 1.0, 'loop': 1.05}
    for other in dict.fromkeys((base, 'loop')):
        goals += compare(table, 'closed', 'cpu_ms', cpu, limits[other], other,
                         longer_than(MIDDLE))
        goals += compare(table, 'closed', 'responses_per_s', rate, 1.6, other,
                         longer_than(BIG, 9), least=True)
    return goals


def memory_goals(table, base):
    return (compare(table, 'slow', 'memory_mib', 'memory, slow clients', 0.1,
                    base, with_clients(64, 512))
            + compare_sizes(table, base))


def judge_all(rows, sizes, files, cpus):
    """All goals for which there are rows."""
    table = Table(rows, sizes, files)
    measured = {row['peer'] for row in rows} | {s['peer'] for s in sizes}
    base = 'packaged' if 'packaged' in measured else 'loop'
    found = (latency_goals(table, base) + cost_goals(table, base, cpus)
             + memory_goals(table, base))
    return [goal for goal in found if goal]
