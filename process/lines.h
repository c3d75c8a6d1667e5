/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A handler's output, line by line: lines are cut at PROCESS_LINE_MAX, cleaned, and bounded in number and
 * size. */
#include "base/text.h"

struct lines {
        struct text partial;
        char *last; /* the last line that was not empty */
        size_t told, told_size, dropped;
        bool cutting; /* behind the cap of the line that is being read */
        void (*on_line)(const char *line, void *userdata);
        void *userdata;
};

void lines_feed(struct lines *lines, const char *bytes, size_t size);
void lines_finish(struct lines *lines); /* tells what had no newline, and how many were dropped */
void lines_done(struct lines *lines);
