/*
 * machine.h - where numbers were measured: without it they mean nothing.
 */
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

struct machine {
    char date[32]; /* UTC */
    char cpu[128];
    long cpus; /* that this process may use */
    char kernel[128];
    char huge_pages[64]; /* the system's setting for transparent ones */
    double load;         /* average of the last minute, at start */
    char compiler[64];
    char zstd_version[32];
    char zstd_file[256]; /* what is really mapped, see /proc/self/maps */
    char segzstd_version[32];
};

/* Fills *machine; what cannot be found out is "unknown". */
void machine_look(struct machine *machine);

#endif /* BENCH_MACHINE_H */
