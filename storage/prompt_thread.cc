#include "storage/prompt_thread.h"

#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ooc {

void be_prompt() {
  sched_attr attributes{};
  if (::syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  if (attributes.sched_policy != SCHED_NORMAL) return;  // the user's choice
  // How long its turns are. The shorter, the sooner: what it is owed stays the same.
  attributes.sched_runtime = 100'000;  // ns
  attributes.sched_flags |= SCHED_FLAG_RESET_ON_FORK;
  ::syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace ooc
