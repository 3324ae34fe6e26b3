// A sweep written down: a YAML file with the words of `trainyard sweep` as keys.
//
//   script: train.py             or manifest: tfjob.yaml, in which ${lr} stands for the parameter
//   args: [--epochs=3]           of the script
//   parameters:
//     lr: log:1e-4..1e-1         as after --param lr=
//     layers: [1, 2, 3]
//     optimizer: [sgd, adam]
//     momentum: {values: 0.0..0.99, when: {optimizer: sgd}}
//   metric: val_loss
//   trials: 20                   and goal, parallel, algorithm, prune, seed, window, async, name
//   run: {workers: 2, ps: 1}     flags of `trainyard run`
//
// Pure: the text becomes words of a command line, to which those that were typed are added.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cli {

struct SweepFile {
  std::string script;              // as written: relative to the file
  std::string manifest;            // likewise
  std::vector<std::string> flags;  // "--metric=val_loss", "--workers=2"
  std::vector<std::string> arguments;
};

// `file` is named in errors: "sweep.yaml:3:7: parameters.lr: …", one line each.
base::Result<SweepFile> ReadSweepFile(std::string_view text, const std::string& file);

}  // namespace cli
