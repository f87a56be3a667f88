#include "support/drive.h"

#include <stdlib.h>
#include <string.h>

/* A range that was lent to the stream, in memory of its own. */
struct lent {
    struct drive *drive;
    size_t len;
    unsigned char bytes[];
};

enum { PUSH_MAX = 1 << 16, PIECES = 4, SCRIBBLE = 0xee };

static void note(struct drive *d, const char *fault)
{
    if (d->fault == NULL)
        d->fault = fault;
}

void drive_init(struct drive *d, segzstd_stream *stream, uint64_t seed)
{
    memset(d, 0, sizeof(*d));
    d->stream = stream;
    d->rng = rng_seed(seed);
    d->push_bytes = SIZE_MAX;
}

void drive_free(struct drive *d)
{
    free(d->out);
    d->out = NULL;
}

/* True if work may go on in spite of the refusal. */
static bool may_go_on(struct drive *d, int rc)
{
    if (rc != SEGZSTD_ERR_NOMEM)
        return false;
    d->nomems++;
    return d->on_nomem != NULL && d->on_nomem(d->nomem_arg);
}

static size_t pieces_bytes(const segzstd_vec *vec, size_t count)
{
    size_t total = 0;

    for (size_t i = 0; i < count; i++) {
        if (vec[i].len == 0)
            return SIZE_MAX;
        total += vec[i].len;
    }
    return total;
}

/* What must hold between any two calls. */
static void check_always(struct drive *d)
{
    segzstd_stream *s = d->stream;
    size_t ready = segzstd_stream_ready_bytes(s);
    segzstd_vec vec[PIECES];
    size_t count = segzstd_stream_peek(s, vec, PIECES);
    size_t shown = pieces_bytes(vec, count);

    if ((segzstd_stream_want_output(s) != 0) != (ready > 0))
        note(d, "want_output differs from ready_bytes");
    if (shown > ready || (count < PIECES && shown != ready))
        note(d, "peek shows something else than ready_bytes");
    if (segzstd_stream_jobs_out(s) != d->job_count)
        note(d, "jobs_out is not the number of jobs that are out");
    if ((d->ended || segzstd_stream_error(s) != 0) &&
        segzstd_stream_want_input(s) != 0)
        note(d, "want_input after end or error");
    if (segzstd_stream_is_done(s) &&
        (!d->ended || ready > 0 || d->job_count > 0 ||
         segzstd_stream_want_job(s) || !segzstd_stream_is_flushed(s)))
        note(d, "is_done holds too early");
    if (d->ended && segzstd_stream_is_flushed(s) && ready == 0 &&
        !segzstd_stream_is_done(s))
        note(d, "the end is flushed and read, but is_done does not hold");
    if (ready > d->ready_peak)
        d->ready_peak = ready;
}

static void keep(struct drive *d, const void *bytes, size_t len)
{
    if (d->live != NULL) {
        const char *fault = oracle_live_feed(d->live, bytes, len);

        if (fault != NULL)
            note(d, fault);
    }
    if (!d->discard) {
        if (d->out_cap - d->out_len < len) {
            d->out_cap = 2 * d->out_cap + len;
            d->out = realloc(d->out, d->out_cap);
            if (d->out == NULL)
                abort();
        }
        memcpy(d->out + d->out_len, bytes, len);
    }
    d->out_len += len;
}

void drive_read(struct drive *d)
{
    size_t left = d->read_bytes != 0 ? d->read_bytes : SIZE_MAX;
    segzstd_vec vec[PIECES];
    size_t count;

    check_always(d);
    while (left > 0 &&
           (count = segzstd_stream_peek(d->stream, vec, PIECES)) > 0) {
        size_t read = 0;

        for (size_t i = 0; i < count && left > 0; i++) {
            size_t n = vec[i].len < left ? vec[i].len : left;

            keep(d, vec[i].base, n);
            read += n;
            left -= n;
        }
        segzstd_stream_consume(d->stream, read);
    }
    check_always(d);
}

int drive_take(struct drive *d)
{
    unsigned limit = d->jobs_held;

    if (limit == 0 || limit > DRIVE_JOBS_MAX)
        limit = DRIVE_JOBS_MAX;
    while (d->job_count < limit) {
        int wanted = segzstd_stream_want_job(d->stream);
        segzstd_job *job = NULL;
        int rc = segzstd_stream_poll_job(d->stream, &job);

        if (may_go_on(d, rc))
            return 0;
        if (rc != 0 || job == NULL)
            return rc;
        if (!wanted)
            note(d, "poll_job gave a job that want_job did not announce");
        if (segzstd_job_stream(job) != d->stream)
            note(d, "job_stream is not the stream of the job");
        if (d->executor != NULL)
            segzstd_executor_submit(d->executor, job);
        d->jobs[d->job_count++] = job;
        if (d->job_count > d->jobs_peak)
            d->jobs_peak = d->job_count;
    }
    return 0;
}

/* Takes a job out of the list of those that are held. */
static segzstd_job *pick_job(struct drive *d)
{
    unsigned i = 0;
    segzstd_job *job;

    if (d->executor != NULL) {
        job = segzstd_executor_wait(d->executor);
        while (i + 1 < d->job_count && d->jobs[i] != job)
            i++;
        if (d->jobs[i] != job)
            note(d, "the executor gave a job that was not submitted");
    } else if (d->order == DRIVE_NEWEST) {
        i = d->job_count - 1;
    } else if (d->order == DRIVE_ANY) {
        i = (unsigned)rng_below(&d->rng, d->job_count);
    }
    job = d->jobs[i];
    d->job_count--;
    memmove(&d->jobs[i], &d->jobs[i + 1],
            (d->job_count - i) * sizeof(d->jobs[0]));
    return job;
}

int drive_run_one(struct drive *d)
{
    segzstd_job *job = pick_job(d);
    int rc;

    if (d->executor == NULL)
        segzstd_job_run(job);
    rc = segzstd_job_complete(job);
    check_always(d);
    return rc;
}

int drive_return_one(struct drive *d)
{
    segzstd_job *job = pick_job(d);
    int rc = segzstd_job_complete(job);

    check_always(d);
    return rc;
}

int drive_step(struct drive *d, bool *moved)
{
    size_t out_before = d->out_len;
    int rc = drive_take(d);

    if (rc == 0 && d->job_count > 0) {
        *moved = true;
        rc = drive_run_one(d);
        if (may_go_on(d, rc))
            rc = 0;
    }
    drive_read(d);
    if (d->out_len != out_before)
        *moved = true;
    return rc;
}

int drive_rest(struct drive *d)
{
    unsigned nomems;
    bool moved;

    do {
        int rc;

        nomems = d->nomems;
        moved = false;
        rc = drive_step(d, &moved);
        if (rc != 0)
            return rc;
    } while (moved || d->nomems != nomems);
    return 0;
}

static size_t next_piece(struct drive *d, size_t len)
{
    size_t n = d->push_bytes;

    if (n == 0)
        n = rng_spread(&d->rng, PUSH_MAX);
    return n < len ? n : len;
}

int drive_push_once(struct drive *d, const void *src, size_t len, segzstd_op op,
                    size_t *taken)
{
    size_t room = segzstd_stream_want_input(d->stream);
    unsigned nomems = d->nomems;
    int rc;

    *taken = 0;
    rc = segzstd_stream_push(d->stream, src, len, op, taken);
    d->taken += *taken;
    if (*taken > len)
        note(d, "push took more than there was");
    if (may_go_on(d, rc))
        rc = 0;
    if (rc == 0 && d->nomems == nomems) {
        if (*taken != (len < room ? len : room))
            note(d, "push took another number of bytes than want_input");
        if (op == SEGZSTD_END && *taken == len)
            d->ended = true;
    }
    return rc;
}

int drive_push(struct drive *d, const void *src, size_t len, segzstd_op op)
{
    const unsigned char *at = src;

    for (;;) {
        size_t n = next_piece(d, len), taken;
        segzstd_op now = n == len ? op : SEGZSTD_CONTINUE;
        unsigned nomems = d->nomems;
        bool moved = false;
        int rc = drive_push_once(d, at, n, now, &taken);

        at = taken > 0 ? at + taken : at; /* it may be NULL */
        len -= taken;
        if (rc != 0)
            return rc;
        if (len == 0 && taken == n && d->nomems == nomems)
            return drive_take(d);
        rc = drive_step(d, &moved);
        if (rc != 0)
            return rc;
        if (taken == 0 && !moved && d->nomems == nomems) {
            note(d, "nothing is taken and there is no work: stalled");
            return SEGZSTD_ERR_AGAIN;
        }
    }
}

static void release_lent(void *arg)
{
    struct lent *lent = arg;

    lent->drive->refs_back++;
    memset(lent->bytes, SCRIBBLE, lent->len);
    free(lent);
}

static struct lent *lend(struct drive *d, const void *src, size_t len)
{
    struct lent *lent = malloc(sizeof(*lent) + len);

    if (lent == NULL)
        abort();
    lent->drive = d;
    lent->len = len;
    if (len > 0)
        memcpy(lent->bytes, src, len);
    return lent;
}

/* After a refusal: works, so that the next attempt may succeed. */
static int make_room(struct drive *d, int rc)
{
    unsigned nomems = d->nomems;
    bool moved = false;

    if (may_go_on(d, rc))
        moved = true;
    else if (rc != SEGZSTD_ERR_AGAIN)
        return rc;
    rc = drive_step(d, &moved);
    if (rc == 0 && !moved && d->nomems == nomems) {
        note(d, "refused, and there is no work: stalled");
        return SEGZSTD_ERR_AGAIN;
    }
    return rc;
}

static int push_lent(struct drive *d, struct lent *lent, segzstd_op op)
{
    for (;;) {
        unsigned back = d->refs_back;
        int rc = segzstd_stream_push_ref(d->stream, lent->bytes, lent->len, op,
                                         release_lent, lent);

        if (rc == 0)
            return 0;
        if (d->refs_back != back) {
            note(d, "a range was released though it was refused");
            return rc;
        }
        rc = make_room(d, rc);
        if (rc != 0) {
            free(lent);
            return rc;
        }
    }
}

int drive_push_ref(struct drive *d, const void *src, size_t len, segzstd_op op)
{
    const unsigned char *at = src;

    do {
        size_t n = next_piece(d, len);
        segzstd_op now = n == len ? op : SEGZSTD_CONTINUE;
        struct lent *lent = lend(d, at, n);
        bool moved = false;
        int rc;

        d->refs_lent++;
        rc = push_lent(d, lent, now);
        if (rc != 0) {
            d->refs_lent--;
            return rc;
        }
        d->taken += n;
        d->ended = d->ended || now == SEGZSTD_END;
        at = n > 0 ? at + n : at;
        len -= n;
        rc = len > 0 ? drive_step(d, &moved) : drive_take(d);
        if (rc != 0)
            return rc;
    } while (len > 0);
    return 0;
}

int64_t drive_read_source(void *arg, uint64_t offset, void *dst, size_t len)
{
    const struct drive_source *source = arg;
    uint64_t left = offset < source->len ? source->len - offset : 0;

    if (source->read_max != 0 && len > source->read_max)
        len = source->read_max;
    if (source->fail_from != 0 && offset + len > source->fail_from)
        return -1;
    if (len > left)
        len = (size_t)left;
    memcpy(dst, source->content + offset, len);
    return (int64_t)len;
}

void drive_release_source(void *arg)
{
    struct drive_source *source = arg;

    source->drive->refs_back++;
}

int drive_push_source(struct drive *d, struct drive_source *source,
                      uint64_t len, segzstd_op op)
{
    source->drive = d;
    for (;;) {
        unsigned back = d->refs_back;
        int rc = segzstd_stream_push_reader(d->stream, drive_read_source, len,
                                            op, drive_release_source, source);

        if (rc == 0) {
            d->refs_lent++;
            d->taken += len;
            d->ended = d->ended || op == SEGZSTD_END;
            return drive_take(d);
        }
        if (d->refs_back != back)
            note(d, "a reader was released though it was refused");
        rc = make_room(d, rc);
        if (rc != 0)
            return rc;
    }
}

int drive_end(struct drive *d)
{
    int rc = d->ended ? 0 : drive_push(d, NULL, 0, SEGZSTD_END);

    if (rc == 0)
        rc = drive_rest(d);
    if (rc == 0 && !segzstd_stream_is_done(d->stream))
        note(d, "there is no more work, but the frame is not done: stalled");
    return rc;
}

void drive_give_up(struct drive *d)
{
    while (d->job_count > 0) {
        if (d->executor != NULL)
            drive_run_one(d);
        else
            drive_return_one(d);
    }
}
