/* SPDX-License-Identifier: Apache-2.0 */
/* handler.user: who that is. Whether the operator may become it is for its start to say (separation.c). */
#include "config/check/check-user.h"

#include <errno.h>
#include <pwd.h>
#include <string.h>

#include "config/read/problem.h"

/* "1000:1000", for images without /etc/passwd. */
static bool parse_numbers(const char *text, unsigned *ret_uid, unsigned *ret_gid)
{
        char rest;

        return strspn(text, "0123456789:") == strlen(text) &&
               sscanf(text, "%10u:%10u%c", ret_uid, ret_gid, &rest) == 2;
}

static const struct passwd *find_user(const char *text)
{
        char *end;
        unsigned long uid = strtoul(text, &end, 10);

        return *end == '\0' && text[0] >= '0' && text[0] <= '9' ? getpwuid((uid_t)uid) : getpwnam(text);
}

static void set_text(struct reader *reader, char **place, const char *text)
{
        free(*place);
        *place = strdup(text);
        if (!*place)
                reader->out_of_memory = true;
}

void check_user(struct reader *reader, yaml_node_t *node, const char *key, struct config_handler *handler)
{
        const struct passwd *entry;

        if (!handler->user)
                return;
        errno = 0;
        entry = find_user(handler->user);
        if (entry) {
                handler->uid = entry->pw_uid;
                handler->gid = entry->pw_gid;
                set_text(reader, &handler->home, entry->pw_dir);
                set_text(reader, &handler->user, entry->pw_name); /* last: it may be what was looked up */
        } else if (parse_numbers(handler->user, &handler->uid, &handler->gid)) {
                set_text(reader, &handler->home, "/");
        } else {
                problem_add(reader, node, false, key,
                            "there is no user \"%s\"; a number that has no name needs its group: UID:GID",
                            handler->user);
                return;
        }
        if (handler->uid == 0)
                problem_add(
                        reader, node, false, key,
                        "the user root does not separate handlers from the operator; name another user, or "
                        "leave it out");
}
