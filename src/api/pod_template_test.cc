#include "api/pod_template.h"

#include <gtest/gtest.h>

namespace api {
namespace {

using base::Json;

TEST(AddPort, TakesTheFirstContainerWhenNoneIsNamedTensorFlow) {
  Json pod = *base::ParseJson(R"({"spec":{"containers":[{"name":"x"},{"name":"y"}]}})");
  AddPort(pod, 2222);
  EXPECT_EQ(base::CompactJson(pod),
            R"({"spec":{"containers":[{"name":"x","ports":[{"name":"tfjob-port",)"
            R"("containerPort":2222}]},{"name":"y"}]}})");
}

TEST(AddPort, LeavesATemplateWithoutContainersAlone) {
  for (const char* text : {"null", "{}", "[]", R"({"spec":null})", R"({"spec":{"containers":[]}})",
                           R"({"spec":{"containers":{}}})", R"({"spec":{"containers":[1]}})"}) {
    Json pod = *base::ParseJson(text);
    AddPort(pod, 2222);
    EXPECT_EQ(base::CompactJson(pod), text);
    EXPECT_EQ(PortOf(pod), 2222);
    EXPECT_EQ(TensorFlowContainer(pod), nullptr);
  }
}

}  // namespace
}  // namespace api
