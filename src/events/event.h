// The scalars in one record of an event file.
//
// A record is a serialized tensorflow.Event. Only what we show is taken out of it: the time, the
// step, and scalars in both forms that are in use:
//
//   TF1  Summary.Value.simple_value
//   TF2  Summary.Value.tensor with one number in it, of any real type, and metadata that names the
//        plugin "scalars" or none (writers may leave it out after the first value of a tag)
//
// Graphs, images, histograms and fields we do not know are stepped over. The wire format is read by
// hand: the few fields needed do not justify a dependency on protobuf.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace events {

struct Scalar {
  std::string_view tag;
  double value = 0;

  bool operator==(const Scalar&) const = default;
};

struct Event {
  double wall_time = 0;  // seconds since 1970
  int64_t step = 0;
  std::string_view file_version;  // "brain.Event:2" in the first record of a file
  bool session_start = false;     // TF1: a session began at this step, what lies beyond it is void
  std::vector<Scalar> scalars;
};

// Reads a record into *event, which may be used again and again: nothing is allocated once its
// vector has grown. Views point into the record. False when the bytes are no Event; then *event
// means nothing. Never reads beyond the record, whatever the bytes.
[[nodiscard]] bool DecodeEvent(std::string_view record, Event* event);

}  // namespace events
