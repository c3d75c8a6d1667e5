/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limit of events: three processes that pass each event on, and nothing else. One reads the watch with
 * curl, overwrites the object in a bare LMDB and sends its key; one gives keys to the lanes that have
 * nothing to do; each lane reads the object and says so. As many keys in a packet as there are, up to 64.
 * Prints the moment (CLOCK_MONOTONIC, seconds) at which the last one was done.
 *
 *     limit-events URL OBJECTS SIZE LANES FOLDER
 */
#include <curl/curl.h>
#include <errno.h>
#include <lmdb.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define TRANSACTION 1000
#define KEYS_MAX    64
#define LANES_MAX   64
#define NAME_SIZE   32

struct key {
        char name[NAME_SIZE];
};

struct watcher {
        MDB_env *store;
        MDB_txn *transaction;
        MDB_dbi database;
        char *line; /* what came of the next one */
        size_t size, room;
        struct key key[KEYS_MAX];
        size_t key_count;
        int fd;
};

static _Noreturn void die(const char *what, const char *why)
{
        fprintf(stderr, "limit-events: %s: %s\n", what, why);
        exit(1);
}

static void check(int r, const char *what)
{
        if (r != 0)
                die(what, mdb_strerror(r));
}

static MDB_env *open_store(const char *folder, unsigned flags)
{
        MDB_env *store;

        check(mdb_env_create(&store), "mdb_env_create");
        check(mdb_env_set_mapsize(store, (size_t)64 << 30), "mdb_env_set_mapsize");
        check(mdb_env_open(store, folder, flags, 0600), folder);
        return store;
}

/* ---- the one that reads the watch */

static void begin(struct watcher *watcher)
{
        check(mdb_txn_begin(watcher->store, NULL, 0, &watcher->transaction), "mdb_txn_begin");
        check(mdb_dbi_open(watcher->transaction, NULL, 0, &watcher->database), "mdb_dbi_open");
}

static void put(struct watcher *watcher, const struct key *key, char *bytes, size_t size)
{
        MDB_val name = {strlen(key->name), (void *)(uintptr_t)key->name}, value = {size, bytes};

        check(mdb_put(watcher->transaction, watcher->database, &name, &value, 0), "mdb_put");
}

static void fill(struct watcher *watcher, size_t objects, size_t size)
{
        char *bytes = calloc(1, size);

        if (!bytes)
                die("memory", strerror(ENOMEM));
        for (size_t i = 0; i < objects; i++) {
                struct key key;

                if (i % TRANSACTION == 0)
                        begin(watcher);
                snprintf(key.name, sizeof(key.name), "widget-%07zu", i);
                put(watcher, &key, bytes, size);
                if (i % TRANSACTION == TRANSACTION - 1 || i == objects - 1)
                        check(mdb_txn_commit(watcher->transaction), "mdb_txn_commit");
        }
        watcher->transaction = NULL;
        free(bytes);
}

/* What was written is committed before somebody hears of it. */
static void announce(struct watcher *watcher)
{
        size_t size = watcher->key_count * sizeof(struct key);

        if (size == 0)
                return;
        check(mdb_txn_commit(watcher->transaction), "mdb_txn_commit");
        watcher->transaction = NULL;
        if (send(watcher->fd, watcher->key, size, 0) != (ssize_t)size)
                die("send", strerror(errno));
        watcher->key_count = 0;
}

static void on_line(struct watcher *watcher, char *line, size_t size)
{
        static const char before[] = "\"name\":\"";
        char *name = memmem(line, size, before, sizeof(before) - 1);
        struct key *key = &watcher->key[watcher->key_count];

        if (!name)
                die("the watch", "a line without a name");
        name += sizeof(before) - 1;
        memset(key, 0, sizeof(*key));
        memcpy(key->name, name, strcspn(name, "\"") < NAME_SIZE ? strcspn(name, "\"") : NAME_SIZE - 1);
        if (!watcher->transaction)
                begin(watcher);
        put(watcher, key, line, size);
        if (++watcher->key_count == KEYS_MAX)
                announce(watcher);
}

static size_t on_data(char *bytes, size_t unit, size_t count, void *userdata)
{
        struct watcher *watcher = userdata;
        size_t size = unit * count;
        char *end, *line;

        if (watcher->size + size > watcher->room) {
                watcher->room = 2 * (watcher->size + size);
                watcher->line = realloc(watcher->line, watcher->room);
                if (!watcher->line)
                        die("memory", strerror(ENOMEM));
        }
        memcpy(watcher->line + watcher->size, bytes, size);
        watcher->size += size;
        line = watcher->line;
        while ((end = memchr(line, '\n', watcher->size - (size_t)(line - watcher->line)))) {
                on_line(watcher, line, (size_t)(end - line));
                line = end + 1;
        }
        watcher->size -= (size_t)(line - watcher->line);
        memmove(watcher->line, line, watcher->size);
        announce(watcher);
        return size;
}

static _Noreturn void watch(const char *url, int fd, char **argv)
{
        struct watcher watcher = {.fd = fd, .store = open_store(argv[5], MDB_NOSYNC | MDB_NOMETASYNC)};
        CURL *curl;

        fill(&watcher, strtoul(argv[2], NULL, 10), strtoul(argv[3], NULL, 10));
        curl_global_init(CURL_GLOBAL_DEFAULT);
        curl = curl_easy_init();
        if (!curl)
                die("curl", "cannot start");
        curl_easy_setopt(curl, CURLOPT_URL, url);
        curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, 512L * 1024);
        curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
        curl_easy_setopt(curl, CURLOPT_WRITEDATA, &watcher);
        die(url, curl_easy_strerror(curl_easy_perform(curl)));
}

/* ---- a lane */

static size_t read_object(MDB_env *store, struct key *key, char *copy, size_t room)
{
        MDB_val name = {strlen(key->name), key->name}, value;
        MDB_txn *transaction;
        MDB_dbi database;

        check(mdb_txn_begin(store, NULL, MDB_RDONLY, &transaction), "mdb_txn_begin");
        check(mdb_dbi_open(transaction, NULL, 0, &database), "mdb_dbi_open");
        check(mdb_get(transaction, database, &name, &value), key->name);
        memcpy(copy, value.mv_data, value.mv_size < room ? value.mv_size : room);
        mdb_txn_abort(transaction);
        return value.mv_size;
}

static _Noreturn void lane(int fd, const char *folder)
{
        static char copy[64 * 1024];
        struct key key[KEYS_MAX];
        MDB_env *store = NULL;
        ssize_t size;

        while ((size = recv(fd, key, sizeof(key), 0)) > 0) {
                size_t count = (size_t)size / sizeof(struct key);

                if (!store)
                        store = open_store(folder, MDB_RDONLY);
                for (size_t i = 0; i < count; i++)
                        (void)read_object(store, &key[i], copy, sizeof(copy));
                if (send(fd, &count, sizeof(count), 0) != sizeof(count))
                        die("send", strerror(errno));
        }
        _exit(0);
}

/* ---- the one between them */

struct hub {
        struct key *key; /* all that there will be, in their order */
        size_t received, given, done, total, lanes;
        struct pollfd poll[1 + LANES_MAX]; /* the watch, the lanes; a lane that waits for nothing is idle */
        bool busy[1 + LANES_MAX];
};

static void give(struct hub *hub)
{
        for (size_t i = 1; i <= hub->lanes && hub->given < hub->received; i++) {
                size_t count = hub->received - hub->given;

                if (hub->busy[i])
                        continue;
                if (count > KEYS_MAX)
                        count = KEYS_MAX;
                if (send(hub->poll[i].fd, hub->key + hub->given, count * sizeof(struct key), 0) < 0)
                        die("send", strerror(errno));
                hub->given += count;
                hub->busy[i] = true;
        }
}

static void receive(struct hub *hub, size_t from)
{
        size_t count;
        ssize_t size;

        if (from == 0) {
                size = recv(hub->poll[0].fd, hub->key + hub->received, KEYS_MAX * sizeof(struct key), 0);
                if (size <= 0)
                        die("the watch", "it has ended");
                hub->received += (size_t)size / sizeof(struct key);
                return;
        }
        if (recv(hub->poll[from].fd, &count, sizeof(count), 0) != sizeof(count))
                die("a lane", "it has ended");
        hub->busy[from] = false;
        hub->done += count;
}

static void run(struct hub *hub)
{
        while (hub->done < hub->total) {
                if (poll(hub->poll, 1 + hub->lanes, -1) < 0)
                        die("poll", strerror(errno));
                for (size_t i = 0; i <= hub->lanes; i++)
                        if (hub->poll[i].revents)
                                receive(hub, i);
                give(hub);
        }
}

static int child(struct hub *hub, size_t number, char **argv)
{
        int pair[2];
        pid_t pid;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 || (pid = fork()) < 0)
                die("a process", strerror(errno));
        if (pid == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL); /* the watch never ends by itself */
                close(pair[0]);
                for (size_t i = 0; i < number; i++)
                        close(hub->poll[i].fd);
                if (number == 0)
                        watch(argv[1], pair[1], argv);
                lane(pair[1], argv[5]);
        }
        close(pair[1]);
        return pair[0];
}

int main(int argc, char **argv)
{
        struct hub hub = {0};
        struct timespec end;

        if (argc != 6)
                die("usage", "limit-events URL OBJECTS SIZE LANES FOLDER");
        hub.total = strtoul(argv[2], NULL, 10);
        hub.lanes = strtoul(argv[4], NULL, 10);
        hub.key = calloc(hub.total + KEYS_MAX, sizeof(struct key));
        if (!hub.key || hub.lanes == 0 || hub.lanes > LANES_MAX)
                die("memory or lanes", "not enough, or too many");
        for (size_t i = 0; i <= hub.lanes; i++)
                hub.poll[i] = (struct pollfd){.fd = child(&hub, i, argv), .events = POLLIN};
        run(&hub);
        clock_gettime(CLOCK_MONOTONIC, &end);
        printf("%lld.%09ld\n", (long long)end.tv_sec, end.tv_nsec);
        fflush(stdout);
        free(hub.key);
        return 0;
}
