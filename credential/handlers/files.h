/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The files in a handler's folder: copies of the files that it was promised, its kubeconfig, its token. */
#include <systemd/sd-event.h>

#include "credential/state.h"

#define HANDLER_FILE_MAX ((size_t)1024 * 1024)

/* Reads a kubeconfig that a handler can be given: without a plugin, and without what is not handed on.
 * separate: for a user who may not read all that the operator does. Errors as of kubeconfig_load(). */
int handler_files_load_kubeconfig(const char *path, bool separate, struct kubeconfig *ret,
                                  struct error *error);
/* Copies all that the configuration names into the handler's folder, and goes on behind what cannot be had;
 * the first error is returned, with the key or the file in it. */
int handler_files_copy(const struct access *access, struct error *error);
/* Writes a kubeconfig, and its token as a file of its own, which client libraries read again. token: of a
 * service account; NULL: that of `config`. 0 or a negative errno with the path in the error. */
int handler_files_write_kubeconfig(const struct access *access, const struct kubeconfig *config,
                                   const char *token, struct error *error);
/* Writes the kubeconfig for the token that is there: server or certificates may be others. A failure is
 * logged. */
void handler_files_rewrite(const struct access *access);

/* What the handler of one watch is given for itself. */
struct access {
        struct credential *credential;
        const struct record_access *config;
        char *files_trouble; /* why a file of it cannot be read now; NULL: all is well */
        /* Of a service account: */
        char *namespace_name;
        struct kube_transfer *transfer;
        sd_event_source *timer, *expiry; /* the next request; the end of what it has */
        uint64_t expires_boottime, expires_realtime;
        uint64_t failing_boottime;           /* since when; 0: it does not */
        unsigned failures;                   /* in a row */
        char *account_trouble, *account_why; /* what is told; why the last attempt has failed */
        int exit_code;                       /* what that would come to past the deadline */
};

/* Whether the handler has what it is to have: a token, where it is to act as a service account, that has not
 * expired. */
bool access_is_usable(const struct access *access);
/* Tells the supervisor how it stands (ACCESS). */
void access_tell(struct access *access);
