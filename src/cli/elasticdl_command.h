// The parts of the command `elasticdl`, each the whole of what one command line does; they return
// its exit status.
#pragma once

#include "cli/elasticdl_args.h"
#include "cli/elasticdl_job.h"

namespace cli {

// The job as processes of this machine, left running.
int TrainHere(const EdlJob& job, const EdlArgs& args);
// The job on the cluster of this context of the kubeconfig.
int TrainThere(const EdlJob& job, const EdlArgs& args, const std::string& context);

int ZooInit(const EdlArgs& args);
int ZooBuild(const EdlArgs& args);
int ZooPush(const EdlArgs& args);

}  // namespace cli
