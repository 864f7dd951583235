# Destinations of `make install` (cmake --install): the command, the library, the public headers, the
# files by which pkg-config and find_package() find them, and the manual pages.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS stillpoint EXPORT stillpoint-targets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS stillpoint-heap LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS stillpoint-itm EXPORT stillpoint-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS stillpoint_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY include/stillpoint DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
# The compilers: the command under their names, the plugin where there was an LLVM to build it for, and the layers.
install(FILES ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/stillpoint-cc ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/stillpoint-c++
    DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET stillpoint_nvhooks_pass)
    install(TARGETS stillpoint_nvhooks_pass LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/stillpoint)
endif()
install(DIRECTORY layers DESTINATION ${CMAKE_INSTALL_DATADIR}/stillpoint
    FILES_MATCHING PATTERN "*.yaml" PATTERN "*-hooks.h" PATTERN "link.flags")
get_property(shims DIRECTORY ${CMAKE_SOURCE_DIR}/layers PROPERTY BUILDSYSTEM_TARGETS)
foreach(shim IN LISTS shims)
    get_target_property(type ${shim} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
        install(TARGETS ${shim} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
    endif()
endforeach()
# The benchmark: its driver, and those of its measured programs that were built.
get_property(bench_workers GLOBAL PROPERTY STILLPOINT_BENCH_WORKERS)
install(TARGETS ${bench_workers} RUNTIME DESTINATION ${CMAKE_INSTALL_LIBDIR}/stillpoint OPTIONAL)
get_property(bench_programs GLOBAL PROPERTY STILLPOINT_BENCH_PROGRAMS)
if(bench_programs)
    install(PROGRAMS ${bench_programs} DESTINATION ${CMAKE_INSTALL_LIBDIR}/stillpoint OPTIONAL)
endif()
install(FILES bench/run.py DESTINATION ${CMAKE_INSTALL_DATADIR}/stillpoint/bench)
file(GLOB bench_rows CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/bench/engines/*/rows.json)
foreach(rows IN LISTS bench_rows)
    file(RELATIVE_PATH place ${CMAKE_SOURCE_DIR}/bench ${rows})
    get_filename_component(place ${place} DIRECTORY)
    install(FILES ${rows} DESTINATION ${CMAKE_INSTALL_DATADIR}/stillpoint/bench/${place})
endforeach()
install(DIRECTORY bench/driver DESTINATION ${CMAKE_INSTALL_DATADIR}/stillpoint/bench FILES_MATCHING PATTERN "*.py")
file(GLOB pages CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/man/*.1)
install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

# pkg-config: relative to its own place, so that the tree can be moved and staged.
file(RELATIVE_PATH STILLPOINT_PREFIX_FROM_PC
    /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
foreach(name stillpoint stillpoint-itm)
    configure_file(cmake/${name}.pc.in ${CMAKE_BINARY_DIR}/${name}.pc @ONLY)
    install(FILES ${CMAKE_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()

# find_package(stillpoint) gives the target stillpoint::stillpoint.
set(STILLPOINT_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/stillpoint)
install(EXPORT stillpoint-targets NAMESPACE stillpoint:: DESTINATION ${STILLPOINT_PACKAGE_DIR}
    FILE stillpoint-config.cmake)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/stillpoint-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_BINARY_DIR}/stillpoint-config-version.cmake DESTINATION ${STILLPOINT_PACKAGE_DIR})
