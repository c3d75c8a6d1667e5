/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RECONCILED_KIT_JSON_H
#define RECONCILED_KIT_JSON_H
/* Private to the kit: what reconciled-kit.c needs of reconciled-kit-json.c. */
#include <stdarg.h>

#include "reconciled-kit.h"

/* Memory that goes with rk_forget(); never NULL. */
void *rk_allocate(struct rk_block **memory, size_t size);
void rk_forget(struct rk_block **memory);

/* One value, and nothing but space after it. `arguments`: it is a template. NULL: it is no JSON, and *why
 * says what is wrong at *place. */
struct rk_value *rk_parse(struct rk_block **memory, const char *text, size_t size, va_list *arguments,
                          const char **why, size_t *place);

/* As one line; belongs to the memory. */
char *rk_print(struct rk_block **memory, const struct rk_value *value, size_t *size);

bool rk_same(const struct rk_value *one, const struct rk_value *other);
bool rk_is_object(const struct rk_value *value);

#endif
