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
#include <sys/wait.h>
#include <unistd.h>

#include "store/dirty.h"
#include "store/meta.h"
#include "store/owner.h"
#include "store/reader.h"
#include "store/store.h"
#include "store/writer.h"

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

static inline void fixture_put(struct fixture *fixture, const char *key, const char *uid,
                               const char *version, const char *json)
{
        struct store_object object = fixture_object(key, uid, version, json);

        assert_int_equal(store_put(fixture->store, &object), 0);
}

/* Readers are other processes: LMDB allows an environment once a process. tombstone: what is read is that of
 * the object. Returns the status; what was read must be `json`. */
static inline int fixture_read(struct fixture *fixture, uint64_t generation, const char *key,
                               const char *uid, bool tombstone, const char *json)
{
        int status;
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0) {
                struct store *reader = NULL;
                struct store_object object;
                int r = store_reader_new(fixture->folder, &reader);

                if (r >= 0)
                        r = tombstone ? store_read_tombstone(reader, generation, key, uid, &object)
                                      : store_read(reader, generation, key, &object);
                if (r >= 0) {
                        r = strcmp(object.json, json) == 0 && strcmp(object.uid, uid) == 0 ? 0 : -EPROTO;
                        store_object_done(&object);
                }
                store_free(reader);
                _exit(-r);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        return -WEXITSTATUS(status);
}

#define fixture_test(function) cmocka_unit_test_setup_teardown(function, fixture_setup, fixture_teardown)
