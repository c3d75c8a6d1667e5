/* SPDX-License-Identifier: Apache-2.0 */
#include "lease/lease-object.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/duration.h"
#include "ipc/message.h"
#include "kube/path.h"
#include "object/scan.h"

#define RECORD_NOTE "leader"

/* ---- requests */

static char *lease_path(const struct lease_names *names, const char *name)
{
        const struct kube_resource leases = {.group = (char[]){"coordination.k8s.io"},
                                             .version = (char[]){"v1"},
                                             .plural = (char[]){"leases"},
                                             .namespaced = true};

        return kube_path(&leases, names->namespace_name, name, NULL);
}

static void add_parameter(struct lease_request *request, const char *key, const char *value)
{
        struct text path = TEXT_EMPTY;

        text_append_string(&path, request->path);
        kube_path_add(&path, key, value);
        free(request->path);
        request->path = text_take(&path);
        text_done(&path);
}

static void settle_lease(struct lease_request *request, const char *method)
{
        request->method = request->path && !request->body.failed ? method : NULL;
}

/* Writes the metadata of a write, which creates, or changes exactly the version that was seen. */
static void write_metadata(const struct lease_names *names, const char *name, const char *version,
                           const char *annotations, struct text *body)
{
        const char *space = strchr(version, ' ');

        text_append_string(body,
                           "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{");
        if (space) {
                char uid[ELECTION_VERSION_MAX];

                snprintf(uid, sizeof(uid), "%.*s", (int)(space - version), version);
                text_json(body, "\"uid\":?,\"resourceVersion\":?", uid, space + 1);
        } else {
                text_json(
                        body,
                        "\"name\":?,\"namespace\":?,\"labels\":{\"app.kubernetes.io/managed-by\":\"reconciled\"}",
                        name, names->namespace_name);
        }
        text_append_string(body, annotations);
        text_append_string(body, "},");
}

static uint64_t seconds_of(uint64_t usec)
{
        return (usec + USEC_PER_SEC - 1) / USEC_PER_SEC;
}

static void write_spec(const char *holder, uint64_t duration_usec, uint64_t realtime_usec, struct text *body)
{
        time_t seconds = (time_t)(realtime_usec / USEC_PER_SEC);
        char date[32] = "";
        struct tm parts;

        if (gmtime_r(&seconds, &parts))
                strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &parts);
        text_json(body, "\"spec\":{\"holderIdentity\":?", holder);
        text_printf(body, ",\"leaseDurationSeconds\":%llu,\"renewTime\":\"%s.%06lluZ\"}}",
                    (unsigned long long)seconds_of(duration_usec), date,
                    (unsigned long long)(realtime_usec % USEC_PER_SEC));
}

static void write_member(const struct lease_names *names, const struct leader_member *self,
                         const struct election_ask *ask, uint64_t realtime_usec, struct text *body)
{
        _cleanup_free_ char *holder = format_string("%s %s", names->who, self->life);

        write_metadata(names, self->name, ask->version, "", body);
        if (holder)
                write_spec(holder, names->duration_usec, realtime_usec, body);
        else
                body->failed = true;
}

static void write_record(const struct lease_names *names, const struct election_ask *ask, const char *rest,
                         uint64_t realtime_usec, struct text *body)
{
        struct leader_record record = {.claim = ask->claim};
        _cleanup_text_ struct text text = TEXT_EMPTY, annotations = TEXT_EMPTY;
        _cleanup_free_ char *key = format_string("%s/" RECORD_NOTE, names->operator_name);
        _cleanup_free_ char *lines = rest && rest[0] ? strdup(rest) : NULL;

        record.rest = lines;
        snprintf(record.operator, sizeof(record.operator), "%s", names->operator_name);
        snprintf(record.cluster, sizeof(record.cluster), "%s", names->cluster);
        leader_record_write(&text, &record);
        if (!key || (rest && rest[0] && !lines) || text.failed) {
                body->failed = true;
                return;
        }
        text_append_string(&annotations, ",\"annotations\":{");
        text_json(&annotations, "?:?}", key, text.data);
        if (annotations.failed)
                body->failed = true;
        else
                write_metadata(names, names->record, ask->version, annotations.data, body);
        write_spec(ask->claim.holder.name, ask->claim.duration_usec, realtime_usec, body);
}

void lease_request_make(const struct lease_names *names, const struct leader_member *self,
                        const struct election_ask *ask, const char *rest, uint64_t realtime_usec,
                        struct lease_request *ret)
{
        bool is_member = ask->kind == ASK_OWN || ask->kind == ASK_RENEW, is_read = ask->kind < ASK_RENEW;
        const char *name = is_member ? self->name : ask->kind == ASK_HOLDER ? ask->member : names->record;
        bool creates = !is_read && !ask->version[0];

        assert(ask->kind <= ASK_RELEASE);
        *ret = (struct lease_request){.path = lease_path(names, creates ? NULL : name)};
        if (is_read) {
                settle_lease(ret, "GET");
                return;
        }
        if (is_member)
                write_member(names, self, ask, realtime_usec, &ret->body);
        else
                write_record(names, ask, rest, realtime_usec, &ret->body);
        add_parameter(ret, "fieldManager", names->operator_name);
        settle_lease(ret, creates ? "POST" : "PATCH");
}

void lease_watch_make(const struct lease_names *names, const char *name, struct lease_request *ret)
{
        _cleanup_free_ char *selector = format_string("metadata.name=%s", name);

        *ret = (struct lease_request){.path = lease_path(names, NULL)};
        if (ret->path && selector) {
                add_parameter(ret, "watch", "true");
                add_parameter(ret, "fieldSelector", selector);
        }
        settle_lease(ret, selector ? "GET" : NULL);
}

void lease_deletion_make(const struct lease_names *names, const char *member, const char *version,
                         struct lease_request *ret)
{
        const char *space = strchr(version, ' ');
        char uid[ELECTION_VERSION_MAX];

        assert(space);
        *ret = (struct lease_request){.path = lease_path(names, member)};
        snprintf(uid, sizeof(uid), "%.*s", (int)(space - version), version);
        text_json(
                &ret->body,
                "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"preconditions\":{\"uid\":?,\"resourceVersion\":?}}",
                uid, space + 1);
        settle_lease(ret, "DELETE");
}

void lease_request_done(struct lease_request *request)
{
        free(request->path);
        text_done(&request->body);
        *request = (struct lease_request){0};
}

/* ---- answers */

int lease_version(const char *json, size_t size, char ret[static ELECTION_VERSION_MAX])
{
        _cleanup_free_ char *uid = NULL, *version = NULL, *both = NULL;
        struct scan_object object;

        ret[0] = '\0';
        if (scan_object(json, size, &object) < 0 || scan_string(object.uid, &uid) < 0 ||
            scan_string(object.resource_version, &version) < 0 || !uid[0] || !version[0] || strchr(uid, ' '))
                return -EBADMSG;
        both = format_string("%s %s", uid, version);
        if (!both || strlen(both) >= ELECTION_VERSION_MAX)
                return -EBADMSG;
        memcpy(ret, both, strlen(both) + 1);
        return 0;
}

static char *holder_of(const char *json, size_t size)
{
        struct span whole;
        char *holder = NULL;

        if (scan_value(json, size, &whole) < 0 ||
            scan_string(scan_get(scan_get(whole, "spec"), "holderIdentity"), &holder) < 0)
                return NULL;
        return holder;
}

void lease_life(const char *json, size_t size, char ret[static LEADER_LIFE_MAX + 1])
{
        _cleanup_free_ char *holder = holder_of(json, size);
        const char *space = holder ? strrchr(holder, ' ') : NULL;

        ret[0] = '\0';
        if (space && strlen(space + 1) <= LEADER_LIFE_MAX && leader_name_fits(space + 1))
                snprintf(ret, LEADER_LIFE_MAX + 1, "%s", space + 1);
}

/* 0 if it is no whole number of at most nine digits. */
static uint64_t number_of(struct span value)
{
        uint64_t number = 0;

        for (size_t i = 0; i < value.size; i++) {
                if (i == 9 || value.start[i] < '0' || value.start[i] > '9')
                        return 0;
                number = number * 10 + (uint64_t)(value.start[i] - '0');
        }
        return number;
}

/* 0 if it has none. */
static uint64_t seconds_in_spec(const char *json, size_t size)
{
        struct span whole = {NULL};

        (void)scan_value(json, size, &whole);
        return number_of(scan_get(scan_get(whole, "spec"), "leaseDurationSeconds"));
}

uint64_t lease_duration(const char *json, size_t size)
{
        uint64_t usec = seconds_in_spec(json, size) * USEC_PER_SEC;

        return usec < LEADER_DURATION_MAX ? usec : LEADER_DURATION_MAX;
}

/* Reads the holder and the duration in the spec. */
static void spec_of(const char *json, size_t size, struct leader_claim *ret)
{
        _cleanup_free_ char *holder = holder_of(json, size);
        *ret = (struct leader_claim){.foreign = true, .writes = 1, .epoch = 1};
        snprintf(ret->holder.name, sizeof(ret->holder.name), "%s", holder ? holder : "");
        utf8_clean(ret->holder.name);
        ret->duration_usec = seconds_in_spec(json, size) * USEC_PER_SEC;
}

static bool is_as_written(const struct leader_claim *claim, const struct leader_claim *spec)
{
        return strcmp(claim->holder.name, spec->holder.name) == 0 &&
               seconds_of(claim->duration_usec) * USEC_PER_SEC == spec->duration_usec;
}

/* annotation: NULL if there is none. */
static int settle_foreign(const struct lease_names *names, const char *annotation, struct leader_claim *spec,
                          struct leader_record *record, struct error *error)
{
        if (!names->is_shared && !annotation)
                return error_set(
                        error, -EBADMSG,
                        "it is no leader record of operator %s (it has no annotation %s/" RECORD_NOTE
                        "; its holder is \"%.100s\")",
                        names->operator_name, names->operator_name, spec->holder.name);
        if (!names->is_shared)
                return error_set(
                        error, -EBADMSG,
                        "somebody who is no replica of operator %s has written it (its holder is \"%.100s\"); "
                        "end that one, and delete the Lease by hand",
                        names->operator_name, spec->holder.name);
        if (annotation)
                spec->epoch = record->claim.epoch;
        spec->epoch++;
        if (spec->duration_usec < LEADER_DURATION_MIN)
                spec->duration_usec = LEADER_DURATION_MIN;
        if (spec->duration_usec > LEADER_DURATION_MAX)
                spec->duration_usec = LEADER_DURATION_MAX;
        /* As client-go does it. What its holder sent may be on its way: nobody says that it is not. */
        spec->released = spec->late = !spec->holder.name[0];
        record->claim = *spec;
        return 0;
}

int lease_record(const struct lease_names *names, const char *json, size_t size, struct leader_record *ret,
                 struct error *error)
{
        _cleanup_free_ char *key = format_string("%s/" RECORD_NOTE, names->operator_name), *text = NULL;
        _cleanup_(leader_record_done) struct leader_record record = {.rest = NULL};
        struct scan_object object;
        struct leader_claim spec;
        int r;

        if (!key)
                return error_set(error, -ENOMEM, "no memory");
        if (scan_object(json, size, &object) < 0)
                return error_set(error, -EBADMSG, "the Lease cannot be read");
        spec_of(json, size, &spec);
        (void)scan_string(scan_get(object.annotations, key), &text);
        if (text) {
                r = leader_record_read(text, strlen(text), names->operator_name, names->cluster, &record,
                                       error);
                if (r < 0)
                        return r;
        }
        if (!text || !is_as_written(&record.claim, &spec)) {
                r = settle_foreign(names, text, &spec, &record, error);
                if (r < 0)
                        return r;
        }
        *ret = record;
        record.rest = NULL;
        return 0;
}
