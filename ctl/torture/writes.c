/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/torture/writes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl-answer.h"
#include "json/json.h"

static bool is_write(const cJSON *line)
{
        return strcmp(json_text(line, "method"), "GET") != 0 &&
               strcmp(json_text(line, "user_agent"), "torture") != 0 &&
               strcmp(json_text(line, "resource"), "events") != 0 &&
               strcmp(json_text(line, "subresource"), "token") != 0;
}

/* "PATCH configmaps default/a, status" */
static void append_write(const cJSON *line, struct text *out)
{
        const char *namespace_name = json_text(line, "namespace"), *name = json_text(line, "name");
        const char *subresource = json_text(line, "subresource");

        text_printf(out, "%s %s %s%s%s%s%s", json_text(line, "method"), json_text(line, "resource"),
                    namespace_name, namespace_name[0] && name[0] ? "/" : "", name,
                    subresource[0] ? ", " : "", subresource);
}

typedef int (*line_t)(const cJSON *line, void *userdata);

static int each_line(const char *log, long *position, line_t take, void *userdata)
{
        _cleanup_fclose_ FILE *file = fopen(log, "re");
        _cleanup_free_ char *text = NULL;
        size_t allocated = 0;
        ssize_t size;
        int r = 0;

        if (!file || fseek(file, *position, SEEK_SET) < 0)
                return -errno;
        while (r >= 0 && (size = getline(&text, &allocated, file)) > 0) {
                _cleanup_json_ cJSON *line = json_parse(text, (size_t)size);

                if (line && is_write(line))
                        r = take(line, userdata);
        }
        *position = ftell(file);
        return r;
}

static int tell_write(const cJSON *line, void *userdata)
{
        struct text *out = userdata;

        if (!json_member(line, "wrote"))
                return 0;
        text_append_string(out, "  ");
        append_write(line, out);
        return text_append_string(out, "\n");
}

int writes_tell(const char *log, long *position, struct text *out)
{
        return each_line(log, position, tell_write, out);
}

struct noting {
        cJSON *list; /* of all requests that may be writes; those that were none have no words */
        unsigned phase;
};

static cJSON *match_of(const cJSON *line)
{
        const char *subresource = json_text(line, "subresource");
        _cleanup_free_ char *resource =
                format_string("%s%s%s", json_text(line, "resource"), subresource[0] ? "/" : "", subresource);
        static const char *const member[] = {"verb", "namespace", "name"};
        cJSON *match = cJSON_CreateObject();

        cJSON_AddStringToObject(match, "resource", resource ? resource : "");
        for (size_t i = 0; i < ELEMENTS(member); i++)
                if (json_text(line, member[i])[0])
                        cJSON_AddStringToObject(match, member[i], json_text(line, member[i]));
        return match;
}

static int note_write(const cJSON *line, void *userdata)
{
        struct noting *noting = userdata;
        cJSON *write = cJSON_CreateObject(), *match = match_of(line);
        _cleanup_text_ struct text words = TEXT_EMPTY;
        const cJSON *each;
        unsigned nth = 1;

        cJSON_ArrayForEach(each, noting->list) nth += json_equal(json_member(each, "match"), match);
        append_write(line, &words);
        text_printf(&words, "%s", nth > 1 ? " (again)" : "");
        cJSON_AddNumberToObject(write, "phase", noting->phase);
        cJSON_AddNumberToObject(write, "nth", nth);
        cJSON_AddItemToObject(write, "match", match);
        if (json_member(line, "wrote"))
                cJSON_AddStringToObject(write, "words", words.data ? words.data : "");
        cJSON_AddItemToArray(noting->list, write);
        return 0;
}

int writes_note(const char *log, long *position, unsigned phase, cJSON **ret)
{
        struct noting noting = {.list = cJSON_CreateArray(), .phase = phase};
        int r = noting.list ? each_line(log, position, note_write, &noting) : -ENOMEM;
        cJSON *each = noting.list ? noting.list->child : NULL;

        while (each) {
                cJSON *next = each->next;

                if (!json_member(each, "words"))
                        cJSON_Delete(cJSON_DetachItemViaPointer(noting.list, each));
                each = next;
        }
        *ret = noting.list;
        return r;
}
