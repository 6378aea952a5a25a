// Turns signals into reports: which buffer a wild access hit, or where the code was when time ran out.
#pragma once

namespace sim {

// Installs handlers on an alternate stack, so that a stack overflow can still be reported.
bool install_fault_handlers();

}  // namespace sim
