/* SPDX-License-Identifier: Apache-2.0 */
#include "watcher/stream/frame.h"

#include <string.h>

void frame_reset(struct frame *frame)
{
        text_clear(&frame->buffer);
        frame->draining = false;
}

void frame_done(struct frame *frame)
{
        text_done(&frame->buffer);
        frame->draining = false;
}

static int end_line(struct frame *frame, const char *bytes, size_t size, frame_line_t on_line,
                    void *userdata)
{
        int r;

        if (frame->draining) {
                frame->draining = false;
                return on_line(NULL, 0, userdata);
        }
        /* Most lines lie whole in one piece and are not copied. */
        if (frame->buffer.size == 0)
                return on_line(bytes, size, userdata);
        r = text_append(&frame->buffer, bytes, size);
        if (r >= 0)
                r = on_line(frame->buffer.data, frame->buffer.size, userdata);
        text_clear(&frame->buffer);
        return r;
}

int frame_feed(struct frame *frame, size_t line_max, const char *bytes, size_t size, frame_line_t on_line,
               void *userdata)
{
        while (size > 0) {
                const char *newline = memchr(bytes, '\n', size);
                size_t length = newline ? (size_t)(newline - bytes) : size;
                int r;

                if (!frame->draining && frame->buffer.size + length > line_max) {
                        text_done(&frame->buffer); /* the memory of a giant line is given back */
                        frame->draining = true;
                }
                if (!newline)
                        return frame->draining ? 0 : text_append(&frame->buffer, bytes, length);
                r = end_line(frame, bytes, length, on_line, userdata);
                if (r < 0)
                        return r;
                bytes += length + 1;
                size -= length + 1;
        }
        return 0;
}
