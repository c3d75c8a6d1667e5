/* SPDX-License-Identifier: Apache-2.0 */
/* A line of crontab(5): whatever is accepted is due later than now, at a whole minute, and never too late for its own search. */
#include <stdlib.h>
#include <string.h>

#include "base/cron.h"
#include "base/duration.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const char *const zone[] = {"UTC", "Europe/Berlin", "America/Havana", "Australia/Lord_Howe"};
        uint32_t hours = 0;
        struct cron cron;
        char *text;

        if (size < sizeof(hours) ||
            !(text = strndup((const char *)data + sizeof(hours), size - sizeof(hours))))
                return 0;
        memcpy(&hours, data, sizeof(hours));
        if (cron_parse(text, &cron, NULL) >= 0) {
                uint64_t after = hours % 1000000 * USEC_PER_HOUR, next = 0;

                if (cron_next(&cron, zone[hours % 4], after, &next) >= 0 &&
                    (next <= after || next % USEC_PER_MINUTE != 0 ||
                     next - after > 9 * 366 * 24 * USEC_PER_HOUR))
                        abort();
        }
        free(text);
        return 0;
}
