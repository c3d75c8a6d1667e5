/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker whose handler does nothing and costs nothing: it reads the object, as every worker does, and says
 * DONE. What remains is the runtime itself. It takes the place of reconciled-worker for one benchmark, and
 * adds what it did to the number in the file that RECONCILED_BENCH_RUNS names: who waits for the end of it
 * need not ask the supervisor, whose time is being measured. While the second number there is not zero,
 * every run fails.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/exit-code.h"
#include "ipc/child.h"
#include "store/reader.h"
#include "store/record.h"
#include "store/store.h"

struct bench_worker {
        struct message *config;
        struct store **reader;  /* of each watch */
        _Atomic uint64_t *runs; /* of all workers, and whether they fail; NULL: nobody counts */
};

static _Atomic uint64_t *map_runs(const char *path)
{
        _cleanup_close_ int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
        void *address;

        if (fd < 0)
                return NULL;
        address = mmap(NULL, 2 * sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        return address == MAP_FAILED ? NULL : address;
}

static int on_config(struct child *child, struct message **config)
{
        struct bench_worker *worker = child->userdata;
        const struct message_config_worker *told;

        if ((*config)->type != MESSAGE_CONFIG_WORKER)
                return -EPROTO;
        worker->config = TAKE_PTR(*config);
        told = &worker->config->config_worker;
        worker->reader = calloc(told->watch_count, sizeof(struct store *));
        for (size_t i = 0; i < told->watch_count; i++)
                if (!worker->reader || store_reader_new(told->watch[i].store_folder, &worker->reader[i]) < 0)
                        return -EIO;
        return 1;
}

static struct store *reader_of(const struct bench_worker *worker, const char *watch)
{
        const struct message_config_worker *told = &worker->config->config_worker;
        size_t i = 0;

        while (i + 1 < told->watch_count && strcmp(told->watch[i].name, watch) != 0)
                i++;
        return worker->reader[i];
}

static int run(struct child *child, const struct message_run *order)
{
        struct bench_worker *worker = child->userdata;
        struct store_object object = {0};
        int r = store_read(reader_of(worker, order->watch), order->generation, order->key, &object);
        bool fails = r < 0 || (worker->runs && worker->runs[1] != 0);
        struct message_done done = {
                .sequence = order->sequence,
                .watch = order->watch,
                .key = order->key,
                .uid = order->uid,
                .action = order->action,
                .result = (uint64_t)(fails ? RESULT_RETRY : RESULT_SUCCESS),
                .fingerprint = object.fingerprint,
                .resource_version = object.resource_version,
                .message = fails ? "it is to fail" : "",
        };

        r = child_send(child, MESSAGE_DONE, &done);
        store_object_done(&object);
        if (worker->runs)
                (*worker->runs)++;
        return r;
}

static int on_message(struct child *child, struct message **message)
{
        return (*message)->type == MESSAGE_RUN ? run(child, &(*message)->run) : 0;
}

static const struct child_operations operations = {
        .role = ROLE_WORKER,
        .log_role = "worker",
        .parent_death_signal = SIGTERM,
        .on_config = on_config,
        .on_message = on_message,
};

int main(int argc, char **argv)
{
        struct bench_worker worker = {.runs = map_runs(getenv("RECONCILED_BENCH_RUNS"))};
        struct child child;
        int r = child_init(&child, &operations, argc, argv);

        if (r < 0) {
                child_done(&child);
                return r == -ECANCELED ? EXIT_CODE_OK : EXIT_CODE_USAGE;
        }
        child.userdata = &worker;
        r = child_run(&child);
        for (size_t i = 0; worker.reader && i < worker.config->config_worker.watch_count; i++)
                store_free(worker.reader[i]);
        free(worker.reader);
        message_free(worker.config);
        child_done(&child);
        return r;
}
