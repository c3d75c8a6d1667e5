/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The innermost part of the scanner: finding the end of one value, across the borders of pieces; and how many values there are. */
#include "base/text.h"
#include "object/scan.h"

/* The progress of a search for the end of one value. Zeroed: at the value's first byte. */
struct value_cursor {
        size_t position; /* next byte to look at, from the value's start */
        size_t depth;
        bool in_string, in_literal;
        uint64_t is_object[SCAN_DEPTH_MAX / 64]; /* one bit an open bracket: '{' or '[' */
};

/* 1: the value ends before cursor->position; 0: more bytes are needed; -EBADMSG. `input` is the value's
 * start and may grow (and move) between calls. A literal ends only at the byte after it. */
int value_cursor_run(struct value_cursor *cursor, const char *input, size_t size);
/* How many values a tree of this text would have at most, itself among them; of what is no JSON, any number. */
size_t scan_count_values(const char *input, size_t size);

static inline size_t skip_space(const char *input, size_t size, size_t position)
{
        while (position < size && json_is_space(input[position]))
                position++;
        return position;
}
