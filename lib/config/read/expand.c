/* SPDX-License-Identifier: Apache-2.0 */
/* Expands texts: variables of the environment, and paths relative to the file. */
#include "config/read/expand.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "config/read/problem.h"

/* ---- ${NAME} */

/* The name in "${NAME}...", or NULL. Owned by the caller. */
static char *variable_name(const char *text)
{
        const char *name = text + 2;
        size_t length;

        if (text[0] != '$' || text[1] != '{')
                return NULL;
        length = strspn(name, NAME_CHARACTERS);
        return length > 0 && name[length] == '}' ? strndup(name, length) : NULL;
}

/* Appends the value of the variable at a '$'; returns how many bytes of the text it replaces, 0 after a problem. */
static size_t expand_one(struct reader *reader, const yaml_node_t *node, const char *key, const char *text,
                         struct text *out)
{
        _cleanup_free_ char *name = NULL;
        const char *value;

        if (text[1] == '$') {
                text_append(out, "$", 1);
                return 2;
        }
        name = variable_name(text);
        value = name ? getenv(name) : NULL;
        if (value) {
                text_append_string(out, value);
                return strlen(name) + 3;
        }
        if (name)
                problem_add(reader, node, false, key, "the environment has no variable %s", name);
        else
                problem_add(reader, node, false, key, "a '$' begins ${NAME}; $$ stands for the sign itself");
        return 0;
}

bool expand_text(struct reader *reader, const yaml_node_t *node, const char *key, char **value)
{
        _cleanup_text_ struct text out = TEXT_EMPTY;
        const char *text = *value;
        char *expanded;

        if (!strchr(text, '$'))
                return true;
        while (*text) {
                size_t plain = strcspn(text, "$"), taken = 0;

                text_append(&out, text, plain);
                text += plain;
                if (*text && (taken = expand_one(reader, node, key, text, &out)) == 0)
                        return false;
                text += taken;
        }
        expanded = text_take(&out);
        if (!expanded) {
                reader->out_of_memory = true;
                return false;
        }
        free(*value);
        *value = expanded;
        return true;
}

/* ---- paths */

/* "./handler" and "../handler" lie beside the file that names them: such a folder can be moved, or copied
 * into an image, as a whole. From here on the path is absolute: the current folder may change, and handlers
 * start in another one. */
void find_beside_file(struct reader *reader, char **program)
{
        const char *slash = strrchr(reader->file, '/');
        int folder_length = slash ? (int)(slash + 1 - reader->file) : 0, r;
        const char *name = *program;
        _cleanup_free_ char *current = NULL;
        char *path = NULL;

        if (strncmp(name, "./", 2) == 0)
                name += 2 + strspn(name + 2, "/");
        else if (strncmp(name, "../", 3) != 0)
                return;
        if (reader->file[0] != '/' && !(current = getcwd(NULL, 0))) {
                note_system_error(reader, -errno);
                return;
        }
        r = asprintf(&path, "%s%s%.*s%s", current ? current : "", current ? "/" : "", folder_length,
                     reader->file, name);
        if (r < 0) {
                reader->out_of_memory = true;
                return;
        }
        free(*program);
        *program = path;
}

int keep_text(struct reader *reader, char **place, const char *text)
{
        int r = text_replace(place, text);

        reader->out_of_memory = reader->out_of_memory || r < 0;
        return r;
}
