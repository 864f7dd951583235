# An include that points the wrong way breaks the build, whichever target is built.
add_custom_target(stillpoint_check_includes ALL
    COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/scripts/check_includes.py --quiet
    COMMENT "Checking the order of the layers" VERBATIM)

include(GNUInstallDirs)

# Every program of unit tests: what the sanitizers run.
if(STILLPOINT_BUILD_TESTS)
    add_custom_target(unit_tests)
endif()

# Headers that nearly every file includes are compiled once: a build from nothing takes a fifth less. Not with ccache, which
# knows a file by what it includes. Not for layers that stand in for libc: what they include first matters to them.
if("${CMAKE_CXX_COMPILER_LAUNCHER}" MATCHES "ccache")
    set(precompiled_default OFF)
else()
    set(precompiled_default ON)
endif()
option(STILLPOINT_PRECOMPILED_HEADERS "Compile common headers once" ${precompiled_default})
set(STILLPOINT_LAYERS_WITHOUT_PRECOMPILED core arch os interpose nvhooks/runtime)
set(precompiled_headers ${PROJECT_SOURCE_DIR}/src/core/result.hpp <algorithm> <atomic> <cstring> <memory> <mutex> <string> <vector>)

# Some sources of a folder as one, since what they include is most of a compiler's work: a build from nothing takes a third of the time.
# Internal names differ within a folder. OFF compiles each source alone, and so finds an include that is missing: after adding one.
option(STILLPOINT_UNITY "Compile several sources of a folder at a time" ON)
set(STILLPOINT_LAYERS_WITHOUT_UNITY core arch interpose nvhooks/runtime)
set(STILLPOINT_UNITY_SOURCES 8)

# Sources that hold a canary's switch, or tell a trace what a real medium does: the crash explorer compiles them once more, with those
# on, in place of the product's objects. So they are joined with each other alone.
execute_process(COMMAND grep -rlE --include=*.cpp "core/canary.hpp|media/observer.hpp" ${PROJECT_SOURCE_DIR}/src
    OUTPUT_VARIABLE switched OUTPUT_STRIP_TRAILING_WHITESPACE)
string(REPLACE "\n" ";" STILLPOINT_SWITCHED_SOURCES "${switched}")
list(FILTER STILLPOINT_SWITCHED_SOURCES EXCLUDE REGEX "_test\\.cpp$")
list(SORT STILLPOINT_SWITCHED_SOURCES)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${STILLPOINT_SWITCHED_SOURCES})

# stillpoint_unity(target [ALONE source...]): call it where the target's sources are given. Sources with options of their own are compiled
# alone, too.
function(stillpoint_unity target)
    if(NOT STILLPOINT_UNITY)
        return()
    endif()
    cmake_parse_arguments(PARSE_ARGV 1 unity "" "" ALONE)
    get_target_property(sources ${target} SOURCES)
    list(FILTER sources INCLUDE REGEX "\\.cpp$")
    foreach(source IN LISTS unity_ALONE)
        list(REMOVE_ITEM sources ${source})
        set_property(SOURCE ${source} PROPERTY SKIP_UNITY_BUILD_INCLUSION ON)
    endforeach()
    foreach(source IN LISTS sources)
        file(RELATIVE_PATH group ${PROJECT_SOURCE_DIR} ${source})
        get_filename_component(group ${group} DIRECTORY)
        string(MAKE_C_IDENTIFIER "${group}" group)
        if(source IN_LIST STILLPOINT_SWITCHED_SOURCES)
            string(APPEND group "_switched")
        endif()
        math(EXPR place "${joined_${group}} + 0")
        math(EXPR number "${place} / ${STILLPOINT_UNITY_SOURCES}")
        math(EXPR joined_${group} "${place} + 1")
        set_property(SOURCE ${source} PROPERTY UNITY_GROUP ${group}_${number})
    endforeach()
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    target_compile_options(${target} PRIVATE -Wno-shadow)  # A local name may be another source's too.
endfunction()

# stillpoint_replaced(target source...): tests link other objects in place of those of the target's sources, which therefore stay alone.
function(stillpoint_replaced target)
    set_property(SOURCE ${ARGN} TARGET_DIRECTORY ${target} PROPERTY SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# stillpoint_precompile(target owner header...): `target` uses headers that `owner` has compiled; the first target to name an
# owner is it.
function(stillpoint_precompile target owner)
    if(NOT STILLPOINT_PRECOMPILED_HEADERS)
        return()
    endif()
    get_property(known GLOBAL PROPERTY STILLPOINT_PRECOMPILED_${owner})
    if(known)
        target_precompile_headers(${target} REUSE_FROM ${known})
    else()
        target_precompile_headers(${target} PRIVATE ${ARGN})
        set_property(GLOBAL PROPERTY STILLPOINT_PRECOMPILED_${owner} ${target})
    endif()
endfunction()

# Options of single sources; CMake forgets them outside of the folder that calls this.
function(stillpoint_vector_units)
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
        set_source_files_properties(${PROJECT_SOURCE_DIR}/src/arch/checksum_avx2.cpp PROPERTIES COMPILE_OPTIONS -mavx2)
    endif()
endfunction()
stillpoint_vector_units()
# Where the agent of pools in Ceph lies, seen from the folder of a program.
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/media/rados/agent_link.cpp PROPERTIES
    COMPILE_DEFINITIONS STILLPOINT_LIBRARY_FOLDER="${CMAKE_INSTALL_LIBDIR}")

# Every folder has its own canaries (src/core/canary.hpp); this list of the lists is their only common place.
file(GLOB canary_lists RELATIVE ${PROJECT_SOURCE_DIR}/src CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*/canaries.inc
    ${PROJECT_SOURCE_DIR}/src/engines/*/canaries.inc)
set(every_canary "// Written by cmake/Layers.cmake: the canaries of every folder that has some.\n\n")
foreach(list IN LISTS canary_lists)
    set(engine "")
    if(list MATCHES "^engines/([^/]+)/")
        set(engine "${CMAKE_MATCH_1}/")
    endif()
    string(APPEND every_canary "#define STILLPOINT_CANARY_ENGINE \"${engine}\"\n#include \"${list}\"\n#undef STILLPOINT_CANARY_ENGINE\n")
endforeach()
set(STILLPOINT_GENERATED ${PROJECT_BINARY_DIR}/generated)
file(CONFIGURE OUTPUT ${STILLPOINT_GENERATED}/every_canary.inc CONTENT "${every_canary}" @ONLY)

# stillpoint_layer(name): one static-in-spirit object library per folder of src/, from every
# source in it (sub-folders too); *_test.cpp become the test program <name>_test.
# Adding a file edits no list.
# A layer of two words (nvhooks/runtime) has its name with an underscore.
function(stillpoint_layer folder)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${folder}/*.cpp)
    string(REPLACE "/" "_" name ${folder})
    set(tests ${sources})
    list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
    list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
    if(sources)
        add_library(sp_${name} OBJECT ${sources})
    else()
        add_library(sp_${name} INTERFACE)
    endif()
    set_property(GLOBAL APPEND PROPERTY STILLPOINT_LAYERS sp_${name})
    add_dependencies(sp_${name} stillpoint_check_includes)
    stillpoint_settings(sp_${name})
    if(sources AND NOT folder IN_LIST STILLPOINT_LAYERS_WITHOUT_PRECOMPILED)
        stillpoint_precompile(sp_${name} layers ${precompiled_headers})
    endif()
    if(sources AND NOT folder IN_LIST STILLPOINT_LAYERS_WITHOUT_UNITY)
        stillpoint_unity(sp_${name})
    endif()
    # Tests are linked where every layer is known: src/CMakeLists.txt.
    set_property(GLOBAL PROPERTY STILLPOINT_TESTS_${name} "${tests}")
endfunction()

# stillpoint_unit_program(target): a program of unit tests. Its own files are not optimised, which halves the time that they take to
# compile; what they test is.
function(stillpoint_unit_program target)
    target_compile_options(${target} PRIVATE -O0)
    add_dependencies(unit_tests ${target})
endfunction()

# stillpoint_sanitized_test(test program): unit tests that `make test` builds and runs under the sanitizers alone, as those of the layers.
function(stillpoint_sanitized_test test program)
    set_property(GLOBAL APPEND PROPERTY STILLPOINT_SANITIZED_PROGRAMS ${program})
    set_property(TEST ${test} APPEND PROPERTY LABELS layer)
endfunction()

# stillpoint_quickly_compiled(target [SPEED]): debug information is line tables alone, and optimisation is little, unless SPEED is asked
# for. For programs whose time is that of what they call; it halves the compiler's.
function(stillpoint_quickly_compiled target)
    set(options -g1)
    if(NOT "SPEED" IN_LIST ARGN)
        list(APPEND options -O1)
    endif()
    target_compile_options(${target} PRIVATE "$<$<CONFIG:RelWithDebInfo>:${options}>")
endfunction()

function(stillpoint_settings target)
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "INTERFACE_LIBRARY")
        return()
    endif()
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include ${STILLPOINT_GENERATED})
    target_include_directories(${target} SYSTEM PRIVATE ${XXHASH_INCLUDE_DIR} ${LIBURING_INCLUDE_DIR})
    target_link_libraries(${target} PRIVATE tl::expected Threads::Threads)
    target_compile_definitions(${target} PRIVATE _GNU_SOURCE STILLPOINT_VERSION="${PROJECT_VERSION}")
    target_compile_options(${target} PRIVATE -fvisibility=hidden)
    target_compile_features(${target} PRIVATE cxx_std_20)
endfunction()

# stillpoint_layer_objects(out layer...): the object files of these layers, those that have any.
function(stillpoint_layer_objects out)
    set(objects "")
    foreach(layer IN LISTS ARGN)
        get_target_property(type ${layer} TYPE)
        if(type STREQUAL "OBJECT_LIBRARY")
            list(APPEND objects $<TARGET_OBJECTS:${layer}>)
        endif()
    endforeach()
    set(${out} "${objects}" PARENT_SCOPE)
endfunction()
