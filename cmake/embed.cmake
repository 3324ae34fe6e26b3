# Writes a C++ source with the bytes of FILE as a constant; trainyard_embed in folders.cmake runs it.
#
# Every byte becomes an escape, so that no byte means anything to the compiler.
file(READ ${FILE} hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" escapes "${hex}")
# 24 bytes a line.
string(REPEAT "\\\\x.." 24 line)
string(REGEX REPLACE "(${line})" "\\1\"\n    \"" escapes "${escapes}")
file(WRITE ${SOURCE} "#include \"${HEADER}\"

namespace {

constexpr char kBytes[] =
    \"${escapes}\";

}  // namespace

constinit const std::string_view ${CONSTANT}(kBytes, sizeof kBytes - 1);
")
