/* SPDX-License-Identifier: Apache-2.0 */
#include "watcher/setup.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "ipc/message-id.h"
#include "object/identity.h"
#include "store/meta.h"
#include "watcher/apply/announce.h"
#include "watcher/apply/verify.h"
#include "watcher/asking.h"
#include "watcher/failures.h"
#include "watcher/list/transitions.h"
#include "watcher/own-object.h"
#include "watcher/store-failure.h"
#include "watcher/stream/resume.h"

#define QUESTION_TIMEOUT_USEC (30 * USEC_PER_SEC)

static void setup_succeeded(struct watcher *watcher)
{
        watcher->setup.refreshed = false;
        failures_clear(watcher, &watcher->failures);
}

/* Waits until the question may be asked again. */
static int setup_failed(struct watcher *watcher, const struct kube_error *error, uint64_t serial) _suspends_
{
        int64_t delay = failures_note(watcher, &watcher->failures, error, serial);

        return delay < 0 ? -ECANCELED : asking_pause(watcher, (uint64_t)delay, &watcher->setup.asleep);
}

/* ---- discovery */

static int discover(struct watcher *watcher) _suspends_
{
        const struct message_config_watcher *config = watcher->config;
        _cleanup_kube_finding_ struct kube_finding found = KUBE_FINDING_EMPTY;
        int r = kube_ask_kind(watcher->client, config->api_version, config->kind, &found);

        if (r < 0)
                return asking_failed(watcher, r);
        if (!found.resource.plural)
                return setup_failed(watcher, &found.error, found.response.credential_serial);
        kube_resource_done(&watcher->resource);
        watcher->resource = found.resource;
        found.resource = (struct kube_resource){0};
        if (!watcher->resource.namespaced && config->namespace_count > 0)
                return child_fatal(
                        watcher->child, EXIT_CODE_CONFIGURATION,
                        "%s %s is cluster-scoped and has no namespaces: remove 'namespaces' from this watch",
                        config->api_version, config->kind);
        watcher->discovered = true;
        setup_succeeded(watcher);
        return 0;
}

/* ---- version */

static unsigned version_part(struct span version, const char *name)
{
        _cleanup_free_ char *text = NULL;

        if (scan_string(scan_get(version, name), &text) < 0)
                return 0;
        return (unsigned)strtoul(text, NULL, 10); /* "27+" of a provider is 27 */
}

/* An unreadable version is no failure: only WatchList depends on it. */
static int ask_version(struct watcher *watcher) _suspends_
{
        struct kube_request request = {
                .method = "GET", .path = "/version", .timeout_usec = QUESTION_TIMEOUT_USEC};
        _cleanup_kube_answer_ struct kube_answer answer = KUBE_ANSWER_EMPTY;
        const struct kube_response *response = &answer.response;
        struct span whole;
        int r = asking_ask(watcher, &request, &answer);

        if (r < 0)
                return asking_failed(watcher, r);
        if (response->error.failure != KUBE_FAILURE_NONE && !kube_error_is_withheld(&response->error))
                return setup_failed(watcher, &response->error, response->credential_serial);
        watcher->versioned = true;
        watcher->server_minor = 0;
        if (response->error.failure == KUBE_FAILURE_NONE &&
            scan_value(response->body, response->body_size, &whole) >= 0 &&
            version_part(whole, "major") == 1)
                watcher->server_minor = version_part(whole, "minor");
        return 0;
}

/* ---- identity */

static char *uid_of(const char *body, size_t size)
{
        struct scan_object object;
        char *uid = NULL;

        if (scan_object(body, size, &object) < 0 || identity_text(object.uid, IDENTITY_UID_MAX, &uid) < 0 ||
            uid[0] == '\0') {
                free(uid);
                return NULL;
        }
        return uid;
}

int setup_credential(struct watcher *watcher, const struct message_credential *credential)
{
        _cleanup_text_ struct text text = TEXT_EMPTY;
        char *server;

        text_append(&text, credential->server, strlen(credential->server) + 1);
        text_append(&text, credential->certificate_authority, strlen(credential->certificate_authority) + 1);
        if (text.failed || asprintf(&server, "server-%016" PRIx64, XXH3_64bits(text.data, text.size)) < 0)
                return -ENOMEM;
        free(watcher->server);
        watcher->server = server;
        return 0;
}

/* The weaker identity, of server and CA, is enough where the better one was unknown: RBAC may show more
 * by now. */
static bool is_other_cluster(const struct watcher *watcher, const char *known)
{
        return known[0] != '\0' && strcmp(known, watcher->cluster) != 0 &&
               strcmp(known, watcher->server) != 0;
}

/* The store of another cluster is not a cache of this one. */
static int adopt_cluster(struct watcher *watcher)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        const struct message_config_watcher *config = watcher->config;
        int r;

        if (is_other_cluster(watcher, config->known_cluster)) {
                watcher->deletions_suspended = true;
                log_write(
                        LOG_ERR, MESSAGE_ID_DELETIONS_SUSPENDED,
                        LOG_FIELDS({"RECONCILED_WATCH", config->watch}),
                        "watch %s: %s is another cluster (%s) than the one its ledger belongs to (%s); "
                        "objects that are missing here are not treated as deleted. Point the operator back "
                        "to its cluster, or give it another state folder",
                        config->watch, kube_client_server(watcher->client), watcher->cluster,
                        config->known_cluster);
        }
        if (!is_other_cluster(watcher, watcher->meta.cluster))
                return 0;
        r = store_rebuild(watcher->store, &error);
        if (r < 0)
                return store_failed(watcher, r);
        store_meta_done(&watcher->meta);
        r = store_meta_get(watcher->store, &watcher->meta);
        return r < 0 ? store_failed(watcher, r) : 0;
}

/* The identity is asked for again before a later LIST. If RBAC hides it now, server and CA replace it. */
static bool is_still_the_same(const struct watcher *watcher, const char *cluster)
{
        if (strcmp(cluster, watcher->cluster) == 0)
                return true;
        return strcmp(watcher->server, watcher->cluster_server) == 0 &&
               (strcmp(cluster, watcher->server) == 0 || strcmp(watcher->cluster, watcher->server) == 0);
}

/* Deletions of the last life come before anything of this one. */
static int take_last_life_over(struct watcher *watcher)
{
        int r = announce_tombstones(watcher);

        if (r >= 0)
                r = resume_streams(watcher);
        return r < 0 ? r : announce_epoch(watcher);
}

static int identity_known(struct watcher *watcher, const char *cluster)
{
        if (watcher->cluster && !is_still_the_same(watcher, cluster))
                return child_fatal(
                        watcher->child, EXIT_CODE_SOFTWARE,
                        "another cluster (%s, it was %s) answers at %s; objects that it lacks are not "
                        "treated as deleted, and the operator restarts",
                        cluster, watcher->cluster, kube_client_server(watcher->client));
        if (!watcher->cluster) {
                watcher->cluster = strdup(cluster);
                watcher->cluster_server = strdup(watcher->server);
                if (!watcher->cluster || !watcher->cluster_server)
                        return child_fatal(watcher->child, EXIT_CODE_SOFTWARE, "no memory");
                if (adopt_cluster(watcher) < 0 || take_last_life_over(watcher) < 0)
                        return -ECANCELED;
        }
        watcher->identified = true;
        setup_succeeded(watcher);
        return 0;
}

static int identify(struct watcher *watcher) _suspends_
{
        struct kube_request request = {.method = "GET",
                                       .path = "/api/v1/namespaces/kube-system",
                                       .timeout_usec = QUESTION_TIMEOUT_USEC};
        _cleanup_kube_answer_ struct kube_answer answer = KUBE_ANSWER_EMPTY;
        const struct kube_response *response = &answer.response;
        _cleanup_kube_error_ struct kube_error unreadable = KUBE_ERROR_NONE;
        _cleanup_free_ char *uid = NULL;
        int r = asking_ask(watcher, &request, &answer);

        if (r < 0)
                return asking_failed(watcher, r);
        if (kube_error_is_withheld(&response->error))
                return identity_known(watcher, watcher->server);
        if (response->error.failure != KUBE_FAILURE_NONE)
                return setup_failed(watcher, &response->error, response->credential_serial);
        uid = uid_of(response->body, response->body_size);
        if (uid)
                return identity_known(watcher, uid);
        kube_error_set(&unreadable, KUBE_FAILURE_PROTOCOL,
                       "the answer about namespace kube-system cannot be read");
        return setup_failed(watcher, &unreadable, response->credential_serial);
}

/* ---- the order of it */

/* The fiber. What has become unknown meanwhile is asked again. */
static void set_up_watch(void *userdata) _suspends_
{
        struct watcher *watcher = userdata;
        int r = 0;

        while (r >= 0 && !(watcher->discovered && watcher->versioned && watcher->identified)) {
                failures_held(watcher, &watcher->failures);
                if (!watcher->discovered)
                        r = discover(watcher);
                else if (!watcher->versioned)
                        r = ask_version(watcher);
                else
                        r = identify(watcher);
        }
        watcher->setup.fiber = NULL;
        if (r < 0 || watcher_is_over(watcher))
                return;
        streams_start(watcher);
        own_object_keep(watcher);
        verification_continue(watcher); /* answers of another cluster would have been useless */
}

static void setup_continue(struct watcher *watcher)
{
        if (kube_client_has_credential(watcher->client) && !watcher->setup.fiber)
                asking_start(watcher, "setup", set_up_watch, watcher, &watcher->setup.fiber);
}

void setup_rediscover(struct watcher *watcher)
{
        if (!watcher->discovered)
                return;
        watcher->discovered = watcher->versioned = false; /* streams that live go on until they find out */
        setup_continue(watcher);
}

void setup_identify(struct watcher *watcher)
{
        watcher->identified = false;
        setup_continue(watcher);
}

void setup_retry(struct watcher *watcher)
{
        /* A fresh credential is tried at once, once; then the backoff holds again, whatever credentials
         * come. */
        if (watcher->setup.asleep && !watcher->setup.refreshed) {
                fiber_end_sleep(&watcher->setup.asleep);
                watcher->setup.refreshed = true;
        }
        setup_continue(watcher);
}
