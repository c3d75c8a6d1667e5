/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/answer/members.h"

#include "base/duration.h"
#include "json/json.h"

const char *ctl_text(const cJSON *object, const char *name)
{
        const char *value = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));

        return value ? value : "";
}

uint64_t ctl_number(const cJSON *object, const char *name)
{
        const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, name);

        double number = json_number(value, 0);

        return number > 0 ? (uint64_t)number : 0;
}

bool ctl_is(const cJSON *object, const char *name)
{
        return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(object, name));
}

const char *ctl_duration(uint64_t usec, char *buffer, size_t size)
{
        uint64_t unit = usec < USEC_PER_SEC      ? USEC_PER_MSEC
                        : usec < USEC_PER_MINUTE ? 100 * USEC_PER_MSEC
                                                 : USEC_PER_SEC;

        return duration_format(usec < USEC_PER_MSEC ? usec : usec / unit * unit, buffer, size);
}

const char *ctl_since(const cJSON *object, const char *name, char *buffer, size_t size)
{
        uint64_t then = ctl_number(object, name), now = clock_realtime_usec();

        return then == 0 || then > now ? "-" : ctl_duration(now - then, buffer, size);
}

const char *ctl_until(const cJSON *object, const char *name, char *buffer, size_t size)
{
        uint64_t then = ctl_number(object, name), now = clock_realtime_usec();

        return then > now ? ctl_duration(then - now, buffer, size) : "a moment";
}
