// A line of the control protocol is read or refused; what was read is written and reads back.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ledger/control.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  if (const auto message = ledger::DecodeHostMessage(line)) {
    CHECK(ledger::DecodeHostMessage(ledger::Encode(*message)) == *message);
  }
  if (const auto message = ledger::DecodeMasterMessage(line)) {
    CHECK(ledger::DecodeMasterMessage(ledger::Encode(*message)) == *message);
  }
  return 0;
}
