"""Which runs are made: of what peers, at what levels, on what files."""

import dataclasses
import itertools

SMALL = 'small.json'      # 2 KB
SCRIPT = 'jquery.min.js'  # 88 KB
DATA = 'data.json'        # 1 MB, records
RANDOM = 'random.bin'     # 1 MiB
MIDDLE = 'react-dom.js'   # 1.08 MB
JSON = 'emoji.json'       # 2.2 MB
LARGE = 'typescript.js'   # 9.1 MB
FILES = (SMALL, SCRIPT, RANDOM, DATA, MIDDLE, JSON, LARGE)

RUNS = ('open', 'saturated', 'closed', 'loop', 'one', 'slow', 'events')

# Of these the rate depends on the level, so that it is one of peers without
# levels, too.
RATED = ('open', 'saturated')

FIXED = ('pool-1m', 'pool-4m', 'tasks-1', 'tasks-2', 'tasks-4')
OTHERS = ('off', 'gzip', 'brotli')


@dataclasses.dataclass(frozen=True)
class Job:
    """One run of one peer."""
    run: str
    peer: str
    level: int | None
    file: str
    phase: int | None = None
    clients: int | None = None

    def __str__(self):
        parts = [self.run, self.peer]
        if self.level is not None:
            parts.append(f'level {self.level}')
        if self.file:
            parts.append(self.file)
        if self.phase is not None:
            parts.append(f'{self.phase} at once')
        if self.clients is not None:
            parts.append(f'{self.clients} clients')
        return ', '.join(parts)


@dataclasses.dataclass(frozen=True)
class Grid:
    """All combinations of these."""
    run: str
    peers: tuple
    levels: tuple
    files: tuple = (MIDDLE,)
    phases: tuple = (None,)
    clients: tuple = (None,)

    def jobs(self, known):
        """Its jobs, of the peers in `known`."""
        for name in self.peers:
            if name not in known:
                continue
            rated = self.run in RATED or known[name].zstd
            for values in itertools.product(
                    self.levels if rated else (None,), self.files,
                    self.phases, self.clients):
                yield Job(self.run, name, *values)


def full(cpus, levels, streams):
    """Some 15 minutes for a round of these."""
    top = tuple(level for level in levels if level >= 9)
    main = ('packaged', 'loop', 'pool')
    return [
        Grid('open', ('off', *main), levels, phases=(1, 8)),
        Grid('open', ('gzip', 'brotli'), top[1:2], phases=(1, 8)),
        Grid('saturated', ('off', *main), levels, clients=(2 * cpus,)),
        Grid('closed', ('packaged', 'pool'), levels, FILES, clients=(8,)),
        Grid('closed', ('loop',), levels, (SMALL, SCRIPT, MIDDLE, JSON),
             clients=(8,)),
        Grid('closed', FIXED, levels, clients=(8,)),
        Grid('closed', OTHERS, levels, (SMALL, SCRIPT, MIDDLE, JSON),
             clients=(8,)),
        Grid('loop', ('copied', 'pool'), levels, clients=(1,)),
        Grid('one', main, levels, (JSON, LARGE), clients=(1,)),
        Grid('one', OTHERS, levels, (JSON, LARGE), clients=(1,)),
        Grid('one', FIXED, top[::2], (JSON,), clients=(1,)),
        Grid('slow', ('off', 'gzip', 'packaged', 'pool'), (9,),
             clients=(8, 64, 512)),
        Grid('events', ('off', 'gzip', 'packaged', 'pool'), (3,), ('',),
             clients=(min(streams, 10000),)),
    ]


def quick(cpus, levels, streams):
    """Some 3 minutes for a round of these."""
    main = ('packaged', 'loop', 'pool')
    some = ('packaged', 'pool')
    return [
        Grid('open', ('off', *some), levels, phases=(1, 8)),
        Grid('saturated', ('off', *some), levels, clients=(2 * cpus,)),
        Grid('closed', main, levels, (MIDDLE,), clients=(8,)),
        Grid('closed', some, levels, (SMALL,), clients=(8,)),
        Grid('closed', some, levels[:1], (JSON,), clients=(8,)),
        Grid('closed', ('off', 'gzip'), levels, clients=(8,)),
        Grid('loop', ('copied', 'pool'), levels[:1], clients=(1,)),
        Grid('one', some, levels, (JSON,), clients=(1,)),
        Grid('slow', some, (9,), clients=(8, 64, 512)),
        Grid('events', ('off', *some), (3,), ('',), clients=(min(streams, 2000),)),
    ]


def narrow(grids, args):
    """What --runs, --peers, --levels and --files leave of them. A peer that
    is asked for by name is measured in every run."""
    left = []
    for run in args.runs:
        mine = [grid for grid in grids if grid.run == run]
        if args.peers:
            mine = [dataclasses.replace(mine[0], peers=tuple(args.peers))]
        if args.files:
            mine = [dataclasses.replace(grid, files=tuple(args.files))
                    if grid.files != ('',) else grid for grid in mine]
        if args.levels:
            mine = [dataclasses.replace(grid, levels=tuple(args.levels))
                    for grid in mine]
        left += mine
    return left


def jobs(args, known, cpus, streams=10000):
    """All jobs of a round, each of them once; with no more than so many
    streams of events."""
    levels = tuple(args.levels or ((9, 19) if args.quick else (3, 9, 15, 19)))
    grids = (quick if args.quick else full)(cpus, levels, streams)
    found = itertools.chain.from_iterable(
        grid.jobs(known) for grid in narrow(grids, args))
    return list(dict.fromkeys(found))
