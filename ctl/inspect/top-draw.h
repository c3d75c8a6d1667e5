/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What `reconciledctl top` shows: a picture of so many rows and columns, drawn from two answers. */
#include <cjson/cJSON.h>

#include "base/text.h"

struct picture {
        struct text text; /* lines, each ended by `line_end` */
        size_t rows, columns;
        size_t row; /* the next one */
        bool colour;
        const char *line_end;
};

/* now, before: answers to `status`, `usec` apart; before may be NULL (then there are no rates), and so may
 * now (then `trouble` says why). */
void top_draw(struct picture *picture, const cJSON *now, const cJSON *before, uint64_t usec,
              const char *trouble);
