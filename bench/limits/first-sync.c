/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limit of a first sync: the same pages fetched by curl and thrown away, and the same bytes written to a
 * bare LMDB. Prints two numbers: seconds of the one and of the other.
 *
 *     limit-first-sync URL PAGE-LIMIT OBJECTS SIZE FOLDER
 */
#include <curl/curl.h>
#include <errno.h>
#include <lmdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TRANSACTION 1000

static double now(void)
{
        struct timespec time;

        clock_gettime(CLOCK_MONOTONIC, &time);
        return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static _Noreturn void die(const char *what, const char *why)
{
        fprintf(stderr, "limit-first-sync: %s: %s\n", what, why);
        exit(1);
}

static size_t discard(char *bytes, size_t size, size_t count, void *userdata)
{
        size_t *total = userdata;

        (void)bytes;
        *total += size * count;
        return size * count;
}

/* The server's continue token is the number of the next object. */
static void fetch(const char *server, size_t limit, size_t objects)
{
        CURL *curl = curl_easy_init();
        size_t total = 0;

        if (!curl)
                die("curl", "cannot start");
        curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, 512L * 1024);
        curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, discard);
        curl_easy_setopt(curl, CURLOPT_WRITEDATA, &total);
        for (size_t first = 0; first < objects; first += limit) {
                char url[512];
                CURLcode code;

                snprintf(url, sizeof(url), "%s/apis/example.com/v1/widgets?limit=%zu&continue=%zu", server,
                         limit, first);
                curl_easy_setopt(curl, CURLOPT_URL, url);
                code = curl_easy_perform(curl);
                if (code != CURLE_OK)
                        die(url, curl_easy_strerror(code));
        }
        curl_easy_cleanup(curl);
        if (total < objects * 100)
                die(server, "sent less than it should");
}

static void check(int r, const char *what)
{
        if (r != 0)
                die(what, mdb_strerror(r));
}

static void put(MDB_txn *transaction, MDB_dbi database, size_t number, char *bytes, size_t size)
{
        char key[64];
        int length = snprintf(key, sizeof(key), "default/widget-%07zu", number);
        MDB_val name = {(size_t)length, key}, value = {size, bytes};

        check(mdb_put(transaction, database, &name, &value, 0), "mdb_put");
}

static void store(const char *folder, size_t objects, size_t size)
{
        char *bytes = malloc(size);
        MDB_env *environment;
        MDB_txn *transaction = NULL;
        MDB_dbi database;

        if (!bytes)
                die("memory", strerror(ENOMEM));
        memset(bytes, 'x', size);
        check(mdb_env_create(&environment), "mdb_env_create");
        check(mdb_env_set_mapsize(environment, (size_t)64 << 30), "mdb_env_set_mapsize");
        check(mdb_env_open(environment, folder, MDB_NOSYNC | MDB_NOMETASYNC, 0600), folder);
        for (size_t i = 0; i < objects; i++) {
                if (i % TRANSACTION == 0) {
                        if (transaction)
                                check(mdb_txn_commit(transaction), "mdb_txn_commit");
                        check(mdb_txn_begin(environment, NULL, 0, &transaction), "mdb_txn_begin");
                        check(mdb_dbi_open(transaction, NULL, 0, &database), "mdb_dbi_open");
                }
                put(transaction, database, i, bytes, size);
        }
        if (transaction)
                check(mdb_txn_commit(transaction), "mdb_txn_commit");
        mdb_env_close(environment);
        free(bytes);
}

int main(int argc, char **argv)
{
        double start, fetched, stored;

        if (argc != 6)
                die("usage", "limit-first-sync URL PAGE-LIMIT OBJECTS SIZE FOLDER");
        curl_global_init(CURL_GLOBAL_DEFAULT);
        start = now();
        fetch(argv[1], strtoul(argv[2], NULL, 10), strtoul(argv[3], NULL, 10));
        fetched = now();
        store(argv[5], strtoul(argv[3], NULL, 10), strtoul(argv[4], NULL, 10));
        stored = now();
        printf("%.6f %.6f\n", fetched - start, stored - fetched);
        return 0;
}
