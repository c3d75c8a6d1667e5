/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/watches/place.h"

#include "supervisor/supervisor.h"

struct watch_place *place_of(const struct watch *watch)
{
        return watch->userdata;
}

struct child_slot *child_of(const struct watch *watch)
{
        return place_of(watch)->child;
}

struct supervisor *supervisor_of(const struct watch *watch)
{
        return place_of(watch)->supervisor;
}
