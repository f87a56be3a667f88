"""results.json, so that a value is found by what it is of."""

import dataclasses
import json

KEYS = ('level', 'file', 'phase', 'clients')

# What the ratios are to: the first of these that was measured.
BASES = ('packaged', 'loop')


@dataclasses.dataclass(frozen=True)
class Metric:
    title: str
    unit: str
    better: str  # 'lower', 'higher', or '' where neither is


METRICS = {
    'p50_ms': Metric('{those}, median latency', 'ms', 'lower'),
    'p90_ms': Metric('{those}, p90', 'ms', 'lower'),
    'p99_ms': Metric('{those}, p99', 'ms', 'lower'),
    'p999_ms': Metric('{those}, p99.9', 'ms', 'lower'),
    'max_ms': Metric('{those}, slowest', 'ms', 'lower'),
    'large_p50_ms': Metric('Large responses, median', 'ms', 'lower'),
    'large_p99_ms': Metric('Large responses, p99', 'ms', 'lower'),
    'large_p999_ms': Metric('Large responses, p99.9', 'ms', 'lower'),
    'large_max_ms': Metric('Large responses, slowest', 'ms', 'lower'),
    'responses_per_s': Metric('Responses per second', '1/s', 'higher'),
    'cpu_ms': Metric('CPU per response', 'ms', 'lower'),
    'cpu_user_ms': Metric('CPU per response, user', 'ms', 'lower'),
    'cpu_system_ms': Metric('CPU per response, system', 'ms', 'lower'),
    'peak_rss_mib': Metric('Peak memory', 'MiB', 'lower'),
    'body_kib': Metric('Size of a response', 'KiB', 'lower'),
    'loop_cpu_ms': Metric("CPU per response, event loop's thread", 'ms',
                          'lower'),
    'minor_faults': Metric('Page faults per response', '', 'lower'),
    'major_faults': Metric('Page faults that read a disk, per response', '',
                           'lower'),
    'first_byte_ms': Metric('Time to first byte', 'ms', 'lower'),
    'last_byte_ms': Metric('Time to last byte', 'ms', 'lower'),
    'memory_mib': Metric('Memory beyond that of an idle worker', 'MiB',
                         'lower'),
    'stream_kib': Metric('Memory of a stream', 'KiB', 'lower'),
    'cpu_us_per_event': Metric('CPU per event', 'us', 'lower'),
    'late_p99_ms': Metric('Small requests sent late by the client, p99',
                          'ms', ''),
    'begun': Metric('Clients that had a part of their response', '', ''),
    'streams': Metric('Streams that were open', '', ''),
    'sent': Metric('Events that were sent', '', ''),
    'arrived': Metric('Events that arrived', '', ''),
    'generator_cpu': Metric("The client's own use of a CPU", '', ''),
}

# Whose latency a run measures.
THOSE = {'events': 'Events'}


class Results:
    def __init__(self, raw):
        self.raw = raw
        self.machine = raw.get('machine') or {}
        self.goals = raw.get('goals') or []
        self.checks = raw.get('checks') or {}
        self.sizes = raw.get('sizes') or []
        self.files = {f['name']: f for f in raw.get('files') or []}
        self.rows = raw.get('rows') or []
        self.labels = {p['name']: p.get('label') or p['name']
                       for p in raw.get('peers') or []}
        self.leveled = {p['name'] for p in raw.get('peers') or []
                        if in_order(p.get('levels') or [])}
        self.zstd = {p['name'] for p in raw.get('peers') or []
                     if p.get('zstd')}
        self._index = {}
        for row in self.rows:
            where = tuple(row.get(key) for key in KEYS)
            self._index[row['run'], row['metric'], row['peer'], where] = row
        self._hdr = {(h['peer'], h.get('level'), h.get('phase')):
                     h['percentiles'] for h in raw.get('hdr') or []
                     if h['run'] == 'open'}
        self.peers = self._order_of_peers()
        measured = {row['peer'] for row in self.rows}
        self.base = next((b for b in BASES if b in measured), None)

    def _order_of_peers(self):
        seen = {row['peer'] for row in self.rows + self.sizes}
        seen.update(peer for peer, _, _ in self._hdr)
        return ([p for p in self.labels if p in seen]
                + sorted(seen - set(self.labels)))

    def label(self, peer):
        return self.labels.get(peer, peer)

    def row(self, run, metric, peer, **where):
        """The row, or None. That of a peer that has no levels stands for
        every level, unless the run has one for this level."""
        key = tuple(where.get(k) for k in KEYS)
        found = self._index.get((run, metric, peer, key))
        if found is None and peer not in self.leveled:
            key = (None,) + key[1:]
            found = self._index.get((run, metric, peer, key))
        return found

    def median(self, run, metric, peer, **where):
        row = self.row(run, metric, peer, **where)
        return row['median'] if row else None

    def ratio(self, run, metric, peer, **where):
        """The peer's median to that of the base; None where one is missing."""
        if self.base is None:
            return None
        return quotient(self.median(run, metric, peer, **where),
                        self.median(run, metric, self.base, **where))

    def percentiles(self, peer, level, phase):
        found = self._hdr.get((peer, level, phase))
        if found is None and peer not in self.leveled:
            found = self._hdr.get((peer, None, phase))
        return found

    def hdr_values(self, key):
        at = {'level': 1, 'phase': 2}[key]
        return in_order(where[at] for where in self._hdr)

    def runs(self):
        return unique(row['run'] for row in self.rows)

    def metrics(self, run):
        """Those that are known in the order above, then the others."""
        seen = unique(r['metric'] for r in self.rows if r['run'] == run)
        return ([m for m in METRICS if m in seen]
                + [m for m in seen if m not in METRICS])

    def values(self, run, metric, key):
        """All values of level, file, phase or clients that the rows have."""
        found = in_order(r.get(key) for r in self.rows
                         if r['run'] == run and r['metric'] == metric)
        if key == 'file':
            found.sort(key=self.bytes_of)
        return found

    def peers_of(self, run, metric):
        seen = {r['peer'] for r in self.rows
                if r['run'] == run and r['metric'] == metric}
        return [p for p in self.peers if p in seen]

    def bytes_of(self, file):
        return self.files.get(file, {}).get('bytes', 0)

    def about(self, run, metric):
        if metric in METRICS:
            known = METRICS[metric]
            those = THOSE.get(run, 'Small requests')
            return dataclasses.replace(
                known, title=known.title.format(those=those))
        unit = next((r.get('unit') or '' for r in self.rows
                     if r['metric'] == metric), '')
        return Metric(metric.replace('_', ' '), unit, '')


def quotient(a, b):
    if a is None or not b:
        return None
    return a / b


def unique(values):
    return list(dict.fromkeys(values))


def in_order(values):
    """Each value that is not None once, the least first."""
    return sorted({v for v in values if v is not None})


def load(path):
    """The Results of a file; ValueError says what is wrong with it."""
    try:
        raw = json.loads(path.read_text())
    except json.JSONDecodeError as error:
        raise ValueError(f'{path}: not JSON: {error}') from None
    if not isinstance(raw, dict) or 'rows' not in raw:
        raise ValueError(f'{path}: no "rows" in it')
    for number, row in enumerate(raw['rows']):
        for key in ('run', 'peer', 'metric', 'median', 'min', 'max'):
            if key not in row:
                raise ValueError(f'{path}: row {number} has no "{key}"')
    return Results(raw)
