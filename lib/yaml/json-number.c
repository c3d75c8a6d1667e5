/* SPDX-License-Identifier: Apache-2.0 */
/* See json-number.h. */
#include "yaml/json-number.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "json/json.h"

#define DIGITS_MAX 17 /* of a double */

/* "d.ddde±x" with as few digits as say exactly this double. */
static void shortest(double value, char *buffer, size_t size)
{
        for (int digits = 1; digits <= DIGITS_MAX; digits++) {
                snprintf(buffer, size, "%.*e", digits - 1, value);
                if (!(strtod(buffer, NULL) < value) && !(strtod(buffer, NULL) > value))
                        return;
        }
}

/* A number is written without a small exponent, with zeros in place of insignificant digits. */
static int write_double(double value, struct text *out)
{
        double magnitude = fabs(value);
        char buffer[64], *exponent;
        int digits, power;

        shortest(value, buffer, sizeof(buffer));
        exponent = strchr(buffer, 'e');
        if (!exponent)
                return -ERANGE;
        *exponent++ = '\0';
        power = (int)strtol(exponent, NULL, 10);
        digits = (int)strlen(buffer) - (strchr(buffer, '.') ? 1 : 0) - (buffer[0] == '-');
        if (magnitude > 0 && (magnitude < 1e-6 || magnitude >= 1e21))
                return text_printf(out, "%se%c%d", buffer, power < 0 ? '-' : '+', abs(power));
        if (power < digits)
                return text_printf(out, "%.*f", digits - 1 - power, value);
        for (const char *c = buffer; *c; c++)
                if (*c != '.')
                        text_append(out, c, 1);
        for (int zeros = power - digits + 1; zeros > 0; zeros--)
                text_append_string(out, "0");
        return out->failed ? -ENOMEM : 0;
}

static int normalize(cJSON *item)
{
        const char *text = item->valuestring;
        _cleanup_text_ struct text out = TEXT_EMPTY;
        char *end, *taken;
        int64_t integer;

        errno = 0;
        integer = strtoll(text, &end, 10);
        if (*end == '\0' && errno == 0) {
                text_printf(&out, "%" PRId64, integer);
        } else if (isfinite(item->valuedouble)) {
                int r = write_double(item->valuedouble, &out);

                if (r < 0)
                        return r;
        } else {
                return -ERANGE;
        }
        taken = text_take(&out);
        if (!taken)
                return -ENOMEM;
        free(item->valuestring);
        item->valuestring = taken;
        return 0;
}

/* The recursion is as deep as the tree, which json_read() bounds. */
int number_normalize(cJSON *tree)
{
        int r = cJSON_IsRaw(tree) && json_is_number(tree) ? normalize(tree) : 0;

        for (cJSON *child = tree->child; child && r >= 0; child = child->next)
                r = number_normalize(child);
        return r;
}

cJSON *number_parse(const char *text, size_t size)
{
        cJSON *tree = json_parse(text, size);

        if (tree && number_normalize(tree) < 0) {
                cJSON_Delete(tree);
                return NULL;
        }
        return tree;
}
