/*
 * list.h - intrusive doubly linked list, circular through its head.
 */
#ifndef SEGZSTD_LIST_H
#define SEGZSTD_LIST_H

#include "common.h"

struct segzstd__link {
    struct segzstd__link *prev;
    struct segzstd__link *next;
};

/* The object of type `type` whose member `member` is the link at `ptr`. */
#define LINK_OWNER(ptr, type, member)                                          \
  ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

static inline void list_init(struct segzstd__link *head)
{
    head->prev = head;
    head->next = head;
}

static inline bool list_is_empty(const struct segzstd__link *head)
{
    return head->next == head;
}

/* Puts `link` behind `place`; the head as place makes it the first. */
static inline void list_insert_after(struct segzstd__link *place,
                                     struct segzstd__link *link)
{
    link->prev = place;
    link->next = place->next;
    place->next->prev = link;
    place->next = link;
}

static inline void list_append(struct segzstd__link *head,
                               struct segzstd__link *link)
{
    list_insert_after(head->prev, link);
}

static inline void list_remove(struct segzstd__link *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
    link->prev = link;
    link->next = link;
}

#endif /* SEGZSTD_LIST_H */
