#include "serve/examples_json.h"

#include <fmt/core.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/strings.h"
#include "serve/json_cursor.h"
#include "serve/predict_json.h"
#include "serving.pb.h"

namespace serve {
namespace {

using base::Json;
using tensorflow::Feature;

std::unexpected<Status> Wrong(const std::string& name, const char* what) {
  return BadRequest(fmt::format("feature '{}': {}", base::OneLine(name), what));
}

Answer<std::string> BytesOf(const std::string& name, const Json& value) {
  if (value.is_string()) return std::string(value.get_string());
  const Json* encoded = base::Find(value, "b64");
  if (!encoded || !encoded->is_string() || value.get_object().size() != 1)
    return Wrong(name, "a number, a string, {\"b64\": …} or a list of one kind is expected");
  auto bytes = base::DecodeBase64(std::string_view(encoded->get_string()));
  if (!bytes) return Wrong(name, "not base64");
  return *bytes;
}

// A list is of the kind of its first value; a whole number may stand among others.
Answer<Feature> FeatureOf(const std::string& name, const Json& value) {
  Feature out;
  const base::JsonArray one{value};
  const base::JsonArray& values = value.is_array() ? value.get_array() : one;
  bool real = false;
  for (const Json& each : values) real = real || each.is_double();
  for (const Json& each : values) {
    if (each.is_number() && real) {
      if (out.has_bytes_list()) return Wrong(name, "values of two kinds");
      out.mutable_float_list()->add_value(each.to_number<float>());
    } else if (each.is_int64()) {
      if (out.has_bytes_list()) return Wrong(name, "values of two kinds");
      out.mutable_int64_list()->add_value(each.get_int64());
    } else if (each.is_number()) {
      return Wrong(name, "a whole number that is too large");
    } else {
      if (out.has_float_list() || out.has_int64_list()) return Wrong(name, "values of two kinds");
      out.mutable_bytes_list()->add_value(TRY(BytesOf(name, each)));
    }
  }
  return out;
}

Answer<> FillExample(const Json& from, tensorflow::Example& to) {
  if (!from.is_object()) return BadRequest("an example must be {name: value, …}");
  for (const auto& [key, value] : from.get_object()) {
    const std::string name(key);
    (*to.mutable_features()->mutable_feature())[name] = TRY(FeatureOf(name, value));
  }
  return {};
}

}  // namespace

Answer<ExamplesBody> ReadExamplesBody(std::string_view body) {
  const auto json = base::ParseJson(body);
  if (!json) return BadRequest("JSON: " + json.error().text());
  const Json* examples = base::Find(*json, "examples");
  if (!examples || !examples->is_array()) return BadRequest("no list 'examples' in the request");
  ExamplesBody out{.signature_name = base::StringOr(*json, "signature_name"),
                   .input = std::make_shared<tensorflow::serving::Input>()};
  const Json* context = base::Find(*json, "context");
  if (context) {
    TRY(FillExample(*context, *out.input->mutable_example_list_with_context()->mutable_context()));
  }
  for (const Json& each : examples->get_array()) {
    TRY(FillExample(each, context ? *out.input->mutable_example_list_with_context()->add_examples()
                                  : *out.input->mutable_example_list()->add_examples()));
  }
  return out;
}

std::string WriteResult(const tensorflow::serving::ClassificationResult& result) {
  std::string out = "{\n    \"results\": [";
  for (int i = 0; i < result.classifications_size(); ++i) {
    out += i > 0 ? ", [" : "[";
    const auto& classes = result.classifications(i).classes();
    for (int k = 0; k < classes.size(); ++k) {
      out += k > 0 ? ", [" : "[";
      AppendJsonString(base::CleanUtf8(classes.Get(k).label()), out);
      out += ", ";
      AppendJsonNumber(classes.Get(k).score(), out);
      out += "]";
    }
    out += "]";
  }
  return out + "]\n}";
}

std::string WriteResult(const tensorflow::serving::RegressionResult& result) {
  std::string out = "{\n    \"results\": [";
  for (int i = 0; i < result.regressions_size(); ++i) {
    if (i > 0) out += ", ";
    AppendJsonNumber(result.regressions(i).value(), out);
  }
  return out + "]\n}";
}

}  // namespace serve
