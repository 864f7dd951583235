# Destinations of `make install` (cmake --install), and the part that each file belongs to; a part is a package of cmake/Packages.cmake:
#   runtime      the libraries that programs run with
#   development  headers, the names that the linker looks for, and what pkg-config and find_package() read
#   tool         the command, its manual pages and completions
#   compiler     `stillpoint cc`: the plugin and the layers
#   bench        `stillpoint bench`
#   rados        the agent of pools in Ceph, where librados was found
#   records      the licence, and the list of what was installed, for `make uninstall`
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(libraries LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development)

install(TARGETS stillpoint stillpoint-cxx EXPORT stillpoint-targets ${libraries} INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS stillpoint-heap LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_SKIP)  # Only ever preloaded.
install(TARGETS stillpoint-itm EXPORT stillpoint-targets ${libraries})
install(TARGETS stillpoint_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tool)
if(TARGET stillpoint_rados_agent)
    install(TARGETS stillpoint_rados_agent RUNTIME DESTINATION ${CMAKE_INSTALL_LIBDIR}/stillpoint COMPONENT rados)
endif()
install(DIRECTORY include/stillpoint DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
    FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
# The compilers: the command under their names, the plugin where there was an LLVM to build it for, and the layers.
install(FILES ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/stillpoint-cc ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/stillpoint-c++
    DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT compiler)
if(TARGET stillpoint_nvhooks_pass)
    install(TARGETS stillpoint_nvhooks_pass LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/stillpoint COMPONENT compiler)
endif()
install(DIRECTORY layers DESTINATION ${CMAKE_INSTALL_DATADIR}/stillpoint COMPONENT compiler
    FILES_MATCHING PATTERN "*.yaml" PATTERN "*-hooks.h" PATTERN "link.flags")
get_property(shims DIRECTORY ${PROJECT_SOURCE_DIR}/layers PROPERTY BUILDSYSTEM_TARGETS)
foreach(shim IN LISTS shims)
    get_target_property(type ${shim} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
        install(TARGETS ${shim} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT compiler)
    endif()
endforeach()
# The benchmark: its driver, and those of its measured programs that were built.
if(STILLPOINT_BUILD_TESTS)
    get_property(bench_workers GLOBAL PROPERTY STILLPOINT_BENCH_WORKERS)
    install(TARGETS ${bench_workers} RUNTIME DESTINATION ${CMAKE_INSTALL_LIBDIR}/stillpoint COMPONENT bench OPTIONAL)
    get_property(bench_programs GLOBAL PROPERTY STILLPOINT_BENCH_PROGRAMS)
    if(bench_programs)
        install(PROGRAMS ${bench_programs} DESTINATION ${CMAKE_INSTALL_LIBDIR}/stillpoint COMPONENT bench OPTIONAL)
    endif()
    install(FILES bench/run.py DESTINATION ${CMAKE_INSTALL_DATADIR}/stillpoint/bench COMPONENT bench)
    file(GLOB bench_rows CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/engines/*/rows.json)
    foreach(rows IN LISTS bench_rows)
        file(RELATIVE_PATH place ${PROJECT_SOURCE_DIR}/bench ${rows})
        get_filename_component(place ${place} DIRECTORY)
        install(FILES ${rows} DESTINATION ${CMAKE_INSTALL_DATADIR}/stillpoint/bench/${place} COMPONENT bench)
    endforeach()
    # The door for peers: the header and the example.
    install(DIRECTORY bench/peer DESTINATION ${CMAKE_INSTALL_DATADIR}/stillpoint/bench COMPONENT bench)
    install(DIRECTORY bench/driver DESTINATION ${CMAKE_INSTALL_DATADIR}/stillpoint/bench COMPONENT bench FILES_MATCHING PATTERN "*.py")
endif()
file(GLOB pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/man/*.1)
set(compiler_pages ${pages})
list(FILTER compiler_pages INCLUDE REGEX "stillpoint-cc\\.1$")
list(REMOVE_ITEM pages ${compiler_pages})
install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tool)
install(FILES ${compiler_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT compiler)
install(DIRECTORY tracing packaging/systemd DESTINATION ${CMAKE_INSTALL_DATADIR}/stillpoint COMPONENT tool
    FILES_MATCHING PATTERN "*.bt" PATTERN "*.gdb" PATTERN "*.service")
install(DIRECTORY docs/schemas DESTINATION ${CMAKE_INSTALL_DATADIR}/stillpoint COMPONENT tool FILES_MATCHING PATTERN "*.json")
install(FILES tools/gdb/stillpoint-gdb.py DESTINATION ${CMAKE_INSTALL_DATADIR}/stillpoint/gdb COMPONENT tool)
if(TARGET stillpoint_completion)
    install(FILES ${PROJECT_BINARY_DIR}/completion/bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
        RENAME stillpoint COMPONENT tool)
    install(FILES ${PROJECT_BINARY_DIR}/completion/zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions
        RENAME _stillpoint COMPONENT tool)
    install(FILES ${PROJECT_BINARY_DIR}/completion/fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
        RENAME stillpoint.fish COMPONENT tool)
endif()
install(FILES LICENSE CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT records)

# pkg-config: relative to its own place, so that the tree can be moved and staged.
file(RELATIVE_PATH STILLPOINT_PREFIX_FROM_PC
    /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
foreach(name stillpoint stillpoint-itm)
    configure_file(cmake/${name}.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endforeach()

# find_package(stillpoint) gives the targets stillpoint::stillpoint, stillpoint::cxx and stillpoint::stillpoint-itm.
set(STILLPOINT_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/stillpoint)
install(EXPORT stillpoint-targets NAMESPACE stillpoint:: DESTINATION ${STILLPOINT_PACKAGE_DIR}
    FILE stillpoint-config.cmake COMPONENT development)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/stillpoint-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/stillpoint-config-version.cmake DESTINATION ${STILLPOINT_PACKAGE_DIR} COMPONENT development)

# Last, so that the list has all of it.
set(STILLPOINT_INSTALLED_LIST ${CMAKE_INSTALL_DATADIR}/stillpoint/installed-files.txt)
install(CODE "set(list \"${STILLPOINT_INSTALLED_LIST}\")
    include(\"${PROJECT_SOURCE_DIR}/cmake/InstalledFiles.cmake\")" COMPONENT records)
