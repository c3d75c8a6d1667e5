/* SPDX-License-Identifier: Apache-2.0 */
#include "base/distance.h"

#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"

size_t word_distance(const char *a, const char *b)
{
        size_t row[64], length = strlen(b);

        if (length >= ELEMENTS(row))
                return SIZE_MAX;
        for (size_t j = 0; j <= length; j++)
                row[j] = j;
        for (size_t i = 1; *a; a++, i++) {
                size_t diagonal = row[0];

                row[0] = i;
                for (size_t j = 1; j <= length; j++) {
                        size_t replace = diagonal + (*a != b[j - 1]);
                        size_t best = row[j] + 1 < row[j - 1] + 1 ? row[j] + 1 : row[j - 1] + 1;

                        diagonal = row[j];
                        row[j] = replace < best ? replace : best;
                }
        }
        return row[length];
}
