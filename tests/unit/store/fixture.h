/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A store in a folder of its own that goes with the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "store/store.h"

struct fixture {
        char base[64], folder[80];
        struct store *store;
};

static inline void fixture_open(struct fixture *fixture)
{
        _cleanup_error_ struct error error = ERROR_NONE;

        assert_int_equal(store_writer_new(fixture->folder, NULL, &fixture->store, &error), 0);
}

static inline void fixture_close(struct fixture *fixture)
{
        store_free(TAKE_PTR(fixture->store));
}

static inline int fixture_setup(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));

        if (!fixture)
                return -1;
        snprintf(fixture->base, sizeof(fixture->base), "/tmp/test-store-XXXXXX");
        if (!mkdtemp(fixture->base)) {
                free(fixture);
                return -1;
        }
        snprintf(fixture->folder, sizeof(fixture->folder), "%s/widgets", fixture->base);
        *state = fixture;
        return 0;
}

static inline int fixture_remove(const char *path, const struct stat *stat _unused_, int type _unused_,
                                 struct FTW *ftw _unused_)
{
        return remove(path);
}

static inline int fixture_teardown(void **state)
{
        struct fixture *fixture = *state;

        fixture_close(fixture);
        nftw(fixture->base, fixture_remove, 8, FTW_DEPTH | FTW_PHYS);
        free(fixture);
        return 0;
}

static inline struct store_object fixture_object(const char *key, const char *uid, const char *version,
                                                 const char *json)
{
        return (struct store_object){
                .key = (char *)(uintptr_t)key,
                .uid = (char *)(uintptr_t)uid,
                .resource_version = (char *)(uintptr_t)version,
                .fingerprint = 11,
                .mark = 1,
                .json = (char *)(uintptr_t)json,
                .json_size = strlen(json),
        };
}

#define fixture_test(function) cmocka_unit_test_setup_teardown(function, fixture_setup, fixture_teardown)
