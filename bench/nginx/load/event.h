/*
 * event.h - the text of an event, as of an application that sends JSON.
 */
#ifndef LOAD_EVENT_H
#define LOAD_EVENT_H

#include <stddef.h>
#include <stdint.h>

#define EVENT_MIN 128
#define EVENT_MAX 65536

/* Exactly so many bytes, EVENT_MIN at least, that no other event has. */
void event_write(char *text, size_t bytes, unsigned stream, uint64_t number);

#endif /* LOAD_EVENT_H */
