# Runs after the packages are made: CPack's scripts for ldconfig become the trigger that Debian's policy asks for.
execute_process(COMMAND ${CPACK_STILLPOINT_PYTHON} -B ${CPACK_STILLPOINT_SOURCE}/packaging/finish_control.py ${CPACK_PACKAGE_FILES}
    COMMAND_ERROR_IS_FATAL ANY)
