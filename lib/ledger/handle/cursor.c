/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger/handle/cursor.h"

#include <stdlib.h>

#include "base/text.h"

void due_cursor_reset(struct due_cursor *cursor)
{
        free(cursor->watch);
        free(cursor->key);
        free(cursor->uid);
        *cursor = (struct due_cursor){0};
}

void due_cursor_see_clock(struct due_cursor *cursor, uint64_t now)
{
        if (now < cursor->visited_realtime)
                due_cursor_reset(cursor);
        cursor->visited_realtime = now;
}

int due_cursor_move(struct due_cursor *cursor, uint64_t realtime, const char *watch, const char *key,
                    const char *uid)
{
        int r = text_replace(&cursor->watch, watch);

        cursor->realtime = realtime;
        if (r >= 0)
                r = text_replace(&cursor->key, key);
        if (r >= 0)
                r = text_replace(&cursor->uid, uid);
        return r;
}

void due_cursor_note(struct due_cursor *cursor, uint64_t next_realtime)
{
        if (next_realtime == 0 || next_realtime < cursor->realtime)
                return;
        if (next_realtime == cursor->realtime) /* its names say whether it is behind the cursor */
                cursor->soonest_known = false;
        else if (cursor->soonest == 0 || next_realtime < cursor->soonest)
                cursor->soonest = next_realtime;
}
