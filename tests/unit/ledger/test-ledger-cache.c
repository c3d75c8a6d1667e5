/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger's cache keeps what it drops for what comes: never more than it has had at once, whatever the
 * names are long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ledger/row/cache.h"

#define ROWS 50000

static size_t spare_count(const struct row_cache *cache)
{
        size_t count = 0;

        for (const struct cached_row *spare = cache->spare; spare; spare = spare->chain)
                count++;
        return count;
}

static void test_what_is_dropped_is_used_again(void **state)
{
        static struct row_cache cache;
        char key[512];

        (void)state;
        for (int i = 0; i < ROWS; i++) {
                struct ledger_run run = {.action = "reconcile",
                                         .reason = i % 2 ? "changed" : "",
                                         .result = "success",
                                         .version = "7"};
                struct cached_row *cached;

                snprintf(key, sizeof(key), "d/%0*d", i % 3 ? 20 : 20 + i % 400, i);
                if (cache_is_full(&cache))
                        cache_make_room(&cache);
                cached = cache_add(&cache, "widgets", key, "u");
                assert_non_null(cached);
                assert_ptr_equal(cache_find(&cache, "widgets", key, "u"), cached);
                assert_string_equal(cached->row.key, key);
                assert_null(cached->run.action); /* the words are kept, not the run */
                assert_int_equal(cached_keep_run(cached, &run), 0);
                assert_string_equal(cached->run.reason, i % 2 ? "changed" : "");
                assert_in_range(cache.count + spare_count(&cache), 1, CACHE_ROWS);
        }
        cache_clear(&cache, true);
        assert_int_equal(cache.count + spare_count(&cache), 0);
}

int main(void)
{
        const struct CMUnitTest test[] = {cmocka_unit_test(test_what_is_dropped_is_used_again)};

        return cmocka_run_group_tests(test, NULL, NULL);
}
