/* SPDX-License-Identifier: Apache-2.0 */
/* What others may have written as a leader record: refused with a sentence, or read, written as it was, and read again. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "election/lasting.h"
#include "election/leader-record.h"
#include "object/identity.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_claim(const struct leader_claim *claim)
{
        assert(claim->epoch > 0 && claim->writes > 0);
        assert(claim->duration_usec >= LEADER_DURATION_MIN && claim->duration_usec <= LEADER_DURATION_MAX);
        assert(!claim->holder.name[0] ||
               (leader_name_fits(claim->holder.name) && leader_name_fits(claim->holder.life)));
        assert(!claim->successor[0] || leader_name_fits(claim->successor));
        assert(!claim->released || !claim->holder.name[0]);
        assert(claim->released || !claim->late);
}

/* Of whichever operator it is: the one that it names. */
static int read_any(const char *text, size_t size, struct leader_record *record)
{
        char operator[LEADER_NAME_MAX + 1] = "", cluster[LEADER_NAME_MAX + 1] = "";
        const char *at = memmem(text, size, "\noperator ", 10), *then = memmem(text, size, "\ncluster ", 9);
        struct error error = ERROR_NONE;
        int r;

        for (size_t i = 0; at && at + 10 + i < text + size && at[10 + i] != '\n' && i < LEADER_NAME_MAX; i++)
                operator[i] = at[10 + i];
        for (size_t i = 0; then && then + 9 + i < text + size && then[9 + i] != '\n' && i < LEADER_NAME_MAX;
             i++)
                cluster[i] = then[9 + i];
        r = leader_record_read(text, size, operator, cluster, record, &error);
        assert(r == 0 || (r == error.status && strlen(error_message(&error)) < 2048));
        error_done(&error);
        return r;
}

/* What becomes a row or a file's name somewhere. */
static void check_line(const struct lasting *line)
{
        if (line->kind == LASTING_OTHER || line->kind == LASTING_DAMAGED)
                assert(!line->watch && !line->key && !line->uid && !line->reason);
        assert(!line->watch || line->watch[0]);
        assert(!line->key || identity_fits(line->key, line->uid));
        assert(line->crashes <= LASTING_CRASHES_MAX);
        assert(line->kind != LASTING_DOUBT || line->crashes > 0);
        assert(line->kind != LASTING_PAUSE || line->since > 0);
}

/* A line of a known kind that is written and read again is the same line. */
static void check_lasting(const char *lines)
{
        struct lasting line, back;

        while (lasting_next(&lines, &line)) {
                struct text text = TEXT_EMPTY, again = TEXT_EMPTY;
                const char *at;

                check_line(&line);
                if (line.kind == LASTING_OTHER || line.kind == LASTING_DAMAGED)
                        continue;
                lasting_write(&text, &line);
                at = text.data;
                if (!at || !lasting_next(&at, &back) || back.kind != line.kind || *at)
                        abort();
                lasting_write(&again, &back);
                assert(again.size == text.size && memcmp(again.data, text.data, text.size) == 0);
                lasting_done(&back);
                lasting_done(&line);
                text_done(&text);
                text_done(&again);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct leader_record record, again;
        struct text text = TEXT_EMPTY;
        char *input = malloc(size + 1);

        if (!input)
                return 0;
        memcpy(input, data, size);
        if (read_any(input, size, &record) == 0) {
                check_claim(&record.claim);
                leader_record_write(&text, &record);
                assert(text.size == size && memcmp(text.data, input, size) == 0);
                if (read_any(text.data, text.size, &again) < 0)
                        abort();
                assert(leader_member_is(&record.claim.holder, &again.claim.holder) &&
                       record.claim.epoch == again.claim.epoch);
                if (record.rest)
                        check_lasting(record.rest);
                leader_record_done(&again);
                leader_record_done(&record);
        }
        text_done(&text);
        free(input);
        return 0;
}
