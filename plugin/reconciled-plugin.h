/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RECONCILED_PLUGIN_H
#define RECONCILED_PLUGIN_H
/*
 * A handler as a shared object, in C or whatever speaks its ABI:
 *
 *     handler: {plugin: /usr/lib/widgets/widgets.so}
 *
 * It exports one function, reconciled_plugin(), which returns a table of what it can do. It is loaded by a
 * process of its own, reconciled-plugin-host, one for each worker: a crash or a run over its timeout costs
 * that process its life and nothing else. Calls come one at a time, all on the thread that loaded it.
 *
 * stdout and stderr are logged line by line with the object's fields. Descriptor 0 is /dev/null. SIGTERM has
 * its default disposition while run() is called. See reconciled-handler(7) for requests and answers.
 *
 * The ABI: a member is never moved or removed within a version; a new version is a new number, and a host
 * refuses, by name of both numbers, a plugin whose version it does not know.
 */
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RECONCILED_PLUGIN_VERSION 1

/* Everything is the host's, and valid until run() returns. Texts are never NULL. */
struct reconciled_request {
        const char *json; /* the whole request, NUL-terminated */
        size_t json_size; /* without the NUL */
        const char *action, *namespace_name, *name, *uid;
        uint64_t attempt;
};

/* NULL, or memory of malloc() that the host frees. */
struct reconciled_answer {
        char *json;  /* when run() returns RECONCILED_DONE: the answer, one JSON object; NULL: nothing to say
                      */
        char *error; /* otherwise: why, for people */
};

/* What run() returns; the same numbers as the exit statuses of other handlers. Any other: as RETRY. */
enum reconciled_result {
        RECONCILED_DONE = 0,
        RECONCILED_PERMANENT = 65, /* it will fail until the object changes */
        RECONCILED_RETRY = 75,
};

struct reconciled_plugin {
        uint32_t version; /* RECONCILED_PLUGIN_VERSION */
        /* Once, before the first run; may be NULL. `state` is passed to the others. Not 0: it cannot work,
         * and has said on stderr why; the host ends, and is started again with a pause that grows. */
        int (*start)(void **state);
        int (*run)(void *state, const struct reconciled_request *request, struct reconciled_answer *answer);
        /* Once, when the process is ended in order; may be NULL. */
        void (*stop)(void *state);
};

/* The one function that a plugin exports. The table lives as long as the plugin is loaded. */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const struct reconciled_plugin *
reconciled_plugin(void);

#ifdef __cplusplus
}
#endif
#endif
