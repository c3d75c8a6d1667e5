/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* SHA-256 (FIPS 180-4) of a few bytes, where a format asks for it: names, never secrets. */
#include <stddef.h>
#include <stdint.h>

#define SHA256_SIZE 32

void sha256(const void *bytes, size_t size, uint8_t ret[SHA256_SIZE]);
