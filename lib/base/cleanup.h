/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Cleanup attributes for locals and the "take" that transfers ownership out of them.
 *
 * A local marked with one of these is released on every way out of its scope; a value that must survive is
 * returned with TAKE_PTR() or TAKE_FD(). Destructors in this project accept NULL and half-built objects.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(function)     __attribute__((cleanup(function)))
#define _printf_(string, first) __attribute__((format(printf, string, first)))
#define _noreturn_              __attribute__((noreturn))
#define _unused_                __attribute__((unused))
#define _warn_unused_           __attribute__((warn_unused_result))

#define ELEMENTS(array) (sizeof(array) / sizeof((array)[0]))
/* item: a pointer to each of the first `count` elements. The array must stay where it is meanwhile. */
#define FOREACH_ARRAY(item, array, count)                                                                   \
        for (__typeof__(*(array)) *item = (array); (size_t)(item - (array)) < (count); item++)

/* Defines `void function_pointer(type *pointer)` for use with _cleanup_(), around `function(type value)`. */
#define DEFINE_CLEANUP(type, function)                                                                      \
        static inline void function##_pointer(type *pointer)                                                \
        {                                                                                                   \
                if (*pointer)                                                                               \
                        function(*pointer);                                                                 \
        }                                                                                                   \
        struct cleanup_needs_semicolon

#define TAKE_PTR(pointer)                                                                                   \
        ({                                                                                                  \
                __typeof__(pointer) *take_pointer_ = &(pointer);                                            \
                __typeof__(pointer) take_value_ = *take_pointer_;                                           \
                *take_pointer_ = NULL;                                                                      \
                take_value_;                                                                                \
        })

#define TAKE_FD(fd)                                                                                         \
        ({                                                                                                  \
                int *take_fd_ = &(fd);                                                                      \
                int take_value_ = *take_fd_;                                                                \
                *take_fd_ = -1;                                                                             \
                take_value_;                                                                                \
        })

static inline void cleanup_free(void *pointer)
{
        free(*(void **)pointer);
}

static inline void cleanup_close(int *fd)
{
        if (*fd >= 0)
                close(*fd);
}

static inline void cleanup_fclose(FILE **stream)
{
        if (*stream)
                fclose(*stream);
}

#define _cleanup_free_   _cleanup_(cleanup_free)
#define _cleanup_close_  _cleanup_(cleanup_close)
#define _cleanup_fclose_ _cleanup_(cleanup_fclose)
