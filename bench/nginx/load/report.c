/*
 * report.c - see report.h.
 */
#include "report.h"

#include <inttypes.h>

static double ms(uint64_t ns)
{
    return (double)ns / 1e6;
}

static double mib(uint64_t bytes)
{
    return (double)bytes / 1048576;
}

/* Of the open loops that is about the rate asked for. */
static double per_second(const struct results *results, uint64_t count)
{
    return results->seconds > 0 ? (double)count / results->seconds : 0;
}

/* Of one CPU. */
static double generator_share(const struct results *results)
{
    double cpu = results->generator_user_s + results->generator_system_s;

    return results->seconds > 0 ? cpu / results->seconds : 0;
}

static void text_summary(FILE *out, const char *name, struct samples *samples)
{
    struct summary summary = samples_summary(samples);

    fprintf(out, "  %-12s %9.3f %9.3f %9.3f %9.3f %9.3f %9.3f\n", name,
            summary.mean / 1e6, ms(summary.p50), ms(summary.p90),
            ms(summary.p99), ms(summary.p999), ms(summary.max));
}

static void text_columns(FILE *out)
{
    fprintf(out, "  %-12s %9s %9s %9s %9s %9s %9s\n", "ms", "mean", "p50",
            "p90", "p99", "p99.9", "max");
}

static void text_faults(FILE *out, const struct faults *faults)
{
    for (int i = 0; i < FAULTS; i++) {
        if (faults->counts[i] > 0)
            fprintf(out, "  failed, %s: %" PRIu64 "\n",
                    fault_name((enum fault)i), faults->counts[i]);
    }
    if (faults->total > 0)
        fprintf(out, "  the first: %s\n", faults->first);
}

static void text_stream(FILE *out, const struct results *results,
                        struct stream *stream)
{
    const struct stream_args *args = stream->args;

    fprintf(out, "%s %s (%s): ", args->name, args->path, args->encoding);
    fprintf(out, "%" PRIu64 " answered, %.1f/s, ", stream->done,
            per_second(results, stream->done));
    fprintf(out, "%" PRIu64 " failed, %" PRIu64 " without an answer\n",
            stream->faults.total, stream->unfinished);
    if (args->read_rate > 0)
        fprintf(out, "  %" PRIu64 " begun, %" PRIu64 " bytes received\n",
                stream->begun, stream->received_bytes);
    text_faults(out, &stream->faults);
    if (stream->done > 0 && stream->min_body == stream->max_body)
        fprintf(out, "  body of %" PRIu64 " bytes\n", stream->min_body);
    else if (stream->done > 0)
        fprintf(out, "  bodies of %" PRIu64 " to %" PRIu64 " bytes\n",
                stream->min_body, stream->max_body);
    if (stream->last.count == 0)
        return;
    text_columns(out);
    text_summary(out, "first byte", &stream->first);
    text_summary(out, "last byte", &stream->last);
    if (stream->lag.count > 0)
        text_summary(out, "sent late", &stream->lag);
    if (args->rate > 0)
        fprintf(out, "  at most %" PRIu64 " waited for a free connection\n",
                stream->most_waiting);
}

static void text_events(FILE *out, const struct results *results)
{
    const struct event_args *args = results->events->args;
    struct events *events = results->events;

    fprintf(out, "events %s (%s): %u of %u streams opened in %.2f s, ",
            args->path, args->encoding, events->opened, args->streams,
            events->open_s);
    fprintf(out, "%u completed, %" PRIu64 " failed\n", events->completed,
            events->faults.total);
    text_faults(out, &events->faults);
    fprintf(out,
            "  %" PRIu64 " written, %" PRIu64 " arrived, %.1f/s; %" PRIu64
            " together with one before\n",
            events->sent, events->arrived, per_second(results, events->arrived),
            events->shared);
    fprintf(out, "  %" PRIu64 " wake-ups, %" PRIu64 " bytes of %" PRIu64 "\n",
            events->wakeups, events->body_bytes, events->sent * args->bytes);
    if (events->origin.refused > 0)
        fprintf(out, "  the origin refused %" PRIu64 " requests\n",
                events->origin.refused);
    if (events->latency.count == 0)
        return;
    text_columns(out);
    text_summary(out, "arrival", &events->latency);
    if (events->lag.count > 0)
        text_summary(out, "written late", &events->lag);
}

static void text_thread(FILE *out, const struct worker_thread *thread)
{
    fprintf(out, "  %-8d %-15s %9.3f %9.3f %9.3f %10" PRIu64 " %10" PRIu64 "\n",
            thread->tid, thread->name, (double)thread->cpu_ns / 1e9,
            (double)thread->user_ns / 1e9, (double)thread->system_ns / 1e9,
            thread->voluntary, thread->involuntary);
}

/* A pool has more threads than ever work. */
static bool has_run(const struct worker_thread *thread)
{
    return thread->cpu_ns + thread->user_ns + thread->system_ns > 0 ||
           thread->voluntary + thread->involuntary > 0;
}

static void text_worker(FILE *out, const struct worker *worker)
{
    struct worker_thread total = worker_total(worker);

    fprintf(out,
            "process %d: %.1f MiB resident, at most %.1f since its start; "
            "%" PRIu64 " minor, %" PRIu64 " major faults\n",
            worker->pid, mib(worker->rss_bytes), mib(worker->peak_rss_bytes),
            total.minor_faults, total.major_faults);
    fprintf(out, "  %-8s %-15s %9s %9s %9s %10s %10s\n", "thread", "", "CPU s",
            "user s", "system s", "waited", "preempted");
    for (unsigned i = 0; i < worker->thread_count; i++) {
        if (has_run(&worker->threads[i]))
            text_thread(out, &worker->threads[i]);
    }
    fprintf(out, "  %-8s %-15s %9.3f %9.3f %9.3f %10" PRIu64 " %10" PRIu64 "\n",
            "all", "", (double)total.cpu_ns / 1e9, (double)total.user_ns / 1e9,
            (double)total.system_ns / 1e9, total.voluntary, total.involuntary);
}

void report_text(FILE *out, const struct results *results)
{
    fprintf(out, "%.3f s counted\n", results->seconds);
    for (int i = 0; i < STREAMS; i++) {
        if (results->args->streams[i].path != NULL)
            text_stream(out, results, &results->streams[i]);
    }
    if (results->args->events.streams > 0)
        text_events(out, results);
    fprintf(out, "generator: %.3f s user, %.3f s system, %.1f %% of one CPU\n",
            results->generator_user_s, results->generator_system_s,
            100 * generator_share(results));
    if (results->worker != NULL)
        text_worker(out, results->worker);
}

static void json_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else if ((unsigned char)*text < 0x20)
            fprintf(out, "\\u%04x", *text);
        else
            fputc(*text, out);
    }
    fputc('"', out);
}

static void json_summary(FILE *out, const char *name, struct samples *samples)
{
    struct summary summary = samples_summary(samples);

    fprintf(out,
            ",\n    \"%s\": {\"count\": %zu, \"mean\": %.6f, \"p50\": %.6f, "
            "\"p90\": %.6f, \"p99\": %.6f, \"p99.9\": %.6f, \"max\": %.6f}",
            name, summary.count, summary.mean / 1e6, ms(summary.p50),
            ms(summary.p90), ms(summary.p99), ms(summary.p999),
            ms(summary.max));
}

static void json_faults(FILE *out, const struct faults *faults)
{
    fprintf(out, ",\n    \"failed\": %" PRIu64, faults->total);
    for (int i = 0; i < FAULTS; i++)
        fprintf(out, ",\n    \"failed_%s\": %" PRIu64,
                fault_name((enum fault)i), faults->counts[i]);
    fprintf(out, ",\n    \"first_failure\": ");
    json_string(out, faults->first);
}

static void json_stream(FILE *out, const struct results *results,
                        struct stream *stream)
{
    const struct stream_args *args = stream->args;

    fprintf(out, ",\n  \"%s\": {\n    \"path\": ", args->name);
    json_string(out, args->path);
    fprintf(out, ",\n    \"encoding\": \"%s\"", args->encoding);
    fprintf(out, ",\n    \"connections\": %u", args->connections);
    fprintf(out, ",\n    \"rate\": %.6g", args->rate);
    fprintf(out, ",\n    \"phase\": %u", args->phase);
    fprintf(out, ",\n    \"read_rate\": %.6g", args->read_rate);
    fprintf(out, ",\n    \"answered\": %" PRIu64, stream->done);
    fprintf(out, ",\n    \"per_second\": %.6f",
            per_second(results, stream->done));
    json_faults(out, &stream->faults);
    fprintf(out, ",\n    \"unanswered\": %" PRIu64, stream->unfinished);
    fprintf(out, ",\n    \"most_waiting\": %" PRIu64, stream->most_waiting);
    fprintf(out, ",\n    \"begun\": %" PRIu64, stream->begun);
    fprintf(out, ",\n    \"received_bytes\": %" PRIu64, stream->received_bytes);
    fprintf(out, ",\n    \"body_bytes\": %" PRIu64, stream->body_bytes);
    fprintf(out, ",\n    \"min_body\": %" PRIu64, stream->min_body);
    fprintf(out, ",\n    \"max_body\": %" PRIu64, stream->max_body);
    json_summary(out, "first_byte_ms", &stream->first);
    json_summary(out, "last_byte_ms", &stream->last);
    json_summary(out, "sent_late_ms", &stream->lag);
    fprintf(out, "\n  }");
}

static void json_events(FILE *out, const struct results *results)
{
    const struct event_args *args = results->events->args;
    struct events *events = results->events;

    fprintf(out, ",\n  \"events\": {\n    \"path\": ");
    json_string(out, args->path);
    fprintf(out, ",\n    \"encoding\": \"%s\"", args->encoding);
    fprintf(out, ",\n    \"streams\": %u", args->streams);
    fprintf(out, ",\n    \"rate\": %.6g", args->rate);
    fprintf(out, ",\n    \"bytes\": %u", args->bytes);
    fprintf(out, ",\n    \"begun\": %u", events->opened);
    fprintf(out, ",\n    \"completed\": %u", events->completed);
    fprintf(out, ",\n    \"open_s\": %.6f", events->open_s);
    json_faults(out, &events->faults);
    fprintf(out, ",\n    \"refused\": %" PRIu64, events->origin.refused);
    fprintf(out, ",\n    \"sent\": %" PRIu64, events->sent);
    fprintf(out, ",\n    \"arrived\": %" PRIu64, events->arrived);
    fprintf(out, ",\n    \"arrived_together\": %" PRIu64, events->shared);
    fprintf(out, ",\n    \"per_second\": %.6f",
            per_second(results, events->arrived));
    fprintf(out, ",\n    \"wakeups\": %" PRIu64, events->wakeups);
    fprintf(out, ",\n    \"body_bytes\": %" PRIu64, events->body_bytes);
    fprintf(out, ",\n    \"received_bytes\": %" PRIu64, events->received_bytes);
    json_summary(out, "latency_ms", &events->latency);
    json_summary(out, "sent_late_ms", &events->lag);
    fprintf(out, "\n  }");
}

static void json_thread(FILE *out, const struct worker_thread *thread)
{
    fprintf(out,
            "\"cpu_s\": %.9f, \"user_s\": %.3f, \"system_s\": %.3f, "
            "\"minor_faults\": %" PRIu64 ", \"major_faults\": %" PRIu64 ", "
            "\"voluntary\": %" PRIu64 ", \"involuntary\": %" PRIu64 "}",
            (double)thread->cpu_ns / 1e9, (double)thread->user_ns / 1e9,
            (double)thread->system_ns / 1e9, thread->minor_faults,
            thread->major_faults, thread->voluntary, thread->involuntary);
}

static void json_worker(FILE *out, const struct results *results)
{
    const struct worker *worker = results->worker;
    struct worker_thread total = worker_total(worker);

    fprintf(out, ",\n  \"worker\": {\n    \"pid\": %d", worker->pid);
    fprintf(out, ",\n    \"first_rss_bytes\": %" PRIu64,
            results->first_rss_bytes);
    fprintf(out, ",\n    \"rss_bytes\": %" PRIu64, worker->rss_bytes);
    fprintf(out, ",\n    \"peak_rss_bytes\": %" PRIu64, worker->peak_rss_bytes);
    fprintf(out, ",\n    \"minor_faults\": %" PRIu64, total.minor_faults);
    fprintf(out, ",\n    \"major_faults\": %" PRIu64, total.major_faults);
    fprintf(out, ",\n    \"tick_s\": %.6f", (double)worker->tick_ns / 1e9);
    fprintf(out, ",\n    \"total\": {");
    json_thread(out, &total);
    fprintf(out, ",\n    \"threads\": [");
    for (unsigned i = 0; i < worker->thread_count; i++) {
        fprintf(out, "%s\n      {\"tid\": %d, \"name\": ", i > 0 ? "," : "",
                worker->threads[i].tid);
        json_string(out, worker->threads[i].name);
        fprintf(out, ", ");
        json_thread(out, &worker->threads[i]);
    }
    fprintf(out, "\n    ]\n  }");
}

void report_json(FILE *out, const struct results *results)
{
    fprintf(out, "{\n  \"server\": ");
    json_string(out, results->args->host);
    fprintf(out, ",\n  \"seconds\": %.6f", results->seconds);
    fprintf(out, ",\n  \"percentiles\": \"%s\"", samples_method);
    fprintf(out,
            ",\n  \"generator\": {\"user_s\": %.6f, \"system_s\": %.6f, "
            "\"cpu_share\": %.6f, \"realtime\": %s}",
            results->generator_user_s, results->generator_system_s,
            generator_share(results),
            results->args->realtime ? "true" : "false");
    for (int i = 0; i < STREAMS; i++) {
        if (results->args->streams[i].path != NULL)
            json_stream(out, results, &results->streams[i]);
    }
    if (results->args->events.streams > 0)
        json_events(out, results);
    if (results->worker != NULL)
        json_worker(out, results);
    fprintf(out, "\n}\n");
}
