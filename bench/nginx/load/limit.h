/*
 * limit.h - how many files this process may have open.
 */
#ifndef LOAD_LIMIT_H
#define LOAD_LIMIT_H

/* Raises the limit to so many, where the system lets us; ends the program and
 * says how many there may be if it does not. */
void limit_need_files(unsigned long need);

#endif /* LOAD_LIMIT_H */
