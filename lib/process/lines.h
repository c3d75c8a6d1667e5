/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A handler's output, line by line: lines are cut at PROCESS_LINE_MAX, cleaned, and bounded in number and
 * size. */
#include "base/text.h"

struct lines {
        struct text partial;
        char *last; /* the last line that was not empty */
        size_t told, told_size, dropped;
        bool cutting; /* the rest of the present line is beyond the cap */
        bool inside;  /* within a line that does not begin with a brace (lines_feed_to_brace) */
        void (*on_line)(const char *line, void *userdata);
        void *userdata;
};

void lines_feed(struct lines *lines, const char *bytes, size_t size);
/* Stops in front of the first line that begins with a brace, white space aside. Returns how many bytes it
 * took: all of them if there is none. */
size_t lines_feed_to_brace(struct lines *lines, const char *bytes, size_t size);
void lines_finish(struct lines *lines); /* reports what had no newline, and how many were dropped */
void lines_renew(struct lines *lines);  /* reports how many were dropped; the bounds begin again */
void lines_done(struct lines *lines);
