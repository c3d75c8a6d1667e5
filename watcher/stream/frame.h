/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Lines out of a stream of bytes. Framing is by bytes: a character may be split anywhere. A line above the cap is
 * drained and reported as too long; what follows the last newline when the stream ends is not a line.
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

#define FRAME_LINE_MAX ((size_t)16 * 1024 * 1024)

struct frame {
        struct text buffer;
        bool draining; /* inside a line that is too long */
};

/* line: without its newline, borrowed; NULL for one that was too long. A negative return ends the feed. */
typedef int (*frame_line_t)(const char *line, size_t size, void *userdata);
int frame_feed(struct frame *frame, size_t line_max, const char *bytes, size_t size, frame_line_t on_line,
               void *userdata);
void frame_reset(struct frame *frame);
void frame_done(struct frame *frame);
