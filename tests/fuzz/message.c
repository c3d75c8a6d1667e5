/* SPDX-License-Identifier: Apache-2.0 */
/* The decoder of messages: whatever it accepts must encode to something that it accepts again. */
#include <stdint.h>
#include <stdlib.h>

#include "ipc/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_message_ struct message *first = NULL, *second = NULL;
        _cleanup_text_ struct text packet = TEXT_EMPTY;
        int r;

        if (message_decode(data, size, &first) < 0)
                return 0;
        r = message_encode(first->type, &first->hello, &packet);
        /* Packed in its shortest form a packet may differ, and integers have one width; only the cap can
         * refuse it. */
        if (r < 0 && message_size_cap(first->type) > size * 9)
                abort();
        if (r >= 0 && message_decode(packet.data, packet.size, &second) < 0)
                abort();
        return 0;
}
