/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How much at once: pages of the ledger, records of a message, credit. In the simulation they are so small
 * that their boundaries are met all the time (RECONCILED_SMALL_SIZES).
 */
#ifdef RECONCILED_SMALL_SIZES
#define SIZE(usual, small) (small)
#else
#define SIZE(usual, small) (usual)
#endif

/* Changes of one watch that may wait here, unannounced or queued: they bound our memory. */
#define CREDIT_LIMIT SIZE(2000, 4)

#define PAGE_DUE       SIZE(50, 1)
#define PAGE_RETRY     SIZE(50, 1)
#define PAGE_RELATED   SIZE(50, 1)
#define PAGE_OWED      SIZE(200, 1)
#define PAGE_UNINSTALL SIZE(200, 1)
#define PAGE_HANDLED   SIZE(400, 1)

/* So many keys in one message are looked up in one transaction. */
#define CROWD SIZE(16, 2)
