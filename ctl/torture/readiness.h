/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Makes ready what a cluster's controllers would: deployments, jobs, pods and their like. */

struct rig;

/* Of the rig's objects. 1: some became ready; 0: none had to; or a negative errno. */
int readiness_give(struct rig *rig);
