# Writes the bytes of FROM as an array into the header TO.
file(READ ${FROM} bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
file(WRITE ${TO} "#pragma once\n// Made by CMake from nvhooks/bodies.\n\nnamespace stillpoint::nvhooks {\n\n"
    "alignas(4) inline constexpr unsigned char library_bodies_bitcode[] = {${bytes}};\n\n}  // namespace stillpoint::nvhooks\n")
