/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 300 kinds of damage to a ledger at rest, and as many to one that is in use. At rest it is set aside, or
 * every row is what was written; in use it is refused with an error, or likewise. What the write-ahead log
 * held may be lost with the log.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ledger/ledger.h"
#include "tests/unit/ledger/ledger-folder.h"
#include "tests/unit/scribble.h"

#define ROWS   300
#define DOUBTS 30
#define LATER  10 /* the last of them, in one page, are changed once more, in the log alone */
#define SEED   UINT64_C(0x1ed6e5)

enum verdict { INTACT, SET_ASIDE, REFUSED, WRONG, LOST };

static const char *const suffix[] = {"", "-wal"};
static struct scribble_file whole[2];
static struct scribble_file copy;

static void name_file(const char *tail, char ret[160])
{
        snprintf(ret, 160, "%s%s", path, tail);
}

static int put_row(struct ledger *ledger, int i, uint64_t attempts)
{
        char key[32], uid[32], error[64];
        struct ledger_row row = {.key = key,
                                 .uid = uid,
                                 .fingerprint = (uint64_t)i * 7919,
                                 .attempts = attempts,
                                 .next_realtime = (uint64_t)(i % 3) * 1000,
                                 .next_reason = RUN_RETRY,
                                 .last_error = error,
                                 .first_error = error};
        struct ledger_run run = {.ended_realtime = (uint64_t)i + 1,
                                 .action = "reconcile",
                                 .reason = "changed",
                                 .result = error};
        int r;

        snprintf(key, sizeof(key), "n/object-%d", i);
        snprintf(uid, sizeof(uid), "uid-%d", i);
        snprintf(error, sizeof(error), "error of object %d", i);
        r = ledger_put(ledger, "w", &row);
        return r < 0 ? r : ledger_run_put(ledger, "w", key, uid, &run);
}

static int put_doubt(struct ledger *ledger, int i)
{
        char key[32], error[64];
        struct ledger_doubt doubt = {.watch = "w",
                                     .key = key,
                                     .uid = "uid",
                                     .crashes = (uint64_t)i + 1,
                                     .until_realtime = 1000,
                                     .error = error};

        snprintf(key, sizeof(key), "n/object-%d", i);
        snprintf(error, sizeof(error), "killed by signal %d", i);
        return ledger_doubt_put(ledger, &doubt);
}

/* Ends without closing, so that the log stays as after a SIGKILL. */
static int make(void *userdata)
{
        static struct ledger *ledger; /* what only the stack knows is lost to a child's leak check */
        struct error error = ERROR_NONE;
        char *aside = NULL;
        int r = ledger_open(path, &ledger, &aside, &error);

        (void)userdata;
        for (int i = 0; i < ROWS && r >= 0; i++)
                r = put_row(ledger, i, 1);
        for (int i = 0; i < DOUBTS && r >= 0; i++)
                r = put_doubt(ledger, i);
        if (r >= 0)
                r = ledger_pause_put(ledger, "w", &(struct ledger_pause){7, 0, "a reason"});
        if (r >= 0)
                r = ledger_scope_set(ledger, "w", "scope", "cluster");
        ledger_free(ledger); /* the log goes */
        if (r >= 0)
                r = ledger_open(path, &ledger, &aside, &error);
        for (int i = ROWS - LATER; i < ROWS && r >= 0; i++)
                r = put_row(ledger, i, 2);
        return r < 0 || ledger_commit(ledger) < 0 ? 1 : 0;
}

static int set_up(void **state)
{
        char name[160];

        (void)state;
        if (folder_make("scribble") < 0)
                return -1;
        if (scribble_meet(make, NULL) != 0)
                return -1;
        for (size_t i = 0; i < 2; i++) {
                name_file(suffix[i], name);
                if (scribble_load(name, &whole[i]) < 0)
                        return -1;
        }
        return 0;
}

static int tear_down(void **state)
{
        (void)state;
        free(whole[0].bytes);
        free(whole[1].bytes);
        free(copy.bytes);
        return folder_remove();
}

/* ---- what is found */

static int judge_run(const struct ledger_run *run, void *userdata)
{
        const int *i = userdata;
        char error[64];

        snprintf(error, sizeof(error), "error of object %d", *i);
        if (run->ended_realtime == 0)
                return LOST;
        return run->ended_realtime == (uint64_t)*i + 1 && strcmp(run->action, "reconcile") == 0 &&
                               strcmp(run->reason, "changed") == 0 && strcmp(run->result, error) == 0
                       ? INTACT
                       : WRONG;
}

static int judge_doubt(const struct ledger_doubt *doubt, void *userdata)
{
        int i = -1, *count = userdata;
        char error[64];

        (*count)++;
        if (sscanf(doubt->key, "n/object-%d", &i) != 1 || i < 0 || i >= DOUBTS)
                return -EPROTO;
        snprintf(error, sizeof(error), "killed by signal %d", i);
        return strcmp(doubt->watch, "w") == 0 && doubt->crashes == (uint64_t)i + 1 && !doubt->unread &&
                               strcmp(doubt->error, error) == 0
                       ? 0
                       : -EPROTO;
}

static int judge_doubts(struct ledger *ledger)
{
        int count = 0, r = ledger_visit_doubts(ledger, NULL, 1, DOUBTS + 10, judge_doubt, &count);

        if (r < 0)
                return r == -EPROTO ? WRONG : REFUSED;
        return count == DOUBTS ? INTACT : count < DOUBTS ? LOST : WRONG;
}

static int judge_pause_text(const struct ledger_pause *pause, void *userdata)
{
        bool *told = userdata;

        *told = true;
        return pause->since_realtime == 7 && strcmp(pause->reason, "a reason") == 0 ? INTACT : WRONG;
}

static int judge_pause(struct ledger *ledger)
{
        bool told = false;
        int r = ledger_pause_see(ledger, "w", judge_pause_text, &told);

        if (r < 0)
                return REFUSED;
        return told ? r : LOST;
}

static int judge_row(struct ledger *ledger, int i)
{
        char key[32], uid[32], error[64];
        struct ledger_row row;
        int r, verdict;

        snprintf(key, sizeof(key), "n/object-%d", i);
        snprintf(uid, sizeof(uid), "uid-%d", i);
        snprintf(error, sizeof(error), "error of object %d", i);
        r = ledger_get(ledger, "w", key, uid, &row);
        if (r < 0)
                return r == -ENOENT ? LOST : REFUSED;
        verdict = row.fingerprint == (uint64_t)i * 7919 && row.next_realtime == (uint64_t)(i % 3) * 1000 &&
                                  !row.deleting && !row.permanent && strcmp(row.last_error, error) == 0 &&
                                  row.next_reason == RUN_RETRY &&
                                  (row.attempts == 1 || (row.attempts == 2 && i >= ROWS - LATER))
                          ? INTACT
                          : WRONG;
        ledger_row_done(&row);
        if (verdict == INTACT) {
                r = ledger_run_see(ledger, "w", key, uid, judge_run, &i);
                verdict = r < 0 ? REFUSED : r;
        }
        return verdict;
}

static int judge_scope(struct ledger *ledger)
{
        _cleanup_free_ char *scope = NULL, *cluster = NULL;
        int r = ledger_scope_get(ledger, "w", &scope, &cluster);

        if (r < 0)
                return REFUSED;
        if (scope[0] == '\0')
                return LOST;
        return strcmp(scope, "scope") == 0 && strcmp(cluster, "cluster") == 0 ? INTACT : WRONG;
}

static int judge_visited(const char *watch, const struct ledger_row *row, void *userdata)
{
        int i = -1, *count = userdata;

        (*count)++;
        return strcmp(watch, "w") == 0 && sscanf(row->key, "n/object-%d", &i) == 1 && i >= 0 && i < ROWS &&
                               row->fingerprint == (uint64_t)i * 7919
                       ? 0
                       : -EPROTO;
}

static int judge(struct ledger *ledger)
{
        int verdict = judge_scope(ledger), count = 0, r;

        for (int i = 0; i < ROWS && verdict == INTACT; i++)
                verdict = judge_row(ledger, i);
        if (verdict == INTACT)
                verdict = judge_doubts(ledger);
        if (verdict == INTACT)
                verdict = judge_pause(ledger);
        if (verdict != INTACT)
                return verdict;
        r = ledger_visit(ledger, "w", "", "", ROWS + 10, judge_visited, &count);
        if (r < 0)
                return r == -EPROTO ? WRONG : REFUSED;
        return count == ROWS ? INTACT : count < ROWS ? LOST : WRONG;
}

static int meet_at_rest(void *userdata)
{
        _cleanup_(ledger_free_pointer) struct ledger *ledger = NULL;
        _cleanup_error_ struct error error = ERROR_NONE;
        _cleanup_free_ char *aside = NULL;
        int r = ledger_open(path, &ledger, &aside, &error);

        (void)userdata;
        if (r < 0)
                return REFUSED;
        if (aside) /* and the new one is a good one */
                return ledger_count(ledger, "w") == 0 && put_row(ledger, 1, 1) >= 0 &&
                                       ledger_commit(ledger) >= 0
                               ? SET_ASIDE
                               : WRONG;
        return judge(ledger);
}

/* The damage comes when it is open already. */
static int meet_in_use(void *userdata)
{
        const struct scribble_file *damaged = userdata;
        _cleanup_(ledger_free_pointer) struct ledger *ledger = NULL;
        _cleanup_error_ struct error error = ERROR_NONE;
        _cleanup_free_ char *aside = NULL;
        int r = ledger_open(path, &ledger, &aside, &error);

        if (r < 0 || aside)
                return WRONG;
        ledger_rest(ledger);
        if (scribble_store(path, damaged) < 0)
                return 97;
        return judge(ledger);
}

/* ---- the damage */

static void lay_out(size_t which, const struct scribble_file *damaged)
{
        char name[160];

        folder_empty();
        for (size_t i = 0; i < 2; i++) {
                name_file(suffix[i], name);
                assert_int_equal(scribble_store(name, i == which ? damaged : &whole[i]), 0);
        }
}

static void test_at_rest(void **state)
{
        const unsigned count = scribble_count();
        unsigned aside = 0, intact = 0;

        (void)state;
        for (uint64_t seed = SEED; seed < SEED + count; seed++) {
                size_t which = seed % 4 == 0;
                int verdict;

                scribble_copy(&whole[which], seed, &copy);
                lay_out(which, &copy);
                verdict = scribble_meet(meet_at_rest, NULL);
                if (verdict != INTACT && verdict != SET_ASIDE)
                        fail_msg("seed %llu, ledger.sqlite%s: verdict %d", (unsigned long long)seed,
                                 suffix[which], verdict);
                aside += verdict == SET_ASIDE;
                intact += verdict == INTACT;
        }
        print_message("at rest: %u times set aside, %u times nothing that counts was hit\n", aside, intact);
        assert_true(aside > count / 4);
}

static void test_in_use(void **state)
{
        const unsigned count = scribble_count();
        unsigned refused = 0, intact = 0;

        (void)state;
        for (uint64_t seed = SEED; seed < SEED + count; seed++) {
                int verdict;

                scribble_copy(&whole[0], seed, &copy);
                lay_out(0, &whole[0]);
                verdict = scribble_meet(meet_in_use, &copy);
                if (verdict != INTACT && verdict != REFUSED && verdict != LOST)
                        fail_msg("seed %llu: verdict %d", (unsigned long long)seed, verdict);
                refused += verdict == REFUSED;
                intact += verdict == INTACT;
        }
        print_message("in use: %u times refused, %u times nothing that counts was hit\n", refused, intact);
        assert_true(refused > count / 16);
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_at_rest),
                cmocka_unit_test(test_in_use),
        };

        return cmocka_run_group_tests(test, set_up, tear_down);
}
