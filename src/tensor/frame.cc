#include "tensor/frame.h"

#include <cstring>

#include "base/crc32c.h"

namespace tensor {
namespace {

using base::Result;

constexpr uint32_t kMark = 0x54525954;  // "TYRT"
constexpr size_t kChecked = 28;         // bytes of the head before its own checksum

template <typename Number>
void Put(std::string& out, Number number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void PutText(std::string& out, std::string_view text) {
  Put<uint64_t>(out, text.size());
  out += text;
}

std::unexpected<base::Error> Broken(const char* what) {
  return std::unexpected(
      base::Error(base::ErrorKind::kInternal, std::string("a frame that is broken: ") + what));
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <typename Number>
  Result<Number> Take() {
    if (rest_.size() < sizeof(Number)) return Broken("it ends early");
    Number number;
    memcpy(&number, rest_.data(), sizeof number);
    rest_.remove_prefix(sizeof number);
    return number;
  }

  Result<std::string_view> Bytes(uint64_t size) {
    if (rest_.size() < size) return Broken("it ends early");
    const std::string_view out = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return out;
  }

  Result<std::string_view> Text() { return Bytes(TRY(Take<uint64_t>())); }

  // A number of things that have at least `least` bytes each, so that what is made room for is
  // never more than what was sent.
  Result<size_t> Count(size_t least) {
    const auto count = TRY(Take<uint32_t>());
    if (count > rest_.size() / least) return Broken("it ends early");
    return count;
  }

  Result<> End() const {
    if (!rest_.empty()) return Broken("it goes on beyond its end");
    return {};
  }

 private:
  std::string_view rest_;
};

void PutShape(std::string& out, Type type, const Shape& shape) {
  Put<int32_t>(out, static_cast<int32_t>(type));
  Put<uint32_t>(out, static_cast<uint32_t>(shape.size()));
  for (const int64_t size : shape) Put<int64_t>(out, size);
}

void PutStrings(std::string& out, const std::vector<std::string>& strings) {
  for (const std::string& text : strings) PutText(out, text);
}

Result<TensorView> TakeTensor(Reader& reader) {
  TensorView out;
  out.type = static_cast<Type>(TRY(reader.Take<int32_t>()));
  if (!IsServed(out.type)) return Broken("a type that is not served");
  const size_t rank = TRY(reader.Count(sizeof(int64_t)));
  if (rank > kMostRank) return Broken("too many dimensions");
  for (size_t i = 0; i < rank; ++i) out.shape.push_back(TRY(reader.Take<int64_t>()));
  const auto elements = ElementsOf(out.shape);
  if (!elements) return Broken("a shape without a size");
  const auto count = static_cast<uint64_t>(*elements);
  if (out.type != Type::kString) {
    out.bytes = TRY(reader.Bytes(count * SizeOf(out.type)));
    return out;
  }
  for (uint64_t i = 0; i < count; ++i) out.strings.push_back(TRY(reader.Text()));
  return out;
}

Result<std::vector<TensorView>> TakeTensors(Reader& reader) {
  const size_t count = TRY(reader.Count(8));
  std::vector<TensorView> out;
  for (size_t i = 0; i < count; ++i) out.push_back(TRY(TakeTensor(reader)));
  TRY(reader.End());
  return out;
}

void PutNames(std::string& out, const std::vector<std::string>& names) {
  Put<uint32_t>(out, static_cast<uint32_t>(names.size()));
  PutStrings(out, names);
}

Result<std::vector<std::string>> TakeNames(Reader& reader) {
  const size_t count = TRY(reader.Count(8));
  std::vector<std::string> out;
  for (size_t i = 0; i < count; ++i) out.emplace_back(TRY(reader.Text()));
  return out;
}

}  // namespace

void FillHead(Frame frame, uint64_t call, std::string& bytes) {
  const std::string_view payload = std::string_view(bytes).substr(kHeadBytes);
  std::string head;
  Put<uint32_t>(head, kMark);
  Put<uint32_t>(head, static_cast<uint32_t>(frame));
  Put<uint64_t>(head, call);
  Put<uint64_t>(head, payload.size());
  Put<uint32_t>(head, base::Crc32c(payload));
  Put<uint32_t>(head, base::Crc32c(head));
  memcpy(bytes.data(), head.data(), kHeadBytes);
}

std::string Encode(Frame frame, uint64_t call, std::string_view payload) {
  std::string out(kHeadBytes, '\0');
  out += payload;
  FillHead(frame, call, out);
  return out;
}

Result<Head> DecodeHead(std::string_view bytes) {
  CHECK(bytes.size() == kHeadBytes);
  Reader reader(bytes);
  if (TRY(reader.Take<uint32_t>()) != kMark) return Broken("no mark");
  const auto frame = TRY(reader.Take<uint32_t>());
  Head head;
  head.call = TRY(reader.Take<uint64_t>());
  head.length = TRY(reader.Take<uint64_t>());
  head.checksum = TRY(reader.Take<uint32_t>());
  if (TRY(reader.Take<uint32_t>()) != base::Crc32c(bytes.substr(0, kChecked)))
    return Broken("the head does not fit its checksum");
  if (frame < 1 || frame > 4) return Broken("of no kind");
  if (head.length > kMostPayload) return Broken("too long");
  head.frame = static_cast<Frame>(frame);
  return head;
}

Result<> CheckPayload(const Head& head, std::string_view payload) {
  if (payload.size() != head.length || base::Crc32c(payload) != head.checksum)
    return Broken("the payload does not fit its checksum");
  return {};
}

std::string EncodeLoad(const Load& load) {
  std::string out;
  PutText(out, load.directory);
  Put<uint8_t>(out, load.temporary);
  Put<int32_t>(out, load.threads);
  Put<uint32_t>(out, static_cast<uint32_t>(load.signatures.size()));
  for (const SignatureNames& signature : load.signatures) {
    PutNames(out, signature.inputs);
    PutNames(out, signature.outputs);
  }
  return out;
}

Result<Load> DecodeLoad(std::string_view payload) {
  Reader reader(payload);
  Load out;
  out.directory = TRY(reader.Text());
  const auto temporary = TRY(reader.Take<uint8_t>());
  if (temporary > 1) return Broken("neither yes nor no");
  out.temporary = temporary == 1;
  out.threads = TRY(reader.Take<int32_t>());
  const size_t count = TRY(reader.Count(8));
  for (size_t i = 0; i < count; ++i) {
    SignatureNames names;
    names.inputs = TRY(TakeNames(reader));
    names.outputs = TRY(TakeNames(reader));
    out.signatures.push_back(std::move(names));
  }
  TRY(reader.End());
  return out;
}

void AppendRun(uint32_t signature, std::span<const std::vector<Tensor>* const> requests,
               std::string& out) {
  const std::vector<Tensor>& first = *requests.front();
  Put<uint32_t>(out, signature);
  Put<uint32_t>(out, static_cast<uint32_t>(first.size()));
  for (size_t input = 0; input < first.size(); ++input) {
    Shape shape = first[input].shape;
    for (const auto* other : requests.subspan(1)) shape[0] += (*other)[input].shape[0];
    PutShape(out, first[input].type, shape);
    for (const auto* request : requests) {
      out += (*request)[input].bytes;
      PutStrings(out, (*request)[input].strings);
    }
  }
}

std::string EncodeTensors(std::span<const Tensor> tensors) {
  std::string out;
  Put<uint32_t>(out, static_cast<uint32_t>(tensors.size()));
  for (const Tensor& each : tensors) {
    PutShape(out, each.type, each.shape);
    out += each.bytes;
    PutStrings(out, each.strings);
  }
  return out;
}

Result<std::vector<Tensor>> DecodeTensors(std::string_view payload) {
  Reader reader(payload);
  const std::vector<TensorView> views = TRY(TakeTensors(reader));
  std::vector<Tensor> out;
  for (const TensorView& view : views) {
    out.push_back({.type = view.type, .shape = view.shape, .bytes = std::string(view.bytes)});
    out.back().strings.assign(view.strings.begin(), view.strings.end());
  }
  return out;
}

Result<Run> DecodeRun(std::string_view payload) {
  Reader reader(payload);
  Run out;
  out.signature = TRY(reader.Take<uint32_t>());
  out.inputs = TRY(TakeTensors(reader));
  return out;
}

std::string EncodeFailure(const Failure& failure) {
  std::string out;
  Put<int32_t>(out, failure.code);
  PutText(out, failure.text);
  return out;
}

Result<Failure> DecodeFailure(std::string_view payload) {
  Reader reader(payload);
  Failure out;
  out.code = TRY(reader.Take<int32_t>());
  out.text = TRY(reader.Text());
  TRY(reader.End());
  return out;
}

}  // namespace tensor
