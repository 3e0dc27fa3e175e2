#include "storage/base/wakeup_latency.h"

#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ooc {

void reduce_wakeup_latency() {
  sched_attr attributes{};
  if (::syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  // The user's choice; the second one would be lost to threads that this one creates.
  if (attributes.sched_policy != SCHED_NORMAL || attributes.sched_nice < 0) return;
  if (attributes.sched_runtime == 0) return;  // before Linux 6.12
  // How long its turns are. The shorter, the sooner: what it is owed stays the same.
  attributes.sched_runtime = 100'000;  // ns
  attributes.sched_flags |= SCHED_FLAG_RESET_ON_FORK;
  ::syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace ooc
