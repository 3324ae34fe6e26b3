#include "cli/commands.h"

int main(int argc, char** argv) { return cli::Main(argv[0], {argv + 1, argv + argc}); }
