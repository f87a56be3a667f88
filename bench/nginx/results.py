"""What was measured, as rows with medians, and where; see results.json."""

import csv
import datetime
import json
import math
import os
import platform
import statistics
import subprocess

import peers

UNITS = (('_ms', 'ms'), ('_mib', 'MiB'), ('_kib', 'KiB'), ('_per_s', '1/s'),
         ('cpu_us_per_event', 'us'), ('generator_cpu', 'CPUs'))

FILES = {
    'small.json': 'a package.json',
    'jquery.min.js': 'minified JavaScript',
    'random.bin': 'random bytes',
    'data.json': 'JSON, 4,000 records of an API',
    'react-dom.js': 'JavaScript for development',
    'emoji.json': 'JSON, indented',
    'typescript.js': 'JavaScript, a compiler',
}


def unit_of(metric):
    for ending, unit in UNITS:
        if metric.endswith(ending):
            return unit
    return ''


def rows_of(values):
    """Rows from the numbers of each job's runs, by metric."""
    rows = []
    for job, metrics in values.items():
        for metric, numbers in metrics.items():
            rows.append({
                'run': job.run, 'peer': job.peer, 'level': job.level,
                'file': job.file, 'phase': job.phase, 'clients': job.clients,
                'metric': metric, 'unit': unit_of(metric),
                'median': statistics.median(numbers), 'min': min(numbers),
                'max': max(numbers), 'values': numbers})
    return rows


def latencies_of(text):
    """Of the small requests in a file of samples, in ms."""
    return [float(row['last_byte_us']) / 1e3
            for row in csv.DictReader(text.splitlines())
            if row['stream'] == 'small']


def percentiles(values):
    """A curve of some points, closer to each other at its end."""
    ordered = sorted(values)
    points, left = [], 1.0
    while ordered and left * len(ordered) > 1:
        at = math.ceil((1 - left) * len(ordered))
        points.append([100 * (1 - left), ordered[max(at, 1) - 1]])
        left *= 0.9
    return points + [[100.0, ordered[-1]]] if ordered else []


def curves_of(files):
    """Of each job's runs together."""
    found = []
    for job, paths in files.items():
        values = [value for path in paths if path.exists()
                  for value in latencies_of(path.read_text())]
        found.append({'run': job.run, 'peer': job.peer, 'level': job.level,
                      'phase': job.phase,
                      'percentiles': percentiles(values)})
    return found


def cpu_name():
    with open('/proc/cpuinfo') as info:
        for entry in info:
            if entry.startswith('model name'):
                return entry.partition(':')[2].strip()
    return platform.machine()


def package(name):
    """The version of a Debian package; '' without one."""
    try:
        done = subprocess.run(
            ['dpkg-query', '-W', '-f', '${Version}', name], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except FileNotFoundError:
        return ''
    return done.stdout if done.returncode == 0 else ''


def nginx_version():
    done = subprocess.run(['nginx', '-v'], stderr=subprocess.PIPE, text=True)
    return done.stderr.strip().rpartition('/')[2]


def machine(module, library):
    """Without this, numbers mean nothing."""
    now = datetime.datetime.now(datetime.timezone.utc)
    return {
        'date': f'{now:%Y-%m-%d %H:%M} UTC', 'cpu': cpu_name(),
        'cpus': len(os.sched_getaffinity(0)),
        'ticks_per_s': os.sysconf('SC_CLK_TCK'),
        'kernel': f'{platform.system()} {platform.release()}',
        'load': os.getloadavg()[0], 'nginx': nginx_version(),
        'libzstd': library, 'module': module,
        'packaged': package('libnginx-mod-http-zstd-filter'),
        'brotli': package('libnginx-mod-http-brotli-filter')}


def describe_peers(names, libraries):
    return [{'name': name, 'label': peers.ALL[name].label,
             'zstd': peers.ALL[name].zstd,
             'levels': [level for level in peers.ALL[name].levels
                        if level is not None],
             'libzstd': libraries.get(name, '')} for name in names]


def describe_files(folder, names):
    return [{'name': name, 'bytes': (folder / name).stat().st_size,
             'what': FILES.get(name, '')} for name in names]


def write(folder, results):
    """All of it, or what was there before."""
    part = folder / 'results.json.part'
    part.write_text(json.dumps(results, indent=1) + '\n')
    part.replace(folder / 'results.json')
