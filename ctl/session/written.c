/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/session/written.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "ctl/ctl-answer.h"
#include "json/json.h"

#define HTTP_CREATED 201
#define STATUS       "/status"

int seen_begin(struct seen *seen, bool dry_run)
{
        seen_done(seen);
        seen->dry_run = dry_run;
        seen->by_path = cJSON_CreateObject();
        return seen->by_path ? 0 : -ENOMEM;
}

void seen_done(struct seen *seen)
{
        cJSON_Delete(seen->by_path);
        cJSON_Delete(seen->given);
        free(seen->given_uid);
        free(seen->given_digest);
        *seen = (struct seen){0};
}

static const char *subresource_of(const char *path)
{
        size_t size = strcspn(path, "?");

        return size > strlen(STATUS) && strncmp(path + size - strlen(STATUS), STATUS, strlen(STATUS)) == 0
                       ? "status"
                       : "";
}

static char *plain_path(const char *path)
{
        size_t size = strcspn(path, "?");

        return strndup(path, subresource_of(path)[0] ? size - strlen(STATUS) : size);
}

static const char *metadata_text(const cJSON *object, const char *name)
{
        return json_text(json_member(object, "metadata"), name);
}

static bool is_given_object(const struct seen *seen, const cJSON *object)
{
        return seen->given_uid && seen->given_uid[0] &&
               strcmp(seen->given_uid, metadata_text(object, "uid")) == 0;
}

/* object: NULL: it is gone. */
static int remember_seen(struct seen *seen, const char *path, const cJSON *object, const char *digest)
{
        cJSON *entry;

        cJSON_DeleteItemFromObjectCaseSensitive(seen->by_path, path);
        if (!object)
                return 0;
        entry = cJSON_CreateObject();
        cJSON_AddItemToObject(entry, "object", cJSON_Duplicate(object, true));
        cJSON_AddStringToObject(entry, "digest", digest);
        if (entry && json_member(entry, "object") && cJSON_AddItemToObject(seen->by_path, path, entry))
                return 0;
        cJSON_Delete(entry);
        return -ENOMEM;
}

/* A collection is written to at one path, whatever comes to be in it. */
static char *written_path(const char *method, const char *plain, const cJSON *after)
{
        return strcmp(method, "POST") == 0 ? format_string("%s/%s", plain, metadata_text(after, "name"))
                                           : strdup(plain);
}

/* What the handler was given has what was only tried before it ran (our finalizer), and what the server answers now has not. What a
 * write does not send it does not change. */
static int base_on_given(struct seen *seen, struct written *written)
{
        cJSON *metadata = json_member(seen->given, "metadata");
        const cJSON *now = json_member(json_member(written->after, "metadata"), "finalizers");

        written->before = seen->given;
        written->partial = strcmp(json_text(seen->given, "kind"), "PartialObjectMetadata") == 0;
        if (!seen->dry_run || !written->after ||
            json_member(json_member(written->sent, "metadata"), "finalizers"))
                return 0;
        cJSON_DeleteItemFromObjectCaseSensitive(metadata, "finalizers");
        return !now || cJSON_AddItemToObject(metadata, "finalizers", cJSON_Duplicate(now, true)) ? 0
                                                                                                 : -ENOMEM;
}

static int take_write(struct seen *seen, const cJSON *line, const char *plain, written_t visit,
                      void *userdata)
{
        const char *method = json_text(line, "method"), *digest = json_text(line, "digest");
        const cJSON *received = json_member(line, "received"), *known;
        const char *known_digest;
        bool is_deleted = strcmp(method, "DELETE") == 0;
        _cleanup_free_ char *path = written_path(method, plain, received);
        struct written written = {
                .method = method,
                .path = path,
                .subresource = subresource_of(json_text(line, "path")),
                .status = (int)ctl_number(line, "status"),
                .error = json_text(line, "error"),
        };

        if (!path)
                return -ENOMEM;
        if (written.status / 100 != 2) {
                visit(&written, userdata);
                return 0;
        }
        known = json_member(seen->by_path, path);
        known_digest = json_text(known, "digest");
        written.before = json_member(known, "object");
        written.after = is_deleted ? NULL : received;
        written.sent = json_member(line, "sent");
        if (!written.before && is_given_object(seen, received)) {
                known_digest = seen->given_digest;
                if (!seen->given && known_digest && known_digest[0])
                        written.before = received; /* as far as it is shown */
                else if (seen->given && base_on_given(seen, &written) < 0)
                        return -ENOMEM;
        }
        written.is_new = written.status == HTTP_CREATED;
        written.redacted = ctl_is(line, "redacted");
        written.redacted_equal = digest[0] && known_digest && strcmp(known_digest, digest) == 0;
        visit(&written, userdata);
        return seen->dry_run ? 0 : remember_seen(seen, path, written.after, digest);
}

int seen_take_line(struct seen *seen, const cJSON *line, const char *type, written_t visit, void *userdata)
{
        const cJSON *received = json_member(line, "received");
        _cleanup_free_ char *plain = NULL;

        if (strcmp(type, "run") == 0) {
                cJSON_Delete(TAKE_PTR(seen->given));
                free(TAKE_PTR(seen->given_digest));
                return text_replace(&seen->given_uid, json_text(line, "uid"));
        }
        if (strcmp(type, "request") == 0) {
                cJSON_Delete(seen->given);
                seen->given = cJSON_Duplicate(json_member(json_member(line, "body"), "object"), true);
                return text_replace(&seen->given_digest, json_text(line, "digest"));
        }
        if (strcmp(type, "exchange") != 0)
                return 0;
        plain = plain_path(json_text(line, "path"));
        if (!plain)
                return -ENOMEM;
        if (strcmp(json_text(line, "method"), "GET") != 0)
                return take_write(seen, line, plain, visit, userdata);
        return ctl_number(line, "status") == 200 && cJSON_IsObject(received)
                       ? remember_seen(seen, plain, received, json_text(line, "digest"))
                       : 0;
}
