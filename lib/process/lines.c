/* SPDX-License-Identifier: Apache-2.0 */
#include "process/lines.h"

#include <string.h>

#include "ipc/message.h"
#include "process/process.h"

static void hand_over_line(struct lines *lines)
{
        char *line;

        if (lines->partial.size == 0)
                return;
        if (lines->partial.data[lines->partial.size - 1] == '\r')
                lines->partial.data[--lines->partial.size] = '\0';
        if (lines->partial.size == 0)
                return;
        for (size_t i = 0; i < lines->partial.size; i++)
                if (lines->partial.data[i] == '\0')
                        lines->partial.data[i] = '?';
        line = strdup(lines->partial.data);
        text_clear(&lines->partial);
        if (!line) {
                lines->dropped++;
                return;
        }
        utf8_clean(line);
        free(lines->last);
        lines->last = line;
        if (lines->told < PROCESS_LINES_MAX && lines->told_size + strlen(line) <= PROCESS_BYTES_MAX) {
                lines->told++;
                lines->told_size += strlen(line);
                lines->on_line(line, lines->userdata);
        } else {
                lines->dropped++;
        }
}

static void append_bytes(struct lines *lines, const char *bytes, size_t size)
{
        size_t room = PROCESS_LINE_MAX - lines->partial.size;

        if (lines->cutting)
                return;
        if (size > room) {
                size = room;
                lines->cutting = true;
        }
        text_append(&lines->partial, bytes, size);
}

void lines_feed(struct lines *lines, const char *bytes, size_t size)
{
        while (size > 0) {
                const char *newline = memchr(bytes, '\n', size);
                size_t length = newline ? (size_t)(newline - bytes) : size;

                append_bytes(lines, bytes, length);
                if (!newline)
                        return;
                hand_over_line(lines);
                lines->cutting = false;
                bytes += length + 1;
                size -= length + 1;
        }
}

size_t lines_feed_to_brace(struct lines *lines, const char *bytes, size_t size)
{
        size_t start = 0;

        while (start < size) {
                const char *newline;
                size_t first = start, end;

                while (!lines->inside && first < size && strchr(" \t\r\n", bytes[first]) && bytes[first])
                        first++;
                if (!lines->inside && first < size && bytes[first] == '{')
                        return start;
                newline = memchr(bytes + first, '\n', size - first);
                end = newline ? (size_t)(newline + 1 - bytes) : size;
                lines->inside = !newline && (lines->inside || first < size);
                lines_feed(lines, bytes + start, end - start);
                start = end;
        }
        return size;
}

void lines_finish(struct lines *lines)
{
        hand_over_line(lines);
        lines_renew(lines);
}

void lines_renew(struct lines *lines)
{
        char text[96];

        lines->told = lines->told_size = 0;
        if (lines->dropped == 0)
                return;
        snprintf(text, sizeof(text), "(%zu more %s of output %s not logged)", lines->dropped,
                 counted(lines->dropped, "line", "lines"), counted(lines->dropped, "was", "were"));
        lines->dropped = 0;
        lines->on_line(text, lines->userdata);
}

void lines_done(struct lines *lines)
{
        text_done(&lines->partial);
        free(lines->last);
        lines->last = NULL;
}
