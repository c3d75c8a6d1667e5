/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker whose handler does nothing and costs nothing: it reads the object, as every worker does, and says
 * DONE. What remains is the runtime itself. It takes the place of reconciled-worker for one benchmark.
 */
#include <errno.h>
#include <string.h>

#include "base/exit-code.h"
#include "ipc/child.h"
#include "store/store.h"

struct bench_worker {
        struct message *config;
        struct store *reader;
};

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
        struct bench_worker worker = {0};
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
