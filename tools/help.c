/*
 * help.c - the text of --help.
 */
#include "help.h"

void help_print(FILE *file)
{
    static const char *const text[] = {
        "segzstd - compress files to one zstd frame each, on all CPUs\n"
        "\n"
        "Usage: segzstd [OPTION...] [FILE... | -] [-o OUTPUT]\n"
        "\n"
        "FILE is compressed to FILE.zst and kept. With no FILE, or -, stdin "
        "is\n"
        "compressed to stdout. Every zstd decompresses the result.\n"
        "\n",
        "  -1 ... -19           level: higher is smaller and slower [3]\n"
        "  --ultra              allow -20 ... -22, which need much memory\n"
        "  --fast[=N]           level -N: faster than -1 [1]\n"
        "  -T N, --threads=N    threads that compress; 0: one for each CPU "
        "[0]\n"
        "  -D DICT              compress with this dictionary\n"
        "\n"
        "  -o FILE              write to FILE\n"
        "  -c, --stdout         write to stdout\n"
        "  -f, --force          overwrite; read links and block devices; "
        "write\n"
        "                       to a terminal\n"
        "  -k, --keep           keep the input [default]\n"
        "  --rm                 remove the input when it is compressed\n"
        "\n",
        "  -q, --quiet          no summary, no warnings; twice: no errors\n"
        "  -v, --verbose        a summary for stdout too, and the versions\n"
        "  --[no-]progress      show how far it is [on a terminal]\n"
        "  --stats              a line of numbers for each file, on stderr\n"
        "  -h, --help           this text\n"
        "  -V, --version        versions of segzstd and of libzstd\n"
        "\n",
        "  --[no-]check         end with a checksum of the content [on]\n"
        "  --no-dictID          leave the dictionary's id out\n"
        "  --segment-size SIZE  cut every SIZE bytes, 64K to 1G, or auto: "
        "only\n"
        "                       where a thread has nothing to do [auto]\n"
        "  --overlap SIZE       bytes before a cut that are looked at, or "
        "auto\n"
        "                       [auto]; more is smaller and slower\n"
        "  --window-log N       largest window is 2^N bytes, N from 10 to 31 "
        "[23]\n"
        "\n"
        "SIZE may end in K, M or G, for 2^10, 2^20 and 2^30 bytes.\n"
        "Options that only zstd has are refused: zstd decompresses, tests, "
        "lists.\n",
    };

    for (size_t i = 0; i < sizeof(text) / sizeof(text[0]); i++)
        fputs(text[i], file);
}
