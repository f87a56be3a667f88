/*
 * error.c - the texts of the error values.
 */
#include "common.h"

const char *segzstd_strerror(int error)
{
    switch (error) {
    case SEGZSTD_OK:
        return "no error";
    case SEGZSTD_ERR_INVALID:
        return "an argument or option is out of range";
    case SEGZSTD_ERR_STATE:
        return "the call is not allowed in this state";
    case SEGZSTD_ERR_AGAIN:
        return "no room now, try again when work has progressed";
    case SEGZSTD_ERR_NOMEM:
        return "not enough memory, or the byte budget is used up";
    case SEGZSTD_ERR_UNSUPPORTED:
        return "the libzstd in use does not support this";
    case SEGZSTD_ERR_THREAD:
        return "a thread could not be started";
    case SEGZSTD_ERR_DST_SIZE:
        return "the destination buffer is too small";
    case SEGZSTD_ERR_ZSTD:
        return "libzstd reported an error";
    case SEGZSTD_ERR_SIZE:
        return "the content is not of the declared size";
    case SEGZSTD_ERR_READ:
        return "reading the input failed or ended early";
    case SEGZSTD_ERR_CANCELED:
        return "the stream was canceled";
    case SEGZSTD_ERR_INTERNAL:
        return "the encoder's output is not what the format allows";
    default:
        return "unknown error";
    }
}

int segzstd_is_fatal(int error)
{
    return error < SEGZSTD_ERR_FATAL;
}
