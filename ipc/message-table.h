/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one table of everything that processes say to each other. The structs, the encoder, the decoder, the
 * permission check, the names and the fuzz dictionary derive from it; there is no second list to keep in
 * step. No include guard is needed: this file defines macros only, once.
 *
 * A message is one packet: a msgpack array [type, field ...], each field as the table says, nothing missing,
 * nothing more. A record is a msgpack array of its fields; a list is a msgpack array of records.
 *
 * Field kinds, given as macro arguments to each *_FIELDS macro:
 *   U64(name)           unsigned integer                   uint64_t name
 *   ENUM(type, count, name)  one of enum `type`, below `count`  enum type name
 *   BOOL(name)          boolean                            bool name
 *   STR(name)           UTF-8 text without NUL, never nil  const char *name ("" when there is none)
 *   BIN(name)           bytes                              const void *name; size_t name_size
 *   LIST(record, name)  list of record                     const struct record_<record> *name; size_t
 *                                                          name_count
 *
 * Times are microseconds: *_usec durations, *_realtime CLOCK_REALTIME (0 = none), *_boottime
 * CLOCK_BOOTTIME. A fingerprint is a keyed hash of what may trigger a run (lib/object/fingerprint.h); 0 = none.
 * A key is "namespace/name", or "name" for a cluster-scoped object.
 */
#pragma once

/* ---- records: RECORD_TABLE(R) lists R(record); an inner record comes before the one that uses it. */
#define RECORD_TABLE(R)                                                                                     \
        R(string)                                                                                           \
        R(header)                                                                                           \
        R(pair)                                                                                             \
        R(access)                                                                                           \
        R(counter)                                                                                          \
        R(change)                                                                                           \
        R(owed)                                                                                             \
        R(doubt)                                                                                            \
        R(handled)                                                                                          \
        R(metric)                                                                                           \
        R(write)                                                                                            \
        R(kind)                                                                                             \
        R(watch)

#define RECORD_string_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST) STR(value)

/* A header of every request to the API server, such as Impersonate-User. */
#define RECORD_header_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                               \
        STR(name)                                                                                           \
        STR(value)

/* A variable of a handler's environment, which may be a secret; or a name and a path. */
#define RECORD_pair_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                                 \
        STR(name)                                                                                           \
        STR(value)

/* What the handler of a watch is given for itself alone: the files of `folder`, which is there. key: where
 * the configuration says so, for errors. user: whom the files are for beside us, if `separate`. kubeconfig:
 * a file, or "". account, account_namespace: a service account; "" = none, "" = our own. deadline_usec: of
 * the watch. */
#define RECORD_access_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                               \
        STR(watch)                                                                                          \
        STR(key)                                                                                            \
        STR(folder)                                                                                         \
        BOOL(separate)                                                                                      \
        U64(user)                                                                                           \
        LIST(pair, credential)                                                                              \
        STR(kubeconfig)                                                                                     \
        STR(account)                                                                                        \
        STR(account_namespace)                                                                              \
        U64(deadline_usec)

#define RECORD_counter_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                              \
        STR(name)                                                                                           \
        U64(value)

/* A key that may need a run. kind: enum change_kind. resource_version: of CHANGE_CHILD those of the children that have
 * changed, "10.15.-20" (-: the last one of a child that is gone), or "" if that is unknown. first: part of a first sync or a relist, not an event;
 * of CHANGE_UNSELECTED: it is of another kind of object, so nothing can be said about it. finalizer: enum
 * finalizer_state.
 */
#define RECORD_change_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                               \
        U64(sequence)                                                                                       \
        ENUM(change_kind, CHANGE_KIND_COUNT, kind)                                                          \
        STR(key)                                                                                            \
        STR(uid)                                                                                            \
        STR(resource_version)                                                                               \
        U64(fingerprint)                                                                                    \
        BOOL(first)                                                                                         \
        ENUM(finalizer_state, FINALIZER_STATE_COUNT, finalizer)

/* An object that the ledger knows: the watcher says what became of it if it is gone. */
#define RECORD_owed_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                                 \
        STR(key)                                                                                            \
        STR(uid)

/* An object that the watcher has died or hung over. unread: its content is not read at all; otherwise only
 * the jq programs of the watch are not run on it. */
#define RECORD_doubt_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                                \
        STR(key)                                                                                            \
        STR(uid)                                                                                            \
        BOOL(unread)                                                                                        \
        U64(until_boottime)

/* What a run did to a child of its object: "ConfigMap default/a". fields: names of those that were changed, or "". */
#define RECORD_write_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                                \
        ENUM(child_write, CHILD_WRITE_COUNT, what)                                                          \
        STR(object)                                                                                         \
        STR(fields)

/* A metric of a handler. labels, buckets: as of metric/metric-rule.h ("" = none); value: the bits of a double. */
#define RECORD_metric_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                               \
        ENUM(metric_action, METRIC_ACTION_COUNT, action)                                                    \
        STR(name)                                                                                           \
        STR(labels)                                                                                         \
        U64(value)                                                                                          \
        STR(buckets)

/* A kind of objects that an answer may write beside its own object. namespace: where, as patterns, beside the namespace of the
 * object itself. */
#define RECORD_kind_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                                 \
        STR(api_version)                                                                                    \
        STR(kind)                                                                                           \
        LIST(string, namespace)

/* The deletion of exactly this object is handled and recorded: its last known state may be forgotten. */
#define RECORD_handled_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                              \
        U64(sequence)                                                                                       \
        STR(key)                                                                                            \
        STR(uid)

/* A watch as a worker needs to know it. own_action: "schedule" or "startup" if its object is the operator's own, else "". owner:
 * of a watch of owned objects the watch of their owners, else "". trigger: enum trigger; handler_kind: enum handler_kind;
 * unselected: the handler is told of objects that are not selected any more; confidential: its objects are kept in memory, and
 * nobody quotes them; rollback: what a failed attempt did to children is undone, within settle_usec; finalizer: the watch wants
 * ours on each object; releases: it does not, and no other watch of its kind does: ours is left over, and taken off; id,
 * finalizer_key, children_key: what it notes on objects, and under which names; shared, conditions: as of bookkeeping.h;
 * namespace, label_selector, field_selector, filter: what it selects, told where it is not the kind's only watch; handler_exec:
 * its command, of a plugin its file; environment: variables for the handler beside those that every handler gets;
 * credentials_folder: files for it alone ("": none); kubernetes: a kubeconfig is one of them; parallel: requests that its
 * process has at once; batch_max: requests in one call, with batch_wait_usec to gather them (0: none); recycle_*: after so many
 * runs, above so many bytes (0: never); user: as whom the handler runs ("": as we do); request_max: bytes of a request;
 * user_pids: all that run as its user; limit_*: bytes, processes, thousandths of a CPU (0: none). */
#define RECORD_watch_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                                \
        STR(name)                                                                                           \
        STR(api_version)                                                                                    \
        STR(kind)                                                                                           \
        STR(own_action)                                                                                     \
        STR(owner)                                                                                          \
        BOOL(related)                                                                                       \
        STR(related_names)                                                                                  \
        ENUM(trigger, TRIGGER_COUNT, trigger)                                                               \
        STR(trigger_jq)                                                                                     \
        STR(store_folder)                                                                                   \
        ENUM(handler_kind, HANDLER_KIND_COUNT, handler_kind)                                                \
        LIST(string, handler_exec)                                                                          \
        LIST(pair, environment)                                                                             \
        STR(credentials_folder)                                                                             \
        BOOL(kubernetes)                                                                                    \
        BOOL(finalizer)                                                                                     \
        BOOL(releases)                                                                                      \
        STR(id)                                                                                             \
        STR(finalizer_key)                                                                                  \
        STR(finalizers)                                                                                     \
        STR(children_key)                                                                                   \
        STR(patched_key)                                                                                    \
        LIST(kind, child_kinds)                                                                             \
        LIST(kind, patched_kinds)                                                                           \
        STR(shared)                                                                                         \
        STR(conditions)                                                                                     \
        LIST(string, namespace)                                                                             \
        STR(label_selector)                                                                                 \
        STR(field_selector)                                                                                 \
        STR(filter)                                                                                         \
        STR(ready_condition)                                                                                \
        BOOL(events)                                                                                        \
        BOOL(metadata_only)                                                                                 \
        BOOL(confidential)                                                                                  \
        BOOL(unselected)                                                                                    \
        BOOL(rollback)                                                                                      \
        U64(wait_usec)                                                                                      \
        U64(settle_usec)                                                                                    \
        BOOL(children_force)                                                                                \
        BOOL(children_adopt)                                                                                \
        BOOL(children_events)                                                                               \
        BOOL(children_heirs)                                                                                \
        BOOL(prune_before)                                                                                  \
        U64(parallel)                                                                                       \
        U64(batch_max)                                                                                      \
        U64(batch_wait_usec)                                                                                \
        U64(recycle_runs)                                                                                   \
        U64(recycle_memory)                                                                                 \
        STR(user)                                                                                           \
        STR(home)                                                                                           \
        U64(uid)                                                                                            \
        U64(gid)                                                                                            \
        U64(limit_memory)                                                                                   \
        U64(request_max)                                                                                    \
        U64(user_pids)                                                                                      \
        U64(limit_pids)                                                                                     \
        U64(limit_cpu_milli)                                                                                \
        U64(handler_timeout_usec)                                                                           \
        U64(handler_grace_usec)                                                                             \
        STR(previous_folder) U64(previous_max)

/* ---- messages: M(NAME, name, senders, receivers, size cap in bytes, states of the child in which it may be
 * sent). For CONTROL messages the states do not apply (their rows have CHILD_RUNNING). */
#define MESSAGE_SIZE_MAX (200 * 1024)

#define MESSAGE_TABLE(M)                                                                                    \
        /* children to supervisor */                                                                        \
        M(HELLO, hello, ROLE_CHILDREN, ROLE_SUPERVISOR, 256, CHILD_STARTING | CHILD_STOPPING)               \
        M(READY, ready, ROLE_CHILDREN, ROLE_SUPERVISOR, 64, CHILD_CONFIGURED | CHILD_STOPPING)              \
        M(HEARTBEAT, heartbeat, ROLE_CHILDREN, ROLE_SUPERVISOR, 8192,                                       \
          CHILD_CONFIGURED | CHILD_RUNNING | CHILD_STOPPING)                                                \
        M(FATAL, fatal, ROLE_CHILDREN, ROLE_SUPERVISOR, 16384,                                              \
          CHILD_STARTING | CHILD_CONFIGURED | CHILD_RUNNING | CHILD_STOPPING)                               \
        M(SIGNALLED, signalled, ROLE_CHILDREN, ROLE_SUPERVISOR, 64,                                         \
          CHILD_STARTING | CHILD_CONFIGURED | CHILD_RUNNING | CHILD_STOPPING)                               \
        M(REFRESH, refresh, ROLE_WATCHER | ROLE_WORKER | ROLE_LEASE | ROLE_SUPERVISOR,                      \
          ROLE_SUPERVISOR | ROLE_CREDENTIAL, 256, CHILD_CONFIGURED | CHILD_RUNNING | CHILD_STOPPING)        \
        M(THROTTLE, throttle, ROLE_WATCHER | ROLE_WORKER | ROLE_SUPERVISOR,                                 \
          ROLE_SUPERVISOR | ROLE_WATCHER | ROLE_WORKER, 1024,                                               \
          CHILD_CONFIGURED | CHILD_RUNNING | CHILD_STOPPING)                                                \
        M(CREDENTIAL, credential, ROLE_CREDENTIAL | ROLE_SUPERVISOR,                                        \
          ROLE_SUPERVISOR | ROLE_WATCHER | ROLE_WORKER | ROLE_LEASE, MESSAGE_SIZE_MAX,                      \
          CHILD_CONFIGURED | CHILD_RUNNING | CHILD_STOPPING)                                                \
        M(ACCESS, access, ROLE_CREDENTIAL, ROLE_SUPERVISOR, 8192,                                           \
          CHILD_CONFIGURED | CHILD_RUNNING | CHILD_STOPPING)                                                \
        /* watcher to supervisor */                                                                         \
        M(KEYS, keys, ROLE_WATCHER, ROLE_SUPERVISOR, MESSAGE_SIZE_MAX, CHILD_RUNNING | CHILD_STOPPING)      \
        M(SYNCED, synced, ROLE_WATCHER, ROLE_SUPERVISOR, 4096, CHILD_RUNNING | CHILD_STOPPING)              \
        M(SWEPT, swept, ROLE_WATCHER, ROLE_SUPERVISOR, 1024, CHILD_RUNNING | CHILD_STOPPING)                \
        M(CHECKED, checked, ROLE_WATCHER, ROLE_SUPERVISOR, 4096, CHILD_RUNNING | CHILD_STOPPING)            \
        M(DEGRADED, degraded, ROLE_WATCHER, ROLE_SUPERVISOR, 8192, CHILD_RUNNING | CHILD_STOPPING)          \
        M(RECOVERED, recovered, ROLE_WATCHER, ROLE_SUPERVISOR, 1024, CHILD_RUNNING | CHILD_STOPPING)        \
        M(POSITION, position, ROLE_WATCHER, ROLE_SUPERVISOR, 2048, CHILD_RUNNING | CHILD_STOPPING)          \
        /* worker to supervisor */                                                                          \
        M(ANSWERED, answered, ROLE_WORKER, ROLE_SUPERVISOR, 64, CHILD_RUNNING | CHILD_STOPPING)             \
        M(MEASURED, measured, ROLE_WORKER, ROLE_SUPERVISOR, MESSAGE_SIZE_MAX,                               \
          CHILD_RUNNING | CHILD_STOPPING)                                                                   \
        M(DONE, done, ROLE_WORKER, ROLE_SUPERVISOR, MESSAGE_SIZE_MAX, CHILD_RUNNING | CHILD_STOPPING)       \
        M(REPORT, report, ROLE_WORKER | ROLE_SUPERVISOR, ROLE_SUPERVISOR | ROLE_WORKER, 8192,               \
          CHILD_RUNNING | CHILD_STOPPING)                                                                   \
        /* lease process to supervisor */                                                                   \
        M(LEASE, lease, ROLE_LEASE, ROLE_SUPERVISOR, 40960, CHILD_RUNNING | CHILD_STOPPING)                 \
        /* supervisor to children */                                                                        \
        M(LEAD, lead, ROLE_SUPERVISOR, ROLE_WORKER | ROLE_LEASE, 64, CHILD_RUNNING | CHILD_STOPPING)        \
        M(LASTING, lasting, ROLE_SUPERVISOR, ROLE_LEASE, 40960, CHILD_RUNNING)                              \
        M(RELEASE, release, ROLE_SUPERVISOR, ROLE_LEASE, 512, CHILD_RUNNING)                                \
        M(CONFIG_LEASE, config_lease, ROLE_SUPERVISOR, ROLE_LEASE, 4096, CHILD_STARTING)                    \
        M(CONFIG_CREDENTIAL, config_credential, ROLE_SUPERVISOR, ROLE_CREDENTIAL, MESSAGE_SIZE_MAX,         \
          CHILD_STARTING)                                                                                   \
        M(CONFIG_WATCHER, config_watcher, ROLE_SUPERVISOR, ROLE_WATCHER, MESSAGE_SIZE_MAX, CHILD_STARTING)  \
        M(CONFIG_WORKER, config_worker, ROLE_SUPERVISOR, ROLE_WORKER, MESSAGE_SIZE_MAX, CHILD_STARTING)     \
        M(CONFIG_GATEWAY, config_gateway, ROLE_SUPERVISOR, ROLE_GATEWAY, 16384, CHILD_STARTING)             \
        M(METRICS, metrics, ROLE_SUPERVISOR, ROLE_GATEWAY, MESSAGE_SIZE_MAX, CHILD_RUNNING)                 \
        M(STOP, stop, ROLE_SUPERVISOR, ROLE_CHILDREN, 64,                                                   \
          CHILD_STARTING | CHILD_CONFIGURED | CHILD_RUNNING)                                                \
        M(CREDIT, credit, ROLE_SUPERVISOR, ROLE_WATCHER, 1024, CHILD_RUNNING)                               \
        M(ASK, ask, ROLE_SUPERVISOR, ROLE_WATCHER, 64, CHILD_RUNNING)                                       \
        M(OWED, owed, ROLE_SUPERVISOR, ROLE_WATCHER, MESSAGE_SIZE_MAX, CHILD_RUNNING)                       \
        M(DOUBTFUL, doubtful, ROLE_SUPERVISOR, ROLE_WATCHER, MESSAGE_SIZE_MAX, CHILD_RUNNING)               \
        M(HANDLED, handled, ROLE_SUPERVISOR, ROLE_WATCHER, MESSAGE_SIZE_MAX, CHILD_RUNNING)                 \
        M(RUN, run, ROLE_SUPERVISOR, ROLE_WORKER, MESSAGE_SIZE_MAX, CHILD_RUNNING)                          \
        M(REPORTED, reported, ROLE_SUPERVISOR, ROLE_WORKER, 64, CHILD_RUNNING | CHILD_STOPPING)             \
        M(RECALL, recall, ROLE_SUPERVISOR, ROLE_WORKER, 1024, CHILD_RUNNING)                                \
        M(CANCEL, cancel, ROLE_SUPERVISOR, ROLE_WORKER, 1024, CHILD_RUNNING | CHILD_STOPPING)               \
        /* control socket */                                                                                \
        M(QUERY, query, ROLE_CONTROL, ROLE_SUPERVISOR, 8192, CHILD_RUNNING)                                 \
        M(REPLY, reply, ROLE_SUPERVISOR, ROLE_CONTROL, MESSAGE_SIZE_MAX, CHILD_RUNNING)

/* First words of a child. version: PROTOCOL_VERSION. */
#define MESSAGE_hello_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                               \
        U64(version)                                                                                        \
        STR(role)                                                                                           \
        U64(pid)

/* The child has its configuration and its loop runs. Watchers are ready before their first LIST. */
#define MESSAGE_ready_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST) U64(pid)

/* I am alive, and this is what I counted since my start (names as in metrics, snake_case). */
#define MESSAGE_heartbeat_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST) LIST(counter, counter)

/* I am about to exit with this code. The reason is one line for the person on call. blameless: what I was busy
 * with has nothing to do with it. */
#define MESSAGE_fatal_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                               \
        U64(exit_code)                                                                                      \
        STR(reason)                                                                                         \
        BOOL(blameless)

/* A process other than the supervisor has sent me SIGTERM. I go on; the supervisor knows whether that is a
 * part of a stop (of a whole control group) or somebody's mistake. */
#define MESSAGE_signalled_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                           \
        U64(sender_pid)                                                                                     \
        U64(sender_uid)

/* The API server answered 401 to the credential with this serial: get a fresh one. Requests that name an old
 * serial are ignored, so a 401 anywhere refreshes once for all. files: nobody was refused, but the files may
 * be others now. */
#define MESSAGE_refresh_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                             \
        U64(serial)                                                                                         \
        BOOL(files)

/* The API server said Retry-After: nobody sends a request to this resource ("group/plural"; "" = any)
 * before this time. */
#define MESSAGE_throttle_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                            \
        STR(resource)                                                                                       \
        U64(until_boottime)                                                                                 \
        STR(reason)

/* How to reach and convince the API server. PEM in memory, never a path. Empty = not used. Forwarded by the
 * supervisor as it came; every holder wipes it after use. identity: for people ("certificate CN=admin from
 * /etc/...": no secret in it). */
#define MESSAGE_credential_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                          \
        U64(serial)                                                                                         \
        STR(server)                                                                                         \
        STR(tls_server_name)                                                                                \
        BOOL(insecure)                                                                                      \
        STR(certificate_authority)                                                                          \
        STR(client_certificate)                                                                             \
        STR(client_key)                                                                                     \
        STR(token)                                                                                          \
        STR(username)                                                                                       \
        STR(password)                                                                                       \
        STR(proxy_url)                                                                                      \
        STR(default_namespace)                                                                              \
        LIST(header, header)                                                                                \
        STR(identity)

/* The state of a handler's own credentials. usable: they are there and have not expired, so it may run. reason: why something
 * cannot be had or renewed now, "" when all is well. exit_code: of what would end the operator past the deadline. since_boottime:
 * of the first failure in a row, 0 where no deadline holds (files); expires_realtime: of its token, 0 if it has none. */
#define MESSAGE_access_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                              \
        STR(watch)                                                                                          \
        BOOL(usable)                                                                                        \
        STR(reason)                                                                                         \
        U64(exit_code)                                                                                      \
        U64(failures)                                                                                       \
        U64(since_boottime)                                                                                 \
        U64(expires_realtime)

/* The supervisor asks a watcher how things stand now; POSITION answers with the same serial. */
#define MESSAGE_ask_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST) U64(serial)

/* How many objects the store holds, and how far the newest stream has come; "": nowhere yet.
 * missing_namespaces, refused_namespaces: that the watch names and that do not exist, or that it may not read, for
 * people; "": none is known. */
#define MESSAGE_position_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                            \
        U64(serial)                                                                                         \
        U64(objects)                                                                                        \
        STR(resource_version)                                                                               \
        STR(missing_namespaces)                                                                             \
        STR(refused_namespaces)

/* Keys that may need a run, within the credit that was given (each change costs one); there may be none.
 * generation: of the store. epoch: another one than before says that versions from before prove nothing now:
 * the database was restored, or may have been (controller/change/epoch.h). */
#define MESSAGE_keys_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                                \
        STR(watch)                                                                                          \
        U64(generation)                                                                                     \
        U64(epoch)                                                                                          \
        LIST(change, change)

/* The store holds a complete LIST and every change of it was announced or waits in the dirty index. Sent
 * after every LIST (relists included). generation: of the store. other_cluster: than the one of the ledger, so what is
 * missing counts as not deleted. */
#define MESSAGE_synced_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                              \
        STR(watch)                                                                                          \
        STR(resource_version)                                                                               \
        U64(objects)                                                                                        \
        U64(generation)                                                                                     \
        BOOL(other_cluster)                                                                                 \
        STR(cluster)                                                                                        \
        STR(scope)

/* Every object of the store has been announced once since the first sync. again: and once more since CREDIT
 * asked for it, together with objects that are not selected and carry our finalizer. unseen: why not all of
 * these could be looked at, else ""; another SWEPT follows once they could. */
#define MESSAGE_swept_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                               \
        STR(watch)                                                                                          \
        BOOL(again)                                                                                         \
        STR(unseen)

/* Every key of the OWED pages was compared; what is gone has been written to the dirty index (so it will be
 * announced). Only now may the ledger record this scope and cluster as the ones its rows belong to. */
#define MESSAGE_checked_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                             \
        STR(watch)                                                                                          \
        STR(cluster)                                                                                        \
        STR(scope)

/* The watch does not work at the moment; it is being retried. health: enum watch_health (not HEALTHY).
 * reason: one line with the server's answer. namespace_name: the one that is refused, of several; "" if all are in
 * trouble. exit_code: of what would have been fatal
 * (FAILED), or EXIT_CODE_IO as soon as confidential objects find no room in memory; else 0. */
#define MESSAGE_degraded_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                            \
        STR(watch)                                                                                          \
        ENUM(watch_health, WATCH_HEALTH_COUNT, health)                                                      \
        U64(exit_code)                                                                                      \
        STR(reason)                                                                                         \
        STR(namespace_name)                                                                                 \
        U64(since_realtime)                                                                                 \
        U64(failures)

#define MESSAGE_recovered_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST) STR(watch)

/* How far a run is. waits: for the API server, or among others for one handler, and the worker is free for others: before its
 * handler's end, if that takes longer than a moment; after that, `answered`. first_of_watch: it waits for its process, and in
 * this worker no other run of its watch is to begin before it. waits false: its handler's turn has come. Not said of a run that
 * ends at once. busy_usec: for how long nobody else could have the worker. */
#define MESSAGE_answered_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                            \
        U64(sequence)                                                                                       \
        BOOL(waits)                                                                                         \
        BOOL(answered)                                                                                      \
        BOOL(first_of_watch)                                                                                \
        U64(busy_usec)

/* What became of a RUN. action: enum run_action, as it was run (finalize for an object that is being deleted). result: enum
 * run_result. fingerprint, resource_version, uid: of the object that was actually read. own_resource_version, own_fingerprint:
 * of the object after our last own write ("" and 0 when nothing was written): that change triggers no run. known_version: up to
 * this version every change since what was read is our own; 0 = none. requeue_after_usec: 0 = none; of RESULT_RETRY, in the
 * place of the backoff. message: of the handler, or the error. changed: an attempt was undone, and the object is another one now
 * than that which failed: it runs at once. related: fingerprint of the related objects that the handler was shown; 0 = the watch
 * has none. busy_usec: as of ANSWERED, and of the whole run. wait_status: of the handler process (0 when none ran). settling: of
 * RESULT_SETTLING: what the worker must know to go on, opaque to others, kept in the ledger until another result comes;
 * settle_after_usec: when. handler_failed: it says so itself, by its end or its answer, whatever became of what it wants
 * written. http_status: of the last request of the run that was refused; 0 = none. held_usec: for how long Retry-After still
 * holds back what the run needed; 0 = nothing was held back. kinds: of its children, with their number, as RUN gets them the
 * next time; kinds_known: false = as before. handler_*: what the handler has used in this run, and whether it was ended for lack
 * of memory. not_started: of RESULT_UNAVAILABLE: its program is what was not available. unanswered: a write of the run had no
 * answer: the server may carry it out yet. given_version: of RESULT_SUCCESS: RUN's next previous_version; "" = what the handler was
 * given is not kept. write: what the run did to children, in order; writes_left_out: how many more. */
#define MESSAGE_done_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                                \
        U64(sequence)                                                                                       \
        ENUM(run_action, ACTION_COUNT, action)                                                              \
        STR(watch)                                                                                          \
        STR(key)                                                                                            \
        STR(uid)                                                                                            \
        ENUM(run_result, RESULT_COUNT, result)                                                              \
        U64(http_status)                                                                                    \
        U64(fingerprint)                                                                                    \
        STR(resource_version)                                                                               \
        U64(own_fingerprint)                                                                                \
        STR(own_resource_version)                                                                           \
        U64(known_version)                                                                                  \
        U64(related)                                                                                        \
        BOOL(changed)                                                                                       \
        STR(kinds)                                                                                          \
        BOOL(kinds_known)                                                                                   \
        U64(requeue_after_usec)                                                                             \
        STR(message)                                                                                        \
        STR(settling)                                                                                       \
        U64(settle_after_usec)                                                                              \
        U64(held_usec)                                                                                      \
        U64(duration_usec)                                                                                  \
        U64(busy_usec)                                                                                      \
        U64(handler_cpu_usec)                                                                               \
        U64(handler_memory_peak)                                                                            \
        BOOL(handler_out_of_memory)                                                                         \
        U64(wait_status)                                                                                    \
        BOOL(handler_ran)                                                                                   \
        BOOL(handler_failed)                                                                                \
        BOOL(unanswered) BOOL(not_started) STR(given_version) LIST(write, write) U64(writes_left_out)

/* What an answer of the watch's handler has under `metrics`: before the DONE of its run. */
#define MESSAGE_measured_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                            \
        STR(watch)                                                                                          \
        LIST(metric, metric)

/* deadline_usec: how long the first credential may take. access_folder: has those of `access`; "": there are
 * none. */
#define MESSAGE_config_credential_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                   \
        STR(kubeconfig)                                                                                     \
        STR(context)                                                                                        \
        STR(access_folder)                                                                                  \
        LIST(access, access)                                                                                \
        U64(deadline_usec)                                                                                  \
        U64(heartbeat_usec)

/* known_scope, known_cluster: what the ledger's rows belong to ("" = no row yet). finalizer: our own, left out of the
 * fingerprint; shared, conditions: what else is (bookkeeping.h); holds: the watch wants it on each object; releases: where it is
 * left over it is taken off; searches: objects that the watch does not select and that have it count as having left now, as the
 * ledger was lost. namespace: names, or patterns with * and ?, or those that "!" takes out again. required: the resource must be
 * served; otherwise its absence is a state (ABSENT) without a deadline. isolate: past the deadline this watch alone has failed
 * (FAILED), and goes on trying. stall: how long a watch that has had a bookmark may be silent. watch_timeout: of one watch,
 * spread up to twice as much. initial_events: how long a streamed list may be silent before its end. memory_max: its objects are
 * confidential: the store lies in memory and takes no more bytes; 0: on a disk. slot_file, slot: where it notes which object it
 * is reading (lib/os/slot.h); "" = nowhere. owner_kind: of a watch of owned objects: their changes are announced as changes of
 * owners of this kind; "" otherwise; related: they are not owned: their own keys are announced. own_name: its one object, a
 * ConfigMap that the watcher makes, in the only namespace that it has; "": others make its objects; own_action: what its handler
 * is told (run_told_action()). */
#define MESSAGE_config_watcher_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                      \
        STR(operator_name)                                                                                  \
        STR(watch)                                                                                          \
        STR(api_version)                                                                                    \
        STR(kind)                                                                                           \
        STR(own_name)                                                                                       \
        STR(own_action)                                                                                     \
        LIST(string, namespace)                                                                             \
        STR(label_selector)                                                                                 \
        STR(field_selector)                                                                                 \
        BOOL(metadata_only)                                                                                 \
        BOOL(required)                                                                                      \
        BOOL(isolate)                                                                                       \
        ENUM(trigger, TRIGGER_COUNT, trigger)                                                               \
        STR(trigger_jq)                                                                                     \
        STR(filter)                                                                                         \
        STR(owner_api_version)                                                                              \
        STR(owner_kind)                                                                                     \
        BOOL(related)                                                                                       \
        STR(store_folder)                                                                                   \
        U64(memory_max)                                                                                     \
        STR(slot_file)                                                                                      \
        U64(slot)                                                                                           \
        STR(finalizers)                                                                                     \
        STR(shared)                                                                                         \
        STR(conditions)                                                                                     \
        BOOL(holds)                                                                                         \
        BOOL(releases)                                                                                      \
        BOOL(searches)                                                                                      \
        STR(known_scope)                                                                                    \
        STR(known_cluster)                                                                                  \
        U64(deadline_usec)                                                                                  \
        U64(reconnect_first_usec)                                                                           \
        U64(reconnect_max_usec)                                                                             \
        U64(stall_usec)                                                                                     \
        U64(watch_timeout_usec)                                                                             \
        U64(initial_events_usec)                                                                            \
        U64(page_limit)                                                                                     \
        BIN(hash_key)                                                                                       \
        U64(heartbeat_usec)

/* record_folder: where each run's request and answer are kept; "" = nowhere. trace_file: of a handler that is run by hand: the
 * one file that has all of it; "" otherwise. dry_run: writes are only tried. tell_dry_run: requests say
 * dryRun. replay_folder: has the requests of the runs, each named by its sequence; what handlers answer is not carried out; "" = requests are made from the store, as usual.
 * group_folder: control groups of runs are made here, and limits of group_controllers hold in them (lib/os/cgroup.h); "" = none
 * are made. clock_offset: from CLOCK_BOOTTIME to the clock by which what is kept in the ledger is due. kept_folder: in memory:
 * what confidential children were before (lib/os/kept.h). hash_key: of object/keyed-hash.h, a secret. window: how many runs it
 * may have begun at once, of which one has a handler at work. slot_file, slot: where it notes whose code runs, as a watcher
 * does. */
#define MESSAGE_config_worker_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                       \
        STR(operator_name)                                                                                  \
        STR(former_names)                                                                                   \
        BOOL(events_shared)                                                                                 \
        STR(record_folder)                                                                                  \
        STR(trace_file)                                                                                     \
        STR(replay_folder)                                                                                  \
        BOOL(dry_run)                                                                                       \
        BOOL(tell_dry_run)                                                                                  \
        STR(group_folder)                                                                                   \
        U64(group_controllers)                                                                              \
        U64(clock_offset)                                                                                   \
        STR(kept_folder)                                                                                    \
        U64(window)                                                                                         \
        STR(slot_file)                                                                                      \
        U64(slot)                                                                                           \
        BIN(hash_key)                                                                                       \
        LIST(watch, watch)                                                                                  \
        U64(heartbeat_usec)

/* listen, kept: as of listen_open(). token_file: "" = no token is asked for. certificate_file, key_file: of TLS; "" = plain HTTP.
 * deadline_usec: METRICS older than this say that the supervisor is silent. */
#define MESSAGE_config_gateway_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                      \
        STR(listen)                                                                                         \
        BOOL(kept) STR(token_file) STR(certificate_file) STR(key_file) U64(deadline_usec) U64(heartbeat_usec)

/* The Leases of a replica. record: the name of the leader record; member: of this replica's own Lease; who: for people;
 * compatible: the record is shared with holders who know of no member Leases. */
#define MESSAGE_config_lease_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                        \
        STR(operator_name)                                                                                  \
        STR(namespace_name)                                                                                 \
        STR(record) STR(member) STR(who) BOOL(compatible) U64(duration_usec) U64(heartbeat_usec)

/* How this replica stands, at each change and each renewal. leader: the member that leads, with its epoch, or "". trouble: with
 * the Leases; "" when all is well. refused: this replica could not take over from what the record says. Of LEAD_LEADING: epoch is
 * ours; former_epoch: of the lead before it, at most 1 if there was none; released: that was, so it has said all that is to
 * outlive it; clean: and nothing of it is on its way. lasting: what it has left (election/lasting.h), with the first LEAD_LEADING.
 * recorded: the newest LASTING that the record has. No run begins and no write leaves after stop_boottime; at kill_boottime
 * whatever may write is killed. LEAD_LOST has the same. */
#define MESSAGE_lease_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                               \
        ENUM(lead_state, LEAD_STATE_COUNT, state)                                                           \
        STR(leader)                                                                                         \
        STR(trouble)                                                                                        \
        U64(epoch)                                                                                          \
        U64(former_epoch)                                                                                   \
        BOOL(refused)                                                                                       \
        BOOL(released) BOOL(clean) STR(lasting) U64(recorded) U64(stop_boottime) U64(kill_boottime)

/* What must outlive this lead, each time that it changes: lines as election/lasting.h has them. serial: grows. */
#define MESSAGE_lasting_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST) U64(serial) STR(lines)

/* Nothing of this replica runs any more: that is proven. The lead is given up, and the process ends. late: a write may be on its
 * way. */
#define MESSAGE_release_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST) STR(successor) BOOL(late)

/* The lead, as of LEASE: before the first RUN, and after each renewal. A worker that was never told of one is bound by none. To
 * the lease process: LEASE was heard. */
#define MESSAGE_lead_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                                \
        U64(epoch) BOOL(clean) U64(stop_boottime) U64(kill_boottime)

/* How the operator is. reason: why it is not live or not ready, "" when it is both. body: a part of one
 * OpenMetrics document; the parts up to the one with last=true belong together. */
#define MESSAGE_metrics_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                             \
        BOOL(live) BOOL(ready) STR(reason) BIN(body) BOOL(last)

/* End in order; what runs is ended within the grace. The channel's EOF means the same with no grace. */
#define MESSAGE_stop_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST) U64(grace_usec)

/* So many more changes may be announced. again: all that exists is announced once more, and SWEPT after it.
 */
#define MESSAGE_credit_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                              \
        STR(watch)                                                                                          \
        U64(amount)                                                                                         \
        BOOL(again)

/* A page of what the ledger holds for this watch; last: the watcher answers CHECKED when it is through. */
#define MESSAGE_owed_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                                \
        STR(watch)                                                                                          \
        LIST(owed, owed)                                                                                    \
        BOOL(last)

/* All objects of the watch that are doubtful now, by key and uid; in the place of what was said before. */
#define MESSAGE_doubtful_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                            \
        STR(watch)                                                                                          \
        LIST(doubt, doubt)

#define MESSAGE_handled_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                             \
        STR(watch)                                                                                          \
        LIST(handled, handled)

/* Run the watch's handler for this object, after those that were given before. action: enum run_action; reason: enum run_reason;
 * attempt counts from 1; generation: of the store; for a deletion the worker reads the last known object by key and UID.
 * last_error, first_error: of the failures since the last success ("" = none). settling: what an unfinished run left, "" =
 * nothing. doubtful: the watch's jq programs are not run on it; twin_doubtful: nor those of other watches of its kind.
 * at_least_version: of our own last write to it: an older object in the store is not shown to the handler yet (RESULT_BEHIND);
 * "" = whatever is there. known_fingerprint, known_related: of the last success; 0 = none. previous_version: of what the handler was
 * given at the last success (store/previous.h); "" = it is not known. kinds: how many children it had, of
 * which kinds, where, and in which versions (object/child-kinds.h), should it have lost their list. handed_out: a run of it was
 * given to a worker before, as far as the ledger knows. taken: of an object that has left, another watch of its kind has had it,
 * and owes its end. behind: how often in a row this run was RESULT_BEHIND. alone: while it runs, nothing else does.
 * owned_degraded: the watch of an owned kind is; its store is not believed. */
#define MESSAGE_run_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                                 \
        U64(sequence)                                                                                       \
        STR(watch)                                                                                          \
        STR(key)                                                                                            \
        STR(uid)                                                                                            \
        ENUM(run_action, ACTION_COUNT, action)                                                              \
        ENUM(run_reason, RUN_REASON_COUNT, reason)                                                          \
        U64(attempt)                                                                                        \
        STR(last_error)                                                                                     \
        STR(first_error)                                                                                    \
        STR(settling)                                                                                       \
        STR(at_least_version)                                                                               \
        U64(known_fingerprint)                                                                              \
        U64(known_related)                                                                                  \
        STR(previous_version)                                                                               \
        STR(kinds)                                                                                          \
        BOOL(doubtful)                                                                                      \
        BOOL(twin_doubtful)                                                                                 \
        BOOL(handed_out) BOOL(taken) U64(behind) BOOL(alone) BOOL(owned_degraded) U64(generation)

/* Write an Event on this object, whatever else is done. All Events of an object are counted by one worker: one that wants to
 * write any tells the supervisor, which passes it on to the worker that counts those of `object` (series_object). identity: of
 * the series; count: how many more. watch: "" where nothing is known but the count, for an Event that was
 * reported before. counted: it comes from the worker that it is passed on for; otherwise the supervisor
 * itself wants it. back: what the receiver had sent comes back, as it is the one that counts those, or as
 * there is no other. */
#define MESSAGE_report_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                              \
        STR(watch)                                                                                          \
        STR(key)                                                                                            \
        STR(uid)                                                                                            \
        STR(version)                                                                                        \
        STR(type)                                                                                           \
        STR(reason)                                                                                         \
        STR(action)                                                                                         \
        STR(note)                                                                                           \
        U64(object)                                                                                         \
        U64(identity)                                                                                       \
        U64(count)                                                                                          \
        BOOL(counted)                                                                                       \
        BOOL(back)

/* A REPORT was passed on: the worker that sent it need not be there for it any more. */
#define MESSAGE_reported_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST) U64(identity)

/* Runs whose handlers have not begun come back (RESULT_RETURNED). */
#define MESSAGE_recall_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST) STR(reason)

/* This run is to end, or to come back if it has no handler yet. */
#define MESSAGE_cancel_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                              \
        U64(sequence)                                                                                       \
        STR(reason)

#define MESSAGE_query_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                               \
        U64(version)                                                                                        \
        STR(command)                                                                                        \
        LIST(string, argument)

/* body: a part of one JSON document; the parts up to the one with last=true belong together. error: "" or
 * why the query was refused. */
#define MESSAGE_reply_FIELDS(U64, ENUM, BOOL, STR, BIN, LIST)                                               \
        STR(error)                                                                                          \
        BIN(body)                                                                                           \
        BOOL(last)
