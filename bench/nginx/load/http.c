/*
 * http.c - see http.h.
 */
#define _GNU_SOURCE 1

#include "http.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void http_start(struct http_response *response, char *head)
{
    memset(response, 0, sizeof(*response));
    response->state = HTTP_HEAD;
    response->head = head;
}

static void break_off(struct http_response *response, const char *error)
{
    response->state = HTTP_BROKEN;
    response->error = error;
}

/* A decimal number and nothing else. */
static bool read_number(const char *text, uint64_t *number)
{
    char *end;

    errno = 0;
    *number = strtoull(text, &end, 10);
    return errno == 0 && *text >= '0' && *text <= '9' && *end == '\0';
}

/* The value of `line` if it is a header of this name, otherwise NULL. */
static const char *value_of(const char *line, const char *name)
{
    size_t len = strlen(name);

    if (strncasecmp(line, name, len) != 0 || line[len] != ':')
        return NULL;
    line += len + 1;
    return line + strspn(line, " \t");
}

static bool read_header(struct http_response *response, const char *line,
                        bool *has_length)
{
    const char *value;

    if ((value = value_of(line, "Content-Length")) != NULL) {
        *has_length = true;
        return read_number(value, &response->length);
    }
    if ((value = value_of(line, "Transfer-Encoding")) != NULL) {
        response->chunked = true;
        return strcasecmp(value, "chunked") == 0;
    }
    if ((value = value_of(line, "Content-Encoding")) != NULL) {
        for (size_t i = 0; i < sizeof(response->encoding) - 1; i++) {
            char c = value[i];
            if (c == '\0')
                break;
            response->encoding[i] =
                (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
        }
    } else if ((value = value_of(line, "Connection")) != NULL) {
        response->close = strcasecmp(value, "close") == 0;
    }
    return true;
}

/* The whole head is in response->head. */
static void read_head(struct http_response *response)
{
    char *line = response->head;
    bool has_length = false;
    uint64_t status;

    response->head[response->head_len - 2] = '\0'; /* the empty line */
    if (strncmp(line, "HTTP/1.1 ", 9) != 0 || strlen(line) < 12) {
        break_off(response, "no HTTP/1.1 status line");
        return;
    }
    line[12] = '\0';
    if (!read_number(line + 9, &status)) {
        break_off(response, "no number as status");
        return;
    }
    response->status = (int)status;
    line[12] = ' ';

    line = strstr(line, "\r\n");
    while (line != NULL && line[2] != '\0') {
        char *next = strstr(line + 2, "\r\n");
        if (next != NULL)
            *next = '\0';
        if (!read_header(response, line + 2, &has_length)) {
            break_off(response, "a header of framing has a wrong value");
            return;
        }
        line = next;
    }

    if (response->chunked) {
        response->length = 0;
        response->state = HTTP_SIZE;
    } else if (has_length) {
        response->left = response->length;
        response->state = response->left > 0 ? HTTP_LENGTH : HTTP_DONE;
    } else if (response->status == 204 || response->status == 304) {
        response->state = HTTP_DONE;
    } else {
        break_off(response, "neither Content-Length nor chunked");
    }
}

static size_t take_head(struct http_response *response, const char *bytes,
                        size_t n)
{
    size_t before = response->head_len;
    size_t take = HTTP_HEAD_MAX - 1 - before;
    size_t search = before > 3 ? before - 3 : 0;
    char *end;

    if (take > n)
        take = n;
    memcpy(response->head + before, bytes, take);
    response->head_len += take;
    end = memmem(response->head + search, response->head_len - search,
                 "\r\n\r\n", 4);
    if (end != NULL) {
        response->head_len = (size_t)(end - response->head) + 4;
        take = response->head_len - before;
        read_head(response);
    } else if (take < n) {
        break_off(response, "head longer than 8191 bytes");
    }
    return take;
}

static size_t take_body(struct http_response *response, const char *bytes,
                        size_t n)
{
    size_t take = n;

    if (take > response->left)
        take = (size_t)response->left;
    for (size_t i = 0; i < take && response->body_bytes + i < 4; i++)
        response->start[response->body_bytes + i] = (unsigned char)bytes[i];
    response->body_bytes += take;
    response->left -= take;
    if (response->left == 0) {
        response->state =
            response->state == HTTP_LENGTH ? HTTP_DONE : HTTP_CHUNK_END;
    }
    return take;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Sizes without extensions, as NGINX sends them. */
static void take_size(struct http_response *response, char c)
{
    int digit = hex_digit(c);

    if (digit >= 0 && response->line_len < 15) {
        response->left = response->left * 16 + (uint64_t)digit;
        response->line_len++;
    } else if (c == '\n' && response->line_len > 0) {
        response->line_len = 0;
        response->state = response->left > 0 ? HTTP_CHUNK : HTTP_TRAILER;
    } else if (c != '\r') {
        break_off(response, "wrong size of a chunk");
    }
}

static void take_line(struct http_response *response, char c)
{
    if (response->state == HTTP_CHUNK_END) {
        if (c == '\n')
            response->state = HTTP_SIZE;
        else if (c != '\r')
            break_off(response, "chunk longer than its size");
    } else if (c == '\n') {
        if (response->line_len == 0)
            response->state = HTTP_DONE;
        response->line_len = 0;
    } else if (c != '\r') {
        response->line_len++;
    }
}

size_t http_read(struct http_response *response, const char *bytes, size_t n)
{
    size_t used = 0;

    while (used < n) {
        switch (response->state) {
        case HTTP_HEAD:
            used += take_head(response, bytes + used, n - used);
            break;
        case HTTP_LENGTH:
        case HTTP_CHUNK:
            used += take_body(response, bytes + used, n - used);
            break;
        case HTTP_SIZE:
            take_size(response, bytes[used++]);
            break;
        case HTTP_CHUNK_END:
        case HTTP_TRAILER:
            take_line(response, bytes[used++]);
            break;
        case HTTP_DONE:
        case HTTP_BROKEN:
            return used;
        }
    }
    return used;
}
