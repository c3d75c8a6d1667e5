/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loaded (LD_PRELOAD) into what runs under valgrind, which has no room for the 64 GiB of address space that
 * a store maps: there it maps less. The product knows nothing of it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <lmdb.h>

#define MAP_MAX ((size_t)1 << 30)

__attribute__((visibility("default"))) int mdb_env_set_mapsize(MDB_env *environment, size_t size)
{
        int (*real)(MDB_env *, size_t);

        *(void **)&real = dlsym(RTLD_NEXT, "mdb_env_set_mapsize");
        return real ? real(environment, size < MAP_MAX ? size : MAP_MAX) : ENOSYS;
}
