"""The runs: each starts an NGINX, loads it, and gives its numbers by metric."""

import plan
import peers
from client import large, small
from server import Failure, Nginx

MIB = 1048576
SLOW_RATE = 4096    # bytes per second of a slow client
EVENT_RATE = 0.5    # events per second of a stream
PROBED = 50         # streams, to see what many would need


class Skipped(Exception):
    """This machine cannot do that run; why."""


def latencies(stream, prefix='', what='last_byte_ms'):
    """Percentiles of one stream of a report."""
    times = stream[what]
    return {f'{prefix}{name}_ms': times[key] for name, key in (
        ('p50', 'p50'), ('p99', 'p99'), ('p999', 'p99.9'), ('max', 'max'))}


def generator(report):
    """How busy the client was, and how late by its own fault."""
    found = {'generator_cpu': report['generator']['cpu_share']}
    if 'small' in report:
        found['late_p99_ms'] = report['small']['sent_late_ms']['p99']
    return found


def worker_costs(report, count):
    """CPU time and page faults of one of `count` responses."""
    total = report['worker']['total']
    return {
        'cpu_ms': 1e3 * total['cpu_s'] / count,
        'cpu_user_ms': 1e3 * total['user_s'] / count,
        'cpu_system_ms': 1e3 * total['system_s'] / count,
        'minor_faults': report['worker']['minor_faults'] / count,
        'major_faults': report['worker']['major_faults'] / count,
        'peak_rss_mib': report['worker']['peak_rss_bytes'] / MIB,
    }


class Runs:
    """What all of them share."""

    def __init__(self, setup, client, seconds, times):
        self.setup = setup
        self.client = client
        self.seconds = seconds    # of a short run
        self.times = times        # of one response: peer, level, file
        self.rates = {}           # of large requests, by run and level
        self.curves = {}          # of small ones, by job: files of each run
        self.overload = {}        # what our module counted of it

    def __call__(self, job):
        numbers = getattr(self, job.run)(job, peers.ALL[job.peer])
        return {name: float(value) for name, value in numbers.items()}

    def nginx(self, peer, level, **options):
        return Nginx(self.setup, peer, level, **options)

    def load(self, nginx, *options, **more):
        """A run of the client; then our module must not have failed."""
        report = self.client(nginx, *options, **more)
        if nginx.ours:
            counted = nginx.status()['all']
            if counted['failed'] > 0:
                raise Failure(f'the module counts {counted["failed"]} failed '
                              'responses')
            for name, value in (('queue_full', counted['queue_full']),
                                ('no_memory', counted['no_memory']),
                                ('stored_bytes',
                                 counted['cache']['stored_bytes'])):
                self.overload[name] = self.overload.get(name, 0) + value
        return report

    def time_of(self, job):
        """Of one response alone; the dearest peer's where that is unknown."""
        return self.times.get((job.peer, job.level, job.file)) or \
            max(self.times.values())

    def warm(self, nginx, job, connections):
        """The first responses find no encoders and cold tables."""
        count = max(1, min(connections, int(1 / self.time_of(job))))
        self.load(nginx, *large(nginx.peer, job.file), '--large-connections',
                  count, '--seconds', 0.3, run='warm')

    def warmed(self, job, peer, connections, *options, **more):
        """Large responses, and what `options` say, from a server that has sent
        some before."""
        with self.nginx(peer, job.level) as nginx:
            self.warm(nginx, job, connections)
            return self.load(nginx, *large(peer, job.file), *options,
                             **{'run': job.run, **more})

    def capacity(self, peer, level, connections):
        """Responses per second of a peer that has nothing else to do."""
        job = plan.Job('closed', peer.name, level, plan.MIDDLE)
        report = self.warmed(job, peer, connections, '--large-connections',
                             connections, '--seconds', self.seconds,
                             run='capacity')
        return report['large']['per_second']

    def set_rates(self, levels, base, clients):
        """Half of what `base` sustains, and all that the pool does."""
        for level in levels:
            self.rates['open', level] = \
                self.capacity(peers.ALL[base], level, 2) / 2
            self.rates['saturated', level] = \
                self.capacity(peers.ALL['pool'], level, clients)

    # Small requests beside large ones

    def open(self, job, peer):
        """At half of what the loop sustains, in phase or one at a time."""
        rate = self.rates['open', job.level]
        if (peer.coding in ('gzip', 'br') and
                rate * self.times[job.peer, None, job.file] > 0.8):
            raise Skipped(f'{rate:.0f} large responses a second are more '
                          'than it can do')
        seconds = max(4 * self.seconds, self.bursts() * job.phase / rate)
        return self.small_numbers(self.warmed(
            job, peer, 2, *small(plan.SMALL), '--large-rate', rate,
            '--large-phase', job.phase, '--seconds', round(seconds, 2),
            *self.curve(job), open_loop=True))

    def bursts(self):
        return 1 if self.seconds < 1 else 3

    def curve(self, job):
        """The options for files of a run's latencies."""
        files = self.curves.setdefault(job, [])
        name = f'{job.peer}-{job.level}-{job.phase}-{len(files) + 1}'
        files.append(self.setup.results / 'samples' / f'{name}.csv')
        options = ['--samples', files[-1]]
        if self.setup.hdr:
            options += ['--hgrm', self.setup.results / 'samples' / name]
        return options

    def small_numbers(self, report):
        found = latencies(report['small'])
        found['responses_per_s'] = report['large']['per_second']
        found.update(latencies(report['large'], 'large_'))
        found.update(generator(report))
        return found

    def saturated(self, job, peer):
        """More clients than CPUs, each asking again at once; uncompressed,
        the same number of responses."""
        more = ('--large-connections', job.clients)
        seconds = 3 * self.seconds
        if not peer.module and peer.coding == 'identity':
            rate = self.rates['saturated', job.level]
            more = ('--large-rate', rate, '--large-phase', job.clients)
            seconds = max(seconds, self.bursts() * job.clients / rate)
        return self.small_numbers(self.warmed(
            job, peer, job.clients, *small(plan.SMALL), *more, '--seconds',
            round(seconds, 2), open_loop=True))

    # Throughput, CPU, first and last byte

    def closed(self, job, peer):
        report = self.warmed(job, peer, job.clients, '--large-connections',
                             job.clients, '--seconds', self.seconds)
        answers = report['large']
        found = worker_costs(report, answers['answered'])
        found['responses_per_s'] = answers['per_second']
        found['body_kib'] = answers['body_bytes'] / answers['answered'] / 1024
        found.update(generator(report))
        return found

    def loop(self, job, peer):
        """What the event loop's own thread does for a response."""
        report = self.warmed(job, peer, 1, '--seconds', self.seconds)
        thread = report['worker']['threads'][0]
        return {'loop_cpu_ms':
                1e3 * thread['cpu_s'] / report['large']['answered'],
                **generator(report)}

    def one(self, job, peer):
        """One connection: first and last byte."""
        report = self.warmed(job, peer, 1, '--large-count', 20, '--seconds',
                             self.seconds)
        return {'first_byte_ms': report['large']['first_byte_ms']['p50'],
                'last_byte_ms': report['large']['last_byte_ms']['p50'],
                **generator(report)}

    # Memory of many

    def slow(self, job, peer):
        """Clients that read slowly; the kernel's buffers are small, so that
        NGINX has to hold what they have not read."""
        with self.nginx(peer, job.level, listen='sndbuf=16k') as nginx:
            idle = nginx.resident_mib()
            self.check_memory(nginx, job, idle)
            report = self.load(
                nginx, '--slow', f'/packed/{job.file}', '--slow-encoding',
                peer.coding, '--slow-connections', job.clients,
                '--slow-rate', SLOW_RATE, '--seconds',
                self.slow_seconds(job), run='slow')
        return {'memory_mib':
                report['worker']['peak_rss_bytes'] / MIB - idle,
                'begun': report['slow']['begun'], **generator(report)}

    def slow_seconds(self, job):
        """Until all of them had something, on the slowest loop."""
        return round(2 + 0.8 * job.clients * self.time_of(job), 2)

    def check_memory(self, nginx, job, idle):
        """A filter that holds an encoder for each response may need more than
        there is."""
        if nginx.ours:
            return
        report = self.load(nginx, *large(nginx.peer, job.file),
                           '--large-count', 1, run='warm')
        one = report['worker']['peak_rss_bytes'] / MIB - idle
        if one * job.clients > 0.6 * available_mib():
            raise Skipped(f'{job.clients} clients might need '
                          f'{one * job.clients:.0f} MiB')

    def events(self, job, peer):
        """Streams that stay open, as many of them as there is memory for."""
        probe = self.event_streams(job, peer, PROBED, 2)
        each = probe['stream_kib'] / 1024
        streams = job.clients
        if each > 0 and peer.module != peers.OURS:
            streams = min(streams, int(0.6 * available_mib() / each))
        return self.event_streams(job, peer, streams, 4 * self.seconds)

    def event_streams(self, job, peer, streams, seconds):
        # Two of each; NGINX closes new ones when it has few left.
        with self.nginx(peer, job.level,
                        connections=3 * streams + 512) as nginx:
            idle = nginx.resident_mib()
            report = self.load(
                nginx, '--event-streams', streams, '--event-path', '/events/',
                '--event-origin', nginx.origin, '--event-rate', EVENT_RATE,
                '--event-encoding', peer.coding, '--seconds', seconds,
                run='events')
        events = report['events']
        memory = report['worker']['peak_rss_bytes'] / MIB - idle
        cpu = report['worker']['total']['cpu_s']
        return {'memory_mib': memory, 'stream_kib': 1024 * memory / streams,
                'streams': events['begun'], 'sent': events['sent'],
                'arrived': events['arrived'],
                'cpu_us_per_event': 1e6 * cpu / events['arrived'],
                **latencies(events, what='latency_ms'), **generator(report)}


def available_mib():
    """Memory that programs may still have."""
    with open('/proc/meminfo') as lines:
        for line in lines:
            if line.startswith('MemAvailable:'):
                return int(line.split()[1]) / 1024
    return float('inf')
