// The commands, one function each. They return the exit status; what they refuse is one line on
// standard error.
#pragma once

#include <string>
#include <vector>

#include "cli/args.h"

namespace cli {

int RunCommand(const Args& args);
int RenderCommand(const Args& args);
int ResumeCommand(const Args& args);
int PsCommand(const Args& args);
int GetCommand(const Args& args);
int AuditCommand(const Args& args);
int EventsCommand(const Args& args);
int LogsCommand(const Args& args);
int TopCommand(const Args& args);
int WhyCommand(const Args& args);
int ScaleCommand(const Args& args);
int SuspendCommand(const Args& args);
int StopCommand(const Args& args);
int DeleteCommand(const Args& args);
int FetchCommand(const Args& args);
int BoardCommand(const Args& args);
int PredictCommand(const Args& args);
int ServeCommand(const Args& args);
int WaitCommand(const Args& args);
int DoctorCommand(const Args& args);
int InstallCommand(const Args& args);
int AdoptCommand(const Args& args);
int UninstallCommand(const Args& args);
int OperatorCommand(const Args& args);
int PackageCommand(const Args& args);
int TfSpawnerCommand(const Args& args);
int ElasticDlCommand(const Args& args);
int MasterCommand(const Args& args);
int SweepCommand(const Args& args);
int CompletionCommand(const Args& args);
int ManCommand(const Args& args);

const std::vector<Command>& Commands();

// Flags of `run` that `sweep` hands on to every trial as they are.
std::vector<Flag> SweptRunFlags();

// The whole program: argv to exit status. Called by the name of a system whose command line we
// take, tf-spawner or elasticdl, it is that command.
int Main(const std::string& program, std::vector<std::string> words);

}  // namespace cli
