// How often a model runs by the bare C API, with nobody around it: what serving is compared with.
//
//   serve_bare LIBRARIES MODEL INPUT OUTPUTS ROWS THREADS SECONDS     OUTPUTS: names with commas
//   between
//
// The input is (ROWS,28,28,1) of floats. Prints runs a second.
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "base/strings.h"
#include "runtime/model.h"

int main(int argc, char** argv) {
  if (argc != 8) return 2;
  const auto tensorflow = runtime::OpenTensorFlow(argv[1]);
  if (!tensorflow) return 1;
  tensor::Load load{
      .directory = argv[2], .threads = atoi(argv[6]), .signatures = {{{argv[3]}, {}}}};
  for (const auto name : base::Split(argv[4], ',')) load.signatures[0].outputs.emplace_back(name);
  runtime::Model model(*tensorflow);
  if (const auto loaded = model.Load(load); !loaded) {
    fprintf(stderr, "%s\n", loaded.error().text.c_str());
    return 1;
  }
  const int64_t rows = atoi(argv[5]);
  const std::string pixels(static_cast<size_t>(rows) * 784 * sizeof(float), '\0');
  const tensor::Run run{
      .inputs = {{.type = tensor::Type::kFloat, .shape = {rows, 28, 28, 1}, .bytes = pixels}}};
  using Clock = std::chrono::steady_clock;
  for (int i = 0; i < 50; ++i) {
    if (!model.Run(run)) return 1;
  }
  const auto begun = Clock::now();
  const auto until = begun + std::chrono::duration<double>(atof(argv[7]));
  int64_t count = 0;
  while (Clock::now() < until) {
    if (!model.Run(run)) return 1;
    ++count;
  }
  printf("%.1f\n",
         static_cast<double>(count) / std::chrono::duration<double>(Clock::now() - begun).count());
  fflush(stdout);
  _Exit(0);  // TensorFlow's threads need no farewell
}
