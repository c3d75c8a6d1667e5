/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/check/served.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>
#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "base/duration.h"
#include "base/text.h"
#include "config/config-message.h"
#include "ctl/ctl-answer.h"
#include "kube/client.h"
#include "kube/path.h"
#include "object/bookkeeping.h"
#include "object/confined.h"
#include "object/identity.h"
#include "json/json.h"

#define TIMEOUT_USEC (5 * USEC_PER_SEC) /* a check should answer soon */
#define DISTANCE_MAX 3                  /* words that differ in more letters are not suggested */
#define REFUSED_MAX  20                 /* warnings about children that exist, for a watch */
#define PARTIAL_LIST "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

struct served {
        struct config_problems *problems;
        sd_event *event;
        struct kube_client *client;
        cJSON *lists;  /* by apiVersion: its resource list, or null if there is none */
        cJSON *groups; /* the list of groups; NULL before it is needed */
        cJSON *answer; /* of the request that has ended */
        bool ended;
        char *trouble; /* why it is not asked any more */
};

/* ---- asking */

static void on_answer(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                      void *userdata)
{
        struct served *served = userdata;

        served->ended = true;
        if (response->error.failure == KUBE_FAILURE_NONE)
                served->answer = json_parse(response->body, response->body_size);
        if (!served->answer && response->http_status == 404)
                served->answer = cJSON_CreateNull();
        if (!served->answer)
                served->trouble = format_string("%s", response->error.message ? response->error.message
                                                                              : "it answers no JSON");
}

/* The answer, null for 404. NULL if there is none, and no more questions. */
static cJSON *ask_server(struct served *served, const char *path, const char *accept)
{
        struct kube_request request = {
                .method = "GET",
                .path = path,
                .accept = accept,
                .timeout_usec = TIMEOUT_USEC,
                .on_done = on_answer,
                .userdata = served,
        };
        int r = served->trouble ? -ECANCELED : kube_client_start(served->client, &request, NULL);

        for (served->ended = false; r >= 0 && !served->ended;)
                r = sd_event_run(served->event, UINT64_MAX);
        if (r < 0 && !served->trouble)
                served->trouble = format_string("%s", strerror(-r));
        return TAKE_PTR(served->answer);
}

static const cJSON *resources_of(struct served *served, const char *api_version)
{
        cJSON *list = json_member(served->lists, api_version);
        char path[256];

        if (list)
                return list;
        snprintf(path, sizeof(path), "%s/%s", strchr(api_version, '/') ? "/apis" : "/api", api_version);
        list = ask_server(served, path, NULL);
        if (list)
                cJSON_AddItemToObject(served->lists, api_version, list);
        return list;
}

/* ---- what was meant */

/* Of two words that are equally near, keeps the one that begins alike: Nod is rather Node than Pod. */
static void keep_nearest(const char *word, const char *other, size_t distance, const char **best,
                         size_t *least)
{
        bool as_near = distance == *least && *best && (*best)[0] != word[0] && other[0] == word[0];

        if ((distance >= *least && !as_near) || 2 * distance > strlen(word))
                return;
        *least = distance;
        *best = other;
}

/* Whether the list has the kind; else *ret_near is the one that is nearly the same, or NULL. */
static bool serves_kind(const cJSON *list, const char *kind, const char **ret_near)
{
        size_t least = DISTANCE_MAX;
        const cJSON *item;

        *ret_near = NULL;
        cJSON_ArrayForEach(item, json_member(list, "resources"))
        {
                const char *name = json_text(item, "name"), *other = json_text(item, "kind");

                if (strchr(name, '/'))
                        continue; /* a subresource may be of another kind */
                if (strcmp(other, kind) == 0)
                        return true;
                keep_nearest(kind, other,
                             strcasecmp(kind, other) == 0 || strcasecmp(kind, name) == 0
                                     ? 0
                                     : word_distance(kind, other),
                             ret_near, &least);
        }
        return false;
}

static const char *nearest_version(struct served *served, const char *api_version)
{
        const char *best = NULL;
        size_t least = DISTANCE_MAX;
        const cJSON *group, *version;

        if (!served->groups)
                served->groups = ask_server(served, "/apis", NULL);
        cJSON_ArrayForEach(group, json_member(served->groups, "groups"))
        {
                /* Versions come in the order in which the server prefers them. */
                cJSON_ArrayForEach(version, json_member(group, "versions"))
                {
                        const char *other = json_text(version, "groupVersion");

                        keep_nearest(api_version, other,
                                     is_same_api_group(api_version, other)
                                             ? 0
                                             : word_distance(api_version, other),
                                     &best, &least);
                }
        }
        return !best && is_same_api_group(api_version, "v1") ? "v1" : best;
}

/* The version in which another group has the very kind, or NULL: Deployment of v1 is one of apps/v1. */
static const char *version_with(struct served *served, const char *kind)
{
        const cJSON *group;
        const char *near;

        if (!served->groups)
                served->groups = ask_server(served, "/apis", NULL);
        cJSON_ArrayForEach(group, json_member(served->groups, "groups"))
        {
                const char *version = json_text(json_member(group, "preferredVersion"), "groupVersion");

                if (version[0] && serves_kind(resources_of(served, version), kind, &near))
                        return version;
        }
        if (serves_kind(resources_of(served, "v1"), kind, &near))
                return "v1";
        free(TAKE_PTR(served->trouble)); /* of a group that was not asked about */
        return NULL;
}

/* ---- each kind */

static void check_kind(struct served *served, const struct config_watch *watch, unsigned line,
                       const char *key, const char *api_version, const char *kind)
{
        const cJSON *list = resources_of(served, api_version);
        const char *near;

        if (!list || serves_kind(list, kind, &near))
                return;
        if (cJSON_IsNull(list)) {
                near = nearest_version(served, api_version);
                if (!served->trouble)
                        config_problem_add(served->problems, watch, line, !near || !watch->required, key,
                                           near ? "the server has no %s; did you mean \"%s\"?"
                                                : "the server has no %s (is its CRD installed?)%s",
                                           api_version, near ? near : "");
        } else {
                if (!near)
                        near = version_with(served, kind);
                config_problem_add(served->problems, watch, line, !near || !watch->required, key,
                                   near ? "the server has no kind %s in %s; did you mean \"%s\"?"
                                        : "the server has no kind %s in %s (is its CRD installed?)%s",
                                   kind, api_version, near ? near : "");
        }
}

static void check_listed(struct served *served, const struct config_watch *watch, const char *key,
                         const struct config_owned *listed, size_t count)
{
        char place[64];

        for (size_t i = 0; i < count; i++) {
                snprintf(place, sizeof(place), "%s[%zu]", key, i);
                check_kind(served, watch, listed[i].line, place, listed[i].api_version, listed[i].kind);
        }
}

/* ---- what exists, and may not be written any more */

struct existing {
        struct served *served;
        const struct config_watch *watch;
        struct record_watch record;
        cJSON *refused; /* {"v1 Secret in kube-system": {count, wrong, example}} */
};

static const char *take_last(char *text)
{
        char *slash = strrchr(text, '/');

        if (!slash)
                return NULL;
        *slash = '\0';
        return slash + 1;
}

static void note_refused(struct existing *existing, const char *group, const char *what, unsigned wrong,
                         const char *example)
{
        cJSON *item = json_member(existing->refused, group);
        uint64_t so_far = ctl_number(item, "count");

        if (!item) {
                item = cJSON_AddObjectToObject(existing->refused, group);
                cJSON_AddStringToObject(item, "what", what);
                cJSON_AddStringToObject(item, "example", example);
                cJSON_AddNumberToObject(item, "wrong", wrong);
        }
        cJSON_DeleteItemFromObjectCaseSensitive(item, "count");
        cJSON_AddNumberToObject(item, "count", (double)(so_far + 1));
}

/* entry: "apps/v1/Deployment/default/a", which is taken to pieces. */
static void judge_entry(struct existing *existing, bool is_patch, const char *key, char *entry)
{
        const char *name = take_last(entry), *namespace_name = name ? take_last(entry) : NULL,
                   *kind = namespace_name ? take_last(entry) : NULL;
        unsigned wrong;
        char group[700], example[1200];

        if (!kind)
                return;
        wrong = confined_judge(&existing->record, is_patch, key, entry, kind, namespace_name);
        if (!wrong)
                return;
        snprintf(group, sizeof(group), "%.250s %.100s%s%.100s", entry, kind, namespace_name[0] ? " in " : "",
                 namespace_name);
        snprintf(example, sizeof(example), "%.253s of %.500s", name, key);
        note_refused(existing, group, is_patch ? "patches" : "children", wrong, example);
}

static void judge_list(struct existing *existing, bool is_patch, const cJSON *metadata, const char *note)
{
        const cJSON *annotations = json_member(metadata, "annotations");
        const char *namespace_name = json_text(metadata, "namespace");
        _cleanup_free_ char *list = strdup(json_text(annotations, note));
        char key[600], *state = NULL;

        snprintf(key, sizeof(key), "%s%s%s", namespace_name, namespace_name[0] ? "/" : "",
                 json_text(metadata, "name"));
        for (char *entry = list ? strtok_r(list, ",", &state) : NULL; entry;
             entry = strtok_r(NULL, ",", &state))
                judge_entry(existing, is_patch, key, entry);
}

/* base: of the kind's list. Objects with children carry the label of their set; those with patches alone have none. */
static void look_through(struct existing *existing, const char *base)
{
        const struct config_watch *watch = existing->watch;
        _cleanup_free_ char *page = strdup("");

        while (page) {
                _cleanup_text_ struct text path = TEXT_EMPTY;
                _cleanup_json_ cJSON *list = NULL;
                const cJSON *item, *metadata;

                text_append_string(&path, base);
                if (watch->patches_count == 0)
                        kube_path_add(&path, "labelSelector", SET_KEY);
                kube_path_add(&path, "limit", "500");
                if (page[0])
                        kube_path_add(&path, "continue", page);
                free(TAKE_PTR(page));
                list = path.failed ? NULL : ask_server(existing->served, path.data, PARTIAL_LIST);
                cJSON_ArrayForEach(item, json_member(list, "items"))
                {
                        metadata = json_member(item, "metadata");
                        judge_list(existing, false, metadata, watch->children_key);
                        judge_list(existing, true, metadata, watch->patched_key);
                }
                metadata = json_member(list, "metadata");
                if (json_text(metadata, "continue")[0])
                        page = strdup(json_text(metadata, "continue"));
        }
}

static const char *plural_of(const cJSON *list, const char *kind)
{
        const cJSON *item;

        cJSON_ArrayForEach(item, json_member(list, "resources"))
        {
                const char *name = json_text(item, "name");

                if (!strchr(name, '/') && strcmp(json_text(item, "kind"), kind) == 0)
                        return name;
        }
        return NULL;
}

static void look_everywhere(struct existing *existing, const char *plural)
{
        const struct config_watch *watch = existing->watch;
        const char *root = strchr(watch->api_version, '/') ? "/apis" : "/api";
        bool wide = watch->namespace_count == 0;

        for (size_t i = 0; i < watch->namespace_count; i++)
                wide = wide || strpbrk(watch->namespace[i], "*?!");
        for (size_t i = 0; i < (wide ? 1 : watch->namespace_count); i++) {
                _cleanup_free_ char *base =
                        wide ? format_string("%s/%s/%s", root, watch->api_version, plural)
                             : format_string("%s/%s/namespaces/%s/%s", root, watch->api_version,
                                             watch->namespace[i], plural);

                if (base)
                        look_through(existing, base);
        }
}

static void tell_refused(const struct existing *existing)
{
        const cJSON *item;
        int told = 0, count = cJSON_GetArraySize(existing->refused);

        cJSON_ArrayForEach(item, existing->refused)
        {
                const char *what = json_text(item, "what");
                bool is_patch = strcmp(what, "patches") == 0;
                unsigned wrong = (unsigned)ctl_number(item, "wrong");

                if (told++ == REFUSED_MAX)
                        break;
                config_problem_add(
                        existing->served->problems, existing->watch, 0, true,
                        is_patch                ? "patches"
                        : wrong & CONFINED_KIND ? "children.kinds"
                                                : "children.namespaces",
                        "%" PRIu64
                        " of %s exist as %s of its objects, like %s: an answer that names one is refused, "
                        "because the configuration does not name the %s; if it is left out, or its object "
                        "goes, it is %s as before",
                        ctl_number(item, "count"), item->string, what, json_text(item, "example"),
                        wrong & CONFINED_KIND ? "kind" : "namespace",
                        is_patch ? "given up" : "deleted or released");
        }
        if (count > REFUSED_MAX)
                config_problem_add(existing->served->problems, existing->watch, 0, true, "children",
                                   "so it is with %d more kinds and namespaces", count - REFUSED_MAX);
}

static void check_existing(struct served *served, const struct config *config,
                           const struct config_watch *watch)
{
        struct existing existing = {.served = served, .watch = watch};
        const char *plural =
                watch->owner ? NULL : plural_of(resources_of(served, watch->api_version), watch->kind);

        if (!plural || config_worker_watch(config, watch, "", "", &existing.record) < 0)
                return;
        existing.refused = cJSON_CreateObject();
        look_everywhere(&existing, plural);
        tell_refused(&existing);
        if (served->trouble)
                config_problem_add(
                        served->problems, watch, 0, true, "children",
                        "the server does not say which exist, so whether one would be refused is not "
                        "known: %s",
                        served->trouble);
        free(TAKE_PTR(served->trouble));
        cJSON_Delete(existing.refused);
        config_worker_watch_done(&existing.record);
}

static int open_client(struct served *served, const struct kubeconfig *cluster)
{
        struct message_credential credential;
        int r = credential_message(cluster, 1, &credential);

        if (r >= 0)
                r = sd_event_new(&served->event);
        if (r >= 0)
                r = kube_client_new(served->event, "reconciledctl/" RECONCILED_VERSION, &served->client);
        if (r >= 0)
                r = kube_client_set_credential(served->client, &credential);
        free((void *)(uintptr_t)credential.header);
        served->lists = cJSON_CreateObject();
        return r;
}

char *served_check(const struct config *config, const struct kubeconfig *cluster,
                   struct config_problems *problems)
{
        struct served served = {.problems = problems};
        int r;

        if (cluster->exec.command)
                return format_string("it would take the credential plugin %s", cluster->exec.command);
        r = open_client(&served, cluster);
        if (r < 0)
                served.trouble = format_string("%s", strerror(-r));
        for (size_t i = 0; i < config->watch_count && r >= 0; i++) {
                const struct config_watch *watch = &config->watch[i];

                check_kind(&served, watch, 0, "kind", watch->api_version, watch->kind);
                check_listed(&served, watch, "children.kinds", watch->answers, watch->answers_count);
                check_listed(&served, watch, "patches", watch->patches, watch->patches_count);
        }
        for (size_t i = 0; i < config->watch_count && r >= 0 && !served.trouble; i++)
                check_existing(&served, config, &config->watch[i]);
        cJSON_Delete(served.lists);
        cJSON_Delete(served.groups);
        kube_client_free(served.client);
        sd_event_unref(served.event);
        return served.trouble;
}
