// Threads that hand on what has come, beside others that compute.
#pragma once

namespace ooc {

// Of the thread that calls it: once it has something to do it gets a processor soon,
// also where others have all of them, which have them for some milliseconds at a time otherwise.
// For threads that soon sleep again. A hint: kernels before Linux 6.12 know nothing of it. Threads
// that it creates are as others are.
void reduce_wakeup_latency();

}  // namespace ooc
