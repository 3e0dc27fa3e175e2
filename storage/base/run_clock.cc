#include "storage/base/run_clock.h"

namespace ooc {

RunClock& machine_clock() {
  static RunClock clock;
  return clock;
}

}  // namespace ooc
