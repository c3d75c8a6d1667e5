/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The insides of a session. Private to ctl/session/. */
#include <systemd/sd-event.h>

#include "base/siphash.h"
#include "children/child-process.h"
#include "ctl/session/session.h"
#include "ctl/session/tty.h"

enum { PLACE_CREDENTIAL, PLACE_WORKER, PLACE_WATCHERS };

struct session_process {
        struct session *session;
        struct child_process child;
        const struct config_watch *watch; /* of a watcher */
        char *store_folder;
        bool synced;
};

struct key {
        char *key, *uid;
};

struct session {
        struct session_options options;
        const char *kubeconfig;
        sd_event *event;
        char *folder, *trace, *requests;
        struct session_process *process;
        size_t process_count;
        struct message *credential;
        uint8_t hash_key[SIPHASH_KEY_SIZE]; /* of this session alone */
        struct key *key;
        const struct session_replay *replay;
        size_t key_count, next, replay_count;
        bool knows_previous;      /* there is an operator that does */
        char *previous_version;   /* of the run that is next; NULL */
        unsigned tries;           /* of the run that is next, with on_run */
        struct message *settling; /* the DONE of a run that goes on */
        sd_event_source *again;
        char *access_folder; /* what the handler is given for itself */
        bool has_token;      /* of the handler's service account */
        struct tty *tty;     /* NULL: the handler gets no terminal */
        bool started, stopping;
        int exit_code;
};

/* session-config.c: sends a process its configuration. 0 or a negative errno. */
int session_configure(struct session_process *process);
/* ask-previous.c: where the running operator keeps `previous`, owned by the caller, or ""; and which version of an object counts
 * (session->previous_version). 0 or -ENOMEM. */
int session_find_previous(struct session *session, char **ret_folder);
int session_ask_previous(struct session *session, const char *key, const char *uid);
