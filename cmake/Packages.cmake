# Packages for Debian and its relatives: `make packages` leaves them in build/packages. One for each component of cmake/Install.cmake; the
# durable memcached joins them where integrations/memcached/build.py has built it.
set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_COMPONENTS_ALL runtime development tool)
if(TARGET stillpoint_nvhooks_pass)
    list(APPEND CPACK_COMPONENTS_ALL compiler)
endif()
if(TARGET stillpoint_rados_agent)
    list(APPEND CPACK_COMPONENTS_ALL rados)
endif()
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PACKAGE_CONTACT "Stillpoint maintainers <maintainers@users.noreply.github.com>")
set(CPACK_PACKAGE_VENDOR Stillpoint)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# stillpoint_package(component NAME name SECTION section SUMMARY text TEXT text [DEPENDS text])
function(stillpoint_package component)
    cmake_parse_arguments(package "" "NAME;SECTION;SUMMARY;TEXT;DEPENDS" "" ${ARGN})
    string(TOUPPER ${component} upper)
    set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${package_NAME} PARENT_SCOPE)
    set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${package_SECTION} PARENT_SCOPE)
    set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "${package_DEPENDS}" PARENT_SCOPE)
    set(CPACK_DEBIAN_${upper}_DESCRIPTION "${package_SUMMARY}\n${package_TEXT}" PARENT_SCOPE)
endfunction()

set(same_library "libstillpoint1 (= ${PROJECT_VERSION})")
# Lines of a description have at most 78 characters.
set(about "Stillpoint makes the memory of a multi-threaded C or C++ program survive a
crash: after a kill or a power cut the program finds its data at a
consistent point, at the same addresses, in an ordinary file.")
stillpoint_package(runtime NAME libstillpoint1 SECTION libs SUMMARY "memory that survives a crash - shared library"
    TEXT "${about}

This package has the libraries that programs run with.")
stillpoint_package(development NAME libstillpoint-dev SECTION libdevel DEPENDS "${same_library}"
    SUMMARY "memory that survives a crash - development files"
    TEXT "${about}

This package has the headers, and what the linker, pkg-config and CMake
look for.")
stillpoint_package(tool NAME stillpoint SECTION utils DEPENDS "${same_library}"
    SUMMARY "memory that survives a crash - command"
    TEXT "${about}

This package has the command: it runs programs durably, looks into pools,
checks them and tests programs by killing them.")
stillpoint_package(compiler NAME stillpoint-clang-${STILLPOINT_LLVM_VERSION} SECTION devel
    DEPENDS "stillpoint (= ${PROJECT_VERSION}), libstillpoint-dev (= ${PROJECT_VERSION}), clang-${STILLPOINT_LLVM_VERSION}"
    SUMMARY "memory that survives a crash - compiler"
    TEXT "${about}

This package has the plugin for Clang ${STILLPOINT_LLVM_VERSION} by which stillpoint cc announces
each store of durable memory, and the layers for it.")
stillpoint_package(rados NAME stillpoint-rados SECTION utils DEPENDS "${same_library}"
    SUMMARY "memory that survives a crash - pools on Ceph"
    TEXT "${about}

This package has the process by which a program keeps its pool in Ceph's
object store (RADOS) instead of in a file.")
stillpoint_package(memcached NAME stillpoint-memcached SECTION web DEPENDS "${same_library}"
    SUMMARY "memory cache whose items survive a crash"
    TEXT "${about}

This package has Debian's memcached 1.6.18 with its items in durable
memory: it is full again when it is started after a crash.")

set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/packaging/finish_packages.cmake)
set(CPACK_POST_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/packaging/finish_control.cmake)
set(CPACK_STILLPOINT_PYTHON ${Python3_EXECUTABLE})
set(CPACK_STILLPOINT_SOURCE ${PROJECT_SOURCE_DIR})

# The durable memcached is built by another build system, perhaps later: whether it is there is asked when packages are made.
set(CPACK_STILLPOINT_MEMCACHED ${PROJECT_BINARY_DIR}/integrations/memcached/durable)
set(durable_memcached ${CPACK_STILLPOINT_MEMCACHED}/memcached-durable)
install(PROGRAMS ${durable_memcached} DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT memcached OPTIONAL EXCLUDE_FROM_ALL)
install(FILES packaging/memcached-durable.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT memcached EXCLUDE_FROM_ALL)
install(FILES integrations/memcached/README.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/stillpoint-memcached COMPONENT memcached
    EXCLUDE_FROM_ALL)
file(WRITE ${PROJECT_BINARY_DIR}/PackagesProject.cmake
    "if(EXISTS \"${durable_memcached}\")\n    list(APPEND CPACK_COMPONENTS_ALL memcached)\nendif()\n")
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_BINARY_DIR}/PackagesProject.cmake)
include(CPack)
