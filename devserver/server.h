/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The devserver's one struct and what a request goes through: http.c reads it whole, server_handle() is the
 * one place that every request passes (authentication, request log), then discovery, list, watch or an
 * object's verb.
 */
#include <microhttpd.h>
#include <systemd/sd-event.h>

#include "base/error.h"
#include "devserver/storage.h"

struct server;

struct request {
        struct server *server;
        struct MHD_Connection *connection;
        const char *method, *url;
        struct text body;
        struct resource *resource;
        /* From the URL. Owned. */
        char *group, *version, *namespace_name, *plural, *name, *subresource;
        /* The answer. */
        int status;
        struct text answer;
        const char *content_type;
        struct watch *watch; /* instead of an answer */
        const char *verb;    /* "list", "watch" ... "discovery" */
        struct fault *fault[16];
        size_t fault_count;
        long retry_after; /* header; 0: as the status has it, -1: none */
        struct flow *flow;
        bool logged, too_large;
        bool hang, drop; /* no answer: the connection stays open, or breaks */
};

struct snapshot {
        struct snapshot *next;
        uint64_t id, resource_version;
        struct resource *resource;
        struct version **object;
        size_t count;
};

/* What the collector has to look at. */
struct gc_list {
        struct gc_entry *entry;
        size_t count, allocated;
};

struct fault;
struct fault_match;
struct flow;
struct connection;
struct backup;
struct account_token;

struct server {
        struct storage storage;
        sd_event *event;
        struct MHD_Daemon *daemon;
        struct watch *watch;
        struct snapshot *snapshot;
        uint64_t last_snapshot;
        struct fault *fault;
        uint64_t last_fault;
        struct flow *flow;
        struct connection *connection;
        struct backup *backup;
        char *token;
        struct account_token *account_token; /* all that were handed out and have not expired */
        uint64_t token_life_usec;            /* at most; 0: as long as is asked for */
        FILE *request_log;
        uint64_t bookmark_usec;
        bool watch_list; /* sendInitialEvents works */
        bool load_as_is; /* what a cluster made of the objects stays; what is missing for them is made up */
        unsigned version_minor; /* the claimed version: 1.N */
        struct gc_list gc;
        char *certificate, *key;             /* PEM, with TLS */
        char *authority, *authority_key;     /* PEM; what signed it, where the server did so itself */
        char *url, *kubeconfig;              /* of the kubeconfig: its path, or NULL */
        bool certificate_due, authority_due; /* to be renewed when the request is answered */
        sd_event_source *run_source, *run_timer, *epoll_source, *renew_source;
};

const char *request_argument(const struct request *request, const char *name); /* NULL when absent */
bool request_flag(const struct request *request, const char *name);

/* http.c */
int http_start(struct server *server, const char *address, uint16_t port,
               struct error *error); /* sets url */
void http_stop(struct server *server);
void http_run_soon(struct server *server); /* something was resumed */
/* When this request is answered: a new certificate, by the same or a new authority; connections break. */
void http_renew_certificate_soon(struct server *server, bool new_authority);

/* connections.c */
void connections_note(void *userdata, struct MHD_Connection *connection, void **state,
                      enum MHD_ConnectionNotificationCode code);
void connections_break(struct server *server, const struct MHD_Connection *except);

/* control.c: true: it was a request to the server itself, and is answered. */
bool control_handle(struct request *request);

/* backup.c */
uint64_t backup_take(struct server *server); /* its id; 0: no memory */
bool backup_restore(struct server *server, uint64_t id);
void backups_free(struct server *server);

/* kubeconfig.c: writes server->kubeconfig, if there is one, atomically. */
int kubeconfig_write(const struct server *server, struct error *error);

/* routes.c */
void server_handle(struct request *request);

/* status.c */
void answer_json(struct request *request, int status, cJSON *body); /* takes the body */
void answer_raw(struct request *request, int status, const char *json);
void answer_status(struct request *request, int code, const char *reason, const char *format, ...)
        _printf_(4, 5);
void answer_status_causes(struct request *request, int code, const char *reason, cJSON *causes,
                          const char *message);
void answer_not_found(struct request *request);
cJSON *status_object(int code, const char *reason, const char *message);

/* discovery.c */
bool discovery_handle(struct request *request);

/* list.c, watch.c */
void list_handle(struct request *request);
struct selector *list_selector(struct request *request);         /* NULL: answered */
void answer_too_large(struct request *request, uint64_t wanted); /* 504, with its cause */
bool version_is_number(const char *version);
/* The keys that the request's namespace and selectors choose, each with its NUL; answers on an error. */
void list_collect_keys(struct request *request, struct text *keys);
void snapshots_free(struct server *server);
void watch_handle(struct request *request);
void watch_on_event(const struct event *event, void *userdata);
void watch_on_forget(const struct event *event, void *userdata);
struct MHD_Response *watch_response(struct watch *watch);
void watches_end(struct server *server, const struct resource *resource); /* NULL: all */
/* Those whose request matches (NULL: all): the connection breaks, or the stream ends in order. */
void watches_cut(struct server *server, const struct fault_match *match, bool cut);
int watches_start(struct server *server); /* bookmarks and timeouts */

/* objects.c */
void object_handle(struct request *request);
void object_create(struct request *request);
void object_delete(struct request *request, const char *key);
void object_delete_collection(struct request *request);
/* Adds what the server gives every new object; used by --load and by the server itself as well. */
struct version *object_insert(struct server *server, struct resource *resource, const char *namespace_name,
                              cJSON *object);
/* delete.c */
enum propagation { PROPAGATION_BACKGROUND, PROPAGATION_FOREGROUND, PROPAGATION_ORPHAN };

void object_request_delete(struct server *server, struct resource *resource, const char *key,
                           enum propagation propagation);
/* Whether an object whose deletion was asked for must stay: finalizers, what blocks it, what is in it. */
bool object_is_held(struct server *server, const cJSON *object);
/* Removes it. `last`: its last state, or NULL for the one that is stored. */
void object_finish_delete(struct server *server, struct resource *resource, const char *key, cJSON *last);
/* Removes it, if its deletion was asked for and nothing holds it any more. */
void object_finish_if_free(struct server *server, struct resource *resource, const char *key);

/* gc.c */
void gc_look_later(struct server *server, struct resource *resource, const char *key);
void gc_look_at_dependents(struct server *server, const char *uid);
void gc_look_at_owners(struct server *server, const cJSON *object);
void gc_run(struct server *server); /* until there is nothing left to look at */
void gc_done(struct server *server);
bool gc_is_blocked(const struct server *server,
                   const char *uid);                    /* by a reference with blockOwnerDeletion */
void gc_orphan(struct server *server, const char *uid); /* its dependents forget it */

/* crd.c */
void crd_changed(struct server *server, const cJSON *crd);
/* Whose objects a CRD's are; NULL: it is not served. `name`: "widgets.example.com". */
struct resource *crd_table(struct server *server, const char *name);
void crd_deleted(struct server *server, const cJSON *crd);
void crd_add_status(cJSON *crd);
/* A definition for a kind that has none, made up from one object of it: any content, with a status. NULL: no
 * memory, or nothing that could be a custom resource. */
struct resource *crd_make_up(struct server *server, const char *api_version, const char *kind,
                             bool namespaced);

/* objects.c: roles and their bindings take any segment of a path, all others a DNS-1123 subdomain. */
bool object_name_is_valid(const struct resource *resource, const char *name);

/* builtin.c */
void builtin_add(struct server *server);
void builtin_renew_identity(struct server *server); /* kube-system gets another UID */

/* token.c: of service accounts */
void account_token_handle(struct request *request);
bool account_token_is_valid(struct server *server, const char *text);
void account_tokens_free(struct server *server);

/* load.c */
cJSON *load_yaml_or_json(const struct text *text); /* NULL: neither */
int load_file(struct server *server, const char *path, struct error *error);
/* "namespace/name": is made if it is not there, and its namespace as well. */
int load_account(struct server *server, const char *account, struct error *error);
/* A file that is a list: each entry with its line. */
typedef int (*load_entry_t)(const cJSON *entry, size_t line, void *userdata, struct error *error);
int load_list(const char *path, load_entry_t take, void *userdata, struct error *error);

/* tls.c */
/* A new certificate in server->certificate and ->key, signed by server->authority, which is made when there
 * is none or a new one is wanted. */
int tls_make(struct server *server, bool new_authority, struct error *error);
