// TensorBoard beside jobs of a cluster, reached through a port of this machine.
#pragma once

#include <string>

#include "cli/args.h"

namespace cli {

// `board` on the cluster of this context, until Ctrl-C; the exit status.
int BoardThere(const Args& args, const std::string& context);

// Says where it is. (board.cc)
void TellBoard(const Args& args, const std::string& url, size_t runs);

}  // namespace cli
