/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The files in a handler's folder: copies of the files that it was promised, its kubeconfig, its token. */
#include <systemd/sd-event.h>

#include "credential/state.h"

#define HANDLER_FILE_MAX ((size_t)1024 * 1024)

/* Reads a kubeconfig for a handler: one with a plugin, or with settings that cannot be handed on, is refused.
 * separate: for a user who may not read all that the operator does. Errors as of kubeconfig_load(). */
int handler_files_load_kubeconfig(const char *path, bool separate, struct kubeconfig *ret,
                                  struct error *error);
/* Copies all that the configuration names into the handler's folder, and goes on after what cannot be had;
 * the first error is returned, with the key or the file in it: the first that is the administrator's to mend, if
 * there is one. *ret_passing: there is none, since others than root and we decide about each source that cannot be
 * had (file_is_of_others()), or somebody has a lease on it. */
int handler_files_copy(const struct access *access, bool *ret_passing, struct error *error);
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
        bool files_there;    /* each has been copied since the start: what is lost later stays in use */
        /* If the handler acts as a service account: */
        char *namespace_name;
        struct kube_transfer *transfer;
        sd_event_source *timer, *expiry; /* times of the next request, and of the token's end */
        uint64_t expires_boottime, expires_realtime;
        uint64_t failing_boottime;           /* since when it fails; 0 if it does not */
        unsigned failures;                   /* in a row */
        char *account_trouble, *account_why; /* what was reported; why the last attempt has failed */
        int exit_code;                       /* exit code if the trouble lasts past the deadline */
};

/* Whether it has a token that has not expired, if it is to act as a service account. */
bool access_has_token(const struct access *access);
/* Whether the handler has all that it is to have: the files, and that token. */
bool access_is_usable(const struct access *access);
/* Reports the state to the supervisor (ACCESS). */
void access_tell(struct access *access);
