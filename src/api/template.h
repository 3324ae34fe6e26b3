// OpenShift Templates, expanded as `oc process` does it: parameters with values that are given,
// written, or generated, and the objects in which they are referred to (api/substitute.h).
//
// Also as oc: the template's `labels` are put on every object, over labels of the same name; a
// namespace that an object names, but not by a parameter, is dropped (with a warning); a value that
// is given stands even when it is empty, and then nothing is generated.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "api/generate.h"
#include "api/substitute.h"

namespace api {

bool IsTemplate(const base::Node& root);

// The templates of one manifest; those share what was given, and the bounds of what they make.
class Templates {
 public:
  // Given values are UTF-8. The reader must outlive this.
  Templates(Values given, Random random, FieldReader& reader)
      : given_(std::move(given)),
        random_(std::move(random)),
        reader_(reader),
        substitution_(reader) {}

  // The objects of a template. What is wrong with it is told to the reader, and then there are
  // none.
  std::vector<base::Node> Expand(base::Node root);

  // Reports what was given and no template has; once all are expanded.
  void CheckGiven();

 private:
  struct Parameter {
    std::string name;
    std::string value;
    std::string generate;
    std::string from;
    bool required = false;
  };

  Values ReadParameters(const base::Node& root);
  Parameter ReadParameter(const base::Node& node, const std::string& path);
  void Fill(Parameter& parameter, const base::Node& node, const std::string& path);

  Values given_;
  Random random_;
  FieldReader& reader_;
  Substitution substitution_;
  std::set<std::string> names_;  // of parameters of any template
  bool any_ = false;
};

}  // namespace api
