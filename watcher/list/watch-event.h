/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The lines of a watch: what each says, and what becomes of a line that cannot be understood. */
#include <stddef.h>

/* A frame_line_t; userdata: the stream. Negative: the watch is to end, and stream->stream_error says why. */
int event_take(const char *line, size_t size, void *userdata);
