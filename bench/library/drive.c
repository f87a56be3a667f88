/*
 * drive.c - see drive.h.
 */
#include "drive.h"

/* Pieces of output that are looked at in one go, as with writev(). */
#define VEC_MAX 16

int drive_jobs(segzstd_stream *stream)
{
    segzstd_job *job;
    int error;

    for (;;) {
        error = segzstd_stream_poll_job(stream, &job);
        if (error != 0 || job == NULL)
            return error;
        segzstd_job_run(job);
        error = segzstd_job_complete(job);
        if (error != 0)
            return error;
    }
}

void drive_output(segzstd_stream *stream, struct sink *sink)
{
    segzstd_vec vec[VEC_MAX];
    size_t pieces;

    while ((pieces = segzstd_stream_peek(stream, vec, VEC_MAX)) > 0) {
        size_t bytes = 0;

        for (size_t i = 0; i < pieces; i++) {
            sink_write(sink, vec[i].base, vec[i].len);
            bytes += vec[i].len;
        }
        segzstd_stream_consume(stream, bytes);
    }
}
