/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/verb.h"

#include <string.h>

enum word option_word(int letter)
{
        switch (letter) {
        case 'r':
        case 'c':
        case 'O':
                return WORD_FILE;
        case 'o':
                return WORD_FORMAT;
        case 'W':
                return WORD_WATCH;
        default:
                return WORD_FREE;
        }
}

const struct verb *find_verb(const struct command_line *line, const char *name)
{
        for (size_t i = 0; i < line->verb_count; i++)
                if (strcmp(name, line->verb[i].name) == 0)
                        return &line->verb[i];
        return NULL;
}
