# stillpoint_long_tests(test...): `make test-all` runs them, `make test` does not: programs of other projects that are compiled first,
# benchmarks, other processors, packages, long forms of what a shorter test shows too, and tests which show that an instrument notices a
# defect. Names that are not tests here are passed over.
function(stillpoint_long_tests)
    foreach(test IN LISTS ARGN)
        if(TEST ${test})
            set_property(TEST ${test} APPEND PROPERTY LABELS long)
        endif()
    endforeach()
endfunction()

# stillpoint_long_tests_of_folder(): all tests that the calling folder has added.
function(stillpoint_long_tests_of_folder)
    get_property(tests DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} PROPERTY TESTS)
    stillpoint_long_tests(${tests})
    set_property(GLOBAL APPEND PROPERTY STILLPOINT_LONG_FOLDERS ${CMAKE_CURRENT_SOURCE_DIR})
endfunction()
