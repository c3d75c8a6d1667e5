/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker whose handler does nothing and costs nothing: it reads the object, as every worker does, and says
 * DONE. What remains is the runtime itself. It takes the place of reconciled-worker for one benchmark, and
 * adds what it did to the number in the file that RECONCILED_BENCH_RUNS names: who waits for the end of it
 * need not ask the supervisor, whose time is being measured.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/exit-code.h"
#include "ipc/child.h"
#include "store/store.h"

struct bench_worker {
        struct message *config;
        struct store *reader;
        _Atomic uint64_t *runs; /* of all workers; NULL: nobody counts */
};

static _Atomic uint64_t *map_runs(const char *path)
{
        _cleanup_close_ int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
        void *address;

        if (fd < 0)
                return NULL;
        address = mmap(NULL, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        return address == MAP_FAILED ? NULL : address;
}

static int on_config(struct child *child, struct message **config)
{
        struct bench_worker *worker = child->userdata;

        if ((*config)->type != MESSAGE_CONFIG_WORKER || (*config)->config_worker.watch_count != 1)
                return -EPROTO;
        worker->config = TAKE_PTR(*config);
        return store_reader_new(worker->config->config_worker.watch[0].store_folder, &worker->reader) < 0
                       ? -EIO
                       : 1;
}

static int run(struct child *child, const struct message_run *order)
{
        struct bench_worker *worker = child->userdata;
        struct store_object object = {0};
        int r = store_read(worker->reader, order->generation, order->key, &object);
        struct message_done done = {
                .sequence = order->sequence,
                .watch = order->watch,
                .key = order->key,
                .uid = order->uid,
                .result = (uint64_t)(r < 0 ? RESULT_RETRY : RESULT_SUCCESS),
                .fingerprint = object.fingerprint,
                .resource_version = object.resource_version,
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
        store_free(worker.reader);
        message_free(worker.config);
        child_done(&child);
        return r;
}
