/* SPDX-License-Identifier: Apache-2.0 */
#include "base/throttle.h"

#include <stdio.h>
#include <string.h>

int throttle_note(struct throttles *throttles, const char *resource, uint64_t until)
{
        size_t place = 0;

        for (size_t i = 0; i < THROTTLES_MAX; i++) {
                if (throttles->entry[i].until > 0 && strcmp(throttles->entry[i].resource, resource) == 0) {
                        place = i;
                        break;
                }
                if (throttles->entry[i].until < throttles->entry[place].until)
                        place = i;
        }
        if (throttles->entry[place].until >= until)
                return 0;
        throttles->entry[place].until = until;
        snprintf(throttles->entry[place].resource, THROTTLE_RESOURCE_MAX, "%s", resource);
        return 1;
}

uint64_t throttle_until(const struct throttles *throttles, const char *resource)
{
        uint64_t until = 0;

        for (size_t i = 0; i < THROTTLES_MAX; i++)
                if (throttles->entry[i].until > until &&
                    (!throttles->entry[i].resource[0] ||
                     strcmp(throttles->entry[i].resource, resource) == 0))
                        until = throttles->entry[i].until;
        return until;
}

uint64_t throttle_next_end(const struct throttles *throttles, uint64_t now)
{
        uint64_t next = 0;

        for (size_t i = 0; i < THROTTLES_MAX; i++)
                if (throttles->entry[i].until > now && (next == 0 || throttles->entry[i].until < next))
                        next = throttles->entry[i].until;
        return next;
}
