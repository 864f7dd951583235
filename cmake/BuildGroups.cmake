# What is built besides the product, in two groups, each found by walking the folders: no list to edit.
#   bench_programs  the measured processes of `stillpoint bench` and of the other benchmarks
#   test_programs   every program that a test runs, with the product and the benchmarks

function(stillpoint_targets_below folder out)
    get_property(found DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
    get_property(children DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
    foreach(child IN LISTS children)
        stillpoint_targets_below(${child} below)
        list(APPEND found ${below})
    endforeach()
    set(${out} "${found}" PARENT_SCOPE)
endfunction()

stillpoint_targets_below(${CMAKE_SOURCE_DIR}/bench benches)
add_custom_target(bench_programs)
add_dependencies(bench_programs stillpoint_tool ${benches})

stillpoint_targets_below(${CMAKE_SOURCE_DIR}/tests tests)
stillpoint_targets_below(${CMAKE_SOURCE_DIR}/src layer_tests)
stillpoint_targets_below(${CMAKE_SOURCE_DIR}/layers layers)
stillpoint_targets_below(${CMAKE_SOURCE_DIR}/examples examples)
add_custom_target(test_programs)
add_dependencies(test_programs bench_programs ${tests} ${layer_tests} ${layers} ${examples})
