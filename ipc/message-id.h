/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One MESSAGE_ID per event that an operator acts on: never changed, never used for two things. Each has an
 * entry in units/reconciled.catalog. New ones: `systemd-id128 new`.
 */
#define MESSAGE_ID_STARTED             "5c1d1e3b6a5f4b0c9a7d0f5e8b2c4d61"
#define MESSAGE_ID_STOPPED             "8e7b0c2f4d1a4f6ea3b95d7c6e1f0a24"
#define MESSAGE_ID_PROGRAM_REPLACED    "71ab87ec45ad465687246799fdaffa00"
#define MESSAGE_ID_RELOADING           "e5501b79b689444c8982d357dc12473c"
#define MESSAGE_ID_RELOADED            "a7ea8df23b4948d1af3fc66dab86c3d0"
#define MESSAGE_ID_CHILD_FATAL         "d9a4f6c8e2b14d3f8b7a5c0e1f92d36b" /* the cause of death, first */
#define MESSAGE_ID_CONFIGURATION_WRONG "3f5e8a1c7b9d4e02a6c4d8f1b0e7295a"
#define MESSAGE_ID_WATCH_SYNCED        "b71e4c9a0d3f4826958fae6d2c1b7053"
#define MESSAGE_ID_WATCH_DEGRADED      "0ac6d2e5f8174b9c83de5a7f4b1c962e"
#define MESSAGE_ID_WATCH_RECOVERED     "e4b80f1d6c2a4735b9e0d7c3a5f8162c"
#define MESSAGE_ID_WATCH_FAILED        "8396e8f5667b41d58a58d64cb458bde3"
#define MESSAGE_ID_WATCH_ABSENT        "028fed55b5e04c74993f880ece6ec202"
#define MESSAGE_ID_RUN_FAILED          "6d2f9b8e1a7c4c50b3f4e6a9d0c8571e"
#define MESSAGE_ID_VANISHED            "c3517dfb8a7a42079acabb83cc298ac3"
#define MESSAGE_ID_THROTTLED           "c2b75cddfc444560b3429c4894ec7819"
#define MESSAGE_ID_QUARANTINED         "e9d23fad93e8456bbec8141984c1fbd7"
#define MESSAGE_ID_DOUBTFUL            "4b0f6e5a2d7c4f0e9a83c1d25e7b9f46"
#define MESSAGE_ID_RELEASED            "fa8e26d340e944e795c946c97e63173f"
#define MESSAGE_ID_FINALIZER_RELEASED  "6b54ce3a24024f09af723a2f5f6dbb37"
#define MESSAGE_ID_PAUSED              "ec00e5c1ccb141d8b1173e285021365e"
#define MESSAGE_ID_RESUMED             "507b06e8315f49dc85dda763fc1d1d0e"
#define MESSAGE_ID_UNINSTALLING        "c71a63eaec404092a3473e598ce8879a"
#define MESSAGE_ID_RUN_PERMANENT       "a18d5e7c3b0f49d2867a9c4e5f1b2d03"
#define MESSAGE_ID_DELETIONS_SUSPENDED "7b3e0d9f5c8a4e16a2d4f1c6b8e95073"
#define MESSAGE_ID_STORE_REBUILT       "c5f0a7e2d9b3416c8e1d5a4b7f6c2098"
#define MESSAGE_ID_DATABASE_RESTORED   "e010e27d1caf4200804e425f52873f8e"
#define MESSAGE_ID_LEDGER_SET_ASIDE    "19e6c4b8f7d2430aa5b1e8d3c0f7946e"
#define MESSAGE_ID_HANDLER_OUTPUT      "f2b7d1c5a9e84063b8d0e4f6c3a71952"
#define MESSAGE_ID_LIMITS_WEAKENED     "599f84a2c607bf49ee8b7df69697952e"
#define MESSAGE_ID_CERTIFICATE_STALE   "b0f3c5d18e964a7ea1c25d0f7be4936d"
#define MESSAGE_ID_CERTIFICATE_EXPIRED "4e0b7a6c2d9148f3b56ce8a1f0937d24"
#define MESSAGE_ID_LOG_DROPPED         "93c7e5b0d4f2418fa6e8b1d9c7f05a3e"
