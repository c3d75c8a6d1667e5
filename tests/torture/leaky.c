/* SPDX-License-Identifier: Apache-2.0 */
/* Leaves behind what a process must not: two blocks, one of them known to the other only, and a descriptor.
 */
#include <stdlib.h>
#include <unistd.h>

static void **kept;

int main(void)
{
        void **lost = malloc(sizeof(*lost));

        kept = malloc(sizeof(*kept));
        if (!lost || !kept)
                return 1;
        *kept = malloc(100);
        *lost = malloc(200);
        lost = NULL;
        free(malloc(300));
        return dup(STDIN_FILENO) < 0;
}
