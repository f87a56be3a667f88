/*
 * hgrm.c - see hgrm.h.
 */
#include "hgrm.h"

#include <assert.h>
#include <errno.h>

#include "load.h"

void hgrm_add(struct hgrm *hgrm, const char *prefix, const char *stream,
              const char *kind, struct samples *samples)
{
    struct hgrm_file *file = &hgrm->files[hgrm->count++];

    assert(hgrm->count <= HGRM_MAX);
    if (snprintf(file->path, sizeof(file->path), "%s-%s-%s.hgrm", prefix,
                 stream, kind) >= (int)sizeof(file->path)) {
        errno = ENAMETOOLONG;
        die("--hgrm");
    }
    file->samples = samples;
    file->file = fopen(file->path, "w");
    if (file->file == NULL)
        die(file->path);
}

static bool print(struct hgrm_file *file)
{
#ifdef HAVE_HDR
    return samples_print(file->samples, file->file);
#else
    (void)file;
    errno = ENOTSUP;
    return false;
#endif
}

void hgrm_write(struct hgrm *hgrm)
{
    for (unsigned i = 0; i < hgrm->count; i++) {
        struct hgrm_file *file = &hgrm->files[i];
        if (!print(file) || fclose(file->file) != 0)
            die(file->path);
    }
}
