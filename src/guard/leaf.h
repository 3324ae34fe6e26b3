// The cgroup that a supervisor makes for itself and its guards when it divides the group that it
// was started in.
#pragma once

namespace guard {

// Waits until `control` is closed, which tells that the supervisor needs the leaf no more or is
// dead, and until nobody but this process is left in the leaf. Then switches the controllers of the
// group above it off and removes the leaf. The caller lives in the leaf.
void RemoveLeafAfterUse(const char* leaf, int control);

}  // namespace guard
