/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of a watch: the same lines come out wherever the bytes are cut, and they are what a plain split of
 * the whole gives. The first byte of the input chooses the cuts.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "watcher/stream/frame.h"

#define LINE_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int collect(const char *line, size_t size, void *userdata)
{
        struct text *out = userdata;

        text_append_string(out, line ? "=" : "#");
        text_append(out, line ? line : "", line ? size : 0);
        return text_append(out, "\n", 1);
}

static void split(const char *bytes, size_t size, struct text *out)
{
        const char *end;

        while ((end = size > 0 ? memchr(bytes, '\n', size) : NULL)) {
                size_t length = (size_t)(end - bytes);

                collect(length > LINE_MAX ? NULL : bytes, length, out);
                bytes += length + 1;
                size -= length + 1;
        }
}

/* Each piece stands in memory of its own, so that a byte read too far is seen. */
static void feed(const char *bytes, size_t size, size_t piece_max, struct text *out)
{
        struct frame frame = {0};

        while (size > 0) {
                size_t length = size < piece_max ? size : piece_max;
                char *piece = malloc(length);

                if (!piece)
                        abort();
                memcpy(piece, bytes, length);
                if (frame_feed(&frame, LINE_MAX, piece, length, collect, out) < 0)
                        abort();
                free(piece);
                bytes += length;
                size -= length;
        }
        frame_done(&frame);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_text_ struct text expected = TEXT_EMPTY, found = TEXT_EMPTY;

        if (size == 0)
                return 0;
        split((const char *)data + 1, size - 1, &expected);
        feed((const char *)data + 1, size - 1, (size_t)data[0] + 1, &found);
        if (expected.size != found.size ||
            (expected.size > 0 && memcmp(expected.data, found.data, expected.size) != 0))
                abort();
        return 0;
}
