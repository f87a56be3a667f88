/*
 * commands.h - the parts of the benchmark, one for each first argument.
 * Each gets the arguments after it, argv[0] being its name, and returns an exit
 * code.
 */
#ifndef BENCH_COMMANDS_H
#define BENCH_COMMANDS_H

int bench_main(int argc, char **argv);
int responses_main(int argc, char **argv);
int small_main(int argc, char **argv);
int streams_main(int argc, char **argv);
int machine_main(int argc, char **argv);

#endif /* BENCH_COMMANDS_H */
