# The hook and the functions of breeze-hooks.h, by the engine's C API; read by layers/CMakeLists.txt.
add_library(stillpoint-layer-breeze STATIC breeze/breeze_shim.c)
target_compile_definitions(stillpoint-layer-breeze PRIVATE _GNU_SOURCE)
target_include_directories(stillpoint-layer-breeze PRIVATE ${PROJECT_SOURCE_DIR}/include)
