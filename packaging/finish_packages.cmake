# Runs between the installation of the parts and the making of the packages: what Debian's policy asks of each.
execute_process(COMMAND ${CPACK_STILLPOINT_PYTHON} -B ${CPACK_STILLPOINT_SOURCE}/packaging/finish_packages.py
    ${CPACK_TEMPORARY_INSTALL_DIRECTORY} --version ${CPACK_PACKAGE_VERSION} --contact "${CPACK_PACKAGE_CONTACT}"
    --memcached ${CPACK_STILLPOINT_MEMCACHED}
    --package runtime=${CPACK_DEBIAN_RUNTIME_PACKAGE_NAME} --package development=${CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME}
    --package tool=${CPACK_DEBIAN_TOOL_PACKAGE_NAME} --package compiler=${CPACK_DEBIAN_COMPILER_PACKAGE_NAME}
    --package rados=${CPACK_DEBIAN_RADOS_PACKAGE_NAME} --package memcached=${CPACK_DEBIAN_MEMCACHED_PACKAGE_NAME}
    COMMAND_ERROR_IS_FATAL ANY)
set(programs ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/memcached/usr/bin/memcached-durable)
if(EXISTS ${programs})
    file(RPATH_REMOVE FILE ${programs})  # The build tree's.
endif()
