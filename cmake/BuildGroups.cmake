# Programs that are built besides the product, in groups, each found by walking the folders: no list to edit.
#   bench_programs  what `stillpoint bench` measures of the project's own, and what the parts' benchmarks do; other programs are built
#                   when a benchmark asks for them (bench/driver/build.py): STILLPOINT_BENCH_ON_DEMAND
#   everyday_programs, everyday_unit_tests  what `make test` runs: program_tests and unit_tests without benchmarks, fuzzers and the
#                   folders of long tests (LongTests.cmake); the former without stillpoint_sanitized_test's, too
#   program_tests   test_programs without the tests of the layers, which `make test` runs under the sanitizers alone
#   test_programs   every program that a test runs, with the product and all benchmarks but those that no test asks for:
#                   STILLPOINT_BENCH_UNTESTED

function(stillpoint_targets_below folder out)
    get_property(found DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
    get_property(children DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
    foreach(child IN LISTS children)
        stillpoint_targets_below(${child} below)
        list(APPEND found ${below})
    endforeach()
    set(${out} "${found}" PARENT_SCOPE)
endfunction()

stillpoint_targets_below(${PROJECT_SOURCE_DIR}/bench benches)
get_property(on_demand GLOBAL PROPERTY STILLPOINT_BENCH_ON_DEMAND)
get_property(untested GLOBAL PROPERTY STILLPOINT_BENCH_UNTESTED)
set(usual_benches ${benches})
list(REMOVE_ITEM usual_benches ${on_demand})
add_custom_target(bench_programs)
add_dependencies(bench_programs stillpoint_tool ${usual_benches})

stillpoint_targets_below(${PROJECT_SOURCE_DIR}/tests tests)
stillpoint_targets_below(${PROJECT_SOURCE_DIR}/src layer_tests)
stillpoint_targets_below(${PROJECT_SOURCE_DIR}/layers layers)
stillpoint_targets_below(${PROJECT_SOURCE_DIR}/examples examples)
if(untested)
    list(REMOVE_ITEM benches ${untested})
endif()
add_custom_target(program_tests)
add_dependencies(program_tests bench_programs ${benches} ${tests} ${layers} ${examples})
add_custom_target(test_programs)
add_dependencies(test_programs program_tests ${layer_tests})

get_target_property(unit_programs unit_tests MANUALLY_ADDED_DEPENDENCIES)
get_property(long_folders GLOBAL PROPERTY STILLPOINT_LONG_FOLDERS)
foreach(folder IN LISTS long_folders)
    stillpoint_targets_below(${folder} long)
    if(long)
        list(REMOVE_ITEM tests ${long})
        list(REMOVE_ITEM unit_programs ${long})
    endif()
endforeach()
get_property(sanitized GLOBAL PROPERTY STILLPOINT_SANITIZED_PROGRAMS)
list(REMOVE_ITEM tests ${sanitized})
add_custom_target(everyday_programs)
add_dependencies(everyday_programs stillpoint_tool ${tests} ${layers} ${examples})
add_custom_target(everyday_unit_tests)
add_dependencies(everyday_unit_tests ${unit_programs})
