# Under GCC 12 and Clang 19. In this project's own build they are errors; another project may have another compiler.
add_compile_options(
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wcast-qual
    -Wno-missing-field-initializers
    $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
    $<$<COMPILE_LANGUAGE:CXX>:-Woverloaded-virtual>)
if(PROJECT_IS_TOP_LEVEL)
    add_compile_options(-Werror)
endif()
